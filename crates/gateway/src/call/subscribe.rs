//! What a caller wants to hear: resource updates, list changes, log levels. Telling them is not done here but in `hub`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use banyan_model::{Era, Segment};
use bytes::Bytes;
use mcp_proto::catalog::Kind;
use mcp_proto::envelope::{Answer, Request};
use mcp_proto::era::{self, LogLevel};
use mcp_proto::json::Object;
use mcp_proto::json::{self, Members};
use policy::decide::Action;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::authorize::{may, unfound};
use super::caller::Caller;
use super::error::CallError;
use super::resolve::resource;
use super::statuses;
use crate::Inner;
use crate::downstream::lane::Lane;
use crate::downstream::session::Session;
use crate::downstream::subscriptions::Subscriptions;
use crate::hub::Listener;
use crate::tree::{Branch, Tree};
use crate::trust::wall;
use crate::upstream::Outgoing;

/// More than this one session does not subscribe to.
const MOST_SUBSCRIPTIONS: usize = 10_000;

/// `logging/setLevel`: kept for this session; servers are set to the most talkative level anybody wants.
pub(crate) async fn set_level(gateway: &Arc<Inner>, tree: &Tree, request: &Request, caller: &Caller) -> Result<Answer, CallError> {
    let members = request.params.members();
    let level = members.str("level").and_then(|l| LogLevel::parse(&l));
    let level = level.ok_or_else(|| {
        CallError::BadParams("`params.level` must be one of debug, info, notice, warning, error, critical, alert, emergency".into())
    })?;
    let session = session(caller)?;
    session.set_log_level(level);
    let most_talkative = gateway.hub.lowest_level().unwrap_or(level);
    let params = Bytes::from(format!("{{\"level\":\"{}\"}}", most_talkative.name()));
    let told = tree.within(&caller.scope).filter_map(|(_, b)| {
        let instance = b.mount.shared.load_full()?;
        let wants = instance.era() == Era::Initialize && era::declares(&instance.negotiated.capabilities, "logging");
        wants.then(|| {
            let params = params.clone();
            async move { instance.request(&Outgoing::plain("logging/setLevel", params), None).await }
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
    let found = match meant(gateway, tree, request, caller) {
        Err(unknown) if unknown.is_unknown() => match super::grown(gateway, caller).await {
            Some(tree) => meant(gateway, &tree, request, caller),
            None => Err(unknown),
        },
        found => found,
    };
    let (branch, uri) = found.map_err(|error| unfound(gateway, tree, request, caller, error))?;
    may(gateway, tree, request, caller, (Action::Read, &branch, &uri))?;
    let (mount, session) = (&branch.mount, session(caller)?);
    let name = &mount.config.name;
    let shown = request.params.members().str("uri").unwrap_or_default().into_owned();
    if session.subscriptions(|all| all.len()) >= MOST_SUBSCRIPTIONS {
        return Err(CallError::BadParams(format!("this session subscribes to {MOST_SUBSCRIPTIONS} resources: end some of these first")));
    }
    if session.subscriptions(|all| all.add(name, &uri, &shown)) {
        mount.subscribe(&uri);
    }
    if let Some((_, error)) = mount.follows(&[&uri]).await.pop() {
        if session.subscriptions(|all| all.remove(name, &uri)) {
            unfollow(gateway, name, &uri).await;
        }
        return Err(CallError::Upstream { mount: mount.config.name.to_string(), error, stderr: mount.stderr.lines() });
    }
    branch.mount.subscription_of(session, &uri, "resources/subscribe").await;
    empty()
}

/// `resources/unsubscribe`.
pub(crate) async fn unsubscribe(gateway: &Arc<Inner>, tree: &Tree, request: &Request, caller: &Caller) -> Result<Answer, CallError> {
    let session = session(caller)?;
    let shown = request.params.members().str("uri").unwrap_or_default();
    // What it subscribed to, whoever has that name by now, and also where its server is gone.
    let (mount, uri) = match session.subscriptions(|all| all.meant(&shown)) {
        Some(subscribed) => subscribed,
        None => {
            let found = meant(gateway, tree, request, caller).map_err(|error| unfound(gateway, tree, request, caller, error))?;
            (found.0.mount.config.name.clone(), found.1)
        }
    };
    if session.subscriptions(|all| all.remove(&mount, &uri)) {
        unfollow(gateway, &mount, &uri).await;
    }
    if let Some(branch) = tree.branch(&mount) {
        branch.mount.subscription_of(session, &uri, "resources/unsubscribe").await;
    }
    empty()
}

/// Ends the subscriptions of a session that is over.
pub(crate) async fn forget(gateway: &Arc<Inner>, session: &Session) {
    let over = session.subscriptions(std::mem::take);
    for (mount, uri, _) in over.all() {
        unfollow(gateway, mount, uri).await;
    }
}

/// `subscriptions/listen`: opens a listener on `lane`; it ends when the token fires, or `until` has passed: what let its caller in ends then.
pub(crate) async fn open_listener(
    gateway: &Arc<Inner>,
    caller: &Arc<Caller>,
    request: &Request,
    lane: &Arc<Lane>,
    until: Option<SystemTime>,
) -> Result<CancellationToken, CallError> {
    let tasks = statuses::wanted(gateway, caller, request)?;
    let (listener, mut honoured) = listener(gateway, request, caller, lane);
    // Should the caller go away meanwhile, everything begun here ends.
    let opening = CancellationToken::new().drop_guard();
    let gone = opening.token().clone();
    gateway.hub.listen(&listener);
    let (following, follows) = oneshot::channel();
    let (inner, listens, ended) = (Arc::clone(gateway), Arc::clone(&listener), gone.clone());
    tokio::spawn(async move {
        let followed = follow(&inner, &listens).await;
        // Whoever waits for it may have gone.
        drop(following.send(followed.clone()));
        tokio::select! {
            () = ended.cancelled() => {}
            () = passed(until) => listens.end(),
        }
        for ((mount, uri, _), _) in listens.wanted.all().zip(&followed).filter(|(_, is_followed)| **is_followed) {
            unfollow(&inner, mount, uri).await;
        }
    });
    let followed = follows.await.unwrap_or_default();
    let taken = listener.wanted.all().zip(followed).filter(|(_, is_followed)| *is_followed);
    let taken: Vec<String> = taken.map(|((_, _, shown), _)| shown.to_owned()).collect();
    honoured.extend((!taken.is_empty()).then(|| format!("\"resourceSubscriptions\":{}", statuses::array(&taken))));
    if !tasks.is_empty() {
        let agreed = statuses::follow(tasks, &listener, caller, request, &gone).await;
        honoured.extend((!agreed.is_empty()).then(|| format!("\"taskIds\":{}", statuses::array(&agreed))));
    }
    listener.acknowledge(&format!("{{{}}}", honoured.join(",")));
    Ok(opening.disarm())
}

async fn passed(until: Option<SystemTime>) {
    match until {
        Some(until) => wall::passed(until).await,
        None => std::future::pending().await,
    }
}

/// The listener, and the members of the filter that are honoured so far.
fn listener(gateway: &Arc<Inner>, request: &Request, caller: &Caller, lane: &Arc<Lane>) -> (Arc<Listener>, Vec<String>) {
    let tree = gateway.tree.load_full();
    let view = tree.shown(caller);
    let members = request.params.members();
    let filter = members.get("notifications").map(Members::again).unwrap_or_default();
    let (mut kinds, mut honoured, mut wanted) = (Vec::new(), Vec::new(), Subscriptions::default());
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
    for raw in filter.get("resourceSubscriptions").and_then(json::elements).unwrap_or_default() {
        let Some(shown) = json::as_str(raw) else { continue };
        if let Ok((branch, uri)) = resource(gateway, &tree, &view, &shown)
            && may(gateway, &tree, request, caller, (Action::Read, &branch, &uri)).is_ok()
        {
            wanted.add(&branch.mount.config.name, &uri, &shown);
        }
    }
    let (lane, id, scope, held) = (Arc::clone(lane), request.id.clone(), caller.scope.clone(), Mutex::new(Some(Vec::new())));
    (Arc::new(Listener { lane, id, scope, subject: Arc::clone(&caller.subject), kinds, wanted, held }), honoured)
}

/// Makes a listener's resource subscriptions at their owners, and waits until these tell of changes. Of which of them they do.
async fn follow(gateway: &Arc<Inner>, listener: &Listener) -> Vec<bool> {
    let tree = gateway.tree.load_full();
    let mut wanted: BTreeMap<&Segment, (Branch, Vec<&str>)> = BTreeMap::new();
    for (mount, uri, _) in listener.wanted.all() {
        let Some(branch) = tree.branch(mount) else { continue };
        branch.mount.subscribe(uri);
        wanted.entry(mount).or_insert_with(|| (branch.clone(), Vec::new())).1.push(uri);
    }
    let asked = wanted.values().map(|(branch, uris)| branch.mount.follows(uris));
    let refused: BTreeSet<(&Segment, &str)> = wanted
        .keys()
        .zip(futures_util::future::join_all(asked).await)
        .flat_map(|(mount, refused)| refused.into_iter().map(move |(uri, error)| (mount, uri, error)))
        .map(|(mount, uri, error)| {
            tracing::debug!(%error, uri, "a subscription could not be made at the server");
            (*mount, uri)
        })
        .collect();
    for (mount, uri) in &refused {
        unfollow(gateway, mount, uri).await;
    }
    listener.wanted.all().map(|(mount, uri, _)| wanted.contains_key(mount) && !refused.contains(&(mount, uri))).collect()
}

/// Ends one, wherever it is by now.
async fn unfollow(gateway: &Arc<Inner>, mount: &Segment, uri: &str) {
    let tree = gateway.tree.load_full();
    match tree.branch(mount) {
        Some(branch) if branch.mount.subscribed.has(uri) => branch.mount.unsubscribe(uri).await,
        Some(_) | None => gateway.hub.left.remove(mount, uri),
    }
}

fn meant(gateway: &Inner, tree: &Tree, request: &Request, caller: &Caller) -> Result<(Branch, String), CallError> {
    let members = request.params.members();
    let shown = members.str("uri").ok_or_else(|| CallError::BadParams("`params.uri` must be a string".into()))?;
    resource(gateway, tree, &tree.shown(caller), &shown)
}

fn session(caller: &Caller) -> Result<&Arc<Session>, CallError> {
    caller.session.as_ref().ok_or_else(|| CallError::BadParams("this needs a session".into()))
}

fn empty() -> Result<Answer, CallError> {
    Ok(Answer::Result(Object::empty()))
}
