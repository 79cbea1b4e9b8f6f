//! The task around the machine: carries out outputs, and reports results. Decides nothing.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use banyan_model::{Machine, Now};
use config::resolved::Join;
use mesh_proto::child::{Child, ChildOutput, ChildSettings, Event, Transmit};
use mesh_proto::id::{CallId, LinkId, NodeId};
use mesh_proto::message::{Capabilities, Proof, Register};
use runtime::clock::{Clock, SystemClock};
use runtime::drive::{self, drive};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::task::TaskTracker;

use crate::child::dialling::{OpenLink, dial, follow};
use crate::child::input;
use crate::child::input::Input;
use crate::child::status::{JoinStatus, seconds};
use crate::mesh::Mesh;

/// Time for calls under way after leaving a parent.
const DRAIN: Duration = Duration::from_secs(10);

/// Intervals with a backup before the first try of a preferred parent.
const RETURN: u32 = 6;

/// The machine, with all resources of a membership.
pub struct MembershipDriver {
    mesh: Arc<Mesh>,
    join: Join,
    id: NodeId,
    machine: Child,
    inputs: mpsc::Receiver<Input>,
    sender: mpsc::Sender<Input>,
    /// Gates registered here.
    subtree: watch::Receiver<BTreeSet<NodeId>>,
    links: HashMap<LinkId, OpenLink>,
    next_link: u64,
    /// Requests and dials without a result yet.
    pending: usize,
    told: JoinStatus,
    shown: Arc<ArcSwapOption<JoinStatus>>,
    /// Waits for the departure.
    leaving: Option<oneshot::Sender<()>>,
    over: bool,
    /// Connections of links.
    carried: TaskTracker,
}

impl drive::Driver for MembershipDriver {
    type Machine = Child;
    type Input = Input;
    type End = ();

    fn machine(&mut self) -> &mut Child {
        &mut self.machine
    }

    async fn next(&mut self) -> Result<Input, ()> {
        tokio::select! {
            biased;
            () = self.mesh.gate.stop.cancelled() => Err(()),
            input = self.inputs.recv() => input.ok_or(()),
            changed = self.subtree.changed() => changed.map(|()| Input::MountsChanged).map_err(drop),
        }
    }

    async fn handle(&mut self, now: Now, input: Input) -> Result<(), ()> {
        match input {
            Input::Answered(call, answer) => {
                self.pending -= 1;
                self.machine.handle_answer(now, call, input::reply(answer.as_ref()));
            }
            Input::Asked { method, params, reply } => drop(reply.send(self.machine.handle_request(&method, &params))),
            Input::Dialled(parent, dialled) => self.dialled(now, parent, dialled),
            Input::Leave(left) => {
                self.leaving = Some(left);
                self.machine.stop(now);
            }
            Input::LinkLost(link) => {
                if self.links.remove(&link).is_some() {
                    self.machine.handle_link_lost(now, link);
                }
            }
            Input::MountsChanged => self.below(now),
        }
        Ok(())
    }

    async fn carry(&mut self, _: Now, output: ChildOutput) -> Result<(), ()> {
        match output {
            ChildOutput::Event(event) => self.happened(event).await,
            ChildOutput::Transmit(transmit) => self.transmit(transmit),
        }
        Ok(())
    }

    async fn rest(&mut self, now: Now) -> Result<(), ()> {
        self.show(now);
        if self.over { Err(()) } else { Ok(()) }
    }
}

impl MembershipDriver {
    /// Makes a driver of a gate without a registration.
    pub fn new(
        mesh: &Arc<Mesh>,
        join: &Join,
        (sender, inputs): (mpsc::Sender<Input>, mpsc::Receiver<Input>),
        shown: Arc<ArcSwapOption<JoinStatus>>,
    ) -> Self {
        let id = mesh.gate.node.node_id();
        let machine = Child::new(settings(mesh, join, id), runtime::random::seed());
        let told = JoinStatus::new(join.segment.as_str(), join.parents.iter().map(|parent| &parent.url));
        let (mesh, join) = (Arc::clone(mesh), join.clone());
        let (links, carried, subtree) = (HashMap::new(), TaskTracker::new(), mesh.registry.subtree());
        let mut driver = Self {
            mesh,
            join,
            id,
            machine,
            inputs,
            sender,
            subtree,
            links,
            next_link: 0,
            pending: 0,
            told,
            shown,
            leaving: None,
            over: false,
            carried,
        };
        driver.machine.start(SystemClock.now());
        driver
    }

    /// Runs until ordered to leave, or until the gate ends.
    pub async fn run(mut self) {
        self.below(SystemClock.now());
        drive(&mut self, &SystemClock).await;
        for held in self.links.values() {
            held.gone.cancel();
        }
        self.carried.close();
        drop(tokio::time::timeout(DRAIN, self.carried.wait()).await);
        if let Some(leaving) = self.leaving.take() {
            // Whoever waits may have lost patience.
            let _waited_for = leaving.send(());
        }
    }

    fn dialled(&mut self, now: Now, parent: usize, dialled: Result<crate::link::DialledLink, String>) {
        self.pending -= 1;
        match dialled {
            Ok(mut dialled) => {
                self.next_link += 1;
                let link = LinkId(self.next_link);
                if let Some(carried) = dialled.carried.take() {
                    self.carried.spawn(carried);
                }
                self.links.insert(link, follow(link, dialled, self.sender.clone()));
                self.machine.handle_link_up(now, parent, link);
            }
            Err(why) => {
                tracing::warn!(parent = %self.join.parents.get(parent).map_or("", |p| p.url.as_str()), error = %why, "a parent can't be joined");
                if let Some(told) = self.told.parents.get_mut(parent) {
                    told.unreachable(why);
                }
                self.machine.handle_dial_failed(now, parent);
            }
        }
    }

    /// Reports the gates below: registered ones, those behind mounts, and this one.
    fn below(&mut self, now: Now) {
        let registered = self.subtree.borrow_and_update().clone();
        let mounts = self.mesh.gate.mounts.all.load_full();
        let mounted =
            mounts.iter().flat_map(|mount| mount.catalog.load().subtree.iter().filter_map(|id| NodeId::parse(id)).collect::<Vec<_>>());
        let ids = registered.into_iter().chain(mounted).chain([self.id]).collect();
        self.machine.handle_subtree(now, ids);
    }

    /// Publishes the status.
    fn show(&mut self, now: Now) {
        let waits = self.pending == 0 && self.machine.registered_at().is_none() && !self.over;
        let next = self.machine.poll_timeout().filter(|_| waits).map(|(at, _)| at.saturating_duration_since(now.instant));
        self.told.next_try = next.and_then(|wait| now.wall.checked_add(wait)).map(seconds);
        if self.shown.load().as_deref() != Some(&self.told) {
            self.shown.store(Some(Arc::new(self.told.clone())));
            self.mesh.gate.mounts.changed.notify_waiters();
        }
    }

    fn transmit(&mut self, transmit: Transmit) {
        match transmit {
            Transmit::Dial { parent } => {
                let Some(wanted) = self.join.parents.get(parent).cloned() else { return };
                if let Some(told) = self.told.parents.get_mut(parent) {
                    told.try_it();
                }
                self.pending += 1;
                let (mesh, beat, to) = (Arc::clone(&self.mesh), self.join.heartbeat, self.sender.clone());
                tokio::spawn(async move {
                    let dialled = dial(mesh, wanted, beat).await;
                    drop(to.send(Input::Dialled(parent, dialled)).await);
                });
            }
            Transmit::HangUp { link } => {
                if let Some(held) = self.links.remove(&link) {
                    held.gone.cancel();
                }
            }
            Transmit::Request { link, call, method, params } => self.request(link, call, method.as_str(), &params),
        }
    }

    fn request(&mut self, link: LinkId, call: CallId, method: &str, params: &str) {
        let asked = self.links.get(&link).map(|held| held.control.ask(method, params.as_bytes()));
        self.pending += 1;
        let to = self.sender.clone();
        tokio::spawn(async move {
            let answer = match asked {
                Some(asked) => asked.await.ok(),
                None => None,
            };
            drop(to.send(Input::Answered(call, answer)).await);
        });
    }

    async fn happened(&mut self, event: Event) {
        match event {
            Event::Above(above) => self.mesh.registry.above(above).await,
            Event::Cycle { ids } => self.mesh.registry.cycle(ids).await,
            Event::Stopped => self.over = true,
            Event::Withheld(count) => self.told.withheld = count,
            Event::Lost { parent, why } => {
                tracing::warn!(parent = self.url(parent), ?why, "this gate is no longer registered with its parent");
                self.told.withheld = 0;
                if let Some(told) = self.told.parents.get_mut(parent) {
                    told.lost(why);
                }
            }
            Event::Refused { parent, refused } => {
                tracing::warn!(parent = self.url(parent), reason = refused.reason, hint = refused.hint, "a parent refused this gate");
                if let Some(told) = self.told.parents.get_mut(parent) {
                    told.refused(&refused);
                }
            }
            Event::Registered { parent, registered, .. } => {
                tracing::info!(parent = self.url(parent), segment = %registered.segment, "this gate is registered");
                registered.segment.as_str().clone_into(&mut self.told.segment);
                if let Some(told) = self.told.parents.get_mut(parent) {
                    told.registered(registered.aggregator_id.map(|id| id.to_string()), &registered.budget);
                }
            }
        }
    }

    fn url(&self, parent: usize) -> &str {
        self.join.parents.get(parent).map_or("", |parent| parent.url.as_str())
    }
}

fn settings(mesh: &Mesh, join: &Join, id: NodeId) -> ChildSettings {
    let proof = join.authority_proof.as_ref().and_then(|proof| match proof.resolve(&*mesh.sources) {
        Ok(proof) => Proof::new(proof.expose().trim()),
        Err(error) => {
            tracing::warn!(%error, "the proof of authority can't be had; this gate registers without");
            None
        }
    });
    let register = Register {
        authority: join.authority.clone(),
        authority_proof: proof,
        auth_scope: join.auth_scope,
        capabilities: Capabilities { tools: true, resources: true, notifications: true },
        heartbeat_interval: join.heartbeat,
        aggregator_id: Some(id),
        subtree: Some(BTreeSet::from([id])),
        url: join.public_url.as_ref().map(url::Url::to_string),
        ..Register::plain(id, join.segment.clone())
    };
    // A parent that is preferred is looked for again after a few intervals.
    let return_after = join.heartbeat * RETURN;
    ChildSettings { parents: join.parents.len(), return_after, ..ChildSettings::new(register) }
}
