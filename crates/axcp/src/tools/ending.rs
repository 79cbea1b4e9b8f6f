//! Ends of calls in the words of AXCP: results as they came, and refusals with the codes of the specification. Makes no call.

use axcp_proto::error::ErrorCode;
use axcp_proto::invocation::{KeptEnd, MOST_RESULT};
use axcp_proto::message::ErrorMessage;
use banyan_model::Era;
use bytes::Bytes;
use call::tree::port::UpstreamError;
use call::way::error::CallError;
use json::Members;
use mcp_proto::envelope::Answer;

/// Bytes of a refusal's text.
const MOST_REASON: usize = 4096;
/// Bytes of an error as its server wrote it.
const MOST_DIAGNOSTICS: usize = 64 * 1024;

/// End of a call of a peer.
pub(crate) struct ServedEnd {
    pub(crate) end: KeptEnd,
    /// The call has not left, so that its key may begin it again.
    pub(crate) never_left: bool,
}

impl ServedEnd {
    /// Makes the end of an outcome. `is_late`: the call took longer than its caller allows. `is_listed`: the tool was offered to the caller,
    /// who thus knows of the tool.
    pub(crate) fn new(outcome: Result<Answer, CallError>, is_late: bool, is_listed: bool) -> Self {
        let (end, never_left) = match outcome {
            Ok(Answer::Result(result)) if result.len() <= MOST_RESULT => (KeptEnd::Result(result.into_text()), false),
            Ok(Answer::Result(_)) => {
                let why = format!("the tool ran, and its result is longer than {MOST_RESULT} bytes: ask for less");
                (refused(ErrorCode::PayloadTooLarge, why, Bytes::new()), false)
            }
            Ok(Answer::Error(_)) | Err(_) if is_late => {
                let why = "the call took longer than its timeout_ms, and was withdrawn: whether it took effect is not known";
                (refused(ErrorCode::Timeout, why.into(), Bytes::new()), false)
            }
            Ok(Answer::Error(error)) => (of_server(&error), false),
            Err(error) => (of_gate(error.in_plain_terms(), is_listed), is_before_leaving(error.in_plain_terms())),
        };
        Self { end, never_left }
    }
}

/// Refusal by the server of the tool, with its error as it came.
fn of_server(error: &Bytes) -> KeptEnd {
    let members = Members::again(error);
    let is_misput = members.get("code") == Some(b"-32602");
    let code = if is_misput { ErrorCode::MalformedRequest } else { ErrorCode::Unknown };
    refused(code, members.str("message").unwrap_or_default().into_owned(), error.clone())
}

/// Refusal by this gate. Rules that refuse a tool that the caller knows of are told as such; otherwise the tool does not exist.
fn of_gate(error: &CallError, is_listed: bool) -> KeptEnd {
    let told = error.tell(Era::Initialize);
    if matches!(error, CallError::Denied(_)) && is_listed {
        let by = error.decided().map(|by| format!(" (decision {})", by.id)).unwrap_or_default();
        let why = format!("the rules of this node refuse the call{by}: ask its operator");
        return refused(ErrorCode::Unauthorized, why, told.object());
    }
    refused(code(error), told.message.clone(), told.object())
}

fn code(error: &CallError) -> ErrorCode {
    use CallError as E;
    if matches!(error, E::UnknownTool(_) | E::Denied(_) | E::Route(_)) {
        ErrorCode::ToolNotFound
    } else if matches!(
        error,
        E::Approval(_) | E::ConfirmationRequired(_) | E::Held { .. } | E::NoApprover { .. } | E::NotApproved { .. } | E::Unapproved(_)
    ) {
        ErrorCode::Unauthorized
    } else if is_for_later(error) {
        ErrorCode::TooManyRequests
    } else if matches!(error, E::BadParams(_)) {
        ErrorCode::MalformedRequest
    } else if matches!(error, E::Upstream { error: UpstreamError::Silent(_) | UpstreamError::Endless(_), .. }) {
        ErrorCode::Timeout
    } else if matches!(error, E::Upstream { error: UpstreamError::TooLarge(_), .. }) {
        ErrorCode::PayloadTooLarge
    } else {
        ErrorCode::Unknown
    }
}

/// Checks for a refusal by this gate before the call left for its server.
fn is_before_leaving(error: &CallError) -> bool {
    use CallError as E;
    let is_refused = matches!(
        error,
        E::Approval(_)
            | E::BadParams(_)
            | E::ConfirmationRequired(_)
            | E::Denied(_)
            | E::Held { .. }
            | E::NoApprover { .. }
            | E::NotApproved { .. }
            | E::PolicyFailed(_)
            | E::ProfileGone(_)
            | E::Unapproved(_)
            | E::UnknownTool(_)
    );
    is_refused || error.never_left() || is_for_later(error)
}

/// Checks for a refusal that says nothing about the call itself, which may be made later.
fn is_for_later(error: &CallError) -> bool {
    matches!(error, CallError::Budget(_) | CallError::Overloaded { .. } | CallError::Late | CallError::WithdrawnTooOften { .. })
}

/// Makes a refusal of bounded length: texts of a server can be as long as a frame.
fn refused(code: ErrorCode, mut reason: String, diagnostics: Bytes) -> KeptEnd {
    if reason.len() > MOST_REASON {
        reason.truncate(reason.floor_char_boundary(MOST_REASON));
        reason.push('…');
    }
    // A part of an object is none.
    let diagnostics = if diagnostics.len() > MOST_DIAGNOSTICS { Bytes::new() } else { diagnostics };
    KeptEnd::Refused(ErrorMessage { code: code.number(), reason, diagnostics })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(outcome: Result<Answer, CallError>, is_late: bool, is_listed: bool) -> u32 {
        let KeptEnd::Refused(refused) = ServedEnd::new(outcome, is_late, is_listed).end else { panic!("no refusal") };
        refused.code
    }

    #[test]
    fn xc_24_refusals_of_calls_have_their_codes() {
        for (error, wanted) in [
            (CallError::UnknownTool("a".into()), 3),
            (CallError::BadParams("a".into()), 8),
            (CallError::Late, 9),
            (CallError::NoApprover { reachable: 0, required: 1 }, 2),
            (CallError::Cancelled, 0),
        ] {
            assert_eq!(code(Err(error.clone()), false, true), wanted, "{error}");
            assert_eq!(code(Err(error.clone().for_mesh()), false, true), wanted, "{error}, in the terms of MCP-AX");
        }
        assert_eq!(code(Err(CallError::Cancelled), true, true), 4);
        let error = Bytes::from_static(b"{\"code\":-32602,\"message\":\"bad\"}");
        assert_eq!(code(Ok(Answer::Error(error)), false, true), 8);
    }

    #[test]
    fn xc_24_a_long_error_of_a_server_is_cut() {
        let error = format!("{{\"code\":1,\"message\":\"{}\"}}", "ä".repeat(6 << 20));
        let KeptEnd::Refused(refused) = ServedEnd::new(Ok(Answer::Error(error.into())), false, true).end else { panic!("no refusal") };
        assert_eq!((refused.reason.len(), refused.diagnostics.len()), (MOST_REASON + "…".len(), 0));
    }

    #[test]
    fn xc_21_a_call_that_never_left_frees_its_key() {
        for error in [CallError::Late, CallError::UnknownTool("a".into()), CallError::BadParams("a".into())] {
            assert!(ServedEnd::new(Err(error.clone()), false, true).never_left);
            assert!(ServedEnd::new(Err(error.for_mesh()), false, true).never_left);
        }
        assert!(ServedEnd::new(Err(CallError::NoApprover { reachable: 0, required: 1 }), false, true).never_left);
        assert!(!ServedEnd::new(Err(CallError::Cancelled), false, true).never_left);
    }
}
