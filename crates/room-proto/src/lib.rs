//! MCPx v0.1: rooms in which people and agents propose, decide and call, as decisions over bytes.
//!
//! There is no clock, socket, task, lock or `await` in this crate: time and randomness come in as arguments. The room
//! reads no payload: what a message does is its receivers' business (4.2), and so is which proposal waits for whom (10.2).
//!
//! [`access`] says who comes in, [`capability`] who may send what, [`envelope`] what a message is, and [`room`] who gets it; [`websocket`] makes
//! messages of bytes and frames of messages. The driver has the sockets and the clock. For the other end, [`participant`] says what is to be
//! held against a message before it is believed, [`chain`] what became of proposals and requests, and [`voice`] how to say something.

pub mod access;
mod allowance;
pub mod capability;
pub mod chain;
mod draft;
pub mod envelope;
pub mod kind;
pub mod name;
pub mod participant;
pub mod refusal;
pub mod room;
mod system;
pub mod voice;
pub mod websocket;
