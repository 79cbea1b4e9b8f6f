//! NETCONF (RFC 6241, 6242) over bytes: framing of both bases, hello, requests, replies and notifications. No session and no SSH here.

mod event;
mod frame;
mod path;
mod reply;
mod request;
mod tree;
mod value;

pub use event::{EventPlace, EventStream, NetconfEvent, STREAMS};
pub use frame::{FrameError, Framer};
pub use path::{EditOperation, NodePath};
pub(crate) use path::{pieces, step};
pub use reply::{DeviceMessage, NetconfCapabilities, RpcReply, read};
pub use request::{Datastore, EditTest, NetconfRequest, hello, rpc};
pub(crate) use tree::MOST_DIFFERENCES;
pub use tree::XmlTree;

/// Capability of the framing by chunks.
pub const BASE_1_1: &str = "urn:ietf:params:netconf:base:1.1";
/// Capability of the framing by `]]>]]>`.
pub const BASE_1_0: &str = "urn:ietf:params:netconf:base:1.0";
/// Capability of a candidate configuration.
pub const CANDIDATE: &str = "urn:ietf:params:netconf:capability:candidate:1.0";
/// Capability of commits that the device takes back by itself, also when their session is gone.
pub const CONFIRMED_COMMIT: &str = "urn:ietf:params:netconf:capability:confirmed-commit:1.1";
/// Capability of tests before an edit counts.
pub const VALIDATE: &str = "urn:ietf:params:netconf:capability:validate:1.1";
/// Capability of a configuration for the next start.
pub const STARTUP: &str = "urn:ietf:params:netconf:capability:startup:1.0";
/// Capability of events that the device sends by itself (RFC 5277).
pub const NOTIFICATION: &str = "urn:ietf:params:netconf:capability:notification:1.0";
/// Namespace of the request for events.
const NOTIFICATIONS: &str = "urn:ietf:params:xml:ns:netconf:notification:1.0";
/// Namespace of requests.
pub const NAMESPACE: &str = "urn:ietf:params:xml:ns:netconf:base:1.0";
