//! The three tools that stand in for thousands: search, describe, call. Which of them is meant, and what it answers.

use bytes::Bytes;
use mcp_proto::envelope::Request;

use super::error::CallError;
use crate::tree::Tree;
use crate::view::View;

/// What a call of one of the three means.
pub(crate) enum Meant {
    /// A raw result.
    Answer(Bytes),
    /// A call of another tool.
    Call(Request),
}

/// Reads a call in a searched view; `None`: it names an owner's tool directly, which stays allowed.
pub(crate) fn meant(_tree: &Tree, _view: &View, _request: &Request) -> Result<Option<Meant>, CallError> {
    Ok(None)
}
