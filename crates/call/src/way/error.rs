//! Reasons why a call was not carried out, and their texts for callers: the only place of the way that knows JSON-RPC codes and HTTP
//! statuses. Doors, parents and the bridge of the eras answer for themselves: `door::reply`, `mesh_proto::refusal`, `mcp::bridge`.
//!
//! Codes -32000 to -32019 are ours and always come with `data.reason`; -32020 and below belong to MCP (2026-07-28, "Error codes").

pub mod failing;
mod lower;
mod terms;

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

pub use crate::way::error::failing::Report;

use banyan_model::{Era, Fault, FaultSource};
use bytes::Bytes;
use http::StatusCode;
use mcp_proto::envelope::{Answer, EnvelopeError, error_object};
use mcp_proto::era::STATELESS;
use mcp_proto::header::Mismatch;
use mcp_proto::json::quote;
use mcp_proto::splice::{self, Change};
use mesh_proto::degraded::DegradedTool;
use mesh_proto::refusal::Refusal as RouteRefusal;
use policy::approval::{Refusal, Standing};
use policy::budget::Exceeded;
use policy::pin::{Kind as Pinned, Standing as Looked, Why};

use crate::judge::policy::DecisionId;
use crate::tree::port::UpstreamError;
use crate::way::gate::Pending;

/// Reasons why a request was not carried out: a variant for each reaction.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CallError {
    /// A confirmation, or a call that came back from waiting for one, is refused.
    #[error("{0}")]
    Approval(Refusal),
    /// The cursor is not ours.
    #[error("the cursor is not one this list gave; list again from the start")]
    BadCursor,
    /// A budget has no room for the call (AX-48).
    #[error("budget_exceeded: by the budget `{}`, {}", .0.0, .0.1)]
    Budget(Box<(Arc<str>, Exceeded)>),
    #[error("{0}")]
    BadMessage(EnvelopeError),
    #[error("{0}")]
    BadParams(String),
    #[error("the call was cancelled")]
    Cancelled,
    /// The client has not declared a needed capability.
    #[error("this needs `{name}`, which the client capabilities of the request do not declare")]
    CapabilityMissing {
        /// A capability, or the id of an extension.
        name: &'static str,
        /// An extension, not a capability.
        extension: bool,
    },
    /// The call waits for a person to agree (AX-45).
    #[error("confirmation_required: {}", .0.text())]
    ConfirmationRequired(Box<Pending>),
    /// The registered server of a tool is away since that time; the call was not made (AX-61).
    #[error("tool_degraded")]
    Degraded(Box<(DegradedTool, SystemTime)>),
    /// The rules deny the call, or they hold and the name is unknown: outside both look alike.
    #[error("{0}")]
    Denied(Box<DeniedCall>),
    /// A header does not match the body.
    #[error("header mismatch: {0}")]
    HeaderMismatch(Mismatch),
    /// The definition waits for a person's decision.
    #[error("{}", held(*.kind, .name, *.why, *.standing))]
    Held {
        mount: String,
        kind: Pinned,
        /// Name behind the mount's.
        name: String,
        why: Why,
        /// State of the person's decision.
        standing: Looked,
    },
    /// More calls come than the gate can carry.
    #[error("the gate has more to do than it can: calls wait for their turn longer than they should (limits.wait); try again shortly")]
    Late,
    /// `_meta` lacks a member that every stateless request must carry.
    #[error("`params._meta` must hold `{0}`")]
    MetaMissing(&'static str),
    #[error("method `{0}` is not served here")]
    MethodNotFound(String),
    /// Fewer people can agree than have to, so that waiting is of no use.
    #[error(
        "{} to agree before this call goes out, and {} can (nobody approves a call of its own): \
         `banyan operator enroll NAME --key FILE` lets somebody",
        if *required == 1 { "a person has".to_owned() } else { format!("{required} people have") },
        if *reachable == 0 { "nobody".to_owned() } else { format!("only {reachable}") }
    )]
    NoApprover {
        /// People who can agree.
        reachable: usize,
        /// People who have to agree.
        required: u8,
    },
    /// A person said no, or the time passed, or the approval can't be asked for any more.
    #[error("{}", Refusal::Over(*.standing))]
    NotApproved {
        /// Id of the approval.
        id: String,
        standing: Standing,
        /// Reason in the words of the person who decided; may be empty.
        why: String,
    },
    #[error("{what}: {most} are in flight, which is the limit; try again shortly")]
    Overloaded {
        /// Name of the full resource.
        what: &'static str,
        most: usize,
    },
    /// A rule could not be evaluated, so that nothing is allowed. Told openly.
    #[error("{0}")]
    PolicyFailed(Box<DeniedCall>),
    /// The gate can't find out, or can't record, if the call may go out.
    #[error("{0}")]
    Policy(String),
    /// A reload removed the profile of this caller's view: the caller is shown nothing rather than everything.
    #[error(
        "the profile `{0}`, which said what is shown here, is no longer in the configuration; connect again to be shown what the \
         configuration gives, or put the profile back"
    )]
    ProfileGone(Arc<str>),
    /// The record is full, with nothing old enough to be removed.
    #[error("the record of this gate is full, and nothing in it may be taken away yet: the call was not made")]
    RecordFull,
    /// The record holds the full share of the caller's principal, with nothing of it old enough to be removed.
    #[error(
        "the record of this gate holds the share of its caller, and nothing of it may be taken away yet: the call was not made; others \
         make calls"
    )]
    RecordShare {
        /// End of the refusal, in seconds since 1970.
        until: u64,
    },
    /// A route between gates leads nowhere.
    #[error("{0}")]
    Route(RouteRefusal),
    /// A continued call that does not wait: answered, expired, or never made.
    #[error("`requestState` names no call that waits for input: it may have been answered, or have expired; make the call anew")]
    StateUnknown,
    /// A rule wants somebody to agree to the call first, and nobody can.
    #[error("somebody has to agree to this call before it is made, and this gate has nobody to ask (decision {0})")]
    Unapproved(DecisionId),
    /// An unknown tool, in the terms of MCP-AX.
    #[error("{0}")]
    UnknownRoute(Box<Self>),
    #[error("unknown prompt: {0}")]
    UnknownPrompt(String),
    #[error("resource not found: {0}")]
    UnknownResource(String),
    #[error("unknown task: {0}")]
    UnknownTask(String),
    /// No tool has the name, or the caller may not use it: outside both look alike.
    #[error("unknown tool: {0}")]
    UnknownTool(String),
    /// The record could not be written, and the call may not be made without.
    #[error("the call was not made, for it can't be recorded: {0}")]
    Unrecorded(String),
    /// A revision we do not speak.
    #[error("unsupported protocol version {0}")]
    UnsupportedVersion(String),
    /// The caller withdrew too many calls that waited for approval.
    #[error("too many calls of this caller were taken back before anybody agreed to them: the next one is put before people in {wait} s")]
    WithdrawnTooOften {
        /// Seconds until further requests are accepted.
        wait: u64,
    },
    /// The mount has no connection at present; the call was not made.
    #[error("server `{mount}` is not available: {why}")]
    Unavailable {
        mount: String,
        why: String,
        since: SystemTime,
        /// Time of the next try.
        next_try: Option<SystemTime>,
        /// Report for the caller; set at the end of the call.
        report: Option<Box<Report>>,
    },
    /// The server failed under the call.
    #[error("server `{mount}`: {error}")]
    Upstream {
        mount: String,
        error: UpstreamError,
        /// Report for the caller; set at the end of the call.
        report: Option<Box<Report>>,
    },
}

/// A refusal disguised as another error.
#[derive(Debug, Clone)]
pub struct DeniedCall {
    pub id: DecisionId,
    /// Error shown to the caller, but for the id.
    pub like: CallError,
    /// Cause as the record has it; `unknown` for an unknown name.
    pub cause: &'static str,
    /// Rules that decided.
    pub rules: Vec<Arc<str>>,
    /// Mount and its own name of the thing, for the record alone.
    pub owner: Option<(String, String)>,
    /// Scope that a rule asks for and the caller's token lacks.
    pub scope: Option<Arc<str>>,
}

/// Decision of the rules about a refused call.
pub struct RuleDecision<'a> {
    pub id: DecisionId,
    /// Cause, as the record has it.
    pub cause: &'static str,
    pub rules: &'a [Arc<str>],
    pub owner: Option<&'a (String, String)>,
}

impl DeniedCall {
    /// Text like that of an unknown name, except for a caller who can sign in again with more scope.
    fn tell(&self, era: Era) -> CallerError {
        let told = match &self.scope {
            Some(scope) => {
                let text = format!("this takes the scope `{scope}`, which your token does not have: sign in again and ask for it");
                let data = reason("insufficient_scope", &format!(",\"scope\":{}", quote(scope)));
                caller_error(-32000, 403, text, Some(data), FaultSource::Downstream, true)
            }
            None => self.like.tell(era),
        };
        CallerError { data: Some(with_decision(told.data.as_deref(), self.id)), ..told }
    }
}

impl fmt::Display for DeniedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "refused ({} {}; decision {}), told as: {}", self.cause, self.rules.join(", "), self.id, self.like)
    }
}

/// Error for a caller.
#[derive(Debug, Clone)]
pub struct CallerError {
    pub code: i64,
    pub status: StatusCode,
    pub message: String,
    /// Raw JSON.
    pub data: Option<String>,
    pub fault: Fault,
}

impl CallerError {
    /// Raw `error` object.
    pub fn object(&self) -> Bytes {
        error_object(self.code, &self.message, self.data.as_deref().map(str::as_bytes))
    }
}

impl CallError {
    /// Scope with which the call would come through, for a caller who can sign in again.
    pub fn wanted_scope(&self) -> Option<&str> {
        if let Self::Denied(denied) = self { denied.scope.as_deref() } else { None }
    }

    /// Mount of the failed server, and the place for the caller's report.
    pub fn failing(&mut self) -> Option<(&str, &mut Option<Box<Report>>)> {
        let (Self::Unavailable { mount, report, .. } | Self::Upstream { mount, report, .. }) = self else { return None };
        Some((mount, report))
    }

    /// Mount of the server that was away when the call came.
    pub fn away(&self) -> Option<&str> {
        if let Self::Unavailable { mount, .. } | Self::Upstream { mount, .. } = self { Some(mount) } else { None }
    }

    /// Checks for an error of the server, not of the call.
    pub fn is_of_server(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Degraded(_) | Self::Upstream { .. })
    }

    /// Checks for an unknown name.
    pub fn is_unknown(&self) -> bool {
        matches!(self.in_plain_terms(), Self::UnknownPrompt(_) | Self::UnknownResource(_) | Self::UnknownTask(_) | Self::UnknownTool(_))
    }

    /// Decision of the rules, if any.
    pub fn decided(&self) -> Option<RuleDecision<'_>> {
        let (Self::Denied(by) | Self::PolicyFailed(by)) = self.in_plain_terms() else { return None };
        Some(RuleDecision { id: by.id, cause: by.cause, rules: &by.rules, owner: by.owner.as_ref() })
    }

    /// Adds the owner of the name, for the record.
    pub fn owned(mut self, mount: &str, name: &str) -> Self {
        if let Self::Denied(by) | Self::PolicyFailed(by) = &mut self {
            by.owner = Some((mount.to_owned(), name.to_owned()));
        }
        self
    }

    /// Checks that the call has not reached its owner.
    pub fn never_left(&self) -> bool {
        use UpstreamError::{Exposed, Loop, SignIn, Unreachable};
        matches!(
            self,
            Self::Degraded(_)
                | Self::StateUnknown
                | Self::Unavailable { .. }
                | Self::Upstream { error: Exposed | Loop | SignIn(_) | Unreachable(_), .. }
        )
    }

    /// Error for a caller of `era`.
    pub fn tell(&self, era: Era) -> CallerError {
        let text = self.to_string();
        let down = |code, status, data| caller_error(code, status, text.clone(), data, FaultSource::Downstream, false);
        let ours = |code, status, data, again| caller_error(code, status, text.clone(), Some(data), FaultSource::Internal, again);
        match self {
            Self::Approval(why) => down(-32017, 200, Some(reason(why.reason(), ""))),
            Self::BadCursor => down(-32602, 200, Some(reason("bad_cursor", ""))),
            Self::BadMessage(EnvelopeError::Json(_)) => down(-32700, 400, None),
            Self::BadMessage(EnvelopeError::Batch | EnvelopeError::Invalid { .. }) => down(-32600, 400, None),
            Self::BadParams(_) => down(-32602, 200, None),
            Self::Budget(over) => budget(text.clone(), &over.0, &over.1),
            Self::Cancelled => down(-32000, 200, Some(reason("cancelled", ""))),
            Self::CapabilityMissing { name, extension } => {
                let named = format!("{{{}:{{}}}}", quote(name));
                let required = if *extension { format!("{{\"extensions\":{named}}}") } else { named };
                down(-32021, 400, Some(format!("{{\"requiredCapabilities\":{required}}}")))
            }
            Self::ConfirmationRequired(pending) => down(-32012, 200, Some(pending.data())),
            Self::Degraded(degraded) => {
                let error = degraded.0.error(degraded.1);
                caller_error(error.code, 200, error.message.into(), Some(error.data), FaultSource::Upstream, true)
            }
            Self::Denied(denied) => denied.tell(era),
            Self::HeaderMismatch(_) => down(-32020, 400, None),
            Self::Held { kind, name, why, standing, .. } => down(-32019, 200, Some(definition_held(*kind, name, *why, *standing))),
            Self::MetaMissing(_) => down(-32602, 400, None),
            Self::MethodNotFound(_) => down(-32601, if era == Era::Stateless { 404 } else { 200 }, None),
            Self::NoApprover { reachable, required } => {
                down(-32015, 200, Some(reason("no_approver", &format!(",\"reachable\":{reachable},\"required\":{required}"))))
            }
            Self::NotApproved { id, standing, why } => {
                let (code, data) = not_approved(id, *standing, why);
                down(code, 200, Some(data))
            }
            Self::Late | Self::Overloaded { .. } => ours(-32009, 503, reason("overloaded", ",\"retry_after_ms\":1000"), true),
            Self::PolicyFailed(failed) => {
                let text = "a rule of this gate could not be evaluated for this call, so it was refused";
                let hint = format!("the gate's owner sees why with `banyan explain {}`", failed.id);
                let data = reason("policy_error", &format!(",\"hint\":{}", quote(&hint)));
                let data = Some(with_decision(Some(&data), failed.id));
                caller_error(-32016, 200, text.into(), data, FaultSource::Internal, false)
            }
            Self::Policy(_) => ours(-32016, 200, reason("policy_error", ""), true),
            Self::ProfileGone(profile) => {
                let data = reason("profile_gone", &format!(",\"profile\":{}", quote(profile)));
                ours(-32011, 200, data, false)
            }
            Self::RecordFull => ours(-32013, 503, reason("record_full", RECORD_FULL), true),
            Self::RecordShare { until } => too_much(-32013, text.clone(), "record_share", &format!(",\"until\":{until}{RECORD_SHARE}")),
            Self::Route(refusal) => {
                let error = refusal.error();
                down(error.code, 200, Some(error.data))
            }
            Self::StateUnknown => down(-32602, 200, Some(reason("state_unknown", ""))),
            Self::Unapproved(id) => ours(-32015, 200, with_decision(Some(&reason("no_approver", "")), *id), false),
            // With the status of an unknown tool: to HTTP, 404 would deny `tools/call` itself.
            Self::UnknownRoute(unknown) => CallerError { code: -32601, ..unknown.tell(era) },
            Self::UnknownPrompt(_) => down(-32602, 200, Some(reason("unknown_prompt", ""))),
            Self::UnknownResource(uri) => {
                let code = if era == Era::Stateless { -32602 } else { -32002 };
                down(code, 200, Some(reason("resource_not_found", &format!(",\"uri\":{}", quote(uri)))))
            }
            Self::UnknownTask(_) => down(-32602, 200, Some(reason("unknown_task", ""))),
            Self::UnknownTool(_) => {
                let hint = ",\"hint\":\"tools/list says what there is; `banyan names` says how names are spelled for a client\"";
                down(-32602, 200, Some(reason("unknown_tool", hint)))
            }
            Self::Unrecorded(_) => ours(-32013, 503, reason("unrecorded", UNRECORDED), true),
            Self::UnsupportedVersion(asked) => {
                let data = format!("{{\"supported\":[\"{STATELESS}\"],\"requested\":{}}}", quote(asked));
                down(-32022, 400, Some(data))
            }
            Self::Unavailable { mount, since, next_try, report, .. } => {
                failing::unavailable(text.clone(), mount, (*since, *next_try), report.as_deref())
            }
            Self::WithdrawnTooOften { wait } => too_much(-32009, text.clone(), "withdrawn_too_often", &after(*wait)),
            Self::Upstream { mount, error, report } => failing::upstream(text.clone(), mount, error, report.as_deref()),
        }
    }
}

const UNRECORDED: &str = ",\"hint\":\"whoever runs the gate sees in `banyan status` and its log what is wrong with the record\"";

const RECORD_FULL: &str = ",\"hint\":\"whoever runs the gate raises `full_size` in [audit], or lowers `keep_at_least`, and starts it again; \
    `banyan status` says how it stands with the record\"";

const RECORD_SHARE: &str = ",\"hint\":\"calls are made again at `until` (seconds since 1970), when entries of this caller are older than \
    `keep_at_least`; whoever runs the gate raises `full_size` or lowers `keep_at_least` in [audit], or raises `share` in [limits]\"";

/// Text for a thing whose definition waits.
fn held(kind: Pinned, name: &str, why: Why, standing: Looked) -> String {
    let what = match why {
        Why::BecameGate => "came when its server began to call itself a gate",
        Why::Changed => "is not the one that was known",
        Why::New => "was never looked at",
        Why::Replaced => "came when another one of its server went",
    };
    let kind = kind.as_str();
    let then = if standing == Looked::Refused { "somebody looked at it and refused it" } else { "it waits until somebody looks at it" };
    format!("the definition of the {kind} `{name}` {what}, and {then}: its server was not asked")
}

fn definition_held(kind: Pinned, name: &str, why: Why, standing: Looked) -> String {
    let hint = format!("whoever runs the gate sees what it says with `banyan pins show {name}`, and takes it or does not");
    let (kind, why, standing) = (kind.as_str(), why.as_str(), standing.as_str());
    let more = format!(",\"kind\":\"{kind}\",\"why\":\"{why}\",\"standing\":\"{standing}\",\"hint\":{}", quote(&hint));
    reason("definition_held", &more)
}

/// Code and data for a call without approval.
fn not_approved(id: &str, standing: Standing, why: &str) -> (i64, String) {
    let codes = [(Standing::Denied, -32018), (Standing::Expired, -32014), (Standing::OutcomeUnknown, -32004)];
    let code = codes.iter().find(|(of, _)| *of == standing).map_or(-32017, |(_, code)| *code);
    let more = format!(",\"id\":{},\"why\":{}", quote(id), quote(why));
    (code, reason(Refusal::Over(standing).reason(), &more))
}

/// Answer to a request of MCP-AX: its raw result, or the code, message and data of its refusal unchanged (AX-27).
pub fn answered(answer: Result<String, RouteRefusal>) -> Answer {
    match answer {
        Ok(result) => Answer::Result(Bytes::from(result).into()),
        Err(refusal) => {
            let error = refusal.error();
            Answer::Error(error_object(error.code, error.message, Some(error.data.as_bytes())))
        }
    }
}

/// `data` with the id of a decision.
fn with_decision(data: Option<&str>, id: DecisionId) -> String {
    let id = quote(&id.to_string());
    let edited = splice::edit(data.unwrap_or("{}").as_bytes(), &[("decision", Change::Set(id.as_bytes()))]);
    String::from_utf8_lossy(&edited).into_owned()
}

/// Member with the seconds until the next try.
fn after(seconds: u64) -> String {
    format!(",\"retry_after_ms\":{}", seconds.saturating_mul(1000))
}

/// Error for a caller beyond its share of the gate's work.
fn too_much(code: i64, text: String, name: &str, more: &str) -> CallerError {
    caller_error(code, 429, text, Some(reason(name, more)), FaultSource::Downstream, true)
}

fn budget(text: String, name: &str, why: &Exceeded) -> CallerError {
    let retry = why.retry_after().map(|after| after.as_millis().max(1));
    let after = retry.map(|ms| format!(",\"retry_after_ms\":{ms}")).unwrap_or_default();
    let limit = match why {
        Exceeded::CallsPerMinute { limit, .. } => u64::from(*limit),
        Exceeded::CostUnits { limit, .. } | Exceeded::MutableCalls { limit } => *limit,
    };
    let more = format!(",\"budget\":{},\"limit\":\"{}\",\"allowed\":{limit}{after}", quote(name), why.limit_name());
    caller_error(-32003, 200, text, Some(reason("budget_exceeded", &more)), FaultSource::Downstream, retry.is_some())
}

fn caller_error(code: i64, status: u16, message: String, data: Option<String>, source: FaultSource, retry: bool) -> CallerError {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    CallerError { code, status, message, data, fault: Fault { source, retry } }
}

fn reason(name: &str, more: &str) -> String {
    format!("{{\"reason\":\"{name}\"{more}}}")
}

/// HTTP status for an owner's error, in the stateless era (2026-07-28, "Streamable HTTP").
pub fn status_of_code(error: &[u8]) -> StatusCode {
    match mcp_proto::json::Members::again(error).get("code") {
        Some(b"-32601") => StatusCode::NOT_FOUND,
        Some(b"-32020" | b"-32021" | b"-32022") => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

#[cfg(test)]
mod tests;
