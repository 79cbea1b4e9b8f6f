//! The shape of a client's file, as far as its list of servers goes. Does not read or write files.

use std::path::Path;

use serde_json::Value;

use super::{json, mask, toml};
use crate::Client;

/// Language and key of a file's list of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Json(&'static str),
    Toml(&'static str),
}

impl Format {
    /// Gives the format; `None` for a file that is only read.
    pub(super) fn for_file(client: Client, file: &Path) -> Option<Self> {
        match client {
            Client::ClaudeCode | Client::ClaudeDesktop | Client::Cline | Client::Cursor | Client::Gemini | Client::Windsurf => {
                Some(Self::Json("mcpServers"))
            }
            Client::Codex => Some(Self::Toml("mcp_servers")),
            Client::VsCode => file.ends_with("mcp.json").then_some(Self::Json("servers")),
            Client::Zed => Some(Self::Json("context_servers")),
        }
    }

    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Json(key) | Self::Toml(key) => key,
        }
    }

    /// The names in the list, in order.
    pub(super) fn names(self, text: &str) -> Result<Vec<String>, String> {
        match self {
            Self::Json(key) => json::names(text, key),
            Self::Toml(key) => toml::names(text, key),
        }
    }

    /// Gives the text with a list of Banyan's entry and the kept ones.
    pub(super) fn pointed(self, text: &str, entry: &Value, kept: &[String]) -> Result<String, String> {
        match self {
            Self::Json(key) => json::pointed(text, key, entry, kept),
            Self::Toml(key) => toml::pointed(text, key, entry, kept),
        }
    }

    /// The text with the list of `old` again, and what has come into the list since then; without the entry `ours`.
    pub(super) fn restored(self, text: &str, old: Option<&str>, ours: &str) -> Result<String, String> {
        match self {
            Self::Json(key) => json::restored(text, key, old, ours),
            Self::Toml(key) => toml::restored(text, key, old, ours),
        }
    }

    /// Gives the text with all possible secrets hidden.
    pub(super) fn masked(self, text: &str) -> String {
        match self {
            Self::Json(_) => mask::json(text),
            Self::Toml(_) => mask::toml(text),
        }
    }
}
