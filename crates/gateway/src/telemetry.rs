//! What can be watched from outside: metrics for Prometheus, spans for OpenTelemetry, and the log.
//!
//! Records no audit: that has its own writer. Never holds arguments or results of calls above TRACE.

pub mod metrics;
