//! The doing half of Banyan: sockets, processes, time, and the one way of a call through them.
//!
//! What is decided without I/O is decided in `mcp-proto` and its siblings.

pub mod admin;
mod annotation;
mod approvals;
pub mod bridge;
mod call;
mod catalog;
mod child;
pub mod console;
mod downstream;
mod gate;
mod gateway;
mod hub;
mod link;
mod mesh;
mod node;
#[doc(hidden)]
pub mod outside;
pub mod parts;
pub mod pins;
mod policy;
mod registry;
pub mod rooms;
mod shares;
mod tree;
pub mod trust;
mod upstream;
mod view;
mod words;

pub use child::{JoinStatus, ParentStatus};
pub use gateway::{Gateway, MountStatus, NotInForce, RegisteredStatus, Reloaded, ToolRow};
pub use policy::{BudgetStatus, DecidedRule, DecidedShadow, DecisionRow};
pub use registry::RefusedRegistration;
pub use rooms::{ParticipantStatus, RoomStatus};
pub use upstream::mount::{Phase, State};
pub use upstream::oauth::{AuthError, OAuthClient};
