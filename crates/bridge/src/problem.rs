//! Answers to the outside for every [`BridgeError`]: HTTP status, AEPB code and problem document (RFC 9457). The only file that knows them.
//! Sends none.

use crate::error::BridgeError;
use crate::raw::ObjectWriter;

/// A refusal as HTTP and an error ECT have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BridgeProblem {
    pub status: u16,
    /// Value of `aepb.error`, and member `code` of the document.
    pub code: &'static str,
    pub title: &'static str,
    /// Text for people. Holds no content of the message.
    pub detail: String,
}

impl BridgeProblem {
    /// Writes the document, of type `application/problem+json`.
    pub fn document(&self) -> Vec<u8> {
        let mut out = ObjectWriter::new();
        out.raw("title", json::quote(self.title).as_bytes());
        out.raw("status", self.status.to_string().as_bytes());
        out.raw("code", json::quote(self.code).as_bytes());
        out.raw("detail", json::quote(&self.detail).as_bytes());
        out.finish()
    }
}

impl From<&BridgeError> for BridgeProblem {
    fn from(error: &BridgeError) -> Self {
        let (status, code, title) = match error {
            BridgeError::Malformed { .. } => (400, "policy_violation", "The message is malformed"),
            BridgeError::TooLarge => (413, "policy_violation", "The message is too large"),
            BridgeError::NoPath(_) => (404, "no_translation_path", "No translation is known"),
            BridgeError::SemanticLoss(_) => (422, "semantic_loss", "The translation would lose meaning"),
            BridgeError::Hop(_) => (500, "internal_error", "The gate failed"),
        };
        Self { status, code, title, detail: error.to_string() }
    }
}
