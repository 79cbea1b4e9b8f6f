//! MCPx v0.1: rooms in which people and agents propose, decide and call, as decisions over bytes.
//!
//! There is no clock, socket, task, lock or `await` in this crate: time and randomness come in as arguments. The room reads no payload: the
//! effect of a message is its receivers' business (4.2), and so is the audience of a waiting proposal (10.2).
//!
//! [`access`] decides who comes in, [`capability`] who may send a kind, [`envelope`] reads a message, and [`room`] chooses the receivers;
//! [`websocket`] makes messages of bytes and frames of messages. The driver has the sockets and the clock. At the other end,
//! [`participant`] checks messages before belief, follows proposals and requests ([`chain`]), and writes messages ([`voice`]). An
//! [`orchestrator`] learns from people's decisions ([`automation`]), and decides in their place by rules they accepted. [`sitting`] is a
//! server for the others in a room; [`calling`] calls the others for clients outside. Clients of the protocol's successor come in by
//! [`mew`].

pub mod access;
mod allowance;
pub mod automation;
pub mod calling;
pub mod capability;
pub mod chain;
#[cfg(test)]
mod company;
mod draft;
pub mod envelope;
pub mod kind;
pub mod mew;
pub mod name;
pub mod orchestrator;
pub mod participant;
pub mod refusal;
pub mod room;
pub mod sitting;
pub mod standard;
mod system;
pub mod voice;
pub mod websocket;
