//! The doing half of Banyan: sockets, processes, time, and the one way of a call through them.
//!
//! What is decided without I/O is decided in `mcp-proto` and its siblings.

pub mod admin;
mod alarm;
mod annotation;
mod approvals;
pub mod bridge;
pub mod browser;
mod call;
mod catalog;
mod child;
mod clock;
pub mod config;
pub mod console;
pub mod demo;
mod downstream;
mod gateway;
mod hub;
pub mod import;
pub mod journal;
mod lateness;
mod link;
mod node;
#[doc(hidden)]
pub mod outside;
pub mod pins;
mod policy;
mod random;
mod registry;
pub mod rooms;
pub mod search;
mod shares;
pub mod store;
mod tcp;
pub mod telemetry;
pub mod tls;
mod together;
mod tree;
pub mod trust;
mod upstream;
mod view;
pub mod whole;
mod worker;

pub use child::{JoinStatus, ParentStatus};
pub(crate) use gateway::Inner;
pub use gateway::{Gateway, MountStatus, NotInForce, RegisteredStatus, Reloaded, ToolRow};
pub use policy::{BudgetStatus, DecidedRule, DecidedShadow, DecisionRow};
pub use registry::RefusedRegistration;
pub use rooms::{ParticipantStatus, RoomStatus};
pub use upstream::mount::{Phase, State};
pub use upstream::oauth::{AuthError, OAuthClient};
pub use worker::Workers;
