//! The task that owns the machine of the aggregator and the relay: takes inputs, carries out what comes of them, waits until the next
//! timer. What comes out is carried out in `outputs`; it decides nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use config::resolved::Config;
use mcp_proto::envelope::Notification;
use mcp_proto::json::Members;
use mesh_proto::authority::Identity;
use mesh_proto::id::{LinkId, NodeId, RequestId, SessionKey};
use mesh_proto::message::{Method, Register, Request};
use mesh_proto::parent::{Incoming, Parent, Settings};
use mesh_proto::refusal::Refusal;
use mesh_proto::relay::{Relay, RelayLimits};
use store::Claims;
use tokio::sync::{mpsc, oneshot};

use crate::mesh::Mesh;
use crate::registry::admit::{admit, stays};
use crate::registry::holdings::Holdings;
use crate::registry::input::{Asked, Input, Way};
use crate::registry::links::Links;
use crate::registry::recorded::{Whose, record, unreadable};

/// How many inputs are taken before what came of them is carried out.
const BATCH: usize = 256;
/// How long the task sleeps when nothing is due.
const LONG: Duration = Duration::from_secs(3600);
/// How long a subserver may take to say with whom it is registered.
const ASK: Duration = Duration::from_secs(2);
/// How long after claims could not be opened or written it is tried again.
pub const AGAIN: Duration = Duration::from_secs(2);

/// The task.
pub struct Driver {
    pub mesh: Arc<Mesh>,
    pub parent: Parent,
    pub relay: Relay,
    pub links: Links,
    pub holdings: Holdings,
    /// Requests that are not answered yet.
    pub waiting: HashMap<RequestId, Waiting>,
    pub claims: Kept,
    requests: u64,
    config: Arc<Config>,
}

/// Where claims are kept.
pub enum Kept {
    /// On the disk.
    There(Arc<dyn Claims>),
    /// Nowhere: nobody registers, or they can't be. Tried again from then on.
    Nowhere(Instant),
}

/// A request that is not answered yet.
pub struct Waiting {
    pub principal: Arc<str>,
    /// What was asked for, of a registration.
    pub register: Option<Box<Register>>,
    pub reply: oneshot::Sender<Result<String, Refusal>>,
}

/// Runs until the gate ends.
pub async fn run(mesh: Arc<Mesh>, mut inputs: mpsc::Receiver<Input>) {
    let Some(mut driver) = Driver::begin(&mesh).await else { return };
    let stop = mesh.gate.stop.clone();
    loop {
        let wake = tokio::time::Instant::from_std(driver.wake());
        tokio::select! {
            input = inputs.recv() => {
                let Some(input) = input else { return };
                driver.follow().await;
                driver.take(input);
                for _ in 1..BATCH {
                    let Ok(input) = inputs.try_recv() else { break };
                    driver.take(input);
                }
            }
            () = tokio::time::sleep_until(wake) => {}
            () = stop.cancelled() => return,
        }
        driver.settle();
    }
}

impl Driver {
    /// `None`: this gate has no id that could be told to others.
    async fn begin(mesh: &Arc<Mesh>) -> Option<Self> {
        let config = mesh.gate.config.load_full();
        let Some(own) = NodeId::parse(&mesh.gate.node.id) else {
            tracing::error!("the id of this gate is no UUID: nobody can register");
            return None;
        };
        let mut seed = [0; 32];
        if let Err(error) = getrandom::fill(&mut seed) {
            tracing::error!(%error, "the system gives no random numbers: nobody can register");
            return None;
        }
        let mut parent = Parent::new(settings(own, &config), seed);
        parent.handle_mounts(config.mounts.keys().cloned().collect());
        mesh.registry.subtree.send_replace(parent.subtree());
        let mut driver = Self {
            mesh: Arc::clone(mesh),
            parent,
            relay: Relay::new(RelayLimits::default()),
            links: Links::default(),
            holdings: Holdings::new(Instant::now()),
            waiting: HashMap::new(),
            claims: Kept::Nowhere(Instant::now()),
            requests: 0,
            config,
        };
        driver.open().await;
        Some(driver)
    }

    /// Takes a changed configuration: segments of mounts can't be registered, and who may register is decided anew.
    async fn follow(&mut self) {
        let now = self.mesh.gate.config.load_full();
        if !Arc::ptr_eq(&now, &self.config) {
            self.parent.handle_mounts(now.mounts.keys().cloned().collect());
            let before = std::mem::replace(&mut self.config, now);
            if before.registry != self.config.registry {
                self.parent.handle_settings(Instant::now(), settings(self.mesh.gate.node.node_id(), &self.config));
                self.put_out();
            }
        }
        self.open().await;
    }

    /// Puts out those who could not register any more.
    fn put_out(&mut self) {
        let registry = self.config.registry.as_ref();
        let over: Vec<SessionKey> = self.parent.sessions().filter(|session| !stays(registry, session)).map(|session| session.key).collect();
        over.into_iter().for_each(|session| self.parent.put_out(session));
    }

    /// Opens the claims where that is wanted and due. Until they are there nobody registers, so that nobody is told that a segment is
    /// his own who would not find it so after a restart, or while it belongs to somebody else.
    async fn open(&mut self) {
        let Kept::Nowhere(due) = self.claims else { return };
        if self.config.registry.is_none() || due > Instant::now() {
            return;
        }
        match self.mesh.gate.stores.claims(&self.mesh.gate.node.id).await {
            Ok((keeper, kept)) => {
                self.parent.restore(kept);
                self.claims = Kept::There(keeper);
            }
            Err(error) => {
                let dir = self.mesh.state_dir.display();
                tracing::error!(%error, %dir, "who owns which segment can't be kept: nobody registers until the state directory can be written");
                self.claims = Kept::Nowhere(Instant::now() + AGAIN);
            }
        }
    }

    fn take(&mut self, input: Input) {
        let now = Instant::now();
        match input {
            Input::Above(above) => self.parent.handle_above(above),
            Input::Answered(call, replied) => self.parent.handle_answer(now, call, replied.as_reply()),
            // It was followed when it came.
            Input::ConfigChanged => {}
            Input::Cycle(ids, done) => {
                self.parent.handle_cycle(&ids);
                self.settle();
                // Whoever asked may have gone meanwhile.
                _ = done.send(());
            }
            Input::Fetched(session, None) => {
                self.holdings.failed(session);
                self.parent.handle_tools_failed(now, session);
            }
            Input::Fetched(session, Some(mut fetched)) => {
                let offers = std::mem::take(&mut fetched.offers);
                self.holdings.fetched(session, *fetched);
                self.parent.handle_tools(now, session, offers);
            }
            Input::LinkLost(link) => {
                self.links.lost(link);
                self.parent.handle_link_lost(now, link);
            }
            Input::LinkOpened(link, end) => self.links.opened(link, end),
            Input::ListChanged(session) => self.parent.handle_list_changed(now, session),
            Input::Notified(link, notification) => self.notified(now, link, &notification),
            Input::Relay(session, whole) => self.relay.handle_notification(now, session, whole),
            Input::Request(asked) => self.asked(now, asked),
            Input::Unkept(session) => self.parent.put_out(session),
        }
    }

    /// Carries out what came of the inputs and of the time that passed.
    fn settle(&mut self) {
        let now = Instant::now();
        self.parent.handle_timeout(now);
        self.relay.handle_timeout(now);
        self.drain(now);
        self.links.let_go();
        self.holdings.publish(now, &self.mesh, &self.parent);
    }

    /// When something is due.
    fn wake(&self) -> Instant {
        let due = [self.parent.poll_timeout().map(|(at, _)| at), self.relay.poll_timeout().map(|(at, _)| at), self.holdings.due()];
        due.into_iter().flatten().min().unwrap_or_else(|| Instant::now() + LONG)
    }

    fn asked(&mut self, now: Instant, asked: Asked) {
        let Asked { way, mut identity, method, params, reply } = asked;
        let register = match Request::decode(&method, &params) {
            Ok(Request::Register(register)) => Some(register),
            Ok(Request::Deregister(_) | Request::Heartbeat(_) | Request::Parent(_) | Request::Subtree(_)) => None,
            // The machine refuses it; a registration that can't be read is told of as well.
            Err(refusal) => {
                if Method::parse(&method) == Some(Method::Register) {
                    self.mesh.registry.refused.note(&identity.principal, None, &refusal);
                    unreadable(&self.mesh, &identity.principal, refusal.error().message);
                }
                None
            }
        };
        let proved = self.proved(&mut identity, register.as_deref());
        let link = match proved.and_then(|()| self.link(&identity, way, register.as_deref(), &params)) {
            Ok(link) => link,
            Err(refusal) => {
                self.mesh.registry.refused.note(&identity.principal, register.as_deref(), &refusal);
                if let Some(register) = register.as_deref() {
                    let whose = Whose { principal: &identity.principal, segment: &register.segment, subserver: register.subserver_id };
                    record(&self.mesh, "refused", &whose, Some(refusal.error().message));
                }
                // Whoever asked may have gone meanwhile.
                _ = reply.send(Err(refusal));
                return;
            }
        };
        self.requests += 1;
        let request = RequestId(self.requests);
        let principal = Arc::clone(&identity.principal);
        self.waiting.insert(request, Waiting { principal, register, reply });
        self.parent.handle_request(now, &Incoming { link, request, identity: &identity, method: &method, params: &params });
    }

    /// Adds what the proof in a registration proves to who asks (AX-13).
    fn proved(&self, identity: &mut Identity, register: Option<&Register>) -> Result<(), Refusal> {
        let Some(proof) = register.and_then(|register| register.authority_proof.as_ref()) else { return Ok(()) };
        let proved = self.mesh.trust.prove(proof);
        let authority =
            proved.map_err(|why| Refusal::ParamsInvalid { member: "authority_proof".into(), why: format!("is not taken: {why}") })?;
        identity.proven.insert(authority);
        Ok(())
    }

    /// The link on which a request stands.
    fn link(&mut self, identity: &Identity, way: Way, register: Option<&Register>, params: &[u8]) -> Result<LinkId, Refusal> {
        let url = register.map(|register| admit(self.config.registry.as_ref(), identity, way, register)).transpose()?.flatten();
        if register.is_some() && !matches!(&self.claims, Kept::There(keeper) if keeper.works()) {
            return Err(Refusal::ClaimsUnavailable { retry_after: AGAIN });
        }
        match (way, register, url) {
            (Way::Link { id, .. }, ..) => Ok(id),
            (Way::Http { .. }, Some(register), Some(url)) => {
                let interval = register.heartbeat_interval;
                let within = if interval.is_zero() { ASK } else { ASK.min(interval / 4) };
                let new = || self.mesh.registry.next_link();
                // Who cannot answer in time is to be one that says nothing, before the machine takes it for one that is gone.
                Ok(self.links.dial(identity, register.subserver_id, url, within * 3 / 4, new))
            }
            (Way::Http { .. }, ..) => {
                let id = Members::again(params).str("session_id").unwrap_or_default();
                Ok(self.links.of_session(identity, &id))
            }
        }
    }

    /// What came over a link outside of calls: a changed list concerns everybody on it, all else whoever is there alone.
    fn notified(&mut self, now: Instant, link: LinkId, notification: &Notification) {
        let sessions = self.parent.sessions_on(link);
        if notification.method.ends_with("/list_changed") {
            sessions.iter().for_each(|session| self.parent.handle_list_changed(now, *session));
        } else if let [only] = sessions[..] {
            self.relay.handle_notification(now, only, notification.whole.clone());
        }
    }
}

fn settings(own: NodeId, config: &Config) -> Settings {
    let registry = config.registry.clone().unwrap_or_default();
    Settings {
        grace: registry.grace,
        policy: registry.policy,
        policies: registry.policies,
        registrations: registry.registrations,
        ask_timeout: ASK,
        ..Settings::new(own)
    }
}
