//! What the gate is told to be: `banyan.toml`, from text to checked values, and its changes over time.
//!
//! This module does not act on a configuration: it starts no server and opens no listener.

pub mod resolved;
pub mod secret;
