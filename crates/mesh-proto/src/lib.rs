//! MCP-AX as state machines: registration, the table of names, routing by cursor, annotations, relay of notifications.
//!
//! There is no clock, socket, task, lock or `await` in this crate: time and randomness come in as arguments. Nor are whole MCP messages
//! read here: params and results go in and out as JSON text, and the driver puts them into messages.
//!
//! The machines share four verbs: `handle_*` takes an event, `handle_timeout` the passing of time, `poll_output` gives messages to send and
//! events for the driver, `poll_timeout` the time of the next call, with the reason. A driver calls a `handle`, drains `poll_output` until
//! `None`, and waits until the time of `poll_timeout`.
//!
//! An aggregator runs a [`parent::Parent`] and a [`relay::Relay`]; a node in another's tree runs a [`child::Child`] for each tree; a gate
//! in the middle runs all three. The driver of such a node passes between them:
//!
//! | out of | into |
//! | --- | --- |
//! | `parent::Event::SubtreeChanged` | `Child::handle_subtree` with `Parent::subtree` |
//! | `child::Event::Above` | `Parent::handle_above` |
//! | `child::Event::Cycle` | `Parent::handle_cycle`, before anything else happens |
//! | `parent::Event::NamespaceChanged` | `list_changed` over `Child::link` |
//! | `list_changed` from a link | `Parent::handle_list_changed` for each of `Parent::sessions_on` |
//! | `parent::Event::FetchTools` | `tools/list` over that link, all pages, then `Parent::handle_tools` |
//! | `parent::Event::Registered` | `Relay::handle_opened` |
//! | `parent::Event::SubserverLost` and `Ended` | `Relay::handle_closed`, and upward as [`relay::notice::LOST`] |
//! | `parent::Event::ClaimMade` and `ClaimReleased` | the store, and from there `Parent::restore` at the next start |
//! | `mcpax/parent` from a parent's link | `Child::handle_request` |

pub mod annotation;
pub mod authority;
mod bucket;
pub mod child;
pub mod degraded;
pub mod id;
mod json;
pub mod message;
pub mod namespace;
pub mod parent;
mod random;
pub mod refusal;
pub mod relay;
pub mod reply;
pub mod route_cursor;
mod timers;
