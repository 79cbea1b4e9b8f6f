//! Who wants to hear what happens outside of calls, and telling them: sessions of the initialize era, listeners of the other.
//! What a notification says is not changed beyond its tag.

use std::collections::{BTreeSet, HashMap};
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
use crate::tree::mount::Left;
use crate::words::lane::{Lane, Weight};
use crate::words::session::Session;
use crate::words::shares::Taken;
use crate::words::subscriptions::Subscriptions;
use crate::words::view_key::ViewKey;

/// Most messages, and most of their bytes, that wait until a listener is acknowledged; later ones are lost.
const MOST_HELD: usize = 1000;
const MOST_HELD_BYTES: usize = 1 << 20;

/// The registry.
#[derive(Debug, Default)]
pub struct Hub {
    sessions: RwLock<HashMap<Arc<str>, Open, RandomState>>,
    listeners: RwLock<Vec<Weak<Listener>>>,
    /// Subscriptions to resources of mounts that are out of the tree.
    pub left: Left,
}

/// A session, and its place among all; the client on standard input needs none.
#[derive(Debug)]
struct Open {
    session: Arc<Session>,
    _place: Option<Taken>,
}

/// A `subscriptions/listen` request that stands open.
#[derive(Debug)]
pub struct Listener {
    pub lane: Arc<Lane>,
    /// Its raw JSON-RPC id, with which every message is tagged.
    pub id: Bytes,
    pub scope: ViewKey,
    /// Who it is to rules.
    pub subject: Arc<Subject>,
    /// Which lists it wants to hear about.
    pub kinds: Vec<Kind>,
    /// Which resources it wants to hear about.
    pub wanted: Subscriptions,
    /// Rules were asked about something that it wants to hear about.
    pub is_decided: bool,
    /// What came before the listener was acknowledged, which must be the first it hears.
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

    /// Says what is honoured, a raw filter, and then what came meanwhile.
    pub fn acknowledge(&self, honoured: &str) {
        let params = tagged(format!("{{\"notifications\":{honoured}}}").as_bytes(), &self.id);
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        self.lane.push(envelope::notification("notifications/subscriptions/acknowledged", &params), Weight::Kept);
        for (message, weight) in held.take().unwrap_or_default() {
            self.lane.notify(message, weight);
        }
    }

    /// Ends its stream. That is told by an answer to the listen request (2026-07-28, "Subscriptions").
    pub fn end(&self) {
        let result = Bytes::from(tagged(b"{\"resultType\":\"complete\"}", &self.id));
        self.lane.push(envelope::response(&self.id, &Answer::Result(result.into())), Weight::Kept);
        self.lane.end();
    }
}

impl Hub {
    /// Adds a session.
    pub fn open(&self, session: Arc<Session>, place: Option<Taken>) {
        let mut sessions = self.sessions.write().unwrap_or_else(PoisonError::into_inner);
        sessions.insert(Arc::clone(&session.id), Open { session, _place: place });
    }

    /// The session of that id.
    pub fn session(&self, id: &str) -> Option<Arc<Session>> {
        self.sessions.read().unwrap_or_else(PoisonError::into_inner).get(id).map(|open| Arc::clone(&open.session))
    }

    /// Takes a session away.
    pub fn close(&self, id: &str) -> Option<Arc<Session>> {
        self.sessions.write().unwrap_or_else(PoisonError::into_inner).remove(id).map(|open| open.session)
    }

    /// How many sessions there are.
    pub fn sessions(&self) -> usize {
        self.sessions.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The most talkative log level any session wants.
    pub fn lowest_level(&self) -> Option<LogLevel> {
        self.every_session().iter().map(|s| s.log_level()).min()
    }

    /// Takes away the sessions that nobody has used for `idle`.
    pub fn sweep(&self, now: Instant, idle: Duration) -> Vec<Arc<Session>> {
        let mut sessions = self.sessions.write().unwrap_or_else(PoisonError::into_inner);
        let old: Vec<_> = sessions.values().map(|open| &open.session).filter(|session| session.is_idle(now, idle)).cloned().collect();
        for session in &old {
            sessions.remove(&session.id);
        }
        old
    }

    /// Ends the streams of those whom `is_over` means, and takes away their sessions.
    pub fn let_go(&self, is_over: impl Fn(&Subject) -> bool) -> Vec<Arc<Session>> {
        self.all_listeners().iter().filter(|listener| is_over(&listener.subject)).for_each(|listener| listener.end());
        let is_over = |session: &Arc<Session>| is_over(&session.opening.entered.subject(&session.opening.info));
        let over: Vec<Arc<Session>> = self.every_session().into_iter().filter(is_over).collect();
        over.iter().for_each(|session| drop(self.close(&session.id)));
        over
    }

    /// Ends the streams for which rules were asked.
    pub fn end_decided(&self) {
        self.all_listeners().iter().filter(|listener| listener.is_decided).for_each(|listener| listener.end());
    }

    /// Shows every session what a changed configuration gives it.
    pub fn follow(&self, config: &Config) {
        self.every_session().iter().for_each(|session| session.follow(config));
    }

    /// Adds a listener, for as long as somebody holds it.
    pub fn listen(&self, listener: &Arc<Listener>) {
        let mut listeners = self.listeners.write().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|l| l.strong_count() > 0);
        listeners.push(Arc::downgrade(listener));
    }

    /// Lists of `mount` changed; `None`: what is shown changed as a whole.
    pub fn lists_changed(&self, mount: Option<&Segment>, kinds: &[Kind]) {
        self.changed(kinds, |scope| mount.is_none_or(|m| covers(scope.mount.as_ref(), m)));
    }

    /// What MCP-AX says of the tools of `mount` changed, which most are not shown.
    pub fn annotations_changed(&self, mount: &Segment) {
        self.changed(&[Kind::Tools], |scope| scope.annotated && covers(scope.mount.as_ref(), mount));
    }

    /// What registered servers list changed: the lists of some mounts, and of others only what MCP-AX says of their tools. Everybody is
    /// told once. Gates hear with it that the gates below changed.
    pub fn registered_changed(&self, lists: &BTreeSet<Segment>, annotations: &BTreeSet<Segment>, is_subtree_changed: bool) {
        let within = |scope: &ViewKey, mounts: &BTreeSet<Segment>| match &scope.mount {
            Some(mount) => mounts.contains(mount),
            None => !mounts.is_empty(),
        };
        if !lists.is_empty() {
            self.changed(&Kind::ALL, |scope| within(scope, lists));
        }
        let reads = |scope: &ViewKey| scope.annotated && within(scope, annotations);
        let knows = |scope: &ViewKey| is_subtree_changed && scope.is_for_gate();
        if !annotations.is_empty() || is_subtree_changed {
            self.changed(&[Kind::Tools], |scope| !within(scope, lists) && (reads(scope) || knows(scope)));
        }
    }

    /// A registered server notified something that is for everybody: each session hears it, and gates above whatever their era.
    pub fn relayed(&self, mount: &Segment, notification: &Notification) {
        for session in self.every_session() {
            if covers(session.opening.mount.as_ref(), mount) {
                self.to_session(&session, notification);
            }
        }
        self.to_gates_listening(mount, notification);
    }

    /// Something that only those understand who read MCP-AX.
    pub fn noticed(&self, mount: &Segment, notification: &Notification) {
        for session in self.every_session() {
            let scope = session.scope();
            if scope.annotated && covers(scope.mount.as_ref(), mount) {
                session.notify(notification.whole.clone(), Weight::Kept);
            }
        }
        self.to_gates_listening(mount, notification);
    }

    /// What the stateless era has no filter for is sent to gates alone, which all want it.
    fn to_gates_listening(&self, mount: &Segment, notification: &Notification) {
        for listener in self.all_listeners() {
            if listener.scope.is_for_gate() && covers(listener.scope.mount.as_ref(), mount) {
                listener.send(notification, Weight::Droppable);
            }
        }
    }

    /// Lists changed for those whose scope it `concerns`.
    fn changed(&self, kinds: &[Kind], concerns: impl Fn(&ViewKey) -> bool) {
        let mut methods: Vec<&str> = kinds.iter().map(|k| k.list_changed()).collect();
        methods.sort_unstable();
        methods.dedup();
        for session in self.every_session() {
            if concerns(&session.scope()) {
                methods.iter().for_each(|m| session.notify(bare(m), Weight::Kept));
            }
        }
        for listener in self.all_listeners() {
            if !concerns(&listener.scope) {
                continue;
            }
            let mut wanted: Vec<&str> = kinds.iter().filter(|k| listener.kinds.contains(k)).map(|k| k.list_changed()).collect();
            wanted.sort_unstable();
            wanted.dedup();
            for method in wanted {
                let params = Bytes::from_static(b"{}");
                listener.send(&Notification { method: method.to_owned(), params: params.clone().into(), whole: params }, Weight::Kept);
            }
        }
    }

    /// A resource of `mount` changed.
    pub fn updated(&self, mount: &Segment, uri: &str, notification: &Notification) {
        for session in self.every_session() {
            if let Some(shown) = session.subscriptions(|all| all.told(mount, uri)) {
                session.notify(called(notification, uri, &shown).whole, Weight::Kept);
            }
        }
        for listener in self.all_listeners() {
            if let Some(shown) = listener.wanted.told(mount, uri) {
                listener.send(&called(&untagged(notification), uri, &shown), Weight::Kept);
            }
        }
    }

    /// Something that concerns one principal.
    pub fn to_principal(&self, mount: &Segment, principal: &Principal, notification: &Notification) {
        for session in self.every_session() {
            if covers(session.opening.mount.as_ref(), mount) && session.opening.entered.principal == *principal {
                self.to_session(&session, notification);
            }
        }
    }

    /// Something that concerns one session.
    pub fn to_session(&self, session: &Session, notification: &Notification) {
        if notification.method == "notifications/message" {
            if asks::level_of(notification).is_none_or(|l| l >= session.log_level()) {
                session.notify(notification.whole.clone(), Weight::Droppable);
            }
            return;
        }
        session.notify(notification.whole.clone(), Weight::Kept);
    }

    /// Something a shared server said to nobody in particular. Where it may concern one of several principals, none is told.
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

    /// Ends every session and every listener's stream.
    pub fn end(&self) {
        let sessions: Vec<_> =
            self.sessions.write().unwrap_or_else(PoisonError::into_inner).drain().map(|(_, open)| open.session).collect();
        sessions.iter().for_each(|s| s.end());
        for listener in self.all_listeners() {
            listener.end();
        }
    }

    /// The sessions that are open now.
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

/// With the name by which whoever is told knows the resource. Where that is its server's, every byte stays.
fn called(updated: &Notification, uri: &str, shown: &str) -> Notification {
    if uri == shown {
        return updated.clone();
    }
    let params = splice::edit(&updated.params, &[("uri", Change::Set(json::quote(shown).as_bytes()))]);
    let whole = Bytes::from(splice::edit(&updated.whole, &[("params", Change::Set(&params))]));
    Notification { params: Bytes::from(params).into(), whole, ..updated.clone() }
}

/// Without the tag of the subscription on the other side.
fn untagged(notification: &Notification) -> Notification {
    let Some(meta) = notification.params.members().get("_meta").map(<[u8]>::to_vec) else {
        return notification.clone();
    };
    let meta = splice::edit(&meta, &[(key::SUBSCRIPTION_ID, Change::Remove)]);
    let params = Bytes::from(splice::edit(&notification.params, &[("_meta", Change::Set(&meta))]));
    Notification { params: params.into(), ..notification.clone() }
}
