//! Subscriptions of callers: resource updates, list changes, log levels. Does not deliver them; `hub` does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use banyan_model::{Era, Method, Segment};
use bytes::Bytes;
use config::resolved::Config;
use mcp_proto::catalog::Kind;
use mcp_proto::envelope::{Answer, Request};
use mcp_proto::era::{LogLevel, declares};
use mcp_proto::json::Object;
use mcp_proto::json::{self, Members};
use runtime::wall;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::judge::gate::Gate;
use crate::tree::back::{Back, Sink};
use crate::tree::by_session::caller_of;
use crate::tree::caller::Caller;
use crate::tree::hub::Listener;
use crate::tree::mount::Mount;
use crate::tree::port::{OutgoingRequest, UpstreamError};
use crate::tree::snapshot::{Branch, Sight, Tree};
use crate::way::authorize;
use crate::way::authorize::Decision;
use crate::way::error::CallError;
use crate::way::gate::Cleared;
use crate::way::resolve;
use crate::way::resolve::{Aim, resource};
use crate::way::{Errand, statuses};
use crate::words::cancel::Cancel;
use crate::words::lane::Lane;
use crate::words::session::Session;
use crate::words::shares::{Bound, Full, Resource};
use crate::words::subscriptions::Subscriptions;

/// Longest wait of a client that sets a log level for the servers to take it.
const TOLD_WITHIN: Duration = Duration::from_secs(2);
/// Most resources of a session or listener, and most tasks of a listener.
pub const MOST_SUBSCRIPTIONS: usize = 10_000;
/// Longest URI of a subscription, in bytes.
const LONGEST_URI: usize = 8 << 10;

/// Answers `logging/setLevel`: keeps the level for this session, and sets servers to the most talkative level wanted, each in a task of its
/// own, so that a silent server keeps nobody waiting.
pub async fn set_level(errand: &Errand<'_>) -> Result<Answer, CallError> {
    let Errand { gate, sight, request, back } = *errand;
    let members = request.params.members();
    let level = members.str("level").and_then(|l| LogLevel::parse(&l));
    let level = level.ok_or_else(|| {
        CallError::BadParams("`params.level` must be one of debug, info, notice, warning, error, critical, alert, emergency".into())
    })?;
    let session = session(&back.caller)?;
    session.set_log_level(level);
    let most_talkative = gate.hub.lowest_level().unwrap_or(level);
    let logs =
        |branch: &&Branch| branch.negotiated.as_ref().is_some_and(|n| n.era == Era::Initialize && declares(&n.capabilities, "logging"));
    let told = sight.tree.within(&back.caller.scope).map(|(_, branch)| branch).filter(logs).map(|branch| {
        let (gate, sight, request, back) = (Arc::clone(gate), sight.clone(), request.clone(), Arc::clone(back));
        let resolved = resolve::at(branch.clone(), &back.caller, &request, (Aim::LogLevel, String::new()));
        tokio::spawn(async move {
            let errand = Errand { gate: &gate, sight: &sight, request: &request, back: &back };
            errand.to(resolved, |cleared, _| told_level(cleared, most_talkative)).await
        })
    });
    // Quick servers log the next call at this level already.
    drop(tokio::time::timeout(TOLD_WITHIN, futures_util::future::join_all(told)).await);
    empty()
}

async fn told_level(cleared: Cleared, level: LogLevel) -> Result<Answer, CallError> {
    let mount = &cleared.resolved.branch.mount;
    let Some(instance) = mount.connections.shared.load_full() else { return Err(mount.unavailable().into()) };
    let params = Bytes::from(format!("{{\"level\":\"{}\"}}", level.name()));
    instance.request(&OutgoingRequest::plain("logging/setLevel", params), None).await.map_err(|error| failed(mount, error))
}

/// Answers `resources/subscribe`.
pub async fn subscribe(errand: &Errand<'_>) -> Result<Answer, CallError> {
    let session = session(&errand.back.caller)?;
    errand.named(Method::Subscribe, |cleared, _| subscribed(errand, session, cleared)).await
}

async fn subscribed(errand: &Errand<'_>, session: &Arc<Session>, cleared: Cleared) -> Result<Answer, CallError> {
    let (mount, uri) = (&cleared.resolved.branch.mount, &*cleared.resolved.name);
    let name = &mount.config.name;
    let shown = errand.request.params.members().str("uri").unwrap_or_default().into_owned();
    if session.subscriptions(|all| all.len()) >= MOST_SUBSCRIPTIONS {
        return Err(CallError::BadParams(format!("this session subscribes to {MOST_SUBSCRIPTIONS} resources: end some of these first")));
    }
    if shown.len() > LONGEST_URI {
        return Err(CallError::BadParams(format!("`params.uri` is longer than {LONGEST_URI} bytes")));
    }
    let config = &errand.sight.tree.config;
    let bound = Bound { most: config.limits.subscriptions, percent: config.share() };
    if session.subscribe((name, uri, &shown), bound).map_err(|full| too_many(errand.gate, full, "subscriptions", bound))? {
        mount.subscribe(uri);
    }
    if let Some((_, error)) = mount.follows(&[uri]).await.pop() {
        if session.unsubscribe(name, uri) {
            unfollow(errand.gate, name, uri).await;
        }
        return Err(failed(mount, error));
    }
    mount.subscription_of(session, uri, "resources/subscribe").await;
    empty()
}

/// Answers `resources/unsubscribe`, for the owner at the time of subscribing, even if the server is gone.
pub async fn unsubscribe(errand: &Errand<'_>) -> Result<Answer, CallError> {
    let Errand { gate, sight, request, back } = *errand;
    let session = session(&back.caller)?;
    let shown = request.params.members().str("uri").unwrap_or_default();
    let Some((mount, uri)) = session.subscriptions(|all| all.meant(&shown)) else {
        return errand.named(Method::Subscribe, |cleared, _| unsubscribed(gate, session, cleared)).await;
    };
    let Some(branch) = sight.tree.branch(&mount) else {
        if session.unsubscribe(&mount, &uri) {
            unfollow(gate, &mount, &uri).await;
        }
        return empty();
    };
    let resolved = resolve::at(branch.clone(), &back.caller, request, (Aim::Subscription, uri));
    errand.to(resolved, |cleared, _| unsubscribed(gate, session, cleared)).await
}

async fn unsubscribed(gate: &Arc<Gate>, session: &Arc<Session>, cleared: Cleared) -> Result<Answer, CallError> {
    let (mount, uri) = (&cleared.resolved.branch.mount, &*cleared.resolved.name);
    if session.unsubscribe(&mount.config.name, uri) {
        unfollow(gate, &mount.config.name, uri).await;
    }
    mount.subscription_of(session, uri, "resources/unsubscribe").await;
    empty()
}

fn failed(mount: &Mount, error: UpstreamError) -> CallError {
    CallError::Upstream { mount: mount.config.name.to_string(), error, report: None }
}

/// Ends subscriptions that new rules deny: in sessions, and the streams of listeners that follow resources or tasks. Their clients may ask
/// anew.
pub fn decide_anew(gate: &Arc<Gate>, old: &Config, new: &Config) {
    if new.policy.is_none() || (&old.policy, &old.groups) == (&new.policy, &new.groups) {
        return;
    }
    gate.hub.end_decided();
    let (inner, tree) = (Arc::clone(gate), gate.mounts.tree.load_full());
    // The rules judge each of a hundred thousand subscriptions.
    let looking = tokio::task::spawn_blocking(move || {
        inner.hub.every_session().into_iter().map(|session| denied(&tree, session)).collect::<Vec<_>>()
    });
    let gate = Arc::clone(gate);
    tokio::spawn(async move {
        for (session, denied) in looking.await.unwrap_or_default() {
            for (mount, uri) in denied {
                if session.unsubscribe(&mount, &uri) {
                    unfollow(&gate, &mount, &uri).await;
                }
            }
        }
    });
}

/// Finds the subscriptions of a session that rules deny, or allow only with approval.
fn denied(tree: &Tree, session: Arc<Session>) -> (Arc<Session>, Vec<(Segment, String)>) {
    let all: Vec<(Segment, String)> =
        session.subscriptions(|all| all.all().map(|(mount, uri, _)| (mount.clone(), uri.to_owned())).collect());
    if all.is_empty() {
        return (session, all);
    }
    let caller = caller_of(&session, &session.opening.entered);
    let denied =
        all.into_iter().filter(|(mount, uri)| tree.branch(mount).is_some_and(|branch| !authorize::hears(tree, &caller, branch, uri)));
    let denied = denied.collect();
    (session, denied)
}

/// Ends the subscriptions of a session that is over.
pub async fn forget(gate: &Arc<Gate>, session: &Session) {
    let over = session.unsubscribe_all();
    for (mount, uri, _) in over.all() {
        unfollow(gate, mount, uri).await;
    }
}

/// Answers `subscriptions/listen`: opens a listener on `lane`, which ends when the token fires, or at `until` with the caller's credential.
pub async fn open_listener(
    gate: &Arc<Gate>,
    caller: &Arc<Caller>,
    request: &Request,
    lane: &Arc<Lane>,
    until: Option<SystemTime>,
) -> Result<CancellationToken, CallError> {
    let back = Back::new(Arc::clone(caller), Sink::None, None, Cancel::default());
    let sight = Sight::of_caller(gate.mounts.tree.load_full(), caller);
    let errand = Errand { gate, sight: &sight, request, back: &back };
    resolve::spelt(&request.params.members(), Method::Subscribe)?;
    let config = &sight.tree.config;
    let bound = Bound { most: config.limits.listeners, percent: config.share() };
    let place =
        caller.share(&gate.load).take_amount(Resource::Listeners, 1, bound).map_err(|full| too_many(gate, full, "listeners", bound))?;
    let tasks = statuses::wanted(&errand)?;
    let (listener, mut honoured, following) = listener(&errand, lane, !tasks.is_empty())?;
    let bound = Bound { most: config.limits.subscriptions, percent: config.share() };
    let followed = listener.wanted.len() + tasks.iter().map(statuses::FollowedTasks::len).sum::<usize>();
    let wanted = caller.share(&gate.load).take_amount(Resource::Subscriptions, followed, bound);
    let wanted = wanted.map_err(|full| too_many(gate, full, "subscriptions", bound))?;
    // If the caller goes away meanwhile, everything begun here ends.
    let opening = CancellationToken::new().drop_guard();
    let gone = opening.token().clone();
    gate.hub.listen(&listener);
    let (tells, follows) = oneshot::channel();
    let (inner, listens, ended, asked) = (Arc::clone(gate), Arc::clone(&listener), gone.clone(), request.clone());
    let (sees, goes_back) = (sight.clone(), Arc::clone(&back));
    tokio::spawn(async move {
        let _held = (place, wanted);
        let errand = Errand { gate: &inner, sight: &sees, request: &asked, back: &goes_back };
        let followed = follow(&errand, &listens, following).await;
        // The waiter may be gone.
        drop(tells.send(followed.clone()));
        tokio::select! {
            () = ended.cancelled() => {}
            () = passed(until) => listens.end_stream(),
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
        let agreed = statuses::follow(tasks, &listener, &errand, &gone).await;
        honoured.extend((!agreed.is_empty()).then(|| format!("\"taskIds\":{}", statuses::array(&agreed))));
    }
    listener.acknowledge(&format!("{{{}}}", honoured.join(",")));
    Ok(opening.disarm())
}

fn too_many(gate: &Arc<Gate>, full: Full, what: &'static str, bound: Bound) -> CallError {
    gate.load.refusals.note(what, None);
    let most = if let Full::Share(share) = full { share } else { bound.most };
    CallError::Overloaded { what, most }
}

async fn passed(until: Option<SystemTime>) {
    match until {
        Some(until) => wall::passed(until).await,
        None => std::future::pending().await,
    }
}

/// Resources that a listener follows at one server, in the server's words.
struct FollowedResources {
    branch: Branch,
    uris: Vec<String>,
    /// Decision of the rules about one of them; the rules allow all.
    decision: Option<Decision>,
}

/// A listener, the members of its filter honoured so far, and the requests to make of servers.
type ListenerParts = (Arc<Listener>, Vec<String>, BTreeMap<Segment, FollowedResources>);

/// Makes the listener, the members of its filter honoured so far, and the requests to make of servers.
fn listener(errand: &Errand<'_>, lane: &Arc<Lane>, has_tasks: bool) -> Result<ListenerParts, CallError> {
    let Errand { gate, sight, request, back } = *errand;
    let caller = &back.caller;
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
    let mut following: BTreeMap<Segment, FollowedResources> = BTreeMap::new();
    let asked = filter.get("resourceSubscriptions").and_then(json::elements).unwrap_or_default();
    if asked.len() > MOST_SUBSCRIPTIONS {
        let why = format!("one request subscribes to {MOST_SUBSCRIPTIONS} resources at most: make several");
        return Err(CallError::BadParams(why));
    }
    for raw in asked {
        let Some(shown) = json::as_str(raw).filter(|shown| shown.len() <= LONGEST_URI) else { continue };
        let Ok((branch, uri)) = resource(&gate.load, &sight.tree, &sight.view, &shown) else { continue };
        let resolved = resolve::at(branch, caller, request, (Aim::Subscription, uri));
        let Ok(decision) = authorize::one_of(gate, &sight.tree, request, &resolved) else { continue };
        let (branch, uri) = (resolved.branch, resolved.name);
        let mount = branch.mount.config.name.clone();
        if wanted.add(&mount, &uri, &shown) {
            following.entry(mount).or_insert_with(|| FollowedResources { branch, uris: Vec::new(), decision }).uris.push(uri);
        }
    }
    let (lane, id, scope, held) = (Arc::clone(lane), request.id.clone(), caller.scope.clone(), Mutex::new(Some(Vec::new())));
    let (subject, is_decided) = (Arc::clone(&caller.subject), has_tasks || wanted.len() > 0);
    Ok((Arc::new(Listener { lane, id, scope, subject, kinds, wanted, is_decided, held }), honoured, following))
}

/// Makes a listener's resource subscriptions at their owners, and waits for their agreement; returns it for each.
async fn follow(errand: &Errand<'_>, listener: &Listener, wanted: BTreeMap<Segment, FollowedResources>) -> Vec<bool> {
    for following in wanted.values() {
        following.uris.iter().for_each(|uri| following.branch.mount.subscribe(uri));
    }
    let asked = wanted.into_iter().map(async |(mount, following)| {
        let all = following.uris.clone();
        let refused = followed(errand, following).await.unwrap_or(all);
        for uri in &refused {
            unfollow(errand.gate, &mount, uri).await;
        }
        refused.into_iter().map(|uri| (mount.clone(), uri)).collect::<Vec<_>>()
    });
    let refused: BTreeSet<(Segment, String)> = futures_util::future::join_all(asked).await.into_iter().flatten().collect();
    listener.wanted.all().map(|(mount, uri, _)| !refused.contains(&(mount.clone(), uri.to_owned()))).collect()
}

/// Asks one server to tell of its part; returns the URIs refused for good.
async fn followed(errand: &Errand<'_>, FollowedResources { branch, uris, decision }: FollowedResources) -> Result<Vec<String>, CallError> {
    let mut refused = Vec::new();
    let resolved = resolve::at(branch, &errand.back.caller, errand.request, (Aim::Subscription, uris.join(" ")));
    let permit = authorize::allowed(resolved, decision);
    let (asked, refuses) = (&uris, &mut refused);
    let follows = |cleared: Cleared, _| async move {
        let uris: Vec<&str> = asked.iter().map(String::as_str).collect();
        for (uri, error) in cleared.resolved.branch.mount.follows(&uris).await {
            tracing::debug!(%error, uri, "a subscription could not be made at the server");
            refuses.push(uri.to_owned());
        }
        empty()
    };
    errand.with(permit, follows).await?;
    Ok(refused)
}

/// Ends a subscription at its present owner.
async fn unfollow(gate: &Arc<Gate>, mount: &Segment, uri: &str) {
    let tree = gate.mounts.tree.load_full();
    match tree.branch(mount) {
        Some(branch) if branch.mount.connections.subscribed.has(uri) => branch.mount.unsubscribe(uri).await,
        Some(_) | None => gate.hub.left.remove(mount, uri),
    }
}

fn session(caller: &Caller) -> Result<&Arc<Session>, CallError> {
    caller.session.as_ref().ok_or_else(|| CallError::BadParams("this needs a session".into()))
}

fn empty() -> Result<Answer, CallError> {
    Ok(Answer::Result(Object::empty()))
}
