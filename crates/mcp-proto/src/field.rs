//! Names of the HTTP header fields of MCP and W3C trace context. Values are not read here.

pub const LAST_EVENT_ID: &str = "last-event-id";
pub const METHOD: &str = "mcp-method";
pub const NAME: &str = "mcp-name";
pub const SESSION: &str = "mcp-session-id";
pub const TRACEPARENT: &str = "traceparent";
pub const TRACESTATE: &str = "tracestate";
pub const VERSION: &str = "mcp-protocol-version";
