//! Permissions by caller, target, time and arguments: rules in Cedar (cedarpolicy.com), read once and asked often.
//!
//! A decision names the rules behind it. Callers bring the names of subjects and the traits of tools: nothing is
//! looked up here, and consequences of a decision are not drawn here.

mod arguments;
mod evaluate;
mod flaw;
mod infer;
mod parse;
mod rule;
mod schema;
mod subject;
mod target;
mod verdict;

pub use arguments::{Arguments, BadArguments, MOST_BYTES};
pub use evaluate::Asked;
pub use flaw::Flaw;
pub use parse::Policies;
pub use rule::{Mode, Rule};
pub use subject::Subject;
pub use target::{Action, Target, Traits};
pub use verdict::{Cause, Foresight, Shadow, Verdict};

/// When a call is made, on the clock of the place where the policy holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Moment {
    /// Seconds since 1970, in UTC.
    pub unix: i64,
    /// 0 to 23.
    pub hour: i64,
    /// 0 to 59.
    pub minute: i64,
    /// 1 (Monday) to 7 (Sunday), as in ISO 8601.
    pub weekday: i64,
}
