//! Messages of agents from one protocol to another: one canonical message, a codec for each binding, and never a mapping from pair to pair.
//!
//! A field without a place in a binding travels in an extension under one namespaced key, is reported as a [`Loss`], and comes back when
//! the message is translated back. A loss of meaning is an error, and nothing is there to be sent. Knows no connection, no clock and no
//! key of its own: the caller gives keys. `slim-v1` is refused as
//! [`BridgeError::NoPath`].

mod a2a;
mod ainp;
mod binding;
mod carried;
mod error;
mod field;
mod hex;
mod loss;
mod mcp;
mod message;
mod owned;
mod part;
mod passage;
mod problem;
mod raw;
mod reader;
mod residue;
mod rpc;
mod shape;
mod translation;
mod uacp;

pub use ainp::{EnvelopeKey, EnvelopeSeal, did_of_key, key_of_did, seal, seal_of};
pub use binding::BindingId;
pub use error::BridgeError;
pub use field::CanonicalField;
pub use loss::{Loss, LossFate, Severity, warnings};
pub use message::{
    ArtifactHead, CanonicalMessage, CanonicalPart, EnvelopeFacts, Failure, FailureClass, Hop, MessageKind, PartContent, Residue,
    ResiduePlace, Trail, Wants, WorkState,
};
pub use passage::{IncomingMessage, OutgoingText};
pub use problem::BridgeProblem;
pub use raw::{QuotedText, RawJson, RawMember};
pub use reader::{MOST_BYTES, MOST_DEPTH, MOST_ELEMENTS};
pub use residue::EXTENSION_KEY;
pub use translation::{decode, encode, resource_of_mcp, translate};
