//! Methods unknown to Banyan: forwarded where the receiver is clear, and nowhere else.

use std::collections::BTreeSet;
use std::sync::Arc;

use banyan_model::Method;
use bytes::Bytes;
use mcp_proto::envelope::{Answer, Notification, Request};
use mcp_proto::json::{self, Members, Object};
use mcp_proto::splice::{self, Change};
use mesh_proto::annotation::AuthScope;

use crate::judge::gate::Gate;
use crate::tree::back::{Back, Sink};
use crate::tree::caller::Caller;
use crate::tree::gate::Load;
use crate::tree::mount::Mount;
use crate::tree::snapshot::{Branch, Sight, Tree};
use crate::way::error::CallError;
use crate::way::forward::forward;
use crate::way::resolve;
use crate::way::resolve::{Aim, task_of};
use crate::way::{Errand, gate, registration, trace};
use crate::words::cancel::Cancel;

/// Forwards a method to the only server there is, or to the only server that names its extension. Requests between gates are answered here.
pub async fn unknown(errand: &Errand<'_>) -> Result<Answer, CallError> {
    let Errand { gate, sight, request, back } = *errand;
    if request.method == trace::METHOD {
        return trace::trace(errand).await;
    }
    if registration::is_ours(&request.method) {
        return registration::answer(gate, request, back).await;
    }
    if request.method == policy::approval::Confirm::METHOD {
        return gate::confirm(errand).await;
    }
    if is_removed(&request.method) {
        return Err(CallError::MethodNotFound(request.method.clone().into_owned()));
    }
    crate::way::call(gate, sight, request, Method::Unknown, back).await
}

/// Answers `tasks/list` of 2025-11-25: the caller's tasks of all servers with tasks, in one list.
pub async fn tasks_list(errand: &Errand<'_>) -> Result<Answer, CallError> {
    let Errand { gate, sight, request, back } = *errand;
    let declares = |branch: &&Branch| branch.negotiated.as_ref().is_some_and(|n| mcp_proto::era::declares(&n.capabilities, "tasks"));
    let with: Vec<&Branch> = sight.tree.within(&back.caller.scope).map(|(_, branch)| branch).filter(declares).collect();
    if with.is_empty() {
        return Err(CallError::MethodNotFound(request.method.clone().into_owned()));
    }
    let mut tasks: Vec<Bytes> = Vec::new();
    for branch in &with {
        let resolved = resolve::at((*branch).clone(), &back.caller, request, (Aim::Tasks, String::new()));
        let answer = errand.to(resolved, |cleared, trace| forward(cleared, back, trace)).await;
        let result = match answer {
            Ok(Answer::Result(result)) => result,
            // A server that can't answer is left out of several.
            _ if with.len() > 1 => continue,
            answer => return answer,
        };
        let of = result.members().get("tasks").and_then(json::elements).unwrap_or_default();
        let own = of.into_iter().filter(|raw| is_own(&gate.load, &sight.tree, (&back.caller, branch), raw));
        let own: Vec<Bytes> = own.map(|raw| result.slice_ref(raw)).collect();
        if with.len() == 1 {
            let own = [&b"["[..], &own.join(&b','), b"]"].concat();
            return Ok(Answer::Result(Bytes::from(splice::edit(&result, &[("tasks", Change::Set(&own))])).into()));
        }
        tasks.extend(own);
    }
    Ok(Answer::Result(Bytes::from([&b"{\"tasks\":["[..], &tasks.join(&b','), b"]}"].concat()).into()))
}

/// Checks whether a task in the list of a server is the caller's own.
fn is_own(load: &Load, tree: &Tree, (caller, branch): (&Caller, &Branch), task: &[u8]) -> bool {
    let id = Members::again(task).str("taskId").unwrap_or_default();
    let owner = task_of(load, tree, caller, (&id, false)).map(|(owner, ..)| owner);
    owner.is_some_and(|owner| owner.mount.config.name == branch.mount.config.name)
}

/// Forwards an unknown notification from a client with connections of its own, by the rule for unknown methods. The client is not told of
/// failures, and does not wait.
pub async fn notified(gate: &Arc<Gate>, mut caller: Arc<Caller>, notification: &Notification) {
    let own = Arc::get_mut(&mut caller).and_then(|caller| {
        caller.capabilities = Bytes::from_static(b"{}");
        caller.session.take()
    });
    let Some(session) = own.filter(|_| notification.method.starts_with("notifications/")) else { return };
    let sight = Sight::of_caller(gate.mounts.tree.load_full(), &caller);
    let Notification { method, params, whole } = notification;
    let request = Request { id: Bytes::from_static(b"null"), method: method.clone().into(), params: params.clone() };
    let back = Back::new(Arc::clone(&caller), Sink::None, None, Cancel::default());
    let errand = Errand { gate, sight: &sight, request: &request, back: &back };
    for branch in sight.tree.branches.iter().filter(|branch| takes_unknown(&branch.mount)) {
        let Some(instance) = branch.mount.own_of(&session) else { continue };
        let resolved = resolve::at(branch.clone(), &caller, &request, (Aim::Unknown, String::new()));
        let sent = errand.to(resolved, |_cleared, _| async {
            instance.notify(method, whole.clone()).await;
            Ok(Answer::Result(Object::empty()))
        });
        if let Err(error) = sent.await {
            tracing::debug!(%error, method, "a notification is not passed on");
        }
    }
}

/// Checks that a server is sent unknown methods. Their effect is unknown, so a server of limited scope gets none (AX-41).
pub fn takes_unknown(mount: &Mount) -> bool {
    mount.registration.as_ref().is_none_or(|registration| registration.auth_scope == AuthScope::Admin)
}

/// Checks for a method that only one era has (2026-07-28, "Changes"); such methods are answered here, never passed on.
fn is_removed(method: &str) -> bool {
    matches!(
        method,
        "initialize"
            | "ping"
            | "logging/setLevel"
            | "resources/subscribe"
            | "resources/unsubscribe"
            | "server/discover"
            | "subscriptions/listen"
    )
}

/// Checks that a server names the extension of a method: `vendor/thing` belongs to an id that contains `vendor`.
pub fn names(branch: &Branch, method: &str) -> bool {
    let Some(negotiated) = &branch.negotiated else { return false };
    let prefix = method.rsplit_once('/').map_or(method, |(p, _)| p);
    let members = Members::again(&negotiated.capabilities);
    let groups: BTreeSet<String> = ["extensions", "experimental"]
        .iter()
        .filter_map(|g| members.object(g))
        .flat_map(|m| m.iter().map(|(k, _)| k.into_owned()).collect::<Vec<_>>())
        .collect();
    groups.iter().any(|id| id == prefix || id.rsplit(['/', '.']).next() == Some(prefix))
}
