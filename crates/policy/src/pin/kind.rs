//! What can be pinned of what a server says to a model. How it is judged is not said here.

use serde::{Deserialize, Serialize};

/// What a definition is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// How a server wants to be used: the `instructions` of its handshake.
    Instructions,
    /// A prompt, by its name.
    Prompt,
    /// A single resource, by its URI.
    Resource,
    /// A template of resources, by its text.
    Template,
    /// A tool, by its name.
    #[default]
    Tool,
}

impl Kind {
    /// All of them.
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

    /// Whether they come and go with a server's data, so that one that goes says nothing about one that comes.
    pub fn comes_and_goes(self) -> bool {
        self == Self::Resource
    }

    /// The members of a definition that a model acts on, in alphabetical order. Whatever else it holds (icons, sizes, `_meta`) may change freely.
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
