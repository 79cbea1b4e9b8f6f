//! Faults of text and bytes. Does not name the place in a file: the reader of the file knows.

use json::canonical::NotCanonical;

/// Faults of bytes that were read. One variant, one reaction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuditError {
    /// A text that breaks its form.
    #[error("this is not {what}: {why}")]
    Form {
        /// The expected form, with its article.
        what: &'static str,
        /// The fault.
        why: String,
    },
    /// A proof that does not follow: the proof or its subject was changed.
    #[error("the proof does not lead to the root: one of the two, or what is proved, is not what was recorded")]
    Proof,
    /// No signature of this key, or a signature that does not fit the text.
    #[error("there is no valid signature by `{0}`")]
    Signature(String),
    /// A hash needed by a proof is in none of the given tiles.
    #[error("the tile {0} is needed and is not there, or is too short")]
    TileMissing(String),
}

impl AuditError {
    pub(crate) fn form(what: &'static str, why: impl Into<String>) -> Self {
        Self::Form { what, why: why.into() }
    }
}

impl From<NotCanonical> for AuditError {
    fn from(why: NotCanonical) -> Self {
        Self::form("JSON", why.to_string())
    }
}
