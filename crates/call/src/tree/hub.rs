//! Delivery of notifications outside of calls: to sessions of the initialize era, and to listeners of the other. Does not change a
//! notification beyond its tag.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

use banyan_model::{Principal, Segment};
use bytes::Bytes;
use config::resolved::Config;
use foldhash::fast::RandomState;
use mcp_proto::catalog::Kind;
use mcp_proto::envelope::{self, Answer, Notification};
use mcp_proto::era::{LogLevel, key};
use mcp_proto::json;
use mcp_proto::splice::{self, Change};
use policy::decide::Subject;

use crate::tree::asks;
use crate::tree::back::Back;
use crate::tree::mount::LeftSubscriptions;
use crate::words::lane::{Lane, Weight};
use crate::words::session::Session;
use crate::words::shares::TakenShare;
use crate::words::subscriptions::Subscriptions;
use crate::words::view_key::ViewKey;

/// Most messages, and most bytes, held until a listener is acknowledged; later ones are lost.
const MOST_HELD: usize = 1000;
const MOST_HELD_BYTES: usize = 1 << 20;

/// Lists of mounts that changed.
pub type ChangedLists = BTreeMap<Segment, BTreeSet<Kind>>;

/// Registry of sessions and listeners.
#[derive(Debug, Default)]
pub struct Hub {
    sessions: RwLock<HashMap<Arc<str>, Open, RandomState>>,
    listeners: RwLock<Vec<Weak<Listener>>>,
    /// Subscriptions to resources of removed mounts.
    pub left: LeftSubscriptions,
}

/// A session, and its place among all; the client on standard input needs none.
#[derive(Debug)]
struct Open {
    session: Arc<Session>,
    _place: Option<TakenShare>,
}

/// An open `subscriptions/listen` request.
#[derive(Debug)]
pub struct Listener {
    pub lane: Arc<Lane>,
    /// Raw JSON-RPC id of the request, the tag of every message.
    pub id: Bytes,
    pub scope: ViewKey,
    /// Subject for the rules.
    pub subject: Arc<Subject>,
    /// Lists of interest.
    pub kinds: Vec<Kind>,
    /// Resources of interest.
    pub wanted: Subscriptions,
    /// Rules judged some of these interests.
    pub is_decided: bool,
    /// Messages from before the acknowledgement, which must come first.
    pub held: Mutex<Option<Vec<(Bytes, Weight)>>>,
}

impl Listener {
    /// Sends a notification with this listener's tag.
    pub fn send(&self, notification: &Notification, weight: Weight) {
        let params = tagged(&notification.params, &self.id);
        let message = envelope::notification(&notification.method, &params);
        match &mut *self.held.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(held) => {
                let bytes: usize = held.iter().map(|(message, _)| message.len()).sum();
                if held.len() < MOST_HELD && bytes + message.len() <= MOST_HELD_BYTES {
                    held.push((message, weight));
                }
            }
            None => self.lane.notify(message, weight),
        }
    }

    /// Sends the acknowledgement with the honoured filter (raw), and then the held messages.
    pub fn acknowledge(&self, honoured: &str) {
        let params = tagged(format!("{{\"notifications\":{honoured}}}").as_bytes(), &self.id);
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        self.lane.push(envelope::notification("notifications/subscriptions/acknowledged", &params), Weight::Kept);
        for (message, weight) in held.take().unwrap_or_default() {
            self.lane.notify(message, weight);
        }
    }

    /// Ends the stream, by an answer to the listen request (2026-07-28, "Subscriptions").
    pub fn end_stream(&self) {
        let result = Bytes::from(tagged(b"{\"resultType\":\"complete\"}", &self.id));
        self.lane.push(envelope::response(&self.id, &Answer::Result(result.into())), Weight::Kept);
        self.lane.end_lane();
    }
}

impl Hub {
    /// Adds a session.
    pub fn open(&self, session: Arc<Session>, place: Option<TakenShare>) {
        let mut sessions = self.sessions.write().unwrap_or_else(PoisonError::into_inner);
        sessions.insert(Arc::clone(&session.id), Open { session, _place: place });
    }

    /// Finds a session by id.
    pub fn session(&self, id: &str) -> Option<Arc<Session>> {
        self.sessions.read().unwrap_or_else(PoisonError::into_inner).get(id).map(|open| Arc::clone(&open.session))
    }

    /// Removes a session.
    pub fn close(&self, id: &str) -> Option<Arc<Session>> {
        self.sessions.write().unwrap_or_else(PoisonError::into_inner).remove(id).map(|open| open.session)
    }

    /// Number of sessions.
    pub fn sessions(&self) -> usize {
        self.sessions.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The most talkative log level any session wants.
    pub fn lowest_level(&self) -> Option<LogLevel> {
        self.every_session().iter().map(|s| s.log_level()).min()
    }

    /// Removes sessions unused for `idle`.
    pub fn sweep(&self, now: Instant, idle: Duration) -> Vec<Arc<Session>> {
        let mut sessions = self.sessions.write().unwrap_or_else(PoisonError::into_inner);
        let old: Vec<_> = sessions.values().map(|open| &open.session).filter(|session| session.is_idle(now, idle)).cloned().collect();
        for session in &old {
            sessions.remove(&session.id);
        }
        old
    }

    /// Ends the streams and removes the sessions of subjects for whom `is_over` holds.
    pub fn let_go(&self, is_over: impl Fn(&Subject) -> bool) -> Vec<Arc<Session>> {
        self.all_listeners().iter().filter(|listener| is_over(&listener.subject)).for_each(|listener| listener.end_stream());
        let is_over = |session: &Arc<Session>| is_over(&session.opening.entered.subject(&session.opening.info));
        let over: Vec<Arc<Session>> = self.every_session().into_iter().filter(is_over).collect();
        over.iter().for_each(|session| drop(self.close(&session.id)));
        over
    }

    /// Ends the streams judged by rules.
    pub fn end_decided(&self) {
        self.all_listeners().iter().filter(|listener| listener.is_decided).for_each(|listener| listener.end_stream());
    }

    /// Updates every session's view to a changed configuration.
    pub fn follow(&self, config: &Config) {
        self.every_session().iter().for_each(|session| session.follow(config));
    }

    /// Adds a listener, until its last holder drops it.
    pub fn listen(&self, listener: &Arc<Listener>) {
        let mut listeners = self.listeners.write().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|l| l.strong_count() > 0);
        listeners.push(Arc::downgrade(listener));
    }

    /// Notifies of changed lists of `mount`; `None`: of all.
    pub fn lists_changed(&self, mount: Option<&Segment>, kinds: &[Kind]) {
        let kinds = BTreeSet::from_iter(kinds.iter().copied());
        self.changed(|scope| match mount {
            Some(mount) if !covers(scope.mount.as_ref(), mount) => BTreeSet::new(),
            Some(_) | None => kinds.clone(),
        });
    }

    /// Notifies of changes of several mounts: some of their lists, or only the annotations of their tools. Each receiver is notified once,
    /// and of changed lists alone. Gates also learn that the gates below changed.
    pub fn mounts_changed(&self, lists: &ChangedLists, annotations: &BTreeSet<Segment>, is_subtree_changed: bool) {
        let all: BTreeSet<Kind> = lists.values().flatten().copied().collect();
        self.changed(|scope| {
            let (mut kinds, is_annotation) = match &scope.mount {
                Some(mount) => (lists.get(mount).cloned().unwrap_or_default(), annotations.contains(mount)),
                None => (all.clone(), !annotations.is_empty()),
            };
            if (is_annotation && scope.annotated) || (is_subtree_changed && scope.is_for_gate()) {
                kinds.insert(Kind::Tools);
            }
            kinds
        });
    }

    /// Passes on a notification of a registered server to every session, and to gates above of any era.
    pub fn relayed(&self, mount: &Segment, notification: &Notification) {
        for session in self.every_session() {
            if covers(session.opening.mount.as_ref(), mount) {
                self.to_session(&session, notification);
            }
        }
        self.to_gates_listening(mount, notification);
    }

    /// Passes on a notification understood only by readers of MCP-AX.
    pub fn noticed(&self, mount: &Segment, notification: &Notification) {
        for session in self.every_session() {
            let scope = session.scope();
            if scope.speaks_mesh && covers(scope.mount.as_ref(), mount) {
                session.notify(notification.whole.clone(), Weight::Kept);
            }
        }
        self.to_gates_listening(mount, notification);
    }

    /// Sends listening gates a notification for which the stateless era has no filter; all gates want it.
    fn to_gates_listening(&self, mount: &Segment, notification: &Notification) {
        for listener in self.all_listeners() {
            if listener.scope.is_for_gate() && covers(listener.scope.mount.as_ref(), mount) {
                listener.send(notification, Weight::Droppable);
            }
        }
    }

    /// Notifies of the lists that `changed` gives for a scope.
    fn changed(&self, changed: impl Fn(&ViewKey) -> BTreeSet<Kind>) {
        for session in self.every_session() {
            let methods: BTreeSet<&str> = changed(&session.scope()).iter().map(|kind| kind.list_changed()).collect();
            methods.iter().for_each(|method| session.notify(bare(method), Weight::Kept));
        }
        for listener in self.all_listeners() {
            let kinds = changed(&listener.scope);
            let wanted: BTreeSet<&str> = kinds.iter().filter(|k| listener.kinds.contains(k)).map(|k| k.list_changed()).collect();
            for method in wanted {
                let params = Bytes::from_static(b"{}");
                listener.send(&Notification { method: method.to_owned(), params: params.clone().into(), whole: params }, Weight::Kept);
            }
        }
    }

    /// Notifies of a changed resource of `mount`.
    pub fn updated(&self, mount: &Segment, uri: &str, notification: &Notification) {
        for session in self.every_session() {
            if let Some(shown) = session.subscriptions(|all| all.shown_name(mount, uri)) {
                session.notify(called(notification, uri, &shown).whole, Weight::Kept);
            }
        }
        for listener in self.all_listeners() {
            if let Some(shown) = listener.wanted.shown_name(mount, uri) {
                listener.send(&called(&untagged(notification), uri, &shown), Weight::Kept);
            }
        }
    }

    /// Passes on a notification to a principal.
    pub fn to_principal(&self, mount: &Segment, principal: &Principal, notification: &Notification) {
        for session in self.every_session() {
            if covers(session.opening.mount.as_ref(), mount) && session.opening.entered.principal == *principal {
                self.to_session(&session, notification);
            }
        }
    }

    /// Passes on a notification to a session.
    pub fn to_session(&self, session: &Session, notification: &Notification) {
        if notification.method == "notifications/message" {
            if asks::level_of(notification).is_none_or(|l| l >= session.log_level()) {
                session.notify(notification.whole.clone(), Weight::Droppable);
            }
            return;
        }
        session.notify(notification.whole.clone(), Weight::Kept);
    }

    /// Passes on a notification of a shared server without an addressee to sessions of a single principal, and to nobody where several are
    /// connected. Gates above hear by [`Self::rise`].
    pub fn broadcast(&self, mount: &Segment, notification: &Notification, near: &[Arc<Back>]) {
        let sessions: Vec<_> = self.every_session().into_iter().filter(|s| covers(s.opening.mount.as_ref(), mount)).collect();
        let mut principals = sessions.iter().map(|s| &s.opening.entered.principal).chain(near.iter().map(|b| &b.caller.principal));
        let first = principals.next();
        if principals.any(|p| Some(p) != first) {
            return;
        }
        for session in &sessions {
            match near.iter().find(|b| b.caller.session.as_ref().is_some_and(|s| Arc::ptr_eq(s, session))) {
                Some(back) => asks::pass_on(back, notification),
                None => self.to_session(session, notification),
            }
        }
        for back in near.iter().filter(|b| b.caller.session.is_none()) {
            asks::pass_on(back, notification);
        }
    }

    /// Sends listening gates a notification of a shared server without an addressee, where gates and sessions have only this principal.
    pub fn rise(&self, mount: &Segment, principal: &Principal, notification: &Notification) {
        if let Some((_, gates)) = self.gates_of_single_principal(mount).filter(|(only, _)| only == principal) {
            gates.iter().for_each(|gate| gate.send(notification, Weight::Droppable));
        }
    }

    /// Gives the principal of listening gates, unless gates and sessions have several. News of a moment wait for nobody else's moment.
    pub fn only_principal_above(&self, mount: &Segment) -> Option<Principal> {
        self.gates_of_single_principal(mount).map(|(principal, _)| principal)
    }

    /// Lists the listening gates, with the principal; `None`: none listens, or gates and sessions have several principals.
    fn gates_of_single_principal(&self, mount: &Segment) -> Option<(Principal, Vec<Arc<Listener>>)> {
        let sessions: Vec<_> = self.every_session().into_iter().filter(|s| covers(s.opening.mount.as_ref(), mount)).collect();
        let is_above = |listener: &Arc<Listener>| listener.scope.is_for_gate() && covers(listener.scope.mount.as_ref(), mount);
        let gates: Vec<_> = self.all_listeners().into_iter().filter(is_above).collect();
        let first = gates.first().map(|gate| Principal::new(gate.subject.kind, gate.subject.name.as_str()))?;
        let is_only = sessions.iter().all(|session| session.opening.entered.principal == first)
            && gates.iter().all(|gate| (gate.subject.kind, gate.subject.name.as_str()) == (first.kind, &*first.name));
        is_only.then_some((first, gates))
    }

    /// Ends every session and every listener's stream.
    pub fn end_all(&self) {
        let sessions: Vec<_> =
            self.sessions.write().unwrap_or_else(PoisonError::into_inner).drain().map(|(_, open)| open.session).collect();
        sessions.iter().for_each(|s| s.end_session());
        for listener in self.all_listeners() {
            listener.end_stream();
        }
    }

    /// Sessions open now.
    pub fn every_session(&self) -> Vec<Arc<Session>> {
        self.sessions.read().unwrap_or_else(PoisonError::into_inner).values().map(|open| Arc::clone(&open.session)).collect()
    }

    fn all_listeners(&self) -> Vec<Arc<Listener>> {
        self.listeners.read().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade).collect()
    }
}

fn covers(scope: Option<&Segment>, mount: &Segment) -> bool {
    scope.is_none_or(|m| m == mount)
}

fn bare(method: &str) -> Bytes {
    Bytes::from(format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\"}}"))
}

/// The params with the tag of a listener in `_meta`.
fn tagged(params: &[u8], id: &[u8]) -> Vec<u8> {
    let meta = json::Members::again(params).get("_meta").unwrap_or(b"{}").to_vec();
    let meta = splice::edit(&meta, &[(key::SUBSCRIPTION_ID, Change::Set(id))]);
    splice::edit(params, &[("_meta", Change::Set(&meta))])
}

/// Replaces the URI by the receiver's name for the resource. An equal name leaves every byte.
fn called(updated: &Notification, uri: &str, shown: &str) -> Notification {
    if uri == shown {
        return updated.clone();
    }
    let params = splice::edit(&updated.params, &[("uri", Change::Set(json::quote(shown).as_bytes()))]);
    let whole = Bytes::from(splice::edit(&updated.whole, &[("params", Change::Set(&params))]));
    Notification { params: Bytes::from(params).into(), whole, ..updated.clone() }
}

/// Removes the tag of the subscription on the other side.
fn untagged(notification: &Notification) -> Notification {
    let Some(meta) = notification.params.members().get("_meta").map(<[u8]>::to_vec) else {
        return notification.clone();
    };
    let meta = splice::edit(&meta, &[(key::SUBSCRIPTION_ID, Change::Remove)]);
    let params = Bytes::from(splice::edit(&notification.params, &[("_meta", Change::Set(&meta))]));
    Notification { params: params.into(), ..notification.clone() }
}
