//! Reference models, fault schedules and decoder checks for tests. No shipped crate may depend on it (`tests/tidy/layers.rs`).

pub mod broken;
pub mod change;
pub mod decoders;
mod random;
pub mod room;
pub mod table;
pub mod tree;
pub mod upstream;
