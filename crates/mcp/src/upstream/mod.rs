//! Servers that the gate calls: live connections, whatever carries them.
//!
//! Knows no policy, names or pipeline; a call comes in ready to send.

pub mod connect;
pub mod connection;
pub mod fleet;
pub mod http;
pub mod listening;
pub mod mounting;
pub mod oauth;
pub mod origins;
pub mod pages;
pub mod pipe;
pub mod pool;
pub mod process;
pub mod sse;
pub mod standing;
pub mod supervise;

pub use crate::upstream::mounting::Upstreams;
pub use call::tree::port::{Inbox, Instance, NewConnection, Opens, OutgoingRequest, Owner, Upstream, UpstreamError, UpstreamTraits};
