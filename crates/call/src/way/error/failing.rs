//! Texts about a failing server, for callers, and for the operator alone. Does not know which caller is the operator.

use std::time::{Duration, SystemTime};

use banyan_model::Timestamp;
use mcp_proto::json::quote;

use crate::tree::port::UpstreamError;
use crate::way::error::{CallerError, FaultSource, caller_error, reason};

/// Report of a server's failure. Anybody may provoke a failure, and a server may write about others' calls on its standard error.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Id of the call in log and record, by which its caller can ask about it.
    pub call: String,
    /// Last lines of the server's standard error; empty for everybody but the operator.
    pub stderr: Vec<String>,
}

/// Members of `data` with a report, each behind a comma.
fn members(report: Option<&Report>) -> String {
    let Some(Report { call, stderr }) = report else { return String::new() };
    let lines: Vec<String> = stderr.iter().map(|line| quote(line)).collect();
    let lines = if lines.is_empty() { String::new() } else { format!(",\"stderr\":[{}]", lines.join(",")) };
    format!(",\"call\":{}{lines}", quote(call))
}

/// Error for a server that is away.
pub fn unavailable(text: String, mount: &str, (since, next_try): (SystemTime, Option<SystemTime>), report: Option<&Report>) -> CallerError {
    let wait = next_try.and_then(|t| t.duration_since(SystemTime::now()).ok()).unwrap_or(Duration::from_secs(1));
    let for_secs = since.elapsed().unwrap_or_default().as_secs();
    let more = format!(
        ",\"server\":{},\"since\":\"{}\",\"since_seconds\":{for_secs},\"retry_after_ms\":{},\"hint\":{}{}",
        quote(mount),
        Timestamp(since),
        wait.as_millis(),
        quote(&format!("`banyan logs {mount}` and `banyan doctor` say more")),
        members(report)
    );
    caller_error(-32002, 200, text, Some(reason("subserver_unreachable", &more)), FaultSource::Upstream, true)
}

/// Error for a server that failed under a call.
pub fn upstream(text: String, mount: &str, error: &UpstreamError, report: Option<&Report>) -> CallerError {
    let (code, name, retry, hint) = match error {
        UpstreamError::Cancelled => (-32000, "cancelled", false, "nothing: you cancelled it"),
        UpstreamError::Exposed => (-32002, "tool_degraded", false, "reach that gate over https://, or say `insecure = true` in the mount"),
        UpstreamError::Loop => (-32002, "tool_degraded", false, "take the mount out of the configuration of one of the gates"),
        UpstreamError::Lost(_) => (-32004, "outcome_unknown", false, "whether it took effect is not known: look before you repeat it"),
        UpstreamError::Malformed(_) => (-32006, "upstream_malformed", false, "the server is at fault; its log may tell"),
        UpstreamError::Refused { .. } => (-32007, "upstream_refused", false, "check its URL and credentials in the configuration"),
        UpstreamError::SessionLost => (-32004, "upstream_lost", true, "call again"),
        UpstreamError::SignIn(_) => (-32010, "sign_in_required", true, "sign in with `banyan auth SERVER`, then call again"),
        UpstreamError::Endless(_) => {
            (-32005, "upstream_timeout", false, "whether it took effect is not known; `longest` of the mount can be raised")
        }
        UpstreamError::Silent(_) => {
            (-32005, "upstream_timeout", false, "whether it took effect is not known; `timeout` of the mount can be raised")
        }
        UpstreamError::TooLarge(_) => (-32008, "result_too_large", false, "ask for less, or raise limits.response_size"),
        UpstreamError::Untold(_) => (-32006, "changes_untold", false, "read it again when you want it as it is now"),
        UpstreamError::Unreachable(_) => (-32002, "tool_degraded", true, "the call was not made; `banyan doctor` says more"),
    };
    let hint = format!("{}; to whoever runs the gate `banyan logs {mount}` says more", hint.replace("SERVER", mount));
    let more = format!(",\"server\":{},\"hint\":{}{}", quote(mount), quote(&hint), members(report));
    caller_error(code, 200, text, Some(reason(name, &more)), FaultSource::Upstream, retry)
}
