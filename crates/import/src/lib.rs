//! The servers that people already have: other clients' files read as mounts, and those files pointed at Banyan.
//!
//! Every unknown key is reported. This crate starts no server, asks no question and trusts nothing
//! because a client did: permissions in a file are reported as suggestions.

use std::path::{Path, PathBuf};

mod claude_code;
mod claude_desktop;
mod client;
mod cline;
mod codex;
pub mod connect;
mod cursor;
mod entry;
mod found;
mod gemini;
mod generic;
mod json;
mod note;
mod oauth;
mod own;
mod places;
mod plain;
mod reading;
mod text;
mod toml;
mod vscode;
mod windsurf;
mod zed;

pub use client::Client;
pub use found::{Found, Origin, Server, SourceFile};
pub use note::{Note, NoteKind};
pub use places::{Places, Platform};
pub use plain::{PlainSecret, SecretPlace};
pub use text::Question;
pub use toml::to_toml;

use reading::Reading;

/// The longest file that is read, in bytes. Claude Code's own grows with every project.
const MAX_FILE: u64 = 64 << 20;

/// Reads the existing files of all clients. An unreadable file is reported and left out.
pub fn discover(places: &Places) -> Found {
    let mut found = Found::default();
    for client in Client::ALL {
        for location in client.files(places) {
            let Some(text) = read(&location.path).transpose() else { continue };
            let mut reading = Reading::new(places, Some(client), &location);
            match text.and_then(|text| (client.reader())(&mut reading, &text)) {
                Ok(()) => found.take(reading),
                Err(problem) => found.take_unreadable(reading, problem),
            }
        }
    }
    found
}

/// Reads a file: JSON with `mcpServers` (or the like), or Codex's TOML.
pub fn from_file(path: &Path, places: &Places) -> Result<Found, ImportError> {
    let failed = |problem| ImportError::Unreadable { path: path.to_owned(), problem };
    let text = read(path).map_err(failed)?.ok_or_else(|| failed("there is no such file".into()))?;
    from_text(&text, None, path, places)
}

/// Reads a text as a file of `client`; without a client, by the ending of `path`.
pub fn from_text(text: &str, client: Option<Client>, path: &Path, places: &Places) -> Result<Found, ImportError> {
    let location = client::Location { path: path.to_owned(), project: None };
    let mut reading = Reading::new(places, client, &location);
    let is_toml = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"));
    let reader = client.map_or(if is_toml { codex::read } else { generic::read }, Client::reader);
    reader(&mut reading, text).map_err(|problem| ImportError::Unreadable { path: path.to_owned(), problem })?;
    let mut found = Found::default();
    found.take(reading);
    Ok(found)
}

/// Failures to take servers from a named file.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// Missing, not text, not JSON, or without servers.
    #[error("can't take servers from `{}`: {problem}", path.display())]
    Unreadable { path: PathBuf, problem: String },
}

/// Reads the text of a file; `None` for a missing file.
fn read(path: &Path) -> Result<Option<String>, String> {
    match std::fs::metadata(path) {
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(error.to_string()),
        Ok(file) if !file.is_file() => return Err("it is not a file".into()),
        Ok(file) if file.len() > MAX_FILE => return Err("it is longer than 64 MiB".into()),
        Ok(_) => {}
    }
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map(Some).map_err(|_| "it is not UTF-8 text".into())
}

#[cfg(test)]
mod tests;
