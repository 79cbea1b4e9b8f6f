//! Requests of MCP-AX between registering servers and gates, as requests of MCP (AX-20 to AX-25). Does not know their meaning; the registry
//! does, and the membership of a registered gate.

use std::sync::Arc;

use mcp_proto::envelope::{Answer, Request};
use mesh_proto::message::Method;
use mesh_proto::refusal::Refusal;

use crate::judge::gate::Gate;
use crate::tree::back::Back;
use crate::way::error::{CallError, answered};

/// Checks for a method between a server and the gate of its registration, in either direction.
pub fn is_ours(method: &str) -> bool {
    Method::parse(method).is_some()
}

/// Answers a request of MCP-AX.
pub async fn answer(gate: &Arc<Gate>, request: &Request, back: &Arc<Back>) -> Result<Answer, CallError> {
    // The endpoint of a single mount has no registry.
    if back.caller.scope.mount.is_some() {
        return Err(CallError::MethodNotFound(request.method.clone().into_owned()));
    }
    let params = request.params.text();
    let answer = match gate.mesh() {
        Some(mesh) => mesh.answer(&request.method, params, &back.caller).await,
        None => Err(Refusal::MethodUnknown),
    };
    Ok(match answered(answer) {
        Answer::Result(result) => Answer::Result(crate::way::adapted(result, back.caller.era)),
        Answer::Error(error) => Answer::Error(error),
    })
}
