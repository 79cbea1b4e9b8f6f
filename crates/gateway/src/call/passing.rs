//! Methods Banyan does not know: forwarded, where it is clear to whom.

use std::collections::BTreeSet;
use std::sync::Arc;

use banyan_model::Era;
use bytes::Bytes;
use mcp_proto::envelope::{Answer, Request};
use mcp_proto::json::{self, Members};
use mesh_proto::annotation::AuthScope;
use policy::decide::Action;

use super::adapt;
use super::authorize::may;
use super::back::Back;
use super::error::CallError;
use super::{gate, hop, registration, trace};
use crate::Inner;
use crate::tree::{Branch, Tree};
use crate::upstream::mount::Mount;
use crate::upstream::{Outgoing, UpstreamError};

/// What gates ask each other is answered here. Any other method goes to the only server there is, or to the only one that names its extension.
pub(crate) async fn unknown(gateway: &Arc<Inner>, tree: &Tree, request: &Request, back: &Arc<Back>) -> Result<Answer, CallError> {
    let unserved = || CallError::MethodNotFound(request.method.clone().into_owned());
    if request.method == trace::METHOD {
        return trace::trace(gateway, tree, request, back).await;
    }
    if registration::is_ours(&request.method) {
        return registration::answer(gateway, request, back).await;
    }
    if request.method == policy::approval::Confirm::METHOD {
        return gate::confirm(gateway, tree, request, back).await;
    }
    if is_removed(&request.method) {
        return Err(unserved());
    }
    let branches: Vec<&Branch> = tree.within(&back.caller.scope).map(|(_, b)| b).filter(|b| takes_unknown(&b.mount)).collect();
    let meant = match &branches[..] {
        [only] => *only,
        many => {
            let mut named = many.iter().filter(|b| names(b, &request.method));
            let first = named.next().ok_or_else(unserved)?;
            if named.next().is_some() {
                return Err(unserved());
            }
            *first
        }
    };
    may(gateway, tree, request, &back.caller, (Action::Send, meant, &request.method))?;
    ask(meant, request, back).await
}

/// `tasks/list` of 2025-11-25: the tasks of every server that has any, in one list.
pub(crate) async fn tasks_list(_gateway: &Arc<Inner>, tree: &Tree, request: &Request, back: &Arc<Back>) -> Result<Answer, CallError> {
    let with: Vec<&Branch> = tree
        .within(&back.caller.scope)
        .map(|(_, b)| b)
        .filter(|b| b.negotiated.as_ref().is_some_and(|n| mcp_proto::era::declares(&n.capabilities, "tasks")))
        .collect();
    match &with[..] {
        [] => return Err(CallError::MethodNotFound(request.method.clone().into_owned())),
        [only] => return ask(only, request, back).await,
        _ => {}
    }
    let mut tasks: Vec<Bytes> = Vec::new();
    for branch in with {
        if let Ok(Answer::Result(result)) = ask(branch, request, back).await
            && let Some(list) = result.members().get("tasks").and_then(json::elements)
        {
            tasks.extend(list.into_iter().map(|raw| result.slice_ref(raw)));
        }
    }
    Ok(Answer::Result(Bytes::from([&b"{\"tasks\":["[..], &tasks.join(&b','), b"]}"].concat()).into()))
}

/// Passes a request on to one server as it is.
pub(super) async fn ask(branch: &Branch, request: &Request, back: &Arc<Back>) -> Result<Answer, CallError> {
    let mount = &branch.mount;
    let failed = |error| CallError::Upstream { mount: mount.config.name.to_string(), error, stderr: mount.stderr.lines() };
    let lease = mount.lease(&back.caller).await.map_err(failed)?;
    let era = lease.instance.era();
    let params = hop::params(&request.params, &back.caller, branch, era, None).into_owned();
    let out = Outgoing::plain(&request.method, params);
    let request = lease.instance.request(&out, Some(back));
    let answer =
        tokio::time::timeout(mount.config.timeout, request).await.map_err(|_| failed(UpstreamError::Silent(mount.config.timeout)))?;
    let bridged = back.caller.era == Era::Stateless && era == Era::Initialize;
    Ok(match answer.map_err(failed)? {
        Answer::Result(result) if bridged => Answer::Result(adapt::completed(&result, false)),
        answer @ (Answer::Result(_) | Answer::Error(_)) => answer,
    })
}

/// Nobody can say what an unknown method does, so a server that may not be asked for everything is not sent one (AX-41).
pub(crate) fn takes_unknown(mount: &Mount) -> bool {
    mount.registration.as_ref().is_none_or(|registration| registration.auth_scope == AuthScope::Admin)
}

/// Methods of one era that the other has no more (2026-07-28, "Changes"); they are answered here, never passed on.
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

/// Whether a server names the extension a method belongs to: `vendor/thing` belongs to an id that has `vendor` in it.
fn names(branch: &Branch, method: &str) -> bool {
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
