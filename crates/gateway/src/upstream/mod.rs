//! Whom we call: one live connection to one server, whatever carries it.
//!
//! Policy, names and the pipeline are not known here; a call comes in ready to send.

pub(crate) mod asks;
pub(crate) mod connect;
pub(crate) mod connection;
pub(crate) mod http;
pub(crate) mod listening;
pub(crate) mod mount;
mod mounting;
pub(crate) mod oauth;
pub(crate) mod origins;
mod pages;
pub(crate) mod pipe;
pub(crate) mod pool;
pub(crate) mod port;
pub(crate) mod process;
pub(crate) mod role;
mod silence;
pub(crate) mod sse;
pub(crate) mod standing;
pub(crate) mod stderr;
pub(crate) mod supervise;

pub(crate) use mounting::Upstreams;
pub(crate) use port::{Inbox, Instance, Opened, Opens, Outgoing, Owner, Upstream, UpstreamError, UpstreamTraits};
