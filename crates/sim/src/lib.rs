//! Reference models and fault schedules for tests. No shipped crate may depend on it (`tests/tidy/layers.rs`).
