//! The names of the header fields that MCP and W3C trace context add to HTTP. What they say is not read here.

pub(crate) const LAST_EVENT_ID: &str = "last-event-id";
pub(crate) const METHOD: &str = "mcp-method";
pub(crate) const NAME: &str = "mcp-name";
pub(crate) const SESSION: &str = "mcp-session-id";
pub(crate) const TRACEPARENT: &str = "traceparent";
pub(crate) const TRACESTATE: &str = "tracestate";
pub(crate) const VERSION: &str = "mcp-protocol-version";
