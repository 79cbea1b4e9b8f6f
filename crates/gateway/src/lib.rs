//! The doing half of Banyan: sockets, processes, time, and the one way of a call through them.
//!
//! What is decided without I/O is decided in `mcp-proto` and its siblings.

pub mod admin;
pub mod console;
mod gateway;
mod listener;
#[doc(hidden)]
pub mod outside;
pub mod parts;

pub use call::judge::pins;
pub use mcp::bridge;
pub use room as rooms;
pub use trust;

pub use crate::gateway::{Gateway, MountStatus, NotInForce, RegisteredStatus, Reloaded, ToolRow};
pub use call::judge::policy::{BudgetStatus, DecidedRule, DecidedShadow, DecisionRow};
pub use call::tree::mount::{Phase, State};
pub use mcp::upstream::oauth::{AuthError, OAuthClient};
pub use mesh::child::{JoinStatus, ParentStatus};
pub use mesh::registry::RefusedRegistration;
pub use room::{ParticipantStatus, RoomStatus};
