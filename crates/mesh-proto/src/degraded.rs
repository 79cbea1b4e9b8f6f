//! What a call of a tool is told whose server is lost (MCP-AX 13.2, AX-61). Whether it is lost is not decided here.

use std::time::{Duration, Instant, SystemTime};

use banyan_model::Timestamp;
use serde_json::json;

use crate::refusal::{Ended, ErrorObject};

/// Why a tool that is listed cannot be called at present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Degraded {
    /// Since when, on the machine's clock.
    pub since: Instant,
    /// Why its server is lost.
    pub why: Ended,
    /// When the server may be back.
    pub retry_after: Duration,
}

impl Degraded {
    /// What the caller is told; `since` is [`Self::since`] on the wall clock.
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
    fn ax_61_a_call_of_a_degraded_tool_is_told_since_when_and_when_to_retry() {
        let degraded = Degraded { since: Instant::now(), why: Ended::Silent, retry_after: Duration::from_secs(5) };
        let error = degraded.error(UNIX_EPOCH);
        assert_eq!((error.code, error.message), (-32002, "tool_degraded"));
        let data: serde_json::Value = serde_json::from_str(&error.data).unwrap();
        assert_eq!(data["reason"], "subserver_unreachable");
        assert_eq!(data["since"], "1970-01-01T00:00:00Z");
        assert_eq!(data["retry_after_ms"], 5000);
    }
}
