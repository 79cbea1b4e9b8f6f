//! The requests of MCP-AX between servers that register and gates, as requests of MCP (AX-20 to AX-25). What they mean is not known
//! here but in the registry, and in the membership of a gate that is registered itself.

use std::sync::Arc;

use mcp_proto::envelope::{Answer, Request};
use mesh_proto::message::Method;
use mesh_proto::refusal::Refusal;

use crate::judge::gate::Gate;
use crate::tree::back::Back;
use crate::way::error::{CallError, answered};

/// Whether a method is one of those that a server sends to a gate, or a gate to one that is registered with it.
pub fn is_ours(method: &str) -> bool {
    Method::parse(method).is_some()
}

/// Answers such a request.
pub async fn answer(gate: &Arc<Gate>, request: &Request, back: &Arc<Back>) -> Result<Answer, CallError> {
    // On the endpoint of one mount there is nothing to register with.
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
