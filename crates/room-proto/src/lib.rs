//! MCPx v0.1: rooms in which people and agents propose, decide and call, as decisions over bytes.
//!
//! There is no clock, socket, task, lock or `await` in this crate: time and randomness come in as arguments. The room
//! reads no payload: what a message does is its receivers' business (4.2), and so is which proposal waits for whom (10.2).
//!
//! [`access`] says who comes in, [`capability`] who may send what, [`envelope`] what a message is, and [`room`] who gets it; [`websocket`] makes
//! messages of bytes and frames of messages. The driver has the sockets and the clock. The other end is [`participant`]: what is to be held
//! against a message before it is believed, what became of proposals and requests ([`chain`]), and how to say something ([`voice`]). An
//! [`orchestrator`] is one that learns from what people decide ([`automation`]), and decides in their place where one of them agreed to that. A
//! server that others may call is a [`sitting`]; who calls others for those outside of the room is [`calling`]. Clients of the protocol's
//! successor come in by [`mew`].

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
mod system;
pub mod voice;
pub mod websocket;
