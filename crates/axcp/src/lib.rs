//! The driver of AXCP: contexts and tools shared with other nodes over QUIC, and as servers of the tree. Does not decide about envelopes: `axcp-proto`
//! does.

mod answer;
mod endpoint;
mod link;
mod mounted;
mod node;
mod part;
mod pulse;
mod room;
mod section;
mod shelf;
mod slots;
mod status_door;
mod tools;
mod whole;
mod words;

pub use crate::part::AxcpPart;
pub use crate::section::{AxcpSettings, ContextSettings, OfferedSettings};
