//! Messages of agents from one protocol to another: one canonical message, a codec for each binding, and never a mapping from pair to pair.
//!
//! A field without a place in a binding travels in an extension under one namespaced key, is reported as a [`Loss`], and comes back when
//! the message is translated back. A loss of meaning is an error, and nothing is there to be sent. Knows no connection, no clock and no
//! signature. Bindings other than `a2a-v1` and `mcp-v1` are refused as [`BridgeError::NoPath`].

mod a2a;
mod binding;
mod carried;
mod error;
mod field;
mod loss;
mod mcp;
mod message;
mod part;
mod passage;
mod problem;
mod raw;
mod reader;
mod residue;
mod rpc;
mod translation;

pub use binding::BindingId;
pub use error::BridgeError;
pub use field::CanonicalField;
pub use loss::{Loss, LossFate, Severity, warnings};
pub use message::{
    ArtifactHead, CanonicalMessage, CanonicalPart, Failure, FailureClass, Hop, MessageKind, PartContent, Residue, ResiduePlace, Trail,
    Wants, WorkState,
};
pub use passage::{IncomingMessage, OutgoingText};
pub use problem::BridgeProblem;
pub use raw::{QuotedText, RawJson, RawMember};
pub use reader::{MOST_BYTES, MOST_DEPTH, MOST_ELEMENTS};
pub use residue::EXTENSION_KEY;
pub use translation::{decode, encode, translate};
