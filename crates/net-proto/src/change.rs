//! A change of a device as a transaction: candidate, diff, commit for a limited time, confirmation, or else the old configuration again.
//!
//! Decides only: `netdev` brings records to the disk and configurations to devices. A device has a single change at a time.

mod candidate;
mod record;
pub mod text;
mod transaction;

pub use candidate::{Author, Edits, LEASE, diff, discard, edit, take_over};
pub use record::{Change, Deadline, Now, Phase, Reason, Record, binding};
pub use transaction::{Done, Outcome, Terms, Transaction, Want};
