//! What an aggregator itself notifies upward: that a subserver is lost, and that notifications were dropped (AX-51, AX-60). The envelope
//! around the params is not made here.

use banyan_model::Segment;
use serde_json::json;

use super::SOURCE;
use crate::refusal::Ended;

/// The notification that says that some were dropped (AX-51).
pub const OVERFLOW: &str = "notifications/x-mcpax/notification_overflow";
/// The notification that says that a subserver is lost (AX-60).
pub const LOST: &str = "notifications/x-mcpax/subserver_lost";

/// The params of [`OVERFLOW`]: whose notifications, and how many were dropped of its session so far.
pub fn overflow(segment: &Segment, dropped: u64) -> String {
    json!({ "notifications_dropped": dropped, "_meta": { SOURCE: segment.as_str() } }).to_string()
}

/// The params of [`LOST`]: who, and why.
pub fn lost(segment: &Segment, why: Ended) -> String {
    json!({ "reason": why.as_str(), "_meta": { SOURCE: segment.as_str() } }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ax_60_a_notice_says_who_is_meant_where_the_next_aggregator_looks_for_it() {
        let params: serde_json::Value = serde_json::from_str(&lost(&Segment::nearest("edge"), Ended::Silent)).unwrap();
        assert_eq!((params["_meta"][SOURCE].as_str(), params["reason"].as_str()), (Some("edge"), Some("heartbeats_missed")));
        let params: serde_json::Value = serde_json::from_str(&overflow(&Segment::nearest("edge"), 7)).unwrap();
        assert_eq!((params["_meta"][SOURCE].as_str(), params["notifications_dropped"].as_u64()), (Some("edge"), Some(7)));
    }
}
