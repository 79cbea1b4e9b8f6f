//! Placeholder.

pub mod config;
pub mod telemetry;
pub mod tls;
