//! The task around the machines of aggregator and relay: takes inputs, carries out outputs, waits for the next timer. Outputs are carried
//! out in `outputs`; decides nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use banyan_model::{Machine, Now, Principal, Segment};
use config::resolved::Config;
use mcp_proto::json::Members;
use mesh_proto::authority::Identity;
use mesh_proto::id::{LinkId, NodeId, RequestId, SessionKey};
use mesh_proto::message::{Method, Register, Request};
use mesh_proto::parent::{IncomingRequest, Parent, ParentOutput, Settings};
use mesh_proto::refusal::Refusal;
use mesh_proto::relay::{Relay, RelayLimits, RelayOutput};
use runtime::clock::{Clock, SystemClock};
use runtime::drive::{self, drive};
use store::Claims;
use tokio::sync::{mpsc, oneshot};

use crate::mesh::Mesh;
use crate::registry::admit::{admit, stays};
use crate::registry::holdings::Holdings;
use crate::registry::inbox::{HeldNotifications, NotificationSource};
use crate::registry::input::{Input, MeshRequest, Way};
use crate::registry::links::Links;
use crate::registry::notices;
use crate::registry::outputs::Later;
use crate::registry::recorded::{Whose, record, unreadable};
use crate::registry::rising::{RisingNotification, RisingRelay};

/// Inputs taken before the outputs are carried out.
const BATCH: usize = 256;
/// Patience for a subserver's answer.
const ASK: Duration = Duration::from_secs(2);
/// Pause after claims could not be opened or written.
pub const AGAIN: Duration = Duration::from_secs(2);

/// The task of the registry.
pub struct RegistryDriver {
    pub mesh: Arc<Mesh>,
    pub machines: Machines,
    pub links: Links,
    /// Requests without an answer yet.
    pub waiting: HashMap<RequestId, PendingRequest>,
    pub claims: ClaimPlace,
    /// Claims and answers of this turn.
    pub later: Later,
    /// Askers who wait for the outputs of this turn.
    settled: Vec<oneshot::Sender<()>>,
    requests: u64,
    config: Arc<Config>,
    inputs: mpsc::Receiver<Input>,
    batch: Vec<Input>,
}

/// All deciding parts of the registry, driven as one machine.
pub struct Machines {
    pub parent: Parent,
    /// Relay of registered servers.
    pub relay: Relay,
    /// Relay of mounts, to gates above.
    pub mounts: RisingRelay,
    pub holdings: Holdings,
}

/// Output of the registry's machines: all of the aggregator before the relay's.
pub enum RegistryOutput {
    Parent(ParentOutput),
    Relay(RelayOutput),
    /// A mount's.
    Rising(RisingNotification),
}

impl Machine for Machines {
    type Output = RegistryOutput;

    fn handle_timeout(&mut self, now: Now) {
        self.parent.handle_timeout(now);
        self.relay.handle_timeout(now);
        self.mounts.handle_timeout(now);
    }

    fn poll_output(&mut self) -> Option<RegistryOutput> {
        let parent = self.parent.poll_output().map(RegistryOutput::Parent);
        let relayed = parent.or_else(|| self.relay.poll_output().map(RegistryOutput::Relay));
        relayed.or_else(|| self.mounts.poll_output().map(RegistryOutput::Rising))
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let publishing = self.holdings.due().map(|at| (at, "what is held is to be brought into the tree"));
        let machines = [self.parent.poll_timeout(), self.relay.poll_timeout(), self.mounts.poll_timeout(), publishing];
        machines.into_iter().flatten().min_by_key(|(at, _)| *at)
    }
}

/// Place of the claims.
pub enum ClaimPlace {
    /// On the disk.
    There(Arc<dyn Claims>),
    /// Missing: nobody registers, or the store failed. Tried again from this time on.
    Nowhere(Instant),
}

/// A request without an answer yet.
pub struct PendingRequest {
    pub principal: Arc<str>,
    /// The registration, if the request is one.
    pub register: Option<Box<Register>>,
    pub reply: oneshot::Sender<Result<String, Refusal>>,
}

/// Runs until the gate ends.
pub async fn run(mesh: Arc<Mesh>, inputs: mpsc::Receiver<Input>) {
    if let Some(mut driver) = RegistryDriver::begin(&mesh, inputs).await {
        drive(&mut driver, &SystemClock).await;
    }
}

impl drive::Driver for RegistryDriver {
    type Machine = Machines;
    type Input = Vec<Input>;
    type End = ();

    fn machine(&mut self) -> &mut Machines {
        &mut self.machines
    }

    async fn next(&mut self) -> Result<Vec<Input>, ()> {
        let stop = self.mesh.gate.stop.clone();
        tokio::select! {
            taken = self.inputs.recv_many(&mut self.batch, BATCH) => if taken == 0 { Err(()) } else { Ok(std::mem::take(&mut self.batch)) },
            notified = self.mesh.registry.inbox.next_batch() => Ok(vec![Input::Notified(notified)]),
            () = stop.cancelled() => Err(()),
        }
    }

    async fn handle(&mut self, now: Now, inputs: Vec<Input>) -> Result<(), ()> {
        self.follow(now).await;
        // Last words over a link came before the news of the link's end.
        self.handle_input(now, Input::Notified(self.mesh.registry.inbox.take_all()));
        inputs.into_iter().for_each(|input| self.handle_input(now, input));
        Ok(())
    }

    async fn carry(&mut self, now: Now, output: RegistryOutput) -> Result<(), ()> {
        match output {
            RegistryOutput::Parent(ParentOutput::Event(event)) => self.event(now, event),
            RegistryOutput::Parent(ParentOutput::Transmit(transmit)) => self.transmit(now, transmit),
            RegistryOutput::Relay(relayed) => notices::relayed(&self.mesh, &relayed),
            RegistryOutput::Rising(rising) => notices::rising(&self.mesh, &rising),
        }
        Ok(())
    }

    async fn rest(&mut self, now: Now) -> Result<(), ()> {
        self.mesh.registry.dropped.note(&self.machines.relay, &self.machines.mounts);
        self.finish();
        // Whoever asked may have gone meanwhile.
        self.settled.drain(..).for_each(|done| _ = done.send(()));
        self.links.let_go();
        self.machines.holdings.publish(now.instant, &self.mesh, &self.machines.parent);
        Ok(())
    }
}

impl RegistryDriver {
    /// Makes the driver; `None`: the gate has no id fit for others.
    async fn begin(mesh: &Arc<Mesh>, inputs: mpsc::Receiver<Input>) -> Option<Self> {
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
            machines: Machines {
                parent,
                relay: Relay::new(RelayLimits::default()),
                mounts: RisingRelay::default(),
                holdings: Holdings::new(Instant::now()),
            },
            links: Links::default(),
            waiting: HashMap::new(),
            claims: ClaimPlace::Nowhere(Instant::now()),
            later: Later::default(),
            settled: Vec::new(),
            requests: 0,
            config,
            inputs,
            batch: Vec::new(),
        };
        driver.open(SystemClock.now()).await;
        Some(driver)
    }

    /// Applies a changed configuration: segments of mounts are closed to registration, and admission is decided anew.
    async fn follow(&mut self, now: Now) {
        let config = self.mesh.gate.config.load_full();
        if !Arc::ptr_eq(&config, &self.config) {
            self.machines.parent.handle_mounts(config.mounts.keys().cloned().collect());
            let before = std::mem::replace(&mut self.config, config);
            self.bound();
            if before.registry != self.config.registry {
                self.machines.parent.handle_settings(now, settings(self.mesh.gate.node.node_id(), &self.config));
                self.put_out();
            }
        }
        self.open(now).await;
    }

    /// Puts out servers that would not be admitted any more.
    fn put_out(&mut self) {
        let registry = self.config.registry.as_ref();
        let over: Vec<SessionKey> =
            self.machines.parent.sessions().filter(|session| !stays(registry, session)).map(|session| session.key).collect();
        over.into_iter().for_each(|session| self.machines.parent.put_out(session));
    }

    /// Opens the claims where needed and due. Nobody registers before, so that no server is promised a segment that a restart would take
    /// away, or that belongs to another.
    async fn open(&mut self, now: Now) {
        let ClaimPlace::Nowhere(due) = self.claims else { return };
        if self.config.registry.is_none() || due > now.instant {
            return;
        }
        match self.mesh.gate.stores.claims(&self.mesh.gate.node.id).await {
            Ok((keeper, kept)) => {
                self.machines.parent.restore(kept);
                self.claims = ClaimPlace::There(keeper);
            }
            Err(error) => {
                let dir = self.mesh.state_dir.display();
                tracing::error!(%error, %dir, "who owns which segment can't be kept: nobody registers until the state directory can be written");
                self.claims = ClaimPlace::Nowhere(now.instant + AGAIN);
            }
        }
    }

    fn handle_input(&mut self, now: Now, input: Input) {
        match input {
            Input::Above(above) => self.machines.parent.handle_above(above),
            Input::Answered(call, replied) => self.machines.parent.handle_answer(now, call, replied.as_reply()),
            // It was followed when it came.
            Input::ConfigChanged => {}
            Input::Cycle(ids, done) => {
                self.machines.parent.handle_cycle(&ids);
                self.settled.push(done);
            }
            Input::Fetched(session, None) => {
                self.machines.holdings.failed(session);
                self.machines.parent.handle_tools_failed(now, session);
            }
            Input::Fetched(session, Some(mut fetched)) => {
                let offers = std::mem::take(&mut fetched.offers);
                self.machines.holdings.fetched(session, *fetched);
                self.machines.parent.handle_tools(now, session, offers);
            }
            Input::LinkLost(link) => {
                self.links.lost(link);
                self.machines.parent.handle_link_lost(now, link);
            }
            Input::LinkOpened(link, end) => self.links.opened(link, end),
            Input::ListChanged(session) => self.machines.parent.handle_list_changed(now, session),
            Input::ListsChanged(link) => {
                let sessions = self.machines.parent.sessions_on(link);
                sessions.iter().for_each(|session| self.machines.parent.handle_list_changed(now, *session));
            }
            Input::Notified(all) => all.into_iter().for_each(|(sender, sent)| self.notified(now, sender, sent)),
            // Whoever asked may have gone meanwhile.
            Input::Release(segment, done) => _ = done.send(self.machines.parent.release(&segment)),
            Input::Request(asked) => self.asked(now, asked),
            Input::Unkept(session) => self.machines.parent.put_out(session),
        }
    }

    fn asked(&mut self, now: Now, asked: MeshRequest) {
        let MeshRequest { way, mut identity, method, params, reply } = asked;
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
        self.waiting.insert(request, PendingRequest { principal, register, reply });
        self.machines.parent.handle_request(now, &IncomingRequest { link, request, identity: &identity, method: &method, params: &params });
    }

    /// Adds the authority proved by a registration to the identity (AX-13).
    fn proved(&self, identity: &mut Identity, register: Option<&Register>) -> Result<(), Refusal> {
        let Some(proof) = register.and_then(|register| register.authority_proof.as_ref()) else { return Ok(()) };
        let proved = self.mesh.trust.prove(proof);
        let authority =
            proved.map_err(|why| Refusal::ParamsInvalid { member: "authority_proof".into(), why: format!("is not taken: {why}") })?;
        identity.proven.insert(authority);
        Ok(())
    }

    /// Finds the link of a request.
    fn link(&mut self, identity: &Identity, way: Way, register: Option<&Register>, params: &[u8]) -> Result<LinkId, Refusal> {
        let url = register.map(|register| admit(self.config.registry.as_ref(), identity, way, register)).transpose()?.flatten();
        if register.is_some() && !matches!(&self.claims, ClaimPlace::There(keeper) if keeper.works()) {
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

    /// Takes the notifications of a sender. Over a link with several registrations the registrant is unknown: the notifications are dropped.
    fn notified(&mut self, now: Now, sender: NotificationSource, sent: HeldNotifications) {
        match sender {
            NotificationSource::Link(link) => match self.machines.parent.sessions_on(link)[..] {
                [only] => relay(&mut self.machines.relay, now, &only, sent),
                _ => self.machines.relay.handle_unheard(sent.dropped + sent.queue.len() as u64),
            },
            NotificationSource::Mount(mount, kind, name) => {
                // Nobody would close a relay for a server that is gone.
                if !self.machines.mounts.is_open(&mount) && !self.is_there(&mount) {
                    return self.machines.mounts.handle_unheard(sent.dropped + sent.queue.len() as u64);
                }
                self.machines.mounts.handle_opened(&mount, Principal::new(kind, name), limits(&self.config, &mount));
                self.machines.mounts.handle_notifications(now, &mount, sent.dropped, sent.queue);
            }
            NotificationSource::Session(session) => relay(&mut self.machines.relay, now, &session, sent),
        }
    }

    /// Checks for a mount of the configuration, or a registered server.
    fn is_there(&self, mount: &Segment) -> bool {
        self.config.mounts.contains_key(mount) || self.machines.parent.sessions().any(|session| session.segment == *mount)
    }

    /// Applies the configured bounds on notifications, and lets go of removed mounts.
    fn bound(&mut self) {
        let sessions: Vec<_> = self.machines.parent.sessions().map(|session| (session.key, session.segment.clone())).collect();
        sessions.iter().for_each(|(key, segment)| self.machines.relay.handle_limits(key, limits(&self.config, segment)));
        let mounts: Vec<Segment> = self.machines.mounts.mounts().cloned().collect();
        for mount in mounts {
            if self.is_there(&mount) {
                self.machines.mounts.handle_limits(&mount, limits(&self.config, &mount));
            } else {
                self.machines.mounts.handle_closed(&mount);
            }
        }
    }

    /// Closes the relays of a session that is over. The relay of a mount stays with a successor under the segment.
    pub(super) fn close_relays(&mut self, key: &SessionKey, segment: &Segment) {
        self.machines.relay.handle_closed(key);
        if !self.is_there(segment) {
            self.machines.mounts.handle_closed(segment);
        }
    }

    /// Opens the relay of a session, within the bounds of the segment.
    pub(super) fn open_relay(&mut self, key: SessionKey, segment: Segment) {
        let limits = limits(&self.config, &segment);
        self.machines.relay.handle_opened(key, segment);
        self.machines.relay.handle_limits(&key, limits);
    }
}

fn relay(relay: &mut Relay, now: Now, key: &SessionKey, sent: HeldNotifications) {
    if sent.dropped > 0 {
        relay.handle_lost(key, sent.dropped);
    }
    sent.queue.into_iter().for_each(|whole| relay.handle_notification(now, *key, whole));
}

/// Bounds on the notifications of a segment.
fn limits(config: &Config, segment: &Segment) -> RelayLimits {
    config.registry.as_ref().map(|registry| registry.policy_of(segment).notifications).unwrap_or_default()
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
