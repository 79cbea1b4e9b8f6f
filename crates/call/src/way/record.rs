//! Records of a call: its beginning before it leaves, and its end before an answer goes back.
//!
//! Written explicitly, never in `Drop`: for metrics, spans, the log, and the tamper-evident record. An approved call leaves only when its
//! intent is on the disk. Does not write the record itself.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use audit::arguments::ArgumentForms;
use audit::hash::sha256;
use audit::record::{Intent, Outcome, Refused, Text};
use banyan_model::{Era, Method};
use mcp_proto::envelope::{Answer, Request};
use mcp_proto::json::{Members, Object};
use runtime::clock::{self, micros};
use store::{CallId, Journal, Part, Refusal, Ticket, Way};
use telemetry::metrics::{Ending, MethodName, MountMetrics, Operation, ProtocolVersion, Running, Side, ToolLabel, Transport};
use telemetry::span::{About, CallSpan, Incoming};
use telemetry::trace_context::TraceContext;
use telemetry::traffic::{EndedCall, Fate};

use crate::judge::gate::Gate;
use crate::tree::back::Back;
use crate::tree::gate::Recorder;
use crate::tree::mount::Mount;
use crate::tree::port::UpstreamError;
use crate::way::error::{CallError, Report};
use crate::way::gate::Cleared;
use crate::way::resolve::Resolved;

/// Counts a request refused unread.
pub fn refused(recorder: &Recorder, method: &str) {
    let (method, version) = (MethodName::of(method), ProtocolVersion::of(""));
    let operation = Operation { side: Side::Server, method, transport: Transport::Tcp, version, tool: ToolLabel::NONE };
    let now = clock::now();
    recorder.metrics.whole().start_here(operation, now).finish(Ending::Error(-32009), now);
}

/// A call that has begun.
pub struct Record<'a> {
    gate: &'a Gate,
    back: &'a Back,
    method: MethodName,
    version: ProtocolVersion,
    server: Running<&'a MountMetrics>,
    client: Option<Running<Arc<MountMetrics>>>,
    span: CallSpan,
    call: CallId,
    /// Beginning, in microseconds since 1970, and by the monotonic clock.
    began: (u64, Instant),
    /// The call has left, or is about to.
    is_intended: bool,
    ticket: Option<Ticket>,
    trace: Option<TraceContext>,
    aimed: Option<CallTarget>,
}

/// Owner and name of what is called.
struct CallTarget {
    mount: Arc<Mount>,
    is_gate: bool,
    name: String,
    /// The name stands in the owner's catalog.
    is_listed: bool,
}

impl<'a> Record<'a> {
    /// Notes the arrival of a request.
    pub fn begin(gate: &'a Gate, back: &'a Back, request: &Request) -> Self {
        let caller = &back.caller;
        let (method, version) = (MethodName::of(&request.method), ProtocolVersion::of(caller.version));
        let meta = request.params.meta().and_then(|m| TraceContext::of_meta(&m));
        let span = gate.record.otlp.tracer().start(&Incoming {
            method: &request.method,
            request_id: &request.id,
            principal: &caller.principal.name,
            version: Some(caller.version),
            transport: Transport::Tcp,
            meta: meta.as_ref(),
            headers: back.trace.as_ref(),
        });
        let operation = Operation { side: Side::Server, method, transport: Transport::Tcp, version, tool: ToolLabel::NONE };
        let at = clock::now();
        let server = gate.record.metrics.whole().start_here(operation, at);
        let trace = span.passed_on().cloned();
        let (call, began) = (gate.record.journal.ids().next_call(), (clock::wall(), at));
        Self { gate, back, method, version, server, client: None, span, call, began, is_intended: false, ticket: None, trace, aimed: None }
    }

    /// Notes the owner and the name of the call, also for a call that never leaves.
    pub fn aim(&mut self, resolved: &Resolved) {
        let (mount, is_listed) = (Arc::clone(&resolved.branch.mount), resolved.noted().is_some());
        self.aimed = Some(CallTarget { mount, is_gate: resolved.branch.is_gate(), name: resolved.name.clone(), is_listed });
    }

    /// Records the intent of a call about to leave for its owner.
    ///
    /// # Errors
    /// If an approved call can't be recorded; then it must not leave.
    pub async fn intend(&mut self, request: &Request, cleared: &Cleared) -> Result<(), CallError> {
        let resolved = &cleared.resolved;
        self.counted(cleared);
        if self.trace.is_none() && resolved.branch.is_gate() {
            self.trace = TraceContext::parse(&self.gate.record.journal.ids().traceparent(self.call), None);
        }
        self.is_intended = true;
        if !self.gate.record.journal.is_on() {
            return Ok(());
        }
        if cleared.is_gated() {
            return Box::pin(self.recorded_first(request, cleared)).await;
        }
        self.ticket = self.described(request, Some(cleared), |journal, intent| journal.intend(self.part(), intent));
        Ok(())
    }

    async fn recorded_first(&mut self, request: &Request, cleared: &Cleared) -> Result<(), CallError> {
        let kept = self.described(request, Some(cleared), |journal, intent| {
            journal.append_durable(self.part(), &audit::record::Record::Intended(intent))
        });
        let recorded = kept.await;
        // The call did not leave, and the next record says why.
        self.is_intended = recorded.is_ok();
        recorded.map_err(|error| CallError::Unrecorded(error.to_string()))
    }

    /// Part of the record held by the caller's principal.
    fn part(&self) -> &Part {
        &self.back.caller.share(&self.gate.load).part
    }

    fn counted(&mut self, cleared: &Cleared) {
        let resolved = &cleared.resolved;
        let metrics = &resolved.branch.mount.metrics;
        let tool = resolved.noted().map_or(ToolLabel::NONE, |noted| metrics.tool(&noted.counted, &resolved.name));
        let operation = Operation { side: Side::Client, method: self.method, transport: Transport::Tcp, version: self.version, tool };
        metrics.sent(resolved.params.len());
        self.client = Some(metrics.start(operation, clock::now()));
        let name = resolved.name.as_str();
        let about = match resolved.aim.method() {
            Method::ToolCall => Some(About::Tool(name)),
            Method::PromptGet => Some(About::Prompt(name)),
            Method::ResourceRead => Some(About::Resource(name)),
            Method::Complete
            | Method::Confirm
            | Method::LogLevel
            | Method::Subscribe
            | Method::Task
            | Method::TaskList
            | Method::Trace
            | Method::Unknown => None,
        };
        self.span.resolved(resolved.branch.mount.config.name.as_str(), about);
        tracing::debug!(
            principal = %resolved.caller.principal.name,
            mount = %resolved.branch.mount.config.name,
            name = %resolved.name,
            bytes = resolved.params.len(),
            decision = cleared.decision.as_ref().map(|decision| decision.id.to_string()),
            rules = cleared.decision.as_ref().map(|decision| decision.rules()),
            "call"
        );
    }

    /// Describes the call for `record`, as far as known: before the owner is known, by the caller's own name.
    fn described<T>(&self, request: &Request, cleared: Option<&Cleared>, record: impl FnOnce(&dyn Journal, Intent<'_>) -> T) -> T {
        let journal = &*self.gate.record.journal;
        let members = request.params.members();
        let raw = recorded_part(request, &members);
        let formed = raw.map(|raw| ArgumentForms::of(raw, journal.wanted()));
        let call = journal.ids().spelled(self.call);
        let named = || ["name", "uri", "taskId"].iter().find_map(|key| members.str(key)).unwrap_or_default();
        let name = cleared.map_or_else(named, |cleared| Text::Borrowed(&cleared.resolved.name));
        let decision = cleared.and_then(|cleared| cleared.decision.as_ref()).map(|decision| Text::Owned(decision.id.to_string()));
        let intent = Intent {
            approval: cleared.and_then(|cleared| cleared.agreed.as_deref()).map(Text::Borrowed),
            arguments: formed.as_ref().map(ArgumentForms::recorded),
            began: self.began.0,
            call: Text::Borrowed(&call),
            decision,
            gated: cleared.is_some_and(Cleared::is_gated),
            method: Text::Borrowed(&request.method),
            mount: cleared.map(|cleared| Text::Borrowed(cleared.resolved.branch.mount.config.name.as_str())),
            name: Text::Borrowed(&name),
            principal: Text::Borrowed(&self.back.caller.principal.name),
            request: written(&request.id),
            trace: self.trace.as_ref().and_then(|trace| trace.traceparent().get(3..35)).map(Text::Borrowed),
        };
        record(journal, intent)
    }

    /// Records the end of the call.
    pub fn finish(self, request: &Request, outcome: &mut Result<Answer, CallError>) {
        if let Err(error) = outcome {
            self.report(error);
        }
        let outcome = &*outcome;
        let ending = ending(outcome);
        // Refusals for want of room come by the thousand; `refusals.rs` counts them.
        if let Err(error) = outcome
            && !matches!(error, CallError::Overloaded { .. })
        {
            let fault = error.tell(Era::Stateless).fault;
            let call = self.gate.record.journal.ids().spelled(self.call);
            tracing::warn!(source = ?fault.source, retry = fault.retry, call, %error, "a call failed");
        }
        let at = clock::now();
        self.recorded(request, outcome, ending, at);
        self.shown(request, outcome, ending, at);
        if let Some(client) = self.client {
            client.finish(ending, at);
        }
        self.server.finish(ending, at);
        let message = outcome.as_ref().err().map(ToString::to_string);
        self.span.finish(ending, message.as_deref());
    }

    fn recorded(&self, request: &Request, outcome: &Result<Answer, CallError>, ending: Ending, at: Instant) {
        let journal = &self.gate.record.journal;
        if !journal.is_on() || matches!(outcome, Err(CallError::Overloaded { .. })) {
            return;
        }
        let told = outcome.as_ref().err().map(|error| error.tell(Era::Stateless));
        let data = told.as_ref().and_then(|told| told.data.as_deref());
        let reason = data.and_then(|data| Members::again(data.as_bytes()).str("reason"));
        if !self.is_intended {
            let Some(told) = &told else { return };
            // Outside, a denied name looks like an unknown one.
            let by_rules = outcome.as_ref().err().and_then(CallError::decided);
            let cause = by_rules.as_ref().map(|by| Text::Borrowed(by.cause));
            let reason = cause.or(reason).unwrap_or(Text::Borrowed("refused"));
            let principal = &*self.back.caller.principal.name;
            // Most refusals of a flood are counted without a description.
            let way = journal.count_refusal(principal, &reason);
            if way == Way::Counted {
                return;
            }
            return self.described(request, None, |journal, intent| {
                let mut intent = intent;
                intent.decision = by_rules.as_ref().map(|by| Text::Owned(by.id.to_string()));
                let rules = by_rules.iter().flat_map(|by| by.rules).map(|rule| Text::Borrowed(&**rule)).collect();
                if let Some((mount, name)) = by_rules.as_ref().and_then(|by| by.owner) {
                    (intent.mount, intent.name) = (Some(Text::Borrowed(mount)), Text::Borrowed(name));
                }
                let refused = Refused { code: told.code, count: None, intent, reason, rules };
                journal.refuse(way, Refusal::Call(refused));
            });
        }
        let (word, code) = word(outcome, ending);
        let bytes = outcome.as_ref().ok().and_then(|answer| match answer {
            Answer::Result(result) => Some(result.len() as u64),
            Answer::Error(_) => None,
        });
        let outcome =
            Outcome { bytes, code, ending: Text::Borrowed(word), reason, took: micros(at.saturating_duration_since(self.began.1)) };
        journal.ended(self.part(), self.ticket, &|| journal.ids().spelled(self.call), outcome);
    }

    /// Counts the call for people who look at the gate. Refusals for want of room come by the thousand and are left out.
    fn shown(&self, request: &Request, outcome: &Result<Answer, CallError>, ending: Ending, at: Instant) {
        let is_call = matches!(&*request.method, "tools/call" | "prompts/get" | "resources/read");
        if !is_call || matches!(outcome, Err(CallError::Overloaded { .. })) {
            return;
        }
        // A server that never came up has no catalog: the name is the caller's, read only then.
        let given = if self.aimed.is_some() { Cow::default() } else { named(request) };
        let (mount, name) = match (&self.aimed, outcome.as_ref().err().and_then(CallError::away)) {
            (Some(aimed), _) => (aimed.mount.config.name.as_str(), aimed.name.as_str()),
            (None, Some(mount)) => (mount, behind(mount, &given)),
            (None, None) => ("", &*given),
        };
        let (fate, word) = self.fate(outcome, ending);
        let call = EndedCall {
            caller: &self.back.caller.principal.name,
            mount,
            is_gate: self.aimed.as_ref().is_some_and(|aimed| aimed.is_gate),
            name,
            is_listed: self.aimed.as_ref().is_some_and(|aimed| aimed.is_listed),
            fate,
            word,
            call: &self.gate.record.journal.ids().spelled(self.call),
            began: self.began.0,
            took: at.saturating_duration_since(self.began.1),
        };
        self.gate.record.traffic.ended(&call, at);
    }

    /// Fate of the call, with the end in words. A call that failed for want of a server is an error of that server.
    fn fate(&self, outcome: &Result<Answer, CallError>, ending: Ending) -> (Fate, &'static str) {
        if self.is_intended {
            let is_bad = matches!(ending, Ending::Error(_) | Ending::TimedOut | Ending::ToolError);
            return (if is_bad { Fate::Failed } else { Fate::Done }, word(outcome, ending).0);
        }
        match outcome {
            Ok(_) | Err(CallError::ConfirmationRequired(_)) => (Fate::Held, "held"),
            Err(CallError::Cancelled) => (Fate::Held, "cancelled"),
            Err(error) if error.is_of_server() => (Fate::Failed, "unreachable"),
            Err(_) => (Fate::Refused, "refused"),
        }
    }

    /// Adds to a server's failure the id of this call, and for the operator the server's own words.
    fn report(&self, error: &mut CallError) {
        let Some((mount, report)) = error.failing() else { return };
        let mount = if self.back.caller.is_owner { self.gate.mounts.find(mount) } else { None };
        let stderr = mount.map(|mount| mount.connections.stderr.lines()).unwrap_or_default();
        *report = Some(Box::new(Report { call: self.gate.record.journal.ids().spelled(self.call), stderr }));
    }

    /// The trace context for the next hop.
    pub fn trace(&self) -> Option<TraceContext> {
        self.trace.clone()
    }
}

/// Name of what a request asks for, as its caller spells that.
fn named(request: &Request) -> Cow<'_, str> {
    let members = request.params.members();
    ["name", "uri"].iter().find_map(|key| members.str(key)).unwrap_or_default()
}

/// Name behind that of its mount, in either spelling.
fn behind<'a>(mount: &str, given: &'a str) -> &'a str {
    let rest = given.strip_prefix(mount);
    rest.and_then(|rest| rest.strip_prefix('.').or_else(|| rest.strip_prefix("__"))).unwrap_or(given)
}

/// Longest id of a request recorded in full, in bytes.
const LONGEST_ID: usize = 128;

/// Id of a request for the record: a longer one by its hash.
fn written(id: &[u8]) -> Text<'_> {
    if id.len() <= LONGEST_ID { String::from_utf8_lossy(id) } else { Text::Owned(format!("sha256:{}", sha256(id))) }
}

/// Part of a request whose form is recorded: its arguments, or all params of an unknown method.
fn recorded_part<'a>(request: &'a Request, members: &Members<'a>) -> Option<&'a [u8]> {
    match &*request.method {
        "tools/call" => members.get("arguments"),
        "prompts/get" => members.get("arguments"),
        "completion/complete" => members.get("argument"),
        "subscriptions/listen" => members.get("notifications"),
        "logging/setLevel"
        | "mcpax/confirm"
        | "mcpax/trace"
        | "resources/read"
        | "resources/subscribe"
        | "resources/unsubscribe"
        | "tasks/get"
        | "tasks/list" => None,
        _ => Some(&request.params),
    }
}

/// End of a call that left, in the record's words, with the code of an error.
fn word(outcome: &Result<Answer, CallError>, ending: Ending) -> (&'static str, Option<i64>) {
    match ending {
        Ending::Cancelled => ("cancelled", None),
        Ending::Done => ("done", None),
        Ending::Refused => ("refused", None),
        Ending::TimedOut => ("timed_out", None),
        Ending::ToolError => ("tool_error", None),
        Ending::Error(code) => match outcome {
            // The effect is unknown.
            Err(CallError::Upstream { error: UpstreamError::Lost(_), .. }) => ("unknown", Some(code)),
            Ok(_) | Err(_) => ("error", Some(code)),
        },
    }
}

fn ending(outcome: &Result<Answer, CallError>) -> Ending {
    match outcome {
        Ok(Answer::Result(result)) => {
            if has_failed(result) {
                Ending::ToolError
            } else {
                Ending::Done
            }
        }
        Ok(Answer::Error(error)) => {
            let code = Members::again(error).get("code").and_then(|raw| std::str::from_utf8(raw).ok()?.parse().ok());
            Ending::Error(code.unwrap_or(0))
        }
        Err(CallError::Cancelled) => Ending::Cancelled,
        Err(CallError::Denied(denied)) if denied.cause != "unknown" => Ending::Refused,
        Err(CallError::Upstream { error: UpstreamError::Endless(_) | UpstreamError::Silent(_), .. }) => Ending::TimedOut,
        Err(error) => Ending::Error(error.tell(Era::Stateless).code),
    }
}

/// Checks for a tool's own report of failure, which is a result all the same.
fn has_failed(result: &Object) -> bool {
    result.members().get("isError") == Some(b"true")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h1_a_long_id_is_recorded_by_its_hash() {
        let long = format!("\"{}\"", "a".repeat(200));
        assert_eq!(written(b"\"short\""), "\"short\"");
        assert_eq!(written(long.as_bytes()), format!("sha256:{}", sha256(long.as_bytes())));
    }

    #[test]
    fn a_name_loses_its_mount_in_either_spelling() {
        assert_eq!(["lab.add", "lab__add", "labadd", "other.add"].map(|name| behind("lab", name)), ["add", "add", "labadd", "other.add"]);
    }

    #[test]
    fn a_tool_failure_is_seen_in_any_spelling() {
        let failed_in = |text: &str| has_failed(&bytes::Bytes::copy_from_slice(text.as_bytes()).into());
        let long = |behind: &str| format!(r#"{{"content":[{{"text":"{}"}}]{behind}}}"#, "x".repeat(3 << 20));
        for failed in [r#"{"isError" : true}"#, r#"{"content":[],"\u0069sError":true}"#, &long(r#","isError":true"#)] {
            assert!(failed_in(failed), "{failed:.60}");
        }
        for sound in
            [r#"{"isError":false}"#, r#"{"content":[{"isError":true}]}"#, r#"{"is\u0045rror":false,"x":"\"isError\":true"}"#, &long("")]
        {
            assert!(!failed_in(sound), "{sound:.60}");
        }
    }
}
