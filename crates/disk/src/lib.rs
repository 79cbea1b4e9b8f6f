//! The stores on SQLite and in files: what is said to be kept is on the disk. What is kept is not decided here.

mod bus;
pub mod ids;
pub mod journal;
mod seed;
mod sqlite;
mod stores;

pub use bus::DiskBus;
pub use journal::DiskJournal;
pub use sqlite::{Tickets, Unkept, check};
pub use stores::DiskStores;
