//! The parts of a server's offer that can be pinned. Judgement is not passed here.

use serde::{Deserialize, Serialize};

/// The kind of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Instructions for use: the `instructions` of the handshake.
    Instructions,
    /// A prompt, by name.
    Prompt,
    /// A single resource, by URI.
    Resource,
    /// A template of resources, by text.
    Template,
    /// A tool, by name.
    #[default]
    Tool,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Instructions, Self::Prompt, Self::Resource, Self::Template, Self::Tool];

    /// The word in the store and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::Template => "template",
            Self::Tool => "tool",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == word)
    }

    /// Tells if definitions of this kind come and go with a server's data, so that arrivals and departures are unrelated.
    pub fn comes_and_goes(self) -> bool {
        self == Self::Resource
    }

    /// Lists the members that a model acts on, in alphabetical order. Other members (icons, sizes, `_meta`) may change freely.
    pub(super) fn members(self) -> &'static [&'static str] {
        match self {
            Self::Instructions => &["instructions"],
            Self::Prompt => &["arguments", "description", "name", "title"],
            Self::Resource => &["description", "title", "uri"],
            Self::Template => &["description", "mimeType", "name", "title", "uriTemplate"],
            Self::Tool => &["annotations", "description", "inputSchema", "name", "outputSchema", "title"],
        }
    }
}
