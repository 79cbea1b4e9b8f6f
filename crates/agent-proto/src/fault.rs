//! Refusals of agents (A2A 1.0, section 3.3.2), over both bindings. Decides on no retry of its own.

use std::borrow::Cow;

use json::{Duplicates, Members};

/// Longest text of a refusal that is passed on, in characters.
const LONGEST: usize = 2_000;

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", .reason.as_ref().map_or_else(String::new, |reason| format!(" ({reason})")))]
pub struct AgentFault {
    pub kind: FaultKind,
    /// Machine-readable reason, in capitals.
    pub reason: Option<String>,
    pub message: String,
}

/// Kinds of refusals that are treated differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    TaskNotFound,
    TaskNotCancelable,
    UnsupportedOperation,
    VersionNotSupported,
    Other,
}

/// Reasons and codes of the kinds.
const KINDS: [(FaultKind, &str, &str); 4] = [
    (FaultKind::TaskNotFound, "TASK_NOT_FOUND", "-32001"),
    (FaultKind::TaskNotCancelable, "TASK_NOT_CANCELABLE", "-32002"),
    (FaultKind::UnsupportedOperation, "UNSUPPORTED_OPERATION", "-32004"),
    (FaultKind::VersionNotSupported, "VERSION_NOT_SUPPORTED", "-32009"),
];

impl AgentFault {
    /// Reads the `error` of a JSON-RPC response.
    pub fn from_rpc(text: &[u8]) -> Self {
        let Ok(error) = Members::parse(text, Duplicates::RefuseTop) else { return Self::unreadable() };
        let code = String::from_utf8_lossy(error.get("code").unwrap_or_default()).into_owned();
        Self::new(error.str("message"), reason(error.get("data")), &code)
    }

    /// Reads the body of an answer of HTTP+JSON that is no success: `{"error": {…}}` as `google.rpc.Status`.
    pub fn from_rest(text: &[u8]) -> Self {
        let Ok(body) = Members::parse(text, Duplicates::RefuseTop) else { return Self::unreadable() };
        let Some(error) = body.object("error") else { return Self::unreadable() };
        Self::new(error.str("message"), reason(error.get("details")), "")
    }

    fn new(message: Option<Cow<'_, str>>, reason: Option<String>, code: &str) -> Self {
        let known = KINDS.iter().find(|(_, name, number)| reason.as_deref().map_or(code == *number, |reason| reason == *name));
        let message =
            message.filter(|message| !message.trim().is_empty()).unwrap_or(Cow::Borrowed("it refused the request without a word"));
        let message = message.chars().take(LONGEST).collect();
        Self { kind: known.map_or(FaultKind::Other, |(kind, _, _)| *kind), reason, message }
    }

    fn unreadable() -> Self {
        Self::new(None, None, "")
    }
}

/// Finds the reason among typed details, where it stands in `google.rpc.ErrorInfo`.
fn reason(details: Option<&[u8]>) -> Option<String> {
    let details = details.and_then(json::elements)?;
    let reasons = details.into_iter().filter_map(|detail| {
        let detail = Members::parse(detail, Duplicates::RefuseTop).ok()?;
        detail.str("reason").map(|reason| reason.chars().take(100).collect())
    });
    reasons.into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_the_same_over_both_bindings() {
        let details = r#"[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_FOUND","domain":"a2a-protocol.org"}]"#;
        let rpc = AgentFault::from_rpc(format!(r#"{{"code":-32001,"message":"Task not found","data":{details}}}"#).as_bytes());
        let rest =
            AgentFault::from_rest(format!(r#"{{"error":{{"code":404,"message":"Task not found","details":{details}}}}}"#).as_bytes());
        assert_eq!(rpc, rest);
        assert_eq!((rpc.kind, rpc.to_string().as_str()), (FaultKind::TaskNotFound, "Task not found (TASK_NOT_FOUND)"));
    }

    #[test]
    fn the_code_counts_where_no_reason_is_given() {
        let fault = AgentFault::from_rpc(br#"{"code":-32009,"message":"1.0 only"}"#);
        assert_eq!((fault.kind, fault.reason), (FaultKind::VersionNotSupported, None));
        let silent = AgentFault::from_rest(b"<html>");
        assert_eq!(silent.to_string(), "it refused the request without a word");
    }
}
