//! The one tool of the gate itself: how many notifications of registered servers it had to drop (MCP-AX 12, AX-51). It is there where
//! servers may register. What is dropped is not decided here.

use bytes::Bytes;
use mcp_proto::json::{self, Object};

use crate::tree::gate::GateTree;

/// Its name, in every spelling.
pub const NAME: &str = "notifications_dropped";

/// Its definition.
pub const DEFINITION: &str = r#"{"name":"notifications_dropped","title":"Notifications dropped","description":"How many notifications of registered servers this gate dropped because they came faster than they could be passed on: in all since it began, and by server.","inputSchema":{"type":"object","properties":{},"additionalProperties":false},"annotations":{"readOnlyHint":true,"openWorldHint":false}}"#;

/// The result of a call.
pub fn answer(gate: &GateTree) -> Object {
    let told = gate.mesh().map(|mesh| mesh.dropped()).unwrap_or_default();
    let text = json::quote(&told);
    Bytes::from(format!("{{\"content\":[{{\"type\":\"text\",\"text\":{text}}}],\"structuredContent\":{told},\"isError\":false}}")).into()
}
