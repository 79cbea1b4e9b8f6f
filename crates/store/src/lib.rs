//! Stores as traits: what outlives a run, or is shared by the gates of one place. The suite in `contract` holds every implementation to the
//! same promises. No file, database or network is known here.

#[cfg(any(test, feature = "contract"))]
pub mod contract;
mod journal;
pub mod memory;

pub use journal::{
    AROUND, BrokenChain, CallId, CallIds, Journal, JournalError, OverShare, Part, REGISTRATION, Refusal, Repeats, Standing, Ticket, Way,
};
