//! The gate's only tool: the number of dropped notifications of registered servers (MCP-AX 12, AX-51). There where servers may register,
//! and listed to gates alone: every gate of a tree has one, and no model needs them. Drops nothing itself.

use bytes::Bytes;
use mcp_proto::json::{self, Object};
use policy::decide::{Action, Target, Traits};

use crate::tree::gate::GateTree;

/// Name in every spelling.
pub const NAME: &str = "notifications_dropped";

/// Definition of the tool.
pub const DEFINITION: &str = r#"{"name":"notifications_dropped","title":"Notifications dropped","description":"How many notifications of registered servers this gate dropped because they came faster than they could be passed on: in all since it began, and by server.","inputSchema":{"type":"object","properties":{},"additionalProperties":false},"annotations":{"readOnlyHint":true,"openWorldHint":false},"_meta":{"x-mcpax-audience":"operators"}}"#;

/// The tool in the terms of rules: a reader below no mount.
pub fn target() -> Target<'static> {
    let traits = Traits { mutable: false, reversible: true, idempotent: true, scope: "read", cost: "free", latency: "fast" };
    Target { action: Action::Call, mounts: Vec::new(), name: NAME, traits }
}

/// Answers a call.
pub fn answer(gate: &GateTree) -> Object {
    let told = gate.mesh().map(|mesh| mesh.dropped()).unwrap_or_default();
    let text = json::quote(&told);
    Bytes::from(format!("{{\"content\":[{{\"type\":\"text\",\"text\":{text}}}],\"structuredContent\":{told},\"isError\":false}}")).into()
}
