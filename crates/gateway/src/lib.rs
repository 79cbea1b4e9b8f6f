//! Placeholder.

pub mod config;
pub mod tls;
