//! The driver of AXCP: contexts shared with other nodes over QUIC, and as servers of the tree. Does not decide about envelopes: `axcp-proto`
//! does.

mod endpoint;
mod link;
mod mounted;
mod node;
mod part;
mod section;
mod shelf;
mod slots;
mod status_door;
mod whole;
mod words;

pub use crate::part::AxcpPart;
pub use crate::section::{AxcpSettings, ContextSettings};
