//! What a caller wants to hear: resource updates, list changes, log levels. Telling them is not done here but in `hub`.

use std::sync::Arc;

use banyan_model::Era;
use bytes::Bytes;
use mcp_proto::catalog::Kind;
use mcp_proto::envelope::{Answer, Request};
use mcp_proto::era::{self, LogLevel};
use mcp_proto::json::{self, Members};

use super::caller::Caller;
use super::error::CallError;
use super::resolve::resource;
use crate::Inner;
use crate::downstream::lane::Lane;
use crate::downstream::session::Session;
use crate::hub::Listener;
use crate::tree::Tree;
use crate::upstream::Outgoing;

/// `logging/setLevel`: kept for this session; servers are set to the most talkative level anybody wants.
pub(crate) async fn set_level(gateway: &Arc<Inner>, tree: &Tree, request: &Request, caller: &Caller) -> Result<Answer, CallError> {
    let members = Members::again(&request.params);
    let level = members.str("level").and_then(|l| LogLevel::parse(&l));
    let level = level.ok_or_else(|| {
        CallError::BadParams("`params.level` must be one of debug, info, notice, warning, error, critical, alert, emergency".into())
    })?;
    let session = session(caller)?;
    session.set_log_level(level);
    let most_talkative = gateway.hub.lowest_level().unwrap_or(level);
    let params = Bytes::from(format!("{{\"level\":\"{}\"}}", most_talkative.name()));
    let told = tree.within(caller.scope.mount.as_ref()).filter_map(|(_, b)| {
        let instance = b.mount.shared.load_full()?;
        let wants = instance.era() == Era::Initialize && era::declares(&instance.negotiated.capabilities, "logging");
        wants.then(|| {
            let params = params.clone();
            async move { instance.request(Outgoing::plain("logging/setLevel", params), None).await }
        })
    });
    for outcome in futures_util::future::join_all(told).await {
        if let Err(e) = outcome {
            tracing::debug!(error = %e, "a server did not take the log level");
        }
    }
    empty()
}

/// `resources/subscribe`.
pub(crate) async fn subscribe(gateway: &Arc<Inner>, tree: &Tree, request: &Request, caller: &Caller) -> Result<Answer, CallError> {
    let (branch, uri) = match meant(gateway, tree, request, caller) {
        Err(unknown) if unknown.is_unknown() => match super::grown(gateway, caller).await {
            Some(tree) => meant(gateway, &tree, request, caller)?,
            None => return Err(unknown),
        },
        found => found?,
    };
    if session(caller)?.subscribe(&uri)
        && let Err(e) = branch.mount.subscribe(&uri).await
    {
        session(caller)?.unsubscribe(&uri);
        let mount = branch.mount.config.name.to_string();
        return Err(CallError::Upstream { mount, error: e, stderr: branch.mount.stderr.lines() });
    }
    branch.mount.subscription_of(session(caller)?, &uri, "resources/subscribe").await;
    empty()
}

/// `resources/unsubscribe`.
pub(crate) async fn unsubscribe(gateway: &Arc<Inner>, tree: &Tree, request: &Request, caller: &Caller) -> Result<Answer, CallError> {
    let (branch, uri) = meant(gateway, tree, request, caller)?;
    if session(caller)?.unsubscribe(&uri)
        && let Err(e) = branch.mount.unsubscribe(&uri).await
    {
        tracing::debug!(error = %e, uri, "a subscription could not be ended at the server");
    }
    branch.mount.subscription_of(session(caller)?, &uri, "resources/unsubscribe").await;
    empty()
}

/// Ends the subscriptions of a session that is over.
pub(crate) async fn forget(gateway: &Arc<Inner>, session: &Session) {
    let tree = gateway.tree.load_full();
    for uri in session.take_subscriptions() {
        for branch in &tree.branches {
            if branch.mount.subscriptions().contains(&uri)
                && let Err(e) = branch.mount.unsubscribe(&uri).await
            {
                tracing::debug!(error = %e, uri, "a subscription could not be ended at the server");
            }
        }
    }
}

/// `subscriptions/listen`: the listener, and the raw filter that is honoured.
pub(crate) fn listener(gateway: &Arc<Inner>, request: &Request, caller: &Caller, lane: &Arc<Lane>) -> (Arc<Listener>, String) {
    let tree = gateway.tree.load_full();
    let view = tree.view(&caller.scope);
    let members = Members::again(&request.params);
    let filter = members.get("notifications").map(Members::again).unwrap_or_default();
    let (mut kinds, mut honoured, mut uris) = (Vec::new(), Vec::new(), Vec::new());
    let flags: [(&str, &[Kind]); 3] = [
        ("toolsListChanged", &[Kind::Tools]),
        ("promptsListChanged", &[Kind::Prompts]),
        ("resourcesListChanged", &[Kind::Resources, Kind::Templates]),
    ];
    for (flag, of) in flags {
        if filter.get(flag) == Some(b"true") {
            kinds.extend_from_slice(of);
            honoured.push(format!("\"{flag}\":true"));
        }
    }
    let mut taken = Vec::new();
    for raw in filter.get("resourceSubscriptions").and_then(json::elements).unwrap_or_default() {
        let Some(shown) = json::as_str(raw) else { continue };
        if let Ok((branch, uri)) = resource(gateway, &tree, &view, &shown) {
            taken.push(json::quote(&shown));
            uris.push((branch.mount.config.name.clone(), uri));
        }
    }
    if !taken.is_empty() {
        honoured.push(format!("\"resourceSubscriptions\":[{}]", taken.join(",")));
    }
    let listener = Listener { lane: Arc::clone(lane), id: request.id.clone(), scope: caller.scope.clone(), kinds, uris };
    (Arc::new(listener), format!("{{{}}}", honoured.join(",")))
}

/// Makes, or ends, a listener's resource subscriptions at their owners.
pub(crate) async fn follow(gateway: &Arc<Inner>, listener: &Listener, begin: bool) {
    let tree = gateway.tree.load_full();
    for (mount, uri) in &listener.uris {
        let Some(branch) = tree.branch(mount) else { continue };
        let outcome = if begin { branch.mount.subscribe(uri).await } else { branch.mount.unsubscribe(uri).await };
        if let Err(e) = outcome {
            tracing::debug!(error = %e, uri, "a subscription could not be changed at the server");
        }
    }
}

fn meant(gateway: &Inner, tree: &Tree, request: &Request, caller: &Caller) -> Result<(crate::tree::Branch, String), CallError> {
    let members = Members::again(&request.params);
    let shown = members.str("uri").ok_or_else(|| CallError::BadParams("`params.uri` must be a string".into()))?;
    resource(gateway, tree, &tree.view(&caller.scope), &shown)
}

fn session(caller: &Caller) -> Result<&Arc<Session>, CallError> {
    caller.session.as_ref().ok_or_else(|| CallError::BadParams("this needs a session".into()))
}

fn empty() -> Result<Answer, CallError> {
    Ok(Answer::Result(Bytes::from_static(b"{}")))
}
