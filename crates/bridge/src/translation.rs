//! The choice of a codec, and a whole translation. Sends nothing.

use std::borrow::Cow;

use crate::binding::BindingId;
use crate::error::BridgeError;
use crate::loss::Loss;
use crate::message::{CanonicalMessage, CanonicalPart, Hop};
use crate::passage::{IncomingMessage, OutgoingText};
use crate::{a2a, ainp, mcp, uacp};

/// Reads a message. All values are borrowed from `text`.
///
/// # Errors
/// When the text is no message of the binding within the bounds, or is of a method without an equal elsewhere.
pub fn decode(binding: BindingId, text: &[u8]) -> Result<IncomingMessage<'_>, BridgeError> {
    match binding {
        BindingId::A2a => a2a::decode(text),
        BindingId::Ainp => ainp::decode(text),
        BindingId::Mcp => mcp::decode(text),
        BindingId::Uacp => uacp::decode(text),
        BindingId::Slim => Err(no_codec(binding)),
    }
}

/// Writes a message for a peer, and reports every field without a place in the binding.
///
/// # Errors
/// When the binding cannot express the message, or `hop` lacks a fact needed by the binding.
pub fn encode(binding: BindingId, message: &CanonicalMessage<'_>, hop: &Hop<'_>) -> Result<OutgoingText, BridgeError> {
    match binding {
        BindingId::A2a => a2a::encode(message, hop),
        BindingId::Ainp => ainp::encode(message, hop),
        BindingId::Mcp => mcp::encode(message, hop),
        BindingId::Uacp => uacp::encode(message, hop),
        BindingId::Slim => Err(no_codec(binding)),
    }
}

/// Translates a message. Each loss points into `text`. `enrich` adds the gate's knowledge of the call: its tool, its task, its evidence.
///
/// # Errors
/// As [`decode`] and [`encode`].
pub fn translate(
    (from, to): (BindingId, BindingId),
    text: &[u8],
    hop: &Hop<'_>,
    enrich: impl FnOnce(&mut CanonicalMessage<'_>),
) -> Result<OutgoingText, BridgeError> {
    let mut message = decode(from, text)?.message;
    enrich(&mut message);
    let pointed = |loss: Loss| loss.in_source(from, message.kind);
    match encode(to, &message, hop) {
        Ok(OutgoingText { text, losses }) => Ok(OutgoingText { text, losses: losses.into_iter().map(pointed).collect() }),
        Err(BridgeError::SemanticLoss(loss)) => Err(BridgeError::SemanticLoss(pointed(loss))),
        Err(error) => Err(error),
    }
}

/// Reads a link or an embedded resource of MCP that stands alone among the parts of an A2A message; `None`: the value is another.
pub fn resource_of_mcp(raw: &[u8]) -> Option<CanonicalPart<'_>> {
    mcp::resource(raw)
}

fn no_codec(binding: BindingId) -> BridgeError {
    BridgeError::NoPath(Cow::Borrowed(binding.id()))
}
