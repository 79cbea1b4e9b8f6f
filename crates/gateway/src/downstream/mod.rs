//! Who calls us: streamable HTTP of both eras on one endpoint, and stdio.
//!
//! What a request means is not known here; `call` does that.

pub(crate) mod body;
pub(crate) mod connections;
pub(crate) mod door;
pub(crate) mod endpoint;
mod events;
pub(crate) mod exchange;
pub(crate) mod held;
pub(crate) mod http;
pub(crate) mod initialize;
pub(crate) mod known;
pub(crate) mod lane;
pub(crate) mod link;
mod parked;
mod plain;
mod pour;
pub(crate) mod reply;
pub(crate) mod revoked;
mod rewind;
pub(crate) mod session;
mod socket;
mod stateless;
pub(crate) mod stdio;
pub(crate) mod subscriptions;

pub(crate) use parked::Parked;
