//! Placeholder.

pub mod admin;
pub mod config;
pub mod telemetry;
pub mod tls;
