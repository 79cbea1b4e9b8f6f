//! An aggregator's own notifications: lost subservers, and dropped notifications (AX-51, AX-60). Makes only the params.

use banyan_model::Segment;
use serde_json::json;

use super::SOURCE;
use crate::refusal::SessionEnd;

/// Notification of dropped notifications (AX-51).
pub const OVERFLOW: &str = "notifications/x-mcpax/notification_overflow";
/// Notification of a lost subserver (AX-60).
pub const LOST: &str = "notifications/x-mcpax/subserver_lost";

/// Makes the params of [`OVERFLOW`]: source, and number dropped of the session so far.
pub fn overflow(segment: &Segment, dropped: u64) -> String {
    json!({ "notifications_dropped": dropped, "_meta": { SOURCE: segment.as_str() } }).to_string()
}

/// Makes the params of [`LOST`]: source and reason.
pub fn lost(segment: &Segment, why: SessionEnd) -> String {
    json!({ "reason": why.as_str(), "_meta": { SOURCE: segment.as_str() } }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ax_60_a_notice_names_its_source_for_the_next_aggregator() {
        let params: serde_json::Value = serde_json::from_str(&lost(&Segment::nearest("edge"), SessionEnd::Silent)).unwrap();
        assert_eq!((params["_meta"][SOURCE].as_str(), params["reason"].as_str()), (Some("edge"), Some("heartbeats_missed")));
        let params: serde_json::Value = serde_json::from_str(&overflow(&Segment::nearest("edge"), 7)).unwrap();
        assert_eq!((params["_meta"][SOURCE].as_str(), params["notifications_dropped"].as_u64()), (Some("edge"), Some(7)));
    }
}
