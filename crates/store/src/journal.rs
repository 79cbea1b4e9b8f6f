//! Record of a gate's acts. Decides neither on the worth of an entry nor on the place of entries.

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
/// Entries stand in the given order. An awaited record lasts when the wait is over; all others are written a moment later, and failed ones
/// are counted.
pub trait Journal: std::fmt::Debug + Send + Sync {
    /// Tells if anything is recorded.
    fn is_on(&self) -> bool;

    /// Forms in which the arguments of calls are recorded.
    fn wanted(&self) -> ArgumentDetail;

    /// Ids for the calls of this run.
    fn ids(&self) -> &CallIds;

    /// Gives the part of a principal.
    fn part(&self, principal: &str) -> Arc<Part>;

    /// Sets the share of a principal, in percent of its own bytes and the free ones together.
    fn share_by(&self, percent: usize);

    /// Lists principals beyond their share, the largest first.
    fn over_share(&self) -> Vec<OverShare>;

    /// Records without waiting.
    fn append(&self, record: &Record<'_>);

    /// Records without waiting, on account of a principal.
    fn append_for(&self, principal: &str, record: &Record<'_>);

    /// Records for a principal. The future ends when the entry lasts; the record itself is not needed until then.
    ///
    /// # Errors
    /// When the entry does not last, with the reason. Nothing that needs the record may happen then.
    fn append_durable(&self, part: &Part, record: &Record<'_>) -> BoxFuture<'static, Result<(), JournalError>>;

    /// Records that a call is about to leave, without waiting. The ticket is for the outcome; `None`: the intent is an entry of its own.
    fn intend(&self, part: &Part, intent: Intent<'_>) -> Option<Ticket>;

    /// Records the outcome of a recorded intent. Where the intent is not written yet, both become one entry; else `call` spells the id of
    /// the call.
    fn ended(&self, part: &Part, ticket: Option<Ticket>, call: &dyn Fn() -> String, outcome: Outcome<'_>);

    /// Counts a refusal of `principal` for `reason`; gives the way into the record, for [`Journal::refuse`].
    fn count_refusal(&self, principal: &str, reason: &str) -> Way;

    /// Records a refusal, or keeps one to be counted.
    fn refuse(&self, way: Way, refusal: Refusal<'_>);

    /// Records the counted refusals now due.
    fn sweep(&self);

    /// State of the record.
    fn standing(&self) -> Arc<Standing>;

    /// Counts records that could not be written since the gate began.
    fn unrecorded(&self) -> u64;

    /// Counts entries removed under the record's bounds since the gate began.
    fn removed(&self) -> u64;

    /// Tells if the record is full: calls are refused until an entry is old enough for removal.
    fn is_full(&self) -> bool;

    /// Begins the record at once, with the start of the gate.
    fn start(&self);

    /// Writes the rest and the end of the gate. Nothing is recorded afterwards.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Failure of an awaited record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it can't be recorded: {0}")]
pub struct JournalError(pub String);

/// Place of an intent without an outcome yet.
#[derive(Debug, Clone, Copy)]
pub struct Ticket {
    pub slot: usize,
    /// Unique in the run.
    pub number: u64,
}

/// State of the record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    /// Directory of the record; `None`: nothing recorded yet, or no files.
    pub dir: Option<PathBuf>,
    /// Reason for a current failure to write.
    pub failing: Option<String>,
    /// Part of the record altered since the writing.
    pub broken: Option<BrokenChain>,
}

/// Chain without a continuation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenChain {
    /// Name of the directory.
    pub chain: String,
    /// Time of the discovery, in seconds since 1970.
    pub since: u64,
    pub why: String,
}
