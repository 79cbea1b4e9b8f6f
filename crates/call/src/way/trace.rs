//! `mcpax/trace`: the way of a call without the call. Each gate reports the next step, the time its answer took, and its report of further
//! steps. No tool is called, and no credential is passed on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use banyan_model::{Era, Method};
use bytes::Bytes;
use mcp_proto::client::stateless_meta;
use mcp_proto::envelope::Answer;
use mcp_proto::json::{self, Object};

use crate::tree::back::Back;
use crate::tree::port::{OutgoingRequest, UpstreamError};
use crate::way::Errand;
use crate::way::adapt;
use crate::way::error::CallError;
use crate::way::gate::Cleared;
use crate::way::hop;
use crate::way::resolve::{Aim, Resolved};

/// Method between gates.
pub const METHOD: &str = "mcpax/trace";

/// Longest time of a step. A gate waits once more for each gate below, so that the gate beside the trouble can report it.
const PATIENCE: Duration = Duration::from_secs(2);

/// Reports every step from here to the tool named by `params.name`: `{"hops":[{mount, gate, transport, era, ms, error?}, ...]}`, the
/// nearest first; `ms` is the time of that step's answer, with all steps after it.
pub async fn trace(errand: &Errand<'_>) -> Result<Answer, CallError> {
    if !errand.back.caller.scope.is_for_gate() {
        return Err(CallError::MethodNotFound(errand.request.method.to_string()));
    }
    errand.named(Method::Trace, |cleared, _| stepped(cleared, errand.back)).await
}

async fn stepped(cleared: Cleared, back: &Arc<Back>) -> Result<Answer, CallError> {
    let resolved = &cleared.resolved;
    let mount = &resolved.branch.mount;
    // Gates below claim how many gates are on the way: no more than the name has segments.
    let most = resolved.name.split('.').count();
    let hops = if let Aim::Trace(noted) = &resolved.aim { usize::from(noted.hops()).clamp(1, most) } else { 1 };
    let patience = PATIENCE.saturating_mul(u32::try_from(hops).unwrap_or(1));
    let began = Instant::now();
    let answer = tokio::time::timeout(patience, step(resolved, back)).await.unwrap_or(Err(UpstreamError::Silent(patience)));
    let ms = began.elapsed().as_secs_f64() * 1000.0;
    let transport = mount.opens.kind();
    let era = mount.negotiated().map_or("null", |n| if n.era == Era::Stateless { "\"stateless\"" } else { "\"initialize\"" });
    let (after, error) = match answer {
        // A server that refuses is there all the same.
        Ok(_) if !resolved.branch.is_gate() => (String::new(), None),
        Ok(Answer::Result(result)) => (after(&result), None),
        Ok(Answer::Error(error)) => (String::new(), Some(String::from_utf8_lossy(&error).into_owned())),
        Err(error) => (String::new(), Some(error.to_string())),
    };
    let error = error.map(|text| format!(",\"error\":{}", json::quote(&text))).unwrap_or_default();
    let (name, gate) = (&mount.config.name, resolved.branch.is_gate());
    let hop = format!("{{\"mount\":\"{name}\",\"gate\":{gate},\"transport\":\"{transport}\",\"era\":{era},\"ms\":{ms:.3}{error}}}");
    let result = Object::from(Bytes::from(format!("{{\"hops\":[{hop}{after}]}}")));
    Ok(Answer::Result(if back.caller.era == Era::Stateless { adapt::completed(&result, false) } else { result }))
}

/// Asks the next step: a gate for its own steps, a server if it is there.
async fn step(resolved: &Resolved, back: &Arc<Back>) -> Result<Answer, UpstreamError> {
    let mount = &resolved.branch.mount;
    let instance = mount.connections.shared.load_full().ok_or_else(|| UpstreamError::Unreachable(mount.trouble()))?;
    let era = instance.era();
    let (method, params): (&str, Object) = if resolved.branch.is_gate() {
        (METHOD, hop::params(&resolved.params, &resolved.caller, &resolved.branch, era, resolved.onward.as_ref()).into_owned())
    } else if era == Era::Stateless {
        let meta = stateless_meta(&mount.gate.node.shared());
        ("server/discover", Bytes::from(format!("{{\"_meta\":{meta}}}")).into())
    } else {
        ("ping", Object::empty())
    };
    instance.request(&OutgoingRequest::plain(method, params), Some(back)).await
}

/// Report of the next gate, to follow a step of ours.
fn after(result: &Object) -> String {
    let hops = result.members().get("hops").and_then(json::elements).unwrap_or_default();
    hops.into_iter().filter(|raw| raw.starts_with(b"{")).map(|raw| format!(",{}", String::from_utf8_lossy(raw))).collect()
}
