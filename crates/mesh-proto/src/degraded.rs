//! What a call of a tool is told whose server is lost (MCP-AX 13.2, AX-61). Whether it is lost is not decided here.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

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
            "since": rfc3339(since),
            "retry_after_ms": u64::try_from(self.retry_after.as_millis()).unwrap_or(u64::MAX),
        });
        ErrorObject { code: -32002, message: "tool_degraded", data: data.to_string() }
    }
}

/// Seconds of UTC as `2026-05-01T12:05:00Z`; what lies before 1970 is taken for its beginning.
fn rfc3339(at: SystemTime) -> String {
    let seconds = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days since 1 March of the year 0, so that the leap day ends a year.
    let from_march = days + 719_468;
    let era = from_march / 146_097;
    let day = from_march % 146_097;
    let year_of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let day_of_month = day_of_year - (153 * shifted + 2) / 5 + 1;
    format!("{year:04}-{month:02}-{day_of_month:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_written_as_dates() {
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_777_637_100, "2026-05-01T12:05:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ];
        for (seconds, text) in cases {
            assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }

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
