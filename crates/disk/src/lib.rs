//! The stores on SQLite and in files: what is said to be kept is on the disk. What is kept is not decided here.

pub mod journal;
pub mod seed;

pub use journal::DiskJournal;
