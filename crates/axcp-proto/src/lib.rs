//! AXCP v0.1: envelopes between nodes that share contexts and tools, as decisions over bytes.
//!
//! There is no clock, socket, task, lock or `await` in this crate: time and randomness come in as arguments. A driver has the connection.
//!
//! [`frame`] makes frames of bytes, [`envelope`] reads the envelope in a frame and keeps its bytes, [`message`] has the messages inside, and
//! [`gzip`] opens the data of an operation. [`profile`] settles the profile of a [`session`], and [`context`] joins patches. [`telemetry`] reads datagrams,
//! [`capability`] has the tools that a node offers, [`node_key`] the keys that sign the offers, [`invocation`] calls of tools, and [`error`] lists the refusals with the codes that a peer is sent.

pub mod capability;
pub mod context;
pub mod envelope;
pub mod error;
mod field;
pub mod frame;
pub mod gzip;
pub mod invocation;
pub mod message;
pub mod node_key;
pub mod profile;
pub mod session;
pub mod telemetry;
