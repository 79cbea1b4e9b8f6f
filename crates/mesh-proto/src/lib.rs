//! MCP-AX as state machines: registration, the table of names, routing by cursor, annotations, relay of notifications.
//!
//! There is no clock, socket, task, lock or `await` in this crate: time and randomness come in as arguments. Whole MCP messages
//! are not read here either: params and results go in and out as JSON text, and the driver puts them into messages.
//!
//! The machines share five verbs: `handle_*` takes what happened, `handle_timeout` that time has passed, `poll_transmit` gives
//! what is to be sent, `poll_event` what the driver has to know, `poll_timeout` when to come back and why. Whoever drives one
//! calls a `handle`, drains the polls until they give `None`, and waits until the time that `poll_timeout` names.

pub mod annotation;
pub mod authority;
mod bucket;
pub mod child;
pub mod degraded;
pub mod id;
mod json;
pub mod message;
pub mod namespace;
pub mod parent;
mod random;
pub mod refusal;
pub mod relay;
pub mod reply;
pub mod route_cursor;
mod timers;
