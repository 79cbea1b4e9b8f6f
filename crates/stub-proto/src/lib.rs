//! Parts with a microcontroller behind a wire (MCP-AX 8 and B), as decisions over bytes: profile A, a table of numbered commands, and
//! profile B, which describes itself in CBOR.
//!
//! Builds without std. There is no clock, port, task, lock or `await` in this crate: bytes and time come in as arguments, bytes to send and
//! news go out as values. A driver has the wire, and names, schemas and JSON are left to the gate.
//!
//! [`frame`] finds frames in the bytes of a wire, for profile B, and [`fixed`] for profile A. [`can`] finds them on a CAN bus. [`cbor`] has the values, [`message`] the
//! messages of profile B, [`table`] the tools of a part. [`session`] holds a conversation with a part, and [`part`] is the far side of a wire.

#![no_std]

extern crate alloc;

pub mod can;
pub mod cbor;
pub mod check;
mod cobs;
pub mod fixed;
pub mod frame;
pub mod message;
pub mod mqtt;
pub mod part;
pub mod session;
pub mod table;
