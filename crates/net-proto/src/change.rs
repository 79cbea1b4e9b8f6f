//! A change of a device as a transaction: candidate, diff, commit for a limited time, confirmation, or else the old configuration again.
//!
//! Decides only: `netdev` brings records to the disk and configurations to devices. A device has a single change at a time.

mod candidate;
mod facts;
mod form;
mod job;
mod record;
pub mod text;
mod transaction;
mod undo;

pub use candidate::{Author, Edits, LEASE, TriedEdits, adopt, diff, discard, edit, edits_of, merged, owner_in_words, take_over};
pub use facts::CRASHES;
pub use form::{ConfigForm, listed};
pub use job::{FrrPrograms, RestoreJob, job_answer, shell_output};
pub use record::{ChangeRecord, Deadline, DeviceChange, Now, Phase, Reason, binding};
pub use text::revision;
pub use transaction::{ChangeOutcome, StepResult, Terms, Transaction, Want};
pub use undo::{KeptChange, MOST_KEPT};
