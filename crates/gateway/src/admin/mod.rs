//! How a running gate is asked and told: JSON below `/-/` on the gate's own listener, and the file that says where that is.
//!
//! This module does not print and does not decide what a gate does; the binary's commands are its only client.

pub mod client;
mod door;
pub mod presence;
pub mod shapes;

pub(crate) use door::handle;
