//! Stores in memory: for tests, and for what need not outlive a run. Nothing here knows files.

mod journal;

pub use journal::MemoryJournal;
