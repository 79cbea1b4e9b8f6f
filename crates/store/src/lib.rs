//! Stores as traits: state that outlives a run, or is shared by the gates of one place. The suite in `contract` holds every implementation
//! to the same promises. Knows no file, database or network.

mod budget;
mod bus;
mod claims;
mod contexts;
#[cfg(any(test, feature = "contract"))]
pub mod contract;
mod error;
mod journal;
mod lessons;
pub mod memory;
pub mod pending;
pub mod pins;
mod stores;

pub use budget::{BudgetAccount, Budgets, CallerPurse};
pub use bus::Bus;
pub use claims::{ClaimChange, Claims};
pub use contexts::{ContextAddition, Contexts, KeptContext, KeptProgress};
pub use error::StoreError;
pub use journal::{
    AROUND, BrokenChain, CallId, CallIds, Journal, JournalError, OverShare, Part, REGISTRATION, Refusal, Repeats, Standing, Ticket, Way,
};
pub use lessons::{Lesson, Lessons};
pub use pending::{Pending, PendingTurn, Row, RowKind};
pub use pins::Pins;
pub use stores::{OpenClaims, Stores};
