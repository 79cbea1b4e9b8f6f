//! The gate put together: composition, listener, administration and console.
//!
//! Makes no calls (`call` does) and decides no protocol (`mcp-proto` and its siblings do).

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

pub use crate::gateway::{Gateway, MountStatus, NotInForce, RegisteredStatus, ReloadOutcome, ToolRow};
pub use call::judge::policy::{BudgetStatus, DecidedRule, DecidedShadow, DecisionRow};
pub use call::tree::mount::{Phase, State};
pub use mcp::upstream::oauth::{AuthError, OAuthClient};
pub use mesh::child::{JoinStatus, ParentStatus};
pub use mesh::registry::RefusedRegistration;
pub use room::{ParticipantStatus, RoomStatus};
