//! Record of what a gate did. What is worth an entry is not decided here, nor where entries lie.

mod ids;
mod part;
mod refusal;
mod repeats;

use std::path::PathBuf;
use std::sync::Arc;

use audit::arguments::ArgumentDetail;
use audit::record::{Intent, Outcome, Record};
use futures_util::future::BoxFuture;

pub use ids::{CallId, CallIds};
pub use part::{OverShare, Part};
pub use refusal::{REGISTRATION, Refusal};
pub use repeats::{Repeats, Way};

/// Length of an entry without its facts, in bytes.
pub const AROUND: u64 = 200;

/// Record of one gate.
///
/// Entries stand in the order in which they were given. A record that somebody waits for lasts when the wait is over; all others are written a
/// moment later, and one that could not be written is counted.
pub trait Journal: std::fmt::Debug + Send + Sync {
    /// Tells if anything is recorded.
    fn is_on(&self) -> bool;

    /// Forms in which the arguments of calls are recorded.
    fn wanted(&self) -> ArgumentDetail;

    /// Ids for the calls of this run.
    fn ids(&self) -> &CallIds;

    /// Part of the record that a principal has.
    fn part(&self, principal: &str) -> Arc<Part>;

    /// Sets the percentage of what is free, and of what a principal has itself, that it may have.
    fn share_by(&self, percent: usize);

    /// Principals that are over their share, those with the most bytes first.
    fn over_share(&self) -> Vec<OverShare>;

    /// Records without waiting.
    fn append(&self, record: &Record<'_>);

    /// Records without waiting what a principal had the gate do.
    fn append_for(&self, principal: &str, record: &Record<'_>);

    /// Records for a principal. The future ends when the entry lasts; the record itself is not needed until then.
    ///
    /// # Errors
    /// When the entry does not last, and why. Nothing that needs the record may happen then.
    fn append_durable(&self, part: &Part, record: &Record<'_>) -> BoxFuture<'static, Result<(), JournalError>>;

    /// Records that a call is about to leave, without waiting. The ticket takes its outcome; `None`: the intent is an entry of its own.
    fn intend(&self, part: &Part, intent: Intent<'_>) -> Option<Ticket>;

    /// Records how a call ended whose intent was recorded. Where the intent is not written yet, both become one entry; else `call` spells the
    /// id of the call.
    fn ended(&self, part: &Part, ticket: Option<Ticket>, call: &dyn Fn() -> String, outcome: Outcome<'_>);

    /// Counts a refusal of `principal` for `reason`; gives the way into the record, for [`Journal::refuse`].
    fn count_refusal(&self, principal: &str, reason: &str) -> Way;

    /// Records a refusal, or keeps it to be counted.
    fn refuse(&self, way: Way, refusal: Refusal<'_>);

    /// Records the refusals that were counted and are due.
    fn sweep(&self);

    /// State of the record.
    fn standing(&self) -> Arc<Standing>;

    /// Number of records that could not be written since the gate began.
    fn unrecorded(&self) -> u64;

    /// Number of entries that were taken away since the gate began, as their bounds say.
    fn removed(&self) -> u64;

    /// Tells if the record is full, so that calls are refused until something in it is old enough to be taken away.
    fn is_full(&self) -> bool;

    /// Begins the record at once, so that it says when the gate started, whatever happens then.
    fn start(&self);

    /// Writes what is left and says that the gate ends. Nothing is recorded from then on.
    fn end(&self) -> BoxFuture<'_, ()>;
}

/// Failure of a record that somebody waited for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it can't be recorded: {0}")]
pub struct JournalError(pub String);

/// Place of an intent that waits for its outcome.
#[derive(Debug, Clone, Copy)]
pub struct Ticket {
    pub slot: usize,
    /// Number that no other intent of the run has.
    pub number: u64,
}

/// State of the record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    /// Directory of the record; `None`: nothing was recorded yet, or no file is written.
    pub dir: Option<PathBuf>,
    /// Reason for which nothing can be written at present.
    pub failing: Option<String>,
    /// Part of the record that is not what was written.
    pub broken: Option<BrokenChain>,
}

/// Chain that could not be continued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenChain {
    /// Name of its directory.
    pub chain: String,
    /// Time at which the break was found, in seconds since 1970.
    pub since: u64,
    pub why: String,
}
