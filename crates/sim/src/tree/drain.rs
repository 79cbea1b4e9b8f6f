//! The wishes of a node's machines, carried out in the virtual world, and shown to the reference. Decides nothing.

use banyan_model::Machine;
use mesh_proto::child;
use mesh_proto::id::{CallId, LinkId};
use mesh_proto::message::{Method, RegistrationResult};
use mesh_proto::parent::{self, Parent};
use mesh_proto::refusal::{Refusal, SessionEnd};
use mesh_proto::relay::{RelayOutput, source};

use super::network::Body;
use super::plan::INTERVAL;
use super::reference::Owner;
use super::world::{FutureEvent, NodeRequest, World};

impl World {
    /// Carries out all wishes of a node's machines, and then checks their state.
    pub(super) fn drained(&mut self, at: usize) -> Result<(), String> {
        loop {
            let Some(machines) = self.nodes[at].machines.as_mut() else { return Ok(()) };
            if let Some(output) = machines.parent.as_mut().and_then(Parent::poll_output) {
                match output {
                    parent::ParentOutput::Event(event) => self.parent_event(at, event)?,
                    parent::ParentOutput::Transmit(transmit) => self.parent_transmit(at, transmit)?,
                }
            } else if let Some(output) = machines.child.as_mut().and_then(child::Child::poll_output) {
                match output {
                    child::ChildOutput::Event(event) => self.child_event(at, event),
                    child::ChildOutput::Transmit(transmit) => self.child_transmit(at, transmit),
                }
            } else if let Some(relayed) = machines.relay.poll_output() {
                self.relayed(at, relayed)?;
            } else {
                return self.check(at);
            }
        }
    }

    fn parent_event(&mut self, at: usize, event: parent::Event) -> Result<(), String> {
        let local = self.local(at);
        match event {
            parent::Event::FetchTools { session, link } => self.send(link.0, at, Body::List { session }),
            parent::Event::NamespaceChanged => {
                if let Some(link) = self.nodes[at].child().and_then(child::Child::link) {
                    self.send(link.0, at, Body::ListChanged);
                }
            }
            parent::Event::SubtreeChanged => {
                let Some(machines) = self.nodes[at].machines.as_mut() else { return Ok(()) };
                if let (Some(parent), Some(child)) = (&machines.parent, &mut machines.child) {
                    child.handle_subtree(local, parent.subtree());
                }
            }
            parent::Event::Registered { session, segment, .. } => {
                self.moved = true;
                self.outcome.count("registered");
                if let Some(machines) = self.nodes[at].machines.as_mut() {
                    machines.relay.handle_opened(session, segment);
                }
            }
            parent::Event::Unreachable { segment, .. } => self.trace(|| format!("n{at} does not reach `{segment}`")),
            parent::Event::SubserverLost { session, segment, why } => {
                self.trace(|| format!("n{at} lost `{segment}`: {why:?}"));
                self.may_be_lost(at, &segment, why)?;
                self.reference.lost(at, &segment);
                self.over(at, session, why);
            }
            parent::Event::Ended { session, segment, why } => {
                self.trace(|| format!("n{at} ended `{segment}`: {why:?}"));
                if why == SessionEnd::Cycle
                    && let Some(node) = self.nodes.iter_mut().find(|node| node.segment == segment)
                {
                    node.put_out = Some(self.now);
                }
                if why != SessionEnd::Replaced {
                    self.reference.ended(at, &segment);
                }
                self.over(at, session, why);
            }
            parent::Event::ClaimMade(claim) => _ = self.nodes[at].claims.insert(claim.segment.clone(), claim),
            parent::Event::ClaimReleased(segment) => _ = self.nodes[at].claims.remove(&segment),
        }
        Ok(())
    }

    fn over(&mut self, at: usize, session: mesh_proto::id::SessionKey, why: SessionEnd) {
        self.moved = true;
        self.outcome.count(why.as_str());
        if let Some(machines) = self.nodes[at].machines.as_mut() {
            machines.relay.handle_closed(&session);
        }
    }

    /// Nobody may be given up for silence who was heard of within three intervals, unless the clock jumped.
    fn may_be_lost(&self, at: usize, segment: &banyan_model::Segment, why: SessionEnd) -> Result<(), String> {
        let Some(owner) = self.reference.owner(at, segment).filter(|_| why == SessionEnd::Silent) else { return Ok(()) };
        let early = owner.heard + INTERVAL * 3 > self.now + INTERVAL / 100;
        if early && self.nodes[at].jumped < owner.heard {
            return Err(format!("n{at} gave up `{segment}`, which it had heard of at {:?}, at {:?}", owner.heard, self.now));
        }
        Ok(())
    }

    fn parent_transmit(&mut self, at: usize, transmit: parent::Transmit) -> Result<(), String> {
        match transmit {
            parent::Transmit::Ask { link, call, params } => self.send(link.0, at, Body::Ask { call, params }),
            parent::Transmit::Answer { link, request, answer } => {
                let call = CallId(request.0);
                self.answered(at, link.0, call, &answer)?;
                let answer = answer.map_err(|refusal| error_of(&refusal));
                self.send(link.0, at, Body::UpAnswer { call, answer });
            }
        }
        Ok(())
    }

    /// Shows an answer to the reference, which judges by it.
    fn answered(&mut self, at: usize, link: u64, call: CallId, answer: &Result<String, Refusal>) -> Result<(), String> {
        let Some(asked) = self.asked.remove(&(at, link, call)) else {
            return Err(format!("n{at} answers {call:?} on {link}, which was not asked or was answered before"));
        };
        match (asked, answer) {
            (asked, Err(refusal)) => {
                self.outcome.count(refusal.error().message);
                // Whoever is refused for what it asks lives nevertheless.
                if matches!(asked, NodeRequest::Other) && !matches!(refusal, Refusal::UnknownSession { .. }) {
                    self.reference.heard(at, link, self.now);
                }
            }
            (NodeRequest::Register(register), Ok(result)) => {
                let registered = RegistrationResult::decode(result.as_bytes()).map_err(|refusal| refusal.to_string())?;
                let from = self.network.links[&link].child;
                let principal = self.nodes.get(from).map_or("liar", |node| &*node.identity.principal).to_owned();
                let proven = self.nodes.get(from).is_some_and(|node| !node.identity.proven.is_empty());
                let owner = Owner { subserver: register.subserver_id, principal, proven, link, heard: self.now, live: true };
                self.reference.registered(at, &registered.segment, owner)?;
            }
            (NodeRequest::Deregister, Ok(_)) => self.outcome.count("left"),
            (NodeRequest::Other, Ok(_)) => self.reference.heard(at, link, self.now),
        }
        Ok(())
    }

    fn child_event(&mut self, at: usize, event: child::Event) {
        self.trace(|| format!("n{at}: {}", format!("{event:?}").chars().take(200).collect::<String>()));
        let now = self.now;
        match event {
            child::Event::Lost { why, .. } => {
                self.moved = true;
                self.nodes[at].lost_at = Some((now, why));
            }
            child::Event::Above(above) => {
                if let Some(parent) = self.nodes[at].machines.as_mut().and_then(|machines| machines.parent.as_mut()) {
                    parent.handle_above(above);
                }
            }
            child::Event::Cycle { ids } => {
                self.outcome.count("cycles pointed at");
                if let Some(parent) = self.nodes[at].machines.as_mut().and_then(|machines| machines.parent.as_mut()) {
                    parent.handle_cycle(&ids);
                }
            }
            child::Event::Registered { .. } => self.moved = true,
            child::Event::Stopped => {
                let (back, life) = (self.span(2000), self.nodes[at].life);
                self.schedule(back, FutureEvent::Rejoin { node: at, life });
            }
            child::Event::Refused { .. } | child::Event::Withheld(_) => {}
        }
    }

    fn child_transmit(&mut self, at: usize, transmit: child::Transmit) {
        match transmit {
            child::Transmit::Dial { parent } => {
                let to = self.nodes[at].plan.parents[parent];
                let delay = self.delay() * 2;
                let answers = self.is_alive(to) || self.random.percent(70);
                if answers && self.network.parted_until(at, to, self.now).is_none() {
                    self.schedule(self.now + delay, FutureEvent::Dialled { node: at, life: self.nodes[at].life, index: parent });
                }
            }
            child::Transmit::HangUp { link } => {
                let delay = self.delay();
                let Some(other) = self.network.links.get(&link.0).map(|link| link.other(at)) else { return };
                if let Some(noticed) = self.network.close(link.0, at, self.now, delay) {
                    self.schedule(noticed, FutureEvent::Broken { link: link.0, at: other });
                }
            }
            child::Transmit::Request { link, call, method, params } => {
                if method == Method::Register {
                    self.trace(|| format!("n{at} asks to register over {}", link.0));
                }
                self.send(link.0, at, Body::Up { call, method: method.as_str(), params });
            }
        }
    }

    fn relayed(&mut self, at: usize, relayed: RelayOutput) -> Result<(), String> {
        let RelayOutput::Notification { segment, bytes } = relayed else {
            self.outcome.count("overflows");
            return Ok(());
        };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let mut parts = text.rsplitn(3, '/');
        let mut number = || parts.next().and_then(|part| part.parse::<u64>().ok()).unwrap_or_default();
        let (count, sender) = (number(), number());
        let below = parts.next().filter(|below| !below.is_empty());
        let Some(path) = source(&segment, below) else { return Err(format!("no path is made of `{segment}` and {below:?}")) };
        let sender = usize::try_from(sender).unwrap_or_default();
        self.outcome.count("notifications");
        self.reference.notified(at, &path, sender, count)?;
        self.notify(at, path, sender, count);
        Ok(())
    }

    /// Sends a notification upward, if there is a parent.
    pub(super) fn notify(&mut self, at: usize, source: String, sender: usize, number: u64) {
        if let Some((_, link)) = self.nodes[at].child().and_then(child::Child::registered_at) {
            self.send(link.0, at, Body::Notify { source, sender, number });
        }
    }

    fn check(&mut self, at: usize) -> Result<(), String> {
        let node = &self.nodes[at];
        if let Some(parent) = node.parent() {
            let live = parent.sessions().filter(|session| session.is_live());
            let live: Vec<_> = live.map(|s| (s.segment.clone(), s.subserver_id, s.link.0)).collect();
            // Whoever slept or was put back by its clock may excuse others for a while.
            let slept = node.stalled + INTERVAL * 5 > self.now || node.jumped + INTERVAL * 5 > self.now;
            let excuse = if slept { INTERVAL * 6 } else { INTERVAL / 100 };
            self.reference.check(at, &live, self.now, excuse)?;
        }
        self.check_cycles()
    }

    /// Tells if a parent has a live session of this child over this link.
    pub(super) fn holds(&self, at: usize, link: LinkId, child: usize) -> bool {
        let Some(parent) = self.nodes[at].parent() else { return false };
        let keys = parent.sessions_on(link);
        keys.iter().filter_map(|key| parent.session(*key)).any(|session| session.subserver_id == self.nodes[child].id)
    }
}

fn error_of(refusal: &Refusal) -> String {
    let error = refusal.error();
    format!(r#"{{"code":{},"message":"{}","data":{}}}"#, error.code, error.message, error.data)
}
