//! Why something read is not what it should be. Does not say where in a file it stood: whoever read the file knows.

use json::canonical::NotCanonical;

/// What is wrong with bytes that were read. One variant, one reaction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuditError {
    /// A text that has a form and does not keep to it.
    #[error("this is not {what}: {why}")]
    Form {
        /// What it should be, with its article.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// Something that is proved and does not follow: the proof, or what it is about, was changed.
    #[error("the proof does not lead to the root: one of the two, or what is proved, is not what was recorded")]
    Proof,
    /// No signature of this key, or one that does not fit the text.
    #[error("there is no valid signature by `{0}`")]
    Signature(String),
    /// A hash that a proof needs is in no tile that was given.
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
