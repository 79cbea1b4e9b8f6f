//! Views of particular clients, checked. Shows no tool.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The view of particular clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    pub name: Arc<str>,
    /// Globs over `clientInfo.name`.
    pub clients: Vec<String>,
    /// Globs over dotted names; empty: all.
    pub include: Vec<String>,
    /// Globs over dotted names.
    pub exclude: Vec<String>,
    /// Dotted name to the name shown.
    pub rename: BTreeMap<String, String>,
    /// Spelling of names.
    pub names: Option<NameStyle>,
    pub search: Search,
    /// Tools are listed with their MCP-AX annotations.
    pub annotations: bool,
}

/// Spelling of a qualified name for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameStyle {
    /// `mount.tool`.
    Dotted,
    /// `[a-zA-Z0-9_-]{1,64}`: `mount__tool`.
    Safe,
}

/// When a client is shown search, describe and call in place of the tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// Above a number of tools.
    Above(usize),
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Default for Search {
    /// Above 128 tools: the most for widespread clients.
    fn default() -> Self {
        Self::Above(128)
    }
}
