//! Errors of calls to a lost server's tools (MCP-AX 13.2, AX-61). Does not decide on the loss.

use std::time::{Duration, Instant, SystemTime};

use banyan_model::Timestamp;
use serde_json::json;

use crate::refusal::{ErrorObject, SessionEnd};

/// A listed tool without a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DegradedTool {
    /// Time of the loss, by the monotonic clock.
    pub since: Instant,
    /// Reason of the loss.
    pub why: SessionEnd,
    /// Time until the server may be back.
    pub retry_after: Duration,
}

impl DegradedTool {
    /// Makes the error for the caller; `since` is [`Self::since`] by the wall clock.
    pub fn error(&self, since: SystemTime) -> ErrorObject {
        let data = json!({
            "reason": "subserver_unreachable",
            "hint": "the call was not made; make it again after the time given",
            "cause": self.why.as_str(),
            "since": Timestamp(since).to_string(),
            "retry_after_ms": u64::try_from(self.retry_after.as_millis()).unwrap_or(u64::MAX),
        });
        ErrorObject { code: -32002, message: "tool_degraded", data: data.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test has to begin at some time")]
    fn ax_61_the_error_of_a_degraded_tool_has_its_times() {
        let degraded = DegradedTool { since: Instant::now(), why: SessionEnd::Silent, retry_after: Duration::from_secs(5) };
        let error = degraded.error(UNIX_EPOCH);
        assert_eq!((error.code, error.message), (-32002, "tool_degraded"));
        let data: serde_json::Value = serde_json::from_str(&error.data).unwrap();
        assert_eq!(data["reason"], "subserver_unreachable");
        assert_eq!(data["since"], "1970-01-01T00:00:00Z");
        assert_eq!(data["retry_after_ms"], 5000);
    }
}
