//! The record of calls, and proofs that nothing in the record was changed: one canonical line each, chained by hashes, in a Merkle tree
//! (RFC 6962) with signed checkpoints (C2SP tlog-tiles, tlog-checkpoint, signed-note).
//!
//! There is no clock, file, socket, task, lock or `await` in this crate: times and keys come in as arguments, lines and tiles go out as
//! bytes. The gateway decides which events are recorded, and where.

pub mod arguments;
pub mod bounds;
pub mod bundle;
pub mod canonical;
pub mod chain;
pub mod checkpoint;
pub mod ect;
pub mod entry;
pub mod hash;
pub mod key;
pub mod note;
pub mod proof;
pub mod record;
pub mod shape;
pub mod tile;
pub mod tree;

mod error;
mod facts;

pub use error::AuditError;
