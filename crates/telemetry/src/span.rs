//! A span for each call, by the OpenTelemetry conventions for MCP, and the trace context for the upstream.
//!
//! Without an exporter no span is made and the caller's context goes on unchanged. Never carries arguments or results.

use std::borrow::Cow;

use opentelemetry::trace::{Link, Span as _, SpanKind, Status, TraceContextExt, Tracer as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::{SdkTracer, Span};

use super::clip;
use super::metrics::{Ending, Transport};
use super::trace_context::TraceContext;

/// Starts the span of each call.
#[derive(Clone)]
pub struct Tracer(Option<SdkTracer>);

/// A call as known after reading its message.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// The method, as called.
    pub method: &'a str,
    /// The raw JSON-RPC id.
    pub request_id: &'a [u8],
    pub principal: &'a str,
    /// The revision the caller speaks.
    pub version: Option<&'a str>,
    pub transport: Transport,
    /// The context in the message's `_meta`.
    pub meta: Option<&'a TraceContext>,
    /// The context in the HTTP headers.
    pub headers: Option<&'a TraceContext>,
}

/// The subject of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum About<'a> {
    /// A prompt, by name in the catalog.
    Prompt(&'a str),
    /// A resource, by URI. The query is not recorded.
    Resource(&'a str),
    /// A tool, by name in the catalog.
    Tool(&'a str),
}

impl Tracer {
    /// Makes a tracer without spans.
    pub fn off() -> Self {
        Self(None)
    }

    pub(super) fn exporting(tracer: SdkTracer) -> Self {
        Self(Some(tracer))
    }

    /// Starts the span of a call as a child of the context in its `_meta`, else in the HTTP headers. If both
    /// contexts differ, the span is linked to the latter.
    pub fn start(&self, call: &Incoming<'_>) -> CallSpan {
        let parent = call.meta.or(call.headers);
        let Some(tracer) = &self.0 else {
            return CallSpan { span: None, passed_on: parent.cloned() };
        };
        let method = clip(call.method).to_owned();
        let mut attributes = vec![
            KeyValue::new("mcp.method.name", method.clone()),
            KeyValue::new("jsonrpc.request.id", clip(&String::from_utf8_lossy(call.request_id)).to_owned()),
            KeyValue::new("network.transport", call.transport.label()),
            KeyValue::new("banyan.principal", clip(call.principal).to_owned()),
        ];
        attributes.extend(call.version.map(|version| KeyValue::new("mcp.protocol.version", clip(version).to_owned())));
        if call.transport == Transport::Tcp {
            attributes.push(KeyValue::new("network.protocol.name", "http"));
        }
        let mut builder = tracer.span_builder(method.clone()).with_kind(SpanKind::Server).with_attributes(attributes);
        if let (Some(meta), Some(headers)) = (call.meta, call.headers)
            && meta != headers
        {
            builder = builder.with_links(vec![Link::with_context(headers.to_otel())]);
        }
        let parent = parent.map_or_else(Context::new, |parent| Context::new().with_remote_span_context(parent.to_otel()));
        let span = tracer.build_with_context(builder, &parent);
        let passed_on = Some(TraceContext::from_otel(span.span_context()));
        CallSpan { span: Some(Box::new((span, method))), passed_on }
    }
}

/// The span of one call, from its message to its answer.
pub struct CallSpan {
    /// The span and the method's name. Boxed, so that a call without a span does not carry room for one.
    span: Option<Box<(Span, String)>>,
    passed_on: Option<TraceContext>,
}

impl CallSpan {
    /// Records subject and owner of the call, once found in the catalog.
    pub fn resolved(&mut self, mount: &str, about: Option<About<'_>>) {
        let Some((span, method)) = self.span.as_deref_mut() else { return };
        span.set_attribute(KeyValue::new("banyan.mount", mount.to_owned()));
        let named = match about {
            None => return,
            Some(About::Resource(uri)) => {
                let without_query = uri.split(['?', '#']).next().unwrap_or_default();
                return span.set_attribute(KeyValue::new("mcp.resource.uri", clip(without_query).to_owned()));
            }
            Some(About::Prompt(name)) => {
                span.set_attribute(KeyValue::new("gen_ai.prompt.name", name.to_owned()));
                name
            }
            Some(About::Tool(name)) => {
                span.set_attribute(KeyValue::new("gen_ai.tool.name", name.to_owned()));
                span.set_attribute(KeyValue::new("gen_ai.operation.name", "execute_tool"));
                name
            }
        };
        span.update_name(format!("{method} {named}"));
    }

    /// The context for the upstream's headers and `_meta`; `None` when the caller sent none and no span is recorded.
    pub fn passed_on(&self) -> Option<&TraceContext> {
        self.passed_on.as_ref()
    }

    /// Ends the span. `message` is the text of a JSON-RPC error, if any.
    pub fn finish(mut self, ending: Ending, message: Option<&str>) {
        let Some((span, _)) = self.span.as_deref_mut() else { return };
        if let Some(error) = ending.error_type() {
            span.set_attribute(KeyValue::new("error.type", error));
            let description: Cow<'static, str> = message.map_or("".into(), |message| clip(message).to_owned().into());
            span.set_status(Status::error(description));
        }
        if let Some(code) = ending.status_code() {
            span.set_attribute(KeyValue::new("rpc.response.status_code", code));
        }
        span.end();
    }
}

#[cfg(test)]
mod tests;
