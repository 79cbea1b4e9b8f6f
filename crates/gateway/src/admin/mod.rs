//! Administration of a running gate: JSON below `/-/` on the gate's own listener, and the file that says where to find both.
//!
//! Does not print and does not decide what a gate does; the commands of the binary are the only client.

mod access;
mod approvals;
mod attached;
mod attempts;
pub mod audit;
pub mod client;
mod known;
mod live;
mod offers;
mod overview;
mod pins;
pub mod presence;
mod receivers;
mod replay;
mod routes;
pub(crate) mod rules;
mod servers;
pub mod shapes;
mod trace;
mod viewer;

pub(crate) use crate::admin::access::Access;
pub use crate::admin::access::Command;
pub(crate) use crate::admin::receivers::Receivers;
pub(crate) use crate::admin::routes::AdminDoor;
