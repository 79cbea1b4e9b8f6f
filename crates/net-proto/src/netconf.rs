//! NETCONF (RFC 6241, 6242) over bytes: framing of both bases, hello, requests, replies and notifications. No session and no SSH here.

mod frame;
mod reply;
mod request;

pub use frame::{FrameError, Framer};
pub use reply::{DeviceMessage, NetconfCapabilities, RpcReply, read};
pub use request::{Datastore, NetconfRequest, hello, rpc};

/// Capability of the framing by chunks.
pub const BASE_1_1: &str = "urn:ietf:params:netconf:base:1.1";
/// Capability of the framing by `]]>]]>`.
pub const BASE_1_0: &str = "urn:ietf:params:netconf:base:1.0";
/// Namespace of requests.
pub const NAMESPACE: &str = "urn:ietf:params:xml:ns:netconf:base:1.0";
