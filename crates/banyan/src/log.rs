//! Starts the log of commands that serve. What is logged, and how, is the gateway's business. Chooses no format of its own.

use gateway::telemetry::log::{self, LogFormat, VARIABLE};

use crate::failure::Failure;

/// States of servers are told as news, so that the log need not repeat them.
const FILTER: &str = "warn,gateway::upstream::supervise=error";

/// Starts the log on standard error, filtered by `BANYAN_LOG`.
pub(crate) fn start() -> Result<(), Failure> {
    let filter = std::env::var(VARIABLE).ok();
    log::start(LogFormat::Text, filter.as_deref().or(Some(FILTER))).map_err(|e| Failure::Usage(e.to_string()))
}
