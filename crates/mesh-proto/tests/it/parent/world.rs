//! An aggregator with registrants, and the clock. Knows no case.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

use banyan_model::{Machine, Now, Segment};
use bytes::Bytes;
use mesh_proto::annotation::Annotation;
use mesh_proto::authority::{Authority, Identity};
use mesh_proto::id::{CallId, LinkId, NodeId, RequestId, SessionId, SessionKey};
use mesh_proto::message::{Heartbeat, HeartbeatAnswer, Register, RegistrationResult, Request, Subtree, SubtreeChange};
use mesh_proto::namespace::Offer;
use mesh_proto::parent::{Event, IncomingRequest, Parent, ParentOutput, Settings, Target, Transmit};
use mesh_proto::refusal::Refusal;
use mesh_proto::reply::Reply;

pub(crate) const OWN: NodeId = NodeId::new(0xA);
pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// Both clocks at an instant; no machine of the mesh reads the wall clock.
pub(crate) fn at(instant: Instant) -> Now {
    Now { instant, wall: SystemTime::UNIX_EPOCH }
}

pub(crate) struct World {
    pub(crate) parent: Parent,
    pub(crate) now: Instant,
    requests: u64,
    pub(crate) answers: BTreeMap<u64, Result<String, Refusal>>,
    pub(crate) asks: Vec<(LinkId, CallId)>,
    pub(crate) events: Vec<Event>,
    pub(crate) identity: Identity,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Settings::new(OWN);
        change(&mut settings);
        let parent = Parent::new(settings, [7; 32]);
        let identity = Identity::bare("peer");
        Self { parent, now: Instant::now(), requests: 0, answers: BTreeMap::new(), asks: Vec::new(), events: Vec::new(), identity }
    }

    pub(crate) fn drain(&mut self) {
        while let Some(output) = self.parent.poll_output() {
            match output {
                ParentOutput::Event(event) => self.events.push(event),
                ParentOutput::Transmit(Transmit::Answer { request, answer, .. }) => _ = self.answers.insert(request.0, answer),
                ParentOutput::Transmit(Transmit::Ask { link, call, .. }) => self.asks.push((link, call)),
            }
        }
    }

    /// Sends a request; gives its number, for a later answer.
    pub(crate) fn send(&mut self, link: u64, request: &Request) -> u64 {
        self.requests += 1;
        let (method, params) = request.encode();
        let (link, number, identity) = (LinkId(link), RequestId(self.requests), self.identity.clone());
        let incoming = IncomingRequest { link, request: number, identity: &identity, method: method.as_str(), params: params.as_bytes() };
        self.parent.handle_request(at(self.now), &incoming);
        self.drain();
        self.requests
    }

    pub(crate) fn answer(&mut self, number: u64) -> Result<String, Refusal> {
        self.answers.remove(&number).unwrap()
    }

    /// Lets nobody answer questions.
    pub(crate) fn mute(&mut self) {
        while let Some((_, call)) = self.asks.pop() {
            self.parent.handle_answer(at(self.now), call, Reply::Mute);
            self.drain();
        }
    }

    pub(crate) fn register(&mut self, link: u64, register: Register) -> Result<RegistrationResult, Refusal> {
        let number = self.send(link, &Request::Register(Box::new(register)));
        self.mute();
        self.answer(number).map(|result| RegistrationResult::decode(result.as_bytes()).unwrap())
    }

    pub(crate) fn beat(&mut self, link: u64, session: &SessionId) -> Result<HeartbeatAnswer, Refusal> {
        let number = self.send(link, &Request::Heartbeat(Heartbeat { session: session.clone() }));
        self.answer(number).map(|result| HeartbeatAnswer::decode(result.as_bytes()).unwrap())
    }

    pub(crate) fn subtree(&mut self, link: u64, session: &SessionId, version: u64, change: SubtreeChange) -> Result<String, Refusal> {
        let number = self.send(link, &Request::Subtree(Subtree { session: session.clone(), version, change }));
        self.answer(number)
    }

    pub(crate) fn key(&self, segment: &str) -> SessionKey {
        self.parent.sessions().find(|session| session.segment.as_str() == segment).unwrap().key
    }

    pub(crate) fn list(&mut self, segment: &str, names: &[&str]) {
        let key = self.key(segment);
        self.parent.handle_tools(at(self.now), key, names.iter().map(|name| offer(name)).collect());
        self.drain();
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some((due, _)) = self.parent.poll_timeout().filter(|(due, _)| *due <= end) {
            self.now = due.max(self.now);
            self.parent.handle_timeout(at(self.now));
            self.drain();
        }
        self.now = end;
    }

    pub(crate) fn listed(&self) -> Vec<String> {
        let table = self.parent.namespace();
        table.listed().map(|handle| table.name(handle).unwrap().to_string()).collect()
    }

    pub(crate) fn is_degraded(&self, segment: &str) -> bool {
        matches!(self.parent.target(segment), Some(Target::Degraded(_)))
    }
}

/// A tool that changes something if its name begins with `set`.
pub(crate) fn offer(name: &str) -> Offer {
    let definition = Bytes::from(format!("{{\"name\":\"{name}\",\"annotations\":{{\"readOnlyHint\":{}}}}}", !name.starts_with("set")));
    Offer { name: name.to_owned(), annotation: Annotation::of_tool(&definition, &Default::default()), definition }
}

pub(crate) fn plain(id: u128, segment: &str) -> Register {
    let mut register = Register::plain(NodeId::new(id), Segment::new(segment).unwrap());
    register.heartbeat_interval = SECOND;
    register
}

pub(crate) fn aggregator(id: u128, segment: &str, below: &[u128]) -> Register {
    let mut register = plain(id, segment);
    register.aggregator_id = Some(NodeId::new(id));
    register.subtree = Some(below.iter().chain([&id]).map(|id| NodeId::new(*id)).collect());
    register
}

pub(crate) fn authority(name: &str) -> Authority {
    Authority::of_dns_name(name).unwrap()
}

pub(crate) fn of_authority(id: u128, segment: &str, name: &str) -> Register {
    Register { authority: Some(authority(name)), ..plain(id, segment) }
}
