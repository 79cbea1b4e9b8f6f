//! The words every other crate uses: names, routes, principals, calls and outcomes.
//!
//! This crate holds no behaviour beyond what keeps a value legal: no clock, no socket, no parsing of messages.

mod call;
mod name;
mod principal;
mod timestamp;

pub use call::{Call, Era, Fault, FaultSource, Method, Outcome};
pub use name::{BadSegment, QualifiedName, Route, Segment};
pub use principal::Principal;
pub use timestamp::Timestamp;
