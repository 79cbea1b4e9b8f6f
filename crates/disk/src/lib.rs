//! Stores on SQLite and in files: acknowledged data is on the disk. Does not decide what is stored.

mod bus;
pub mod ids;
pub mod journal;
mod seed;
mod sqlite;
mod stores;

pub use bus::DiskBus;
pub use journal::DiskJournal;
pub use sqlite::{Tickets, UnwritableClaims, check, snapshot, void_open};
pub use stores::DiskStores;
