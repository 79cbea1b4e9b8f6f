//! What is kept of calls, and how anybody can see that nothing of it was changed: records in one canonical line each, chained by
//! hashes, in a Merkle tree (RFC 6962) with signed checkpoints (C2SP tlog-tiles, tlog-checkpoint, signed-note).
//!
//! There is no clock, file, socket, task, lock or `await` in this crate: times and keys come in as arguments, lines and tiles go out as
//! bytes. What is worth a record is decided by the gateway, and where it is written too.

pub mod arguments;
pub mod bounds;
pub mod bundle;
pub mod canonical;
pub mod chain;
pub mod checkpoint;
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
