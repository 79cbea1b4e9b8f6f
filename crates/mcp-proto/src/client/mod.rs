//! The calling side of MCP: finding a server's era, and many calls over one pipe.
//!
//! Nothing here opens a connection or waits.

mod handshake;
mod pipe;

pub use handshake::{Handshake, HandshakeError, Identity, Negotiated, Step, stateless_meta};
pub use pipe::{AskKey, CallKey, Event, Pipe, own_token, restore_token};
