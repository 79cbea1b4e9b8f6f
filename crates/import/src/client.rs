//! Clients with known files, and the places of these files on each platform. Does not read them.

use std::fmt;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

use super::places::{Places, Platform};
use super::reading::Reading;
use super::{claude_code, claude_desktop, cline, codex, cursor, gemini, vscode, windsurf, zed};

/// An AI client that keeps a list of MCP servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Client {
    /// Claude Code, the command line program.
    ClaudeCode,
    ClaudeDesktop,
    /// Cline, an extension of VS Code.
    Cline,
    /// Codex, command line and editor extension.
    Codex,
    Cursor,
    Gemini,
    VsCode,
    Windsurf,
    Zed,
}

/// A place where a client may keep a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Location {
    pub(super) path: PathBuf,
    /// The directory of the file's project; `None` for a person's own.
    pub(super) project: Option<PathBuf>,
}

/// Takes the servers out of the text of a file; an error is what is wrong with the whole file.
pub(super) type Reader = fn(&mut Reading<'_>, &str) -> Result<(), String>;

impl Client {
    /// Every client, in the order of reading.
    pub const ALL: [Self; 9] = [
        Self::ClaudeDesktop,
        Self::ClaudeCode,
        Self::Cursor,
        Self::VsCode,
        Self::Windsurf,
        Self::Cline,
        Self::Codex,
        Self::Gemini,
        Self::Zed,
    ];

    /// The name on the command line: `claude-desktop`.
    pub fn id(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Cline => "cline",
            Self::Codex => "codex",
            Self::Cursor => "cursor",
            Self::Gemini => "gemini",
            Self::VsCode => "vscode",
            Self::Windsurf => "windsurf",
            Self::Zed => "zed",
        }
    }

    /// The client with this name on the command line; `claude` is Claude Code and `code` is VS Code.
    pub fn from_id(id: &str) -> Option<Self> {
        match id {
            "claude" => Some(Self::ClaudeCode),
            "code" | "vs-code" => Some(Self::VsCode),
            "gemini-cli" => Some(Self::Gemini),
            _ => Self::ALL.into_iter().find(|client| client.id() == id),
        }
    }

    /// Gives the name known to people.
    pub fn label(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Cline => "Cline",
            Self::Codex => "Codex",
            Self::Cursor => "Cursor",
            Self::Gemini => "Gemini CLI",
            Self::VsCode => "VS Code",
            Self::Windsurf => "Windsurf",
            Self::Zed => "Zed",
        }
    }

    pub(super) fn reader(self) -> Reader {
        match self {
            Self::ClaudeCode => claude_code::read,
            Self::ClaudeDesktop => claude_desktop::read,
            Self::Cline => cline::read,
            Self::Codex => codex::read,
            Self::Cursor => cursor::read,
            Self::Gemini => gemini::read,
            Self::VsCode => vscode::read,
            Self::Windsurf => windsurf::read,
            Self::Zed => zed::read,
        }
    }

    /// Lists the possible files: a person's own first, then those of the project, nearest first.
    pub(super) fn files(self, places: &Places) -> Vec<Location> {
        let own = self.own_files(places).into_iter().map(|path| Location { path, project: None });
        let Some(below) = self.project_file() else { return own.collect() };
        let of_project = places
            .projects()
            .into_iter()
            .map(|dir| Location { path: below.iter().fold(dir.to_owned(), |path, part| path.join(part)), project: Some(dir.to_owned()) });
        own.chain(of_project).collect()
    }

    /// Lists a person's own files, the writable one first.
    pub fn own_files(self, places: &Places) -> Vec<PathBuf> {
        let (home, settings) = (&places.home, places.settings());
        let below_home = |parts: &[&str]| parts.iter().fold(home.clone(), |path, part| path.join(part));
        let vs_code = settings.join("Code").join("User");
        match self {
            Self::ClaudeCode => match places.dir_from("CLAUDE_CONFIG_DIR") {
                Some(dir) => vec![dir.join(".claude.json")],
                None => vec![below_home(&[".claude.json"])],
            },
            Self::ClaudeDesktop => vec![settings.join("Claude").join("claude_desktop_config.json")],
            Self::Cline => {
                let extension = vs_code.join("globalStorage").join("saoudrizwan.claude-dev").join("settings");
                let alone = below_home(&[".cline", "data", "settings"]);
                [extension, alone].map(|dir| dir.join("cline_mcp_settings.json")).into()
            }
            Self::Codex => vec![places.dir_from("CODEX_HOME").unwrap_or_else(|| below_home(&[".codex"])).join("config.toml")],
            Self::Cursor => vec![below_home(&[".cursor", "mcp.json"])],
            Self::Gemini => vec![below_home(&[".gemini", "settings.json"])],
            Self::VsCode => vec![vs_code.join("mcp.json"), vs_code.join("settings.json")],
            Self::Windsurf => vec![below_home(&[".codeium", "windsurf", "mcp_config.json"])],
            Self::Zed => match places.platform {
                Platform::Linux | Platform::Mac => vec![places.xdg_config().join("zed").join("settings.json")],
                Platform::Windows => vec![settings.join("Zed").join("settings.json")],
            },
        }
    }

    fn project_file(self) -> Option<&'static [&'static str]> {
        match self {
            Self::ClaudeCode => Some(&[".mcp.json"]),
            Self::Codex => Some(&[".codex", "config.toml"]),
            Self::Cursor => Some(&[".cursor", "mcp.json"]),
            Self::Gemini => Some(&[".gemini", "settings.json"]),
            Self::VsCode => Some(&[".vscode", "mcp.json"]),
            Self::Zed => Some(&[".zed", "settings.json"]),
            Self::ClaudeDesktop | Self::Cline | Self::Windsurf => None,
        }
    }
}

/// Writes the name used on the command line.
impl Serialize for Client {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}
