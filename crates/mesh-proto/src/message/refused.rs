//! Refusals as received by the requester. `data.reason` tells refusals apart, codes do not.

use std::time::Duration;

use serde_json::Value;

use super::limit::{MAX_BYTES, MAX_SUBTREE_IDS};
use super::node_ids::set;
use crate::id::NodeId;
use crate::json::object;
use crate::refusal::SessionEnd;

/// Legible parts of an error object.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReceivedRefusal {
    /// 0 where absent.
    pub code: i64,
    /// `data.reason`, or else the message; at most 200 characters.
    pub reason: String,
    /// `data.hint`, for people; at most 1000 characters.
    pub hint: String,
    /// Time to wait.
    pub retry_after: Option<Duration>,
    /// Ids on the path of a cycle.
    pub ids: Vec<NodeId>,
    /// Reason for the end of an unknown session.
    pub ended: Option<SessionEnd>,
    /// The refusing node claims to stand below the refused.
    pub below_you: bool,
}

impl ReceivedRefusal {
    /// Reads the raw `error` object; illegible text counts as a refusal without a reason.
    pub fn decode(error: &[u8]) -> Self {
        let Ok(error) = object(error, MAX_BYTES) else { return Self::default() };
        let cut = |text: &str, most| text.chars().take(most).collect::<String>();
        let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
        let mut refused =
            Self { code: error.get("code").and_then(Value::as_i64).unwrap_or_default(), reason: cut(message, 200), ..Self::default() };
        let Ok(Some(data)) = error.object("data") else { return refused };
        let text = |member| data.get(member).and_then(Value::as_str);
        if let Some(reason) = text("reason") {
            refused.reason = cut(reason, 200);
        }
        refused.hint = cut(text("hint").unwrap_or_default(), 1000);
        refused.retry_after = data.get("retry_after_ms").and_then(Value::as_u64).map(Duration::from_millis);
        refused.ended = text("ended").and_then(SessionEnd::parse);
        refused.below_you = data.get("below_you").and_then(Value::as_bool).unwrap_or_default();
        refused.ids = set(&data, "ids", MAX_SUBTREE_IDS).ok().flatten().unwrap_or_default().into_iter().collect();
        refused
    }

    /// Compares the stable message.
    pub fn is(&self, reason: &str) -> bool {
        self.reason == reason
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal::Refusal;

    #[test]
    fn ax_27_what_is_refused_can_be_told_from_the_error() {
        let refusal = Refusal::RegistrationCycle { ids: vec![NodeId::new(1), NodeId::new(2)], below_you: true };
        let error = refusal.error();
        let refused =
            ReceivedRefusal::decode(format!(r#"{{"code":{},"message":"{}","data":{}}}"#, error.code, error.message, error.data).as_bytes());
        assert!(refused.is("registration_cycle") && refused.below_you && refused.ids.len() == 2);
        assert!(ReceivedRefusal::decode(br#"{"code":-32601,"message":"no"}"#).is("no"));
        assert_eq!(ReceivedRefusal::decode(b"nonsense"), ReceivedRefusal::default());
    }
}
