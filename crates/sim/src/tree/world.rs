//! A history: nodes, liars and the network between them, moved from one event to the next. Does not know the rules; the
//! reference does.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant, SystemTime};

use banyan_model::Now;
use mesh_proto::id::{CallId, LinkId, RequestId};
use mesh_proto::message::{Method, Register, Request};
use mesh_proto::parent::IncomingRequest;
use mesh_proto::reply::Reply;

use super::liar::Liar;
use super::network::{Body, Network};
use super::node::{Node, offer};
use super::plan::{self, INTERVAL};
use super::reference::Reference;
use crate::random::Random;

/// Lines kept of a history.
const KEPT: usize = 3000;

/// The outcome of a history.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Every event, a line each.
    pub trace: VecDeque<String>,
    /// Number of events of each kind.
    pub counts: BTreeMap<&'static str, usize>,
}

impl Outcome {
    pub(super) fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }
}

/// A future event.
#[derive(Debug)]
pub(super) enum FutureEvent {
    Arrive { link: u64, from: usize, to: usize, body: Body },
    Broken { link: u64, at: usize },
    Dialled { node: usize, life: u64, index: usize },
    Fault,
    Lie { liar: usize },
    Rejoin { node: usize, life: u64 },
    Start { node: usize },
}

/// A request to an aggregator.
#[derive(Debug)]
pub(super) enum NodeRequest {
    Deregister,
    Other,
    Register(Box<Register>),
}

/// Everything taking part.
pub(super) struct World {
    pub(super) random: Random,
    base: Instant,
    pub(super) now: Duration,
    pub(super) nodes: Vec<Node>,
    pub(super) liars: Vec<Liar>,
    pub(super) network: Network,
    queue: BTreeMap<(Duration, u64), FutureEvent>,
    queued: u64,
    pub(super) asked: BTreeMap<(usize, u64, CallId), NodeRequest>,
    pub(super) reference: Reference,
    pub(super) outcome: Outcome,
    /// When the faults cease.
    pub(super) calm: Duration,
    /// Time of the last fault.
    pub(super) faulted: Duration,
    /// A node registered or was lost since the last search for cycles.
    pub(super) moved: bool,
    /// Some node prefers a parent below itself. Two such nodes at one time put each other out and try again
    /// by chance, perhaps for longer than three intervals.
    pub(super) circular: bool,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let (mut plans, mut circular) = plan::draw(&mut random);
        let entangled = seed % 8 == 5;
        if entangled {
            circular |= plan::entangle(&mut Random::new(!seed), &mut plans);
        }
        // In some worlds nobody proves anything, and only who came first is an owner.
        let bare = seed % 4 == 2;
        let nodes: Vec<Node> = plans.into_iter().enumerate().map(|(number, plan)| Node::new(number, plan, bare)).collect();
        let liars = (0..random.below(4)).filter_map(|number| Liar::draw(number, &nodes, &mut random)).collect();
        let calm = Duration::from_millis(6000 + random.below(6000) as u64);
        let mut world = Self {
            random,
            base: Instant::now(),
            now: Duration::ZERO,
            nodes,
            liars,
            network: Network::default(),
            queue: BTreeMap::new(),
            queued: 0,
            asked: BTreeMap::new(),
            reference: Reference::default(),
            outcome: Outcome::default(),
            calm,
            faulted: Duration::ZERO,
            moved: false,
            circular,
        };
        for node in &world.nodes {
            world.outcome.trace.push_back(format!("{} of {:?}, aggregator: {}", node.segment, node.plan.parents, node.plan.aggregates));
        }
        world
    }

    /// Lives to the end.
    ///
    /// # Errors
    /// When a rule is broken.
    pub(super) fn live(&mut self) -> Result<(), String> {
        for node in 0..self.nodes.len() {
            // Who is told to register with each other does so at one moment.
            let at = self.random.below(if self.circular { 10 } else { 300 }) as u64;
            self.schedule(Duration::from_millis(at), FutureEvent::Start { node });
        }
        for liar in 0..self.liars.len() {
            let at = Duration::from_millis(1000 + self.random.below(5000) as u64);
            self.schedule(at, FutureEvent::Lie { liar });
        }
        self.schedule(Duration::from_secs(2), FutureEvent::Fault);
        self.run(self.calm)?;
        self.heal();
        self.trace(|| "the faults cease".into());
        self.run(self.calm + INTERVAL * 3)?;
        if !self.circular {
            self.check_registered()?;
            self.check_at_once()?;
        }
        self.settle()
    }

    /// Lets everything happen up to a time.
    pub(super) fn run(&mut self, until: Duration) -> Result<(), String> {
        loop {
            let queued = self.queue.first_key_value().map(|((at, _), _)| *at);
            let timer = self.next_timer();
            let Some(at) = [queued, timer.map(|(at, _)| at)].into_iter().flatten().min().filter(|at| *at <= until) else { break };
            self.now = self.now.max(at);
            match timer {
                Some((due, node)) if Some(due) == [queued, Some(due)].into_iter().flatten().min() => {
                    let local = self.local(node);
                    self.nodes[node].handle_timeout(local);
                    self.drained(node)?;
                }
                _ => {
                    if let Some((_, happening)) = self.queue.pop_first() {
                        self.happen(happening)?;
                    }
                }
            }
        }
        self.now = until;
        Ok(())
    }

    pub(super) fn schedule(&mut self, at: Duration, happening: FutureEvent) {
        self.queued += 1;
        self.queue.insert((at, self.queued), happening);
    }

    /// The time by a node's own clocks.
    pub(super) fn local(&self, node: usize) -> Now {
        let passed = self.now + self.nodes.get(node).map_or(Duration::ZERO, |node| node.ahead);
        Now { instant: self.base + passed, wall: SystemTime::UNIX_EPOCH }
    }

    pub(super) fn trace(&mut self, line: impl FnOnce() -> String) {
        if self.outcome.trace.len() >= KEPT {
            self.outcome.trace.pop_front();
        }
        let line = format!("{:8.3} {}", self.now.as_secs_f64(), line());
        self.outcome.trace.push_back(line);
    }

    /// Sends over a link. A sender over a lost link is told so, if a living peer can tell.
    pub(super) fn send(&mut self, link: u64, from: usize, body: Body) {
        let delay = self.delay();
        let Some(to) = self.network.links.get(&link).map(|link| link.other(from)) else { return };
        match self.network.arrival(link, from, self.now, delay) {
            Some(at) => self.schedule(at, FutureEvent::Arrive { link, from, to, body }),
            None if self.is_alive(to) && self.network.parted_until(from, to, self.now).is_none() => {
                self.schedule(self.now + delay * 2, FutureEvent::Broken { link, at: from });
            }
            None => {}
        }
    }

    pub(super) fn delay(&mut self) -> Duration {
        Duration::from_micros(500 + self.random.below(20_000) as u64)
    }

    pub(super) fn is_alive(&self, at: usize) -> bool {
        self.nodes.get(at).is_none_or(|node| node.machines.is_some())
    }

    pub(super) fn start(&mut self, node: usize) -> Result<(), String> {
        if self.nodes[node].machines.is_some() {
            return Ok(());
        }
        self.trace(|| format!("n{node} starts"));
        let (local, seed) = (self.local(node), self.random.seed());
        self.nodes[node].start(local, seed);
        self.drained(node)
    }

    fn next_timer(&self) -> Option<(Duration, usize)> {
        let due = |(number, node): (usize, &Node)| {
            let at = node.next_timeout()?.saturating_duration_since(self.base).saturating_sub(node.ahead);
            Some((at.max(node.stalled).max(self.now), number))
        };
        self.nodes.iter().enumerate().filter_map(due).min()
    }

    fn happen(&mut self, happening: FutureEvent) -> Result<(), String> {
        match happening {
            FutureEvent::Arrive { link, from, to, body } => self.arrive(link, from, to, body),
            FutureEvent::Broken { link, at } => self.broken(link, at),
            FutureEvent::Dialled { node, life, index } => self.dialled(node, life, index),
            FutureEvent::Fault => self.fault(),
            FutureEvent::Lie { liar } => self.lie(liar),
            FutureEvent::Rejoin { node, life } => {
                let local = self.local(node);
                if self.nodes[node].life == life
                    && let Some(child) = self.nodes[node].machines.as_mut().and_then(|machines| machines.child.as_mut())
                {
                    child.start(local);
                }
                self.drained(node)
            }
            FutureEvent::Start { node } => self.start(node),
        }
    }

    /// Tells if this end of a link still belongs to its opener.
    fn is_end(&self, link: u64, at: usize) -> bool {
        let Some(link) = self.network.links.get(&link) else { return false };
        let life = if at == link.child { link.lives.0 } else { link.lives.1 };
        self.nodes.get(at).is_none_or(|node| node.machines.is_some() && node.life == life)
    }

    fn arrive(&mut self, link: u64, from: usize, to: usize, body: Body) -> Result<(), String> {
        let carried = self.network.links.get(&link).is_some_and(|link| link.whole || link.closed_by == Some(from));
        if !carried || !self.is_end(link, to) {
            return Ok(());
        }
        let Some(node) = self.nodes.get(to) else { return self.liar_hears(link, to - self.nodes.len(), body) };
        if node.stalled > self.now {
            self.schedule(node.stalled, FutureEvent::Arrive { link, from, to, body });
            return Ok(());
        }
        if is_worth_telling(&body) {
            self.trace(|| format!("n{to} hears n{from} over {link}: {}", one_line(&body)));
        }
        if let Body::Up { call, method, params } = body {
            self.request(link, to, call, (method, &params));
        } else {
            self.hear(link, to, body);
        }
        self.drained(to)
    }

    fn request(&mut self, link: u64, at: usize, call: CallId, (method, params): (&str, &str)) {
        let from = self.network.links[&link].child;
        let asked = match Request::decode(method, params.as_bytes()) {
            Ok(Request::Register(register)) => NodeRequest::Register(register),
            Ok(Request::Deregister(_)) => NodeRequest::Deregister,
            Ok(Request::Heartbeat(_) | Request::Parent(_) | Request::Subtree(_)) | Err(_) => NodeRequest::Other,
        };
        self.asked.insert((at, link, call), asked);
        let identity = match self.nodes.get(from) {
            Some(node) => node.identity.clone(),
            None => self.liars[from - self.nodes.len()].identity.clone(),
        };
        let local = self.local(at);
        let Some(parent) = self.nodes[at].machines.as_mut().and_then(|machines| machines.parent.as_mut()) else { return };
        let request = RequestId(call.0);
        let incoming = IncomingRequest { link: LinkId(link), request, identity: &identity, method, params: params.as_bytes() };
        parent.handle_request(local, &incoming);
    }

    fn hear(&mut self, link: u64, at: usize, body: Body) {
        let local = self.local(at);
        let offers = if matches!(body, Body::List { .. }) { self.nodes[at].offers() } else { Vec::new() };
        let Some(machines) = self.nodes[at].machines.as_mut() else { return };
        let answer = match (body, &mut machines.parent, &mut machines.child) {
            (Body::Ask { call, params }, _, Some(child)) => {
                let answer = child.handle_request(Method::Parent.as_str(), params.as_bytes()).ok();
                Some(Body::AskAnswer { call, answer })
            }
            (Body::List { session }, ..) => Some(Body::Listed { session, offers }),
            (Body::UpAnswer { call, answer }, _, Some(child)) => {
                let reply = match &answer {
                    Ok(result) => Reply::Result(result.as_bytes()),
                    Err(error) => Reply::Error(error.as_bytes()),
                };
                child.handle_answer(local, call, reply);
                None
            }
            (Body::AskAnswer { call, answer }, Some(parent), _) => {
                parent.handle_answer(local, call, answer.as_ref().map_or(Reply::Error(b"{}"), |text| Reply::Result(text.as_bytes())));
                None
            }
            (Body::Listed { session, offers }, Some(parent), _) => {
                parent.handle_tools(local, session, offers);
                None
            }
            (Body::ListChanged, Some(parent), _) => {
                for session in parent.sessions_on(LinkId(link)) {
                    parent.handle_list_changed(local, session);
                }
                None
            }
            (Body::Notify { source, sender, number }, Some(parent), _) => {
                if let Some(session) = parent.sessions_on(LinkId(link)).first() {
                    machines.relay.handle_notification(local, *session, format!("{source}/{sender}/{number}").into());
                }
                None
            }
            _ => None,
        };
        if let Some(body) = answer {
            self.send(link, at, body);
        }
    }

    fn broken(&mut self, link: u64, at: usize) -> Result<(), String> {
        if !self.is_end(link, at) {
            return Ok(());
        }
        let Some(node) = self.nodes.get(at) else {
            self.liars[at - self.nodes.len()].forget();
            return Ok(());
        };
        if node.stalled > self.now {
            self.schedule(node.stalled, FutureEvent::Broken { link, at });
            return Ok(());
        }
        self.trace(|| format!("n{at} notices that {link} is broken"));
        let local = self.local(at);
        if let Some(machines) = &mut self.nodes[at].machines {
            if let Some(parent) = &mut machines.parent {
                parent.handle_link_lost(local, LinkId(link));
            }
            if let Some(child) = &mut machines.child {
                child.handle_link_lost(local, LinkId(link));
            }
        }
        self.drained(at)
    }

    fn dialled(&mut self, node: usize, life: u64, index: usize) -> Result<(), String> {
        if self.nodes[node].life != life || self.nodes[node].machines.is_none() {
            return Ok(());
        }
        let (to, local) = (self.nodes[node].plan.parents[index], self.local(node));
        let link = self.is_alive(to).then(|| self.network.open(node, to, (life, self.nodes[to].life)));
        if let Some(child) = self.nodes[node].machines.as_mut().and_then(|machines| machines.child.as_mut()) {
            match link {
                Some(link) => child.handle_link_up(local, index, LinkId(link)),
                None => child.handle_dial_failed(local, index),
            }
        }
        self.drained(node)
    }

    fn lie(&mut self, number: usize) -> Result<(), String> {
        let from = self.nodes.len() + number;
        let pause = Duration::from_millis(50 + self.random.below(800) as u64);
        self.schedule(self.now + pause, FutureEvent::Lie { liar: number });
        let at = self.liars[number].at;
        if !self.is_alive(at) {
            return Ok(());
        }
        let gone = |link: &u64| !self.network.links.get(link).is_some_and(|link| link.whole);
        if self.liars[number].link.as_ref().is_none_or(gone) {
            self.liars[number].forget();
            let life = self.nodes[at].life;
            self.liars[number].link = Some(self.network.open(from, at, (0, life)));
        }
        let (method, params) = self.liars[number].speak(&self.nodes).encode();
        self.outcome.count("lies");
        if let Some(link) = self.liars[number].link {
            let call = CallId(self.queued);
            self.send(link, from, Body::Up { call, method: method.as_str(), params });
        }
        Ok(())
    }

    fn liar_hears(&mut self, link: u64, number: usize, body: Body) -> Result<(), String> {
        let from = self.nodes.len() + number;
        match body {
            Body::UpAnswer { answer, .. } => self.liars[number].hear(&answer),
            Body::List { session } => {
                let offers = self.liars[number].names().iter().map(|name| offer(name)).collect();
                self.send(link, from, Body::Listed { session, offers });
            }
            Body::Ask { call, .. } => self.send(link, from, Body::AskAnswer { call, answer: None }),
            Body::AskAnswer { .. } | Body::ListChanged | Body::Listed { .. } | Body::Notify { .. } | Body::Up { .. } => {}
        }
        Ok(())
    }
}

/// Tells messages worth a line from routine signs of life.
fn is_worth_telling(body: &Body) -> bool {
    match body {
        Body::Ask { .. } | Body::AskAnswer { .. } => true,
        Body::List { .. } | Body::ListChanged | Body::Listed { .. } | Body::Notify { .. } => false,
        Body::Up { method, .. } => *method != Method::Heartbeat.as_str(),
        Body::UpAnswer { answer, .. } => !answer.as_ref().is_ok_and(|result| result.contains("alive")),
    }
}

/// Prints a message on one line.
fn one_line(body: &Body) -> String {
    let text = format!("{body:?}");
    text.chars().take(220).collect()
}
