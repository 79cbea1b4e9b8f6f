//! The words every other crate uses: names, routes, principals, calls, outcomes, and the shape of a state machine.
//!
//! This crate holds no behaviour beyond what keeps a value legal: no clock, no socket, no parsing of messages.

mod call;
mod machine;
mod name;
mod principal;
mod timestamp;

pub use call::{Call, Era, Fault, FaultSource, Method, Outcome};
pub use machine::{Machine, Now};
pub use name::{BadSegment, QualifiedName, Route, Segment};
pub use principal::{Principal, PrincipalKind};
pub use timestamp::Timestamp;
