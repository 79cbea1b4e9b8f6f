//! A refusal as it comes back to whoever asked. Codes are not looked at: `data.reason` says what it is.

use std::time::Duration;

use serde_json::Value;

use super::limit::{MAX_BYTES, MAX_SUBTREE_IDS};
use super::node_ids::set;
use crate::id::NodeId;
use crate::json::object;
use crate::refusal::Ended;

/// What is understood of an error object.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Refused {
    /// The code, 0 where it has none.
    pub code: i64,
    /// `data.reason`, or the message where there is no reason; at most 200 characters.
    pub reason: String,
    /// `data.hint`, for people; at most 1000 characters.
    pub hint: String,
    /// When to try again.
    pub retry_after: Option<Duration>,
    /// The ids that a cycle would go through.
    pub ids: Vec<NodeId>,
    /// Why the session ended that is not known any more.
    pub ended: Option<Ended>,
    /// Whether whoever refuses says that it stands below the one refused.
    pub below_you: bool,
}

impl Refused {
    /// Reads the raw `error` object; what cannot be read is a refusal without a reason.
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
        refused.ended = text("ended").and_then(Ended::parse);
        refused.below_you = data.get("below_you").and_then(Value::as_bool).unwrap_or_default();
        refused.ids = set(&data, "ids", MAX_SUBTREE_IDS).ok().flatten().unwrap_or_default().into_iter().collect();
        refused
    }

    /// Whether it is the refusal with this stable message.
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
            Refused::decode(format!(r#"{{"code":{},"message":"{}","data":{}}}"#, error.code, error.message, error.data).as_bytes());
        assert!(refused.is("registration_cycle") && refused.below_you && refused.ids.len() == 2);
        assert!(Refused::decode(br#"{"code":-32601,"message":"no"}"#).is("no"));
        assert_eq!(Refused::decode(b"nonsense"), Refused::default());
    }
}
