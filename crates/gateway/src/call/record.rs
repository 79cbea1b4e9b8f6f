//! What is kept of a call: its beginning before anything leaves, and its end before anything comes back.
//!
//! Written explicitly, never in `Drop`. So far it feeds metrics and the log; the chained record takes the same two places.

use banyan_model::Era;
use mcp_proto::envelope::Answer;
use mcp_proto::json::Members;

use super::caller::Caller;
use super::error::CallError;
use super::gate::Cleared;
use crate::Inner;
use crate::telemetry::metrics::{Ending, MethodName, Operation, ProtocolVersion, Running, Side, ToolLabel, ToolSlot, Transport};

/// A call that has begun.
pub(crate) struct Record {
    method: MethodName,
    version: ProtocolVersion,
    server: Running,
    client: Option<Running>,
}

impl Record {
    /// A request has come.
    pub(crate) fn begin(gateway: &Inner, caller: &Caller, method: &str) -> Self {
        let (method, version) = (MethodName::of(method), ProtocolVersion::of(caller.version));
        let operation = Operation { side: Side::Server, method, transport: Transport::Tcp, version, tool: ToolLabel::NONE };
        Self { method, version, server: gateway.metrics.whole().start(operation), client: None }
    }

    /// It is about to leave for its owner.
    pub(crate) fn intend(&mut self, cleared: &Cleared) {
        let resolved = &cleared.resolved;
        let metrics = &resolved.branch.mount.metrics;
        let is_tool = resolved.method == banyan_model::Method::ToolCall;
        let tool = if is_tool { metrics.tool(&ToolSlot::default(), &resolved.name) } else { ToolLabel::NONE };
        let operation = Operation { side: Side::Client, method: self.method, transport: Transport::Tcp, version: self.version, tool };
        metrics.sent(resolved.params.len());
        self.client = Some(metrics.start(operation));
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
        if let Err(error) = outcome {
            let fault = error.tell(Era::Stateless).fault;
            tracing::warn!(source = ?fault.source, retry = fault.retry, %error, "a call failed");
        }
        if let Some(client) = self.client {
            client.finish(ending);
        }
        self.server.finish(ending);
    }
}

fn ending(outcome: &Result<Answer, CallError>) -> Ending {
    match outcome {
        Ok(Answer::Result(result)) => {
            // A tool that failed answers with a result all the same; the word is looked for before the result is read.
            let failed = memchr::memmem::find(&result[..result.len().min(1 << 20)], b"\"isError\"").is_some()
                && Members::again(result).get("isError") == Some(b"true");
            if failed { Ending::ToolError } else { Ending::Done }
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
