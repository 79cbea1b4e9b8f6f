//! What is kept of a call: its beginning before anything leaves, and its end before anything comes back.
//!
//! Written explicitly, never in `Drop`. So far it feeds metrics and the log; the chained record takes the same two places.

use banyan_model::{Era, Method};
use mcp_proto::envelope::{Answer, Request};
use mcp_proto::json::{Members, Object};

use super::back::Back;
use super::error::CallError;
use super::gate::Cleared;
use crate::Inner;
use crate::telemetry::metrics::{Ending, MethodName, Operation, ProtocolVersion, Running, Side, ToolLabel, ToolSlot, Transport};
use crate::telemetry::span::{About, CallSpan, Incoming};
use crate::telemetry::trace_context::TraceContext;

/// Counts a request that was refused before anybody looked at it.
pub(crate) fn refused(gateway: &Inner, method: &str) {
    let (method, version) = (MethodName::of(method), ProtocolVersion::of(""));
    let operation = Operation { side: Side::Server, method, transport: Transport::Tcp, version, tool: ToolLabel::NONE };
    gateway.metrics.whole().start(operation).finish(Ending::Error(-32009));
}

/// A call that has begun.
pub(crate) struct Record {
    method: MethodName,
    version: ProtocolVersion,
    server: Running,
    client: Option<Running>,
    span: CallSpan,
}

impl Record {
    /// A request has come.
    pub(crate) fn begin(gateway: &Inner, back: &Back, request: &Request) -> Self {
        let caller = &back.caller;
        let (method, version) = (MethodName::of(&request.method), ProtocolVersion::of(caller.version));
        let meta = request.params.meta().and_then(|m| TraceContext::of_meta(&m));
        let span = gateway.otlp.tracer().start(&Incoming {
            method: &request.method,
            request_id: &request.id,
            principal: &caller.principal.name,
            version: Some(caller.version),
            transport: Transport::Tcp,
            meta: meta.as_ref(),
            headers: back.trace.as_ref(),
        });
        let operation = Operation { side: Side::Server, method, transport: Transport::Tcp, version, tool: ToolLabel::NONE };
        Self { method, version, server: gateway.metrics.whole().start(operation), client: None, span }
    }

    /// It is about to leave for its owner.
    pub(crate) fn intend(&mut self, cleared: &Cleared) {
        let resolved = &cleared.resolved;
        let metrics = &resolved.branch.mount.metrics;
        let is_tool = resolved.method == Method::ToolCall;
        let tool = if is_tool { metrics.tool(&ToolSlot::default(), &resolved.name) } else { ToolLabel::NONE };
        let operation = Operation { side: Side::Client, method: self.method, transport: Transport::Tcp, version: self.version, tool };
        metrics.sent(resolved.params.len());
        self.client = Some(metrics.start(operation));
        let name = resolved.name.as_str();
        let about = match resolved.method {
            Method::ToolCall => Some(About::Tool(name)),
            Method::PromptGet => Some(About::Prompt(name)),
            Method::ResourceRead => Some(About::Resource(name)),
            Method::Complete | Method::Task => None,
        };
        self.span.resolved(resolved.branch.mount.config.name.as_str(), about);
        tracing::debug!(
            principal = %resolved.caller.principal.name,
            mount = %resolved.branch.mount.config.name,
            name = %resolved.name,
            bytes = resolved.params.len(),
            "call"
        );
    }

    /// It has ended.
    pub(crate) fn finish(self, outcome: &Result<Answer, CallError>) {
        let ending = ending(outcome);
        // Refusals for want of room come by the thousand; `refusals.rs` says how many.
        if let Err(error) = outcome
            && !matches!(error, CallError::Overloaded { .. })
        {
            let fault = error.tell(Era::Stateless).fault;
            tracing::warn!(source = ?fault.source, retry = fault.retry, %error, "a call failed");
        }
        if let Some(client) = self.client {
            client.finish(ending);
        }
        self.server.finish(ending);
        let message = outcome.as_ref().err().map(ToString::to_string);
        self.span.finish(ending, message.as_deref());
    }

    /// The trace context for the next hop.
    pub(crate) fn trace(&self) -> Option<TraceContext> {
        self.span.passed_on().cloned()
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
        Err(CallError::Upstream { error: crate::upstream::UpstreamError::Silent(_), .. }) => Ending::TimedOut,
        Err(error) => Ending::Error(error.tell(Era::Stateless).code),
    }
}

/// Whether a tool says that it failed; that is a result all the same.
fn has_failed(result: &Object) -> bool {
    result.members().get("isError") == Some(b"true")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_seen_however_it_is_spelled_and_however_long_the_result_is() {
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
