//! A mount at run time: its state for people to see, the connections it has, and what its server says outside of calls.
//!
//! Starting and restarting is in `supervise.rs`. Calls are not decided on here.

mod following;
mod lease;
mod left;
mod recent;
mod state;
mod subscribed;

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use config::resolved::{self, Transport};
use mcp_proto::catalog::Kind;
use mcp_proto::client::Negotiated;
use mcp_proto::envelope::Notification;
use telemetry::metrics::{MountMetrics, MountState};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::http::{Doubts, HttpWire};
use super::listening::{Freshness, Honoured};
use super::oauth::OAuthClient;
use super::role::Role;
use super::stderr::Stderr;
use super::{Instance, Owner, asks};
use crate::call::back::Back;
use crate::call::error::CallError;
use crate::catalog::Catalog;
use crate::gate::Gate;
use crate::registry::Registration;
use crate::shares::Places;
use crate::upstream::Upstreams;

pub(crate) use lease::Lease;
pub(crate) use left::Left;
use recent::Recent;
pub use state::{Phase, State};
use subscribed::Subscribed;
pub(crate) use subscribed::{AGREES_WITHIN, Edition};

/// A mount.
pub(crate) struct Mount {
    pub(crate) config: Arc<resolved::Mount>,
    pub(crate) gate: Arc<Gate>,
    pub(super) upstreams: Arc<Upstreams>,
    pub(crate) stderr: Arc<Stderr>,
    pub(crate) oauth: Option<Arc<OAuthClient>>,
    /// Where its server registered itself; `None`: the configuration put it here.
    pub(crate) registration: Option<Registration>,
    pub(crate) shared: ArcSwapOption<Instance>,
    /// What the server said about itself, at its last connection.
    pub(crate) known: ArcSwapOption<Negotiated>,
    /// The part that the server plays since its last connection.
    pub(crate) role: ArcSwap<Role>,
    pub(crate) catalog: ArcSwap<Catalog>,
    /// Counts how often what is known of its tools has changed, besides what it lists.
    pub(crate) edition: AtomicU64,
    pub(crate) state: ArcSwap<State>,
    /// Number of answers that had the id of another request.
    pub(crate) misanswers: AtomicU64,
    /// Fires when the mount is taken out of the tree.
    pub(crate) gone: CancellationToken,
    pub(crate) metrics: Arc<MountMetrics>,
    /// Wakes the supervisor: something is to be fetched or tried.
    pub(crate) wake: Notify,
    /// What the server agreed to last where it did not say on which stream; changes whenever it has agreed, or never will.
    pub(crate) agreed: watch::Sender<Option<Honoured>>,
    pub(crate) freshness: Freshness,
    pub(crate) doubts: Doubts,
    /// Wakes the supervisor out of its wait for the next try.
    pub(crate) again: Notify,
    pub(crate) places: Arc<Places>,
    pub(crate) restarts: AtomicU64,
    pub(crate) recent: Recent,
    pub(crate) subscribed: Subscribed,
    pub(crate) in_flight: AtomicUsize,
    /// The server was seen to ask during a call.
    asks: AtomicBool,
    /// The server was seen to ask for roots outside of calls.
    asks_roots: AtomicBool,
    /// How many calls on the shared connection are of callers that can be asked.
    asking: AtomicUsize,
    inner: Mutex<Changing>,
}

#[derive(Default)]
struct Changing {
    dirty: BTreeSet<Kind>,
    /// Why the shared connection is to be replaced, if it is.
    reconnect: Option<&'static str>,
    /// Connections of single sessions, by session id.
    own: HashMap<Arc<str>, Arc<Instance>>,
    /// Connections of single clients of the stateless era.
    clients: lease::Clients,
    /// Connections that no call uses at present.
    leases: Vec<Arc<Instance>>,
}

impl std::fmt::Debug for Mount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mount({})", self.config.name)
    }
}

impl Mount {
    pub(crate) fn new(config: Arc<resolved::Mount>, upstreams: Arc<Upstreams>, oauth: Option<Arc<OAuthClient>>) -> Arc<Self> {
        Self::made(config, upstreams, oauth, None)
    }

    /// A mount of a server that registered itself.
    pub(crate) fn registered(config: Arc<resolved::Mount>, upstreams: Arc<Upstreams>, registration: Registration) -> Arc<Self> {
        Self::made(config, upstreams, None, Some(registration))
    }

    /// How it is reached, in a word for people: `stdio`, `http`, `sse`, `rooms`, or `link` where a child has dialled and is called over that.
    pub(crate) fn transport(&self) -> &'static str {
        let is_linked = self.registration.as_ref().is_some_and(|registration| registration.pool.is_some());
        match &self.config.transport {
            Transport::Http(_) if is_linked => "link",
            Transport::Http(_) => "http",
            Transport::Rooms => "rooms",
            Transport::Sse(_) => "sse",
            Transport::Stdio(_) => "stdio",
        }
    }

    fn made(
        config: Arc<resolved::Mount>,
        upstreams: Arc<Upstreams>,
        oauth: Option<Arc<OAuthClient>>,
        registration: Option<Registration>,
    ) -> Arc<Self> {
        let metrics = upstreams.gate.record.metrics.mount(config.name.as_str());
        Arc::new(Self {
            config,
            gate: Arc::clone(&upstreams.gate),
            upstreams,
            stderr: Arc::new(Stderr::new()),
            oauth,
            registration,
            shared: ArcSwapOption::empty(),
            known: ArcSwapOption::empty(),
            role: ArcSwap::default(),
            catalog: ArcSwap::default(),
            edition: AtomicU64::new(0),
            state: ArcSwap::from_pointee(State::new(Phase::Starting, None, None)),
            gone: CancellationToken::new(),
            metrics,
            wake: Notify::new(),
            agreed: watch::Sender::default(),
            freshness: Freshness::default(),
            doubts: Doubts::default(),
            again: Notify::new(),
            places: Arc::default(),
            restarts: AtomicU64::new(0),
            recent: Recent::new(),
            subscribed: Subscribed::default(),
            in_flight: AtomicUsize::new(0),
            misanswers: AtomicU64::new(0),
            asks: AtomicBool::new(false),
            asks_roots: AtomicBool::new(false),
            asking: AtomicUsize::new(0),
            inner: Mutex::default(),
        })
    }

    /// The server has forgotten a connection's session: it is not used again.
    pub(crate) fn forget(&self, instance: &Arc<Instance>) {
        let mut inner = self.lock();
        inner.own.retain(|_, i| !Arc::ptr_eq(i, instance));
        inner.leases.retain(|i| !Arc::ptr_eq(i, instance));
        inner.clients.forget(instance);
        if self.shared.load().as_ref().is_some_and(|s| Arc::ptr_eq(s, instance)) {
            inner.reconnect = Some("its session was lost");
            self.wake.notify_one();
        }
    }

    /// Over this wire, the server does not speak the era any more that it spoke: it is connected to anew, as what it is.
    pub(crate) fn speaks_otherwise(&self, wire: &Arc<HttpWire>) {
        let is_it = |shared: &Instance| matches!(&shared.wire, super::Wire::Http(own) if Arc::ptr_eq(own, wire));
        if self.shared.load().as_deref().is_some_and(is_it) {
            self.lock().reconnect = Some("it does not speak the era any more that it spoke");
            self.wake.notify_one();
        }
    }

    /// Why the shared connection is to be replaced, if it is; asked once.
    pub(crate) fn take_reconnect(&self) -> Option<&'static str> {
        self.lock().reconnect.take()
    }

    /// Somebody wants the server started again: at once, and without the waits that failures earn.
    pub(crate) fn restart(&self) {
        if self.shared.load().is_some() {
            self.lock().reconnect = Some("somebody asked for a restart");
            self.wake.notify_one();
        }
        self.again.notify_one();
    }

    /// How the process ended, if it is one.
    pub(crate) fn last_words(&self) -> String {
        match self.shared.load().as_deref() {
            Some(Instance { wire: super::Wire::Pipe(pipe), .. }) => pipe.why(),
            _ => "the connection was closed".into(),
        }
    }

    /// The server asked something outside the stream of any call; `idle`: no call was under way.
    pub(crate) fn saw_question(&self, method: &str, idle: bool) {
        if idle && method == "roots/list" {
            self.asks_roots.store(true, Ordering::Relaxed);
        } else if !self.asks.swap(true, Ordering::Relaxed) {
            tracing::info!(mount = %self.config.name, "the server asks its clients; those that can answer share a connection one at a time");
        }
    }

    /// Takes what the server said outside of calls.
    pub(crate) fn notified(&self, owner: &Owner, notification: &Notification, near: &[Arc<Back>]) {
        if let Some(listens) = near.iter().find(|b| b.stands()) {
            return asks::pass_on(listens, notification);
        }
        match notification.method.as_str() {
            method if method.ends_with("/list_changed") && !method.contains("roots") => self.list_changed(owner, notification),
            "notifications/resources/updated" => {
                if let Some(uri) = notification.params.members().str("uri") {
                    self.gate.hub.updated(&self.config.name, &uri, notification);
                }
            }
            "notifications/subscriptions/acknowledged" => self.agree(Some(Honoured::read(notification))),
            "notifications/progress" => {}
            "notifications/tasks/status" if self.told_to_its_principal(owner, notification) => {}
            method if self.relayed(owner, near, notification) => tracing::trace!(mount = %self.config.name, method, "relayed"),
            method => match (owner, near) {
                (_, [only]) => asks::pass_on(only, notification),
                (Owner::Session(session), _) => {
                    if let Some(session) = session.upgrade() {
                        self.gate.hub.to_session(&session, notification);
                    }
                }
                (Owner::Shared, _) => {
                    tracing::trace!(mount = %self.config.name, method, "broadcast");
                    self.gate.hub.broadcast(&self.config.name, notification, near);
                }
            },
        }
    }

    /// What a registered server says is for everybody goes to everybody, in its order and at a bounded rate. `false`: it does not say so.
    fn relayed(&self, owner: &Owner, near: &[Arc<Back>], notification: &Notification) -> bool {
        let registration = self.registration.as_ref().filter(|registration| registration.notifies);
        let Some(registration) = registration.filter(|_| near.is_empty() && matches!(owner, Owner::Shared)) else { return false };
        if let Some(mesh) = self.gate.mesh() {
            mesh.relay(registration.session, notification.whole.clone());
        }
        true
    }

    /// How a task stands concerns whoever began it, and not whoever happens to call just now. `false`: nobody is known to have.
    fn told_to_its_principal(&self, owner: &Owner, notification: &Notification) -> bool {
        let id = notification.params.members().str("taskId").map(|id| id.into_owned()).unwrap_or_default();
        let principal = match owner {
            Owner::Session(_) => None,
            Owner::Shared => self.gate.load.tasks.began(&self.config.name, &id),
        };
        if let Some(principal) = &principal {
            self.gate.hub.to_principal(&self.config.name, principal, notification);
        }
        principal.is_some()
    }

    /// The lists are those of the shared connection; a session with its own is told all the same.
    fn list_changed(&self, owner: &Owner, notification: &Notification) {
        if let Owner::Session(session) = owner
            && let Some(session) = session.upgrade()
        {
            self.gate.hub.to_session(&session, notification);
        }
        let of = |k: &Kind| k.list_changed() == notification.method;
        self.dirty(&Kind::ALL.into_iter().filter(of).collect::<Vec<_>>());
    }

    /// What is known of its tools has changed, and not what it lists.
    pub(crate) fn note_anew(&self) {
        self.edition.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that lists must be fetched anew.
    pub(crate) fn dirty(&self, kinds: &[Kind]) {
        self.lock().dirty.extend(kinds);
        self.wake.notify_one();
    }

    /// The server tells of changes from now on, or never will.
    pub(crate) fn agree(&self, honoured: Option<Honoured>) {
        self.agreed.send_replace(honoured);
    }

    /// The lists to fetch anew, taken away.
    pub(crate) fn take_dirty(&self) -> BTreeSet<Kind> {
        std::mem::take(&mut self.lock().dirty)
    }

    /// An answer was refused, for it has the id of another request.
    pub(crate) fn misanswered(&self) {
        self.misanswers.fetch_add(1, Ordering::Relaxed);
    }

    /// Something came that is no message.
    pub(crate) fn noise(&self, what: &str) {
        self.stderr.push(&format!("[stdout, not MCP] {what}"));
    }

    /// Sets the state people see, and tells whoever waits for it.
    pub(crate) fn enter(&self, state: State) {
        self.set_state(state);
        self.gate.mounts.changed.notify_waiters();
    }

    /// Sets the state people see.
    pub(crate) fn set_state(&self, state: State) {
        let (old, phase) = (self.state.load(), state.phase);
        let since = if old.phase == phase { old.since } else { state.since };
        self.state.store(Arc::new(State { since, ..state }));
        self.metrics.set_state(match phase {
            Phase::Degraded => MountState::Degraded,
            Phase::Failed => MountState::Failed,
            Phase::Ready => MountState::Ready,
            Phase::Starting => MountState::Starting,
        });
    }

    /// Trouble in a sentence for everybody: what the process wrote is not in it.
    pub(crate) fn trouble(&self) -> String {
        let state = self.state.load();
        match (&state.error, state.phase) {
            (Some(error), _) => error.clone(),
            (None, Phase::Starting) => "it is still starting".into(),
            (None, _) => "it is not connected".into(),
        }
    }

    /// Waits until it is neither starting nor without the connection it had, or `longest` has passed.
    pub(crate) async fn settle(&self, longest: Duration) {
        let settled = async {
            loop {
                let changed = self.gate.mounts.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                let reconnecting = self.lock().reconnect.is_some();
                if !reconnecting && (self.shared.load().is_some() || !matches!(self.state.load().phase, Phase::Starting | Phase::Degraded))
                {
                    return;
                }
                changed.await;
            }
        };
        drop(tokio::time::timeout(longest, settled).await);
    }

    /// Waits until no call is in flight, or `longest` has passed.
    pub(crate) async fn drain(&self, longest: Duration) {
        let until = tokio::time::Instant::now() + longest;
        while self.in_flight.load(Ordering::Relaxed) > 0 && tokio::time::Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// What the server said about itself, at its last connection.
    pub(crate) fn negotiated(&self) -> Option<Arc<Negotiated>> {
        self.known.load_full()
    }

    /// The error for a call that can't be made at present.
    pub(crate) fn unavailable(&self) -> CallError {
        let state = self.state.load();
        if let Some(registration) = &self.registration {
            return registration.degraded(state.since);
        }
        CallError::Unavailable {
            mount: self.config.name.to_string(),
            why: self.trouble(),
            since: state.since,
            next_try: state.next_try,
            report: None,
        }
    }

    /// Ends every connection.
    pub(crate) async fn close(&self) {
        self.gone.cancel();
        let instances: Vec<_> = {
            let mut inner = self.lock();
            let own: Vec<_> = inner.own.drain().map(|(_, i)| i).collect();
            let clients = std::mem::take(&mut inner.clients).into_instances();
            own.into_iter().chain(clients).chain(inner.leases.drain(..)).chain(self.shared.swap(None)).collect()
        };
        futures_util::future::join_all(instances.iter().map(|i| i.close())).await;
    }

    fn lock(&self) -> MutexGuard<'_, Changing> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
