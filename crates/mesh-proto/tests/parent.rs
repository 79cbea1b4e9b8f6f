//! What an aggregator does with those who register, one case at a time.

#![expect(clippy::unwrap_used, reason = "a test whose ground is missing fails loudly")]
#![expect(clippy::disallowed_methods, reason = "a test has to begin at some time")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use banyan_model::Segment;
use bytes::Bytes;
use mesh_proto::annotation::{Annotation, AuthScope};
use mesh_proto::authority::{Authority, Identity};
use mesh_proto::id::{CallId, LinkId, NodeId, RequestId, SessionId, SessionKey};
use mesh_proto::message::{Above, Alive, Deregister, Heartbeat, ParentIs, Register, Registered, Request, Subtree, SubtreeChange};
use mesh_proto::namespace::Offer;
use mesh_proto::parent::{Claim, Demand, Event, Incoming, Parent, SegmentPolicy, Settings, SplitBrain, StoreAnswer, Target, Transmit};
use mesh_proto::refusal::{Ended, Holder, Refusal};
use mesh_proto::reply::Reply;

const OWN: NodeId = NodeId::new(0xA);
const SECOND: Duration = Duration::from_secs(1);

struct World {
    parent: Parent,
    now: Instant,
    requests: u64,
    answers: BTreeMap<u64, Result<String, Refusal>>,
    asks: Vec<(LinkId, CallId)>,
    events: Vec<Event>,
    identity: Identity,
}

impl World {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Settings::new(OWN);
        change(&mut settings);
        let parent = Parent::new(settings, [7; 32]);
        let identity = Identity::bare("peer");
        Self { parent, now: Instant::now(), requests: 0, answers: BTreeMap::new(), asks: Vec::new(), events: Vec::new(), identity }
    }

    fn drain(&mut self) {
        while let Some(transmit) = self.parent.poll_transmit() {
            match transmit {
                Transmit::Answer { request, answer, .. } => _ = self.answers.insert(request.0, answer),
                Transmit::Ask { link, call, .. } => self.asks.push((link, call)),
            }
        }
        self.events.extend(std::iter::from_fn(|| self.parent.poll_event()));
    }

    /// Sends a request and returns its number; its answer may come later.
    fn send(&mut self, link: u64, request: &Request) -> u64 {
        self.requests += 1;
        let (method, params) = request.encode();
        let (link, number, identity) = (LinkId(link), RequestId(self.requests), self.identity.clone());
        let incoming = Incoming { link, request: number, identity: &identity, method: method.as_str(), params: params.as_bytes() };
        self.parent.handle_request(self.now, &incoming);
        self.drain();
        self.requests
    }

    fn answer(&mut self, number: u64) -> Result<String, Refusal> {
        self.answers.remove(&number).unwrap()
    }

    /// Nobody who is asked can say anything.
    fn mute(&mut self) {
        while let Some((_, call)) = self.asks.pop() {
            self.parent.handle_answer(self.now, call, Reply::Mute);
            self.drain();
        }
    }

    fn register(&mut self, link: u64, register: Register) -> Result<Registered, Refusal> {
        let number = self.send(link, &Request::Register(Box::new(register)));
        self.mute();
        self.answer(number).map(|result| Registered::decode(result.as_bytes()).unwrap())
    }

    fn beat(&mut self, link: u64, session: &SessionId) -> Result<Alive, Refusal> {
        let number = self.send(link, &Request::Heartbeat(Heartbeat { session: session.clone() }));
        self.answer(number).map(|result| Alive::decode(result.as_bytes()).unwrap())
    }

    fn subtree(&mut self, link: u64, session: &SessionId, version: u64, change: SubtreeChange) -> Result<String, Refusal> {
        let number = self.send(link, &Request::Subtree(Subtree { session: session.clone(), version, change }));
        self.answer(number)
    }

    fn key(&self, segment: &str) -> SessionKey {
        self.parent.sessions().find(|session| session.segment.as_str() == segment).unwrap().key
    }

    fn list(&mut self, segment: &str, names: &[&str]) {
        let key = self.key(segment);
        self.parent.handle_tools(self.now, key, names.iter().map(|name| offer(name)).collect());
        self.drain();
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some((at, _)) = self.parent.poll_timeout().filter(|(at, _)| *at <= end) {
            self.now = at.max(self.now);
            self.parent.handle_timeout(self.now);
            self.drain();
        }
        self.now = end;
    }

    fn listed(&self) -> Vec<String> {
        let table = self.parent.namespace();
        table.listed().map(|handle| table.name(handle).unwrap().to_string()).collect()
    }

    fn is_degraded(&self, segment: &str) -> bool {
        matches!(self.parent.target(segment), Some(Target::Degraded(_)))
    }
}

/// A tool that changes something if its name begins with `set`.
fn offer(name: &str) -> Offer {
    let definition = Bytes::from(format!("{{\"name\":\"{name}\",\"annotations\":{{\"readOnlyHint\":{}}}}}", !name.starts_with("set")));
    Offer { name: name.to_owned(), annotation: Annotation::of_tool(&definition, &Default::default()), definition }
}

fn plain(id: u128, segment: &str) -> Register {
    let mut register = Register::plain(NodeId::new(id), Segment::new(segment).unwrap());
    register.heartbeat_interval = SECOND;
    register
}

fn aggregator(id: u128, segment: &str, below: &[u128]) -> Register {
    let mut register = plain(id, segment);
    register.aggregator_id = Some(NodeId::new(id));
    register.subtree = Some(below.iter().chain([&id]).map(|id| NodeId::new(*id)).collect());
    register
}

fn authority(name: &str) -> Authority {
    Authority::of_dns_name(name).unwrap()
}

fn of_authority(id: u128, segment: &str, name: &str) -> Register {
    Register { authority: Some(authority(name)), ..plain(id, segment) }
}

#[test]
fn ax_11_the_first_keeps_a_segment_and_the_second_is_refused() {
    let mut world = World::new();
    world.register(1, plain(1, "a")).unwrap();
    let refused = world.register(2, plain(2, "a")).unwrap_err();
    assert_eq!(refused, Refusal::NamespaceConflict { segment: "a".into(), holder: Holder::Registered, retry_after: None });
    world.register(2, plain(2, "b")).unwrap();
    world.parent.handle_mounts(BTreeSet::from([Segment::nearest("m")]));
    assert!(matches!(world.register(3, plain(3, "m")), Err(Refusal::NamespaceConflict { holder: Holder::Mount, .. })));
}

#[test]
fn ax_12_a_segment_stays_with_its_authority_after_the_session_and_a_restart() {
    let mut world = World::new();
    world.identity = Identity::bare("a").with(authority("a.example"));
    let session = world.register(1, of_authority(1, "a", "a.example")).unwrap().session;
    world.list("a", &["set"]);
    let number = world.send(1, &Request::Deregister(Deregister { session }));
    world.answer(number).unwrap();
    world.pass(SECOND * 1000);
    let mut again = World::new();
    again.parent.restore(world.parent.claims().map(|claim| Claim::decode(claim.encode().as_bytes()).unwrap()));
    for world in [&mut world, &mut again] {
        world.identity = Identity::bare("b").with(authority("b.example"));
        for register in [plain(2, "a"), of_authority(2, "a", "b.example")] {
            let refused = world.register(2, register).unwrap_err();
            assert!(matches!(refused, Refusal::NamespaceConflict { holder: Holder::Authority, retry_after: None, .. }), "{refused:?}");
        }
        world.identity = Identity::bare("a").with(authority("a.example"));
        world.register(3, of_authority(3, "a", "a.example")).unwrap();
    }
    assert!(again.parent.release(&Segment::nearest("a")) && again.parent.claims().count() == 0);
}

#[test]
fn ax_12_a_namespace_that_changes_nothing_is_free_again_and_one_with_a_policy_is_not() {
    for (sticky, free) in [(Demand::ForChanges, true), (Demand::Always, false), (Demand::Never, true)] {
        let mut world = World::with(|settings| settings.policy.sticky = sticky);
        world.identity = Identity::bare("a").with(authority("a.example"));
        world.register(1, of_authority(1, "a", "a.example")).unwrap();
        world.list("a", &["get"]);
        world.parent.handle_link_lost(world.now, LinkId(1));
        world.pass(SECOND * 1000);
        assert_eq!(world.register(2, plain(2, "a")).is_ok(), free, "{sticky:?}");
    }
}

#[test]
fn ax_12_a_proof_beats_a_bare_claim() {
    let mut world = World::with(|settings| settings.policy.sticky = Demand::Always);
    world.register(1, of_authority(1, "a", "a.example")).unwrap();
    world.parent.handle_link_lost(world.now, LinkId(1));
    world.pass(SECOND * 1000);
    assert!(world.register(2, plain(2, "a")).is_err());
    world.identity = Identity::bare("b").with(authority("b.example"));
    world.register(3, of_authority(3, "a", "b.example")).unwrap();
}

#[test]
fn ax_13_an_authority_is_proved_where_the_policy_wants_it() {
    let mut world = World::with(|settings| settings.policy.proof = Demand::Always);
    for register in [plain(1, "a"), of_authority(1, "a", "a.example")] {
        assert_eq!(world.register(1, register), Err(Refusal::AuthorityRequired { segment: "a".into() }));
    }
    world.identity = Identity::bare("b").with(authority("b.example"));
    let refused = world.register(1, of_authority(1, "a", "a.example"));
    assert_eq!(refused, Err(Refusal::AuthorityMismatch { claimed: authority("a.example") }));
    world.register(1, of_authority(1, "b", "b.example")).unwrap();
}

#[test]
fn ax_13_without_proof_what_changes_something_is_withheld_and_the_subserver_is_told() {
    let mut world = World::new();
    let session = world.register(1, of_authority(1, "a", "a.example")).unwrap().session;
    world.list("a", &["get", "set"]);
    assert_eq!(world.listed(), ["a.get"]);
    assert_eq!(world.beat(1, &session).unwrap().withheld, 1);
    world.identity = Identity::bare("peer").with(authority("a.example"));
    world.register(1, of_authority(1, "a", "a.example")).unwrap();
    world.list("a", &["get", "set"]);
    assert_eq!(world.listed(), ["a.get", "a.set"]);
}

#[test]
fn another_policy_holds_at_once_for_whoever_is_registered() {
    let mut world = World::with(|settings| settings.policy.proof = Demand::Never);
    let session = world.register(1, plain(1, "a")).unwrap().session;
    world.list("a", &["get", "set"]);
    world.register(2, plain(2, "b")).unwrap();
    assert_eq!(world.listed(), ["a.get", "a.set"]);
    world.events.clear();
    let mut settings = Settings::new(OWN);
    settings.policies.insert(Segment::nearest("b"), SegmentPolicy { proof: Demand::Always, sticky: Demand::Never });
    world.parent.handle_settings(world.now, settings);
    world.drain();
    let key = world.key("a");
    assert!(world.events.iter().any(|event| matches!(event, Event::FetchTools { session, .. } if *session == key)), "{:?}", world.events);
    world.list("a", &["get", "set"]);
    assert_eq!(world.listed(), ["a.get"]);
    assert!(world.events.iter().any(|event| matches!(event, Event::Ended { why: Ended::NotAdmitted, .. })), "{:?}", world.events);
    assert_eq!(world.register(2, plain(2, "b")), Err(Refusal::AuthorityRequired { segment: "b".into() }));
    world.parent.put_out(key);
    assert_eq!(world.beat(1, &session), Err(Refusal::UnknownSession { ended: Some(Ended::NotAdmitted) }));
    assert!(world.listed().is_empty());
}

#[test]
fn ax_14_a_plain_subserver_with_a_dotted_name_is_put_out_and_told_why() {
    let mut world = World::new();
    let session = world.register(1, plain(1, "a")).unwrap().session;
    world.list("a", &["ok", "b.c"]);
    assert!(world.listed().is_empty());
    assert_eq!(world.beat(1, &session), Err(Refusal::UnknownSession { ended: Some(Ended::DottedName) }));
    world.register(1, aggregator(2, "b", &[])).unwrap();
    world.list("b", &["ok", "b.c"]);
    assert_eq!(world.listed(), ["b.b.c", "b.ok"]);
}

#[test]
fn ax_21_the_answer_holds_the_session_the_segment_the_deadline_and_the_budget() {
    let mut world = World::with(|settings| settings.budget.calls_per_minute = Some(60));
    let registered = world.register(1, plain(1, "a")).unwrap();
    assert_eq!((registered.segment.as_str(), registered.deadline), ("a", SECOND * 3));
    assert_eq!((registered.budget.calls_per_minute, registered.aggregator_id), (Some(60), Some(OWN)));
    let mut silent = plain(2, "b");
    silent.heartbeat_interval = Duration::ZERO;
    assert_eq!(world.register(1, silent).unwrap().deadline, Duration::ZERO);
}

#[test]
fn ax_22_three_missed_heartbeats_end_a_registration() {
    let mut world = World::new();
    let session = world.register(1, plain(1, "a")).unwrap().session;
    world.list("a", &["get"]);
    for _ in 0..5 {
        world.pass(SECOND * 29 / 10);
        world.beat(1, &session).unwrap();
    }
    world.pass(SECOND * 29 / 10);
    assert!(!world.is_degraded("a"));
    world.pass(SECOND / 5);
    assert!(world.is_degraded("a"));
    assert_eq!(world.beat(1, &session), Err(Refusal::UnknownSession { ended: Some(Ended::Silent) }));
    let mut quiet = plain(2, "b");
    quiet.heartbeat_interval = Duration::ZERO;
    world.register(2, quiet).unwrap();
    world.list("b", &["get"]);
    world.pass(SECOND * 100_000);
    assert!(matches!(world.parent.target("b"), Some(Target::Live(_))));
}

#[test]
fn ax_22_an_aggregator_that_slept_does_not_blame_the_others() {
    let mut world = World::new();
    let session = world.register(1, plain(1, "a")).unwrap().session;
    world.list("a", &["get"]);
    world.now += SECOND * 3600;
    world.parent.handle_timeout(world.now);
    world.drain();
    world.pass(SECOND * 9 / 10);
    world.beat(1, &session).unwrap();
    world.now += SECOND * 3600;
    world.parent.handle_timeout(world.now);
    world.pass(SECOND * 11 / 10);
    assert!(world.is_degraded("a"), "and waits one interval only");
}

#[test]
fn ax_22_nobody_speaks_for_a_session_on_another_link() {
    let mut world = World::new();
    let session = world.register(1, plain(1, "a")).unwrap().session;
    assert_eq!(world.beat(2, &session), Err(Refusal::UnknownSession { ended: None }));
    let number = world.send(2, &Request::Deregister(Deregister { session: session.clone() }));
    assert!(world.answer(number).is_err());
    world.beat(1, &session).unwrap();
}

#[test]
fn ax_23_who_deregisters_is_gone_at_once_and_everybody_is_told() {
    let mut world = World::new();
    let session = world.register(1, plain(1, "a")).unwrap().session;
    world.list("a", &["get"]);
    world.events.clear();
    let number = world.send(1, &Request::Deregister(Deregister { session }));
    world.answer(number).unwrap();
    assert!(world.listed().is_empty() && world.parent.target("a").is_none());
    assert!(world.events.contains(&Event::NamespaceChanged));
    world.register(2, plain(2, "a")).unwrap();
}

#[test]
fn ax_24_who_stands_above_may_not_stand_below() {
    let mut world = World::new();
    assert_eq!(world.register(1, aggregator(1, "a", &[0xA])), Err(Refusal::RegistrationCycle { ids: vec![OWN], below_you: false }));
    world.parent.handle_above(Above { ancestors: vec![NodeId::new(0xB), NodeId::new(0xC)], prefix_length: 0 });
    let refused = world.register(1, aggregator(0xC, "a", &[1, 2])).unwrap_err();
    assert_eq!(refused, Refusal::RegistrationCycle { ids: vec![NodeId::new(0xC)], below_you: true });
    let registered = world.register(1, aggregator(1, "a", &[2])).unwrap();
    assert_eq!(registered.above.ancestors, [OWN, NodeId::new(0xB), NodeId::new(0xC)]);
}

#[test]
fn ax_24_a_cycle_that_forms_later_is_refused_and_whoever_brought_it_is_put_out() {
    let mut world = World::new();
    let ids = |ids: &[u128]| ids.iter().map(|id| NodeId::new(*id)).collect::<BTreeSet<_>>();
    let session = world.register(1, aggregator(1, "a", &[2])).unwrap().session;
    let step = |joined: &[u128], left: &[u128]| SubtreeChange::Step { joined: ids(joined), left: ids(left) };
    world.subtree(1, &session, 1, step(&[3], &[2])).unwrap();
    assert_eq!(world.parent.subtree(), ids(&[0xA, 1, 3]));
    let refused = world.subtree(1, &session, 2, step(&[0xA], &[])).unwrap_err();
    assert_eq!(refused, Refusal::RegistrationCycle { ids: vec![OWN], below_you: false });
    assert_eq!(world.subtree(1, &session, 3, step(&[4], &[])), Err(Refusal::SubtreeOutOfStep));
    world.subtree(1, &session, 4, SubtreeChange::All(ids(&[1, 4]))).unwrap();
    assert_eq!(world.parent.subtree(), ids(&[0xA, 1, 4]));
    world.parent.handle_cycle(&[NodeId::new(4)]);
    world.drain();
    assert_eq!(world.beat(1, &session), Err(Refusal::UnknownSession { ended: Some(Ended::Cycle) }));
    assert_eq!(world.parent.subtree(), ids(&[0xA]));
    assert_eq!(world.events.last(), Some(&Event::SubtreeChanged));
}

#[test]
fn ax_25_who_says_that_it_is_registered_elsewhere_is_refused() {
    let says = |parent: Option<u128>| ParentIs { parent_id: parent.map(NodeId::new) }.encode();
    for (answer, taken) in [(says(None), true), (says(Some(0xA)), true), (says(Some(0xB)), false), ("[]".into(), false)] {
        let mut world = World::new();
        let number = world.send(1, &Request::Register(Box::new(plain(1, "a"))));
        let (link, call) = world.asks.pop().unwrap();
        assert_eq!(link, LinkId(1));
        world.parent.handle_answer(world.now, call, Reply::Result(answer.as_bytes()));
        world.drain();
        assert_eq!(world.answer(number).is_ok(), taken, "{answer}");
    }
    let mut world = World::new();
    let number = world.send(1, &Request::Register(Box::new(plain(1, "a"))));
    world.pass(SECOND * 3);
    assert!(matches!(world.answer(number), Err(Refusal::SubserverSilent { .. })));
}

#[test]
fn ax_25_a_shared_store_knows_who_is_registered_elsewhere() {
    let answers = [
        (StoreAnswer::Free, true),
        (StoreAnswer::RegisteredWith(OWN), true),
        (StoreAnswer::RegisteredWith(NodeId::new(0xB)), false),
        (StoreAnswer::Unavailable, true),
    ];
    for (answer, taken) in answers {
        let mut world = World::with(|settings| settings.split_brain = SplitBrain::AskStore);
        let number = world.send(1, &Request::Register(Box::new(plain(1, "a"))));
        let Some(Event::AskStore { call, subserver_id }) = world.events.pop() else { panic!("the store is not asked") };
        assert_eq!(subserver_id, NodeId::new(1));
        world.parent.handle_store_answer(world.now, call, answer);
        world.drain();
        assert_eq!(world.asks.len(), usize::from(answer == StoreAnswer::Unavailable));
        world.mute();
        assert_eq!(world.answer(number).is_ok(), taken, "{answer:?}");
    }
}

#[test]
fn ax_26_after_a_reboot_nothing_is_called_by_an_old_definition() {
    let mut world = World::new();
    world.register(1, plain(1, "a")).unwrap();
    world.list("a", &["old"]);
    world.parent.handle_link_lost(world.now, LinkId(1));
    world.register(2, plain(1, "a")).unwrap();
    assert!(world.is_degraded("a") && world.listed() == ["a.old"]);
    world.list("a", &["new"]);
    assert!(matches!(world.parent.target("a"), Some(Target::Live(session)) if session.link == LinkId(2)));
    assert_eq!(world.listed(), ["a.new"]);
    world.pass(SECOND);
    let stale = world.key("a");
    world.register(2, plain(1, "b")).unwrap();
    world.parent.handle_tools(world.now, stale, vec![offer("stale")]);
    assert!(world.listed().is_empty(), "a list that comes for a session that is over is let go, and so is the segment");
}

#[test]
fn ax_25_a_reboot_on_a_new_link_takes_over_and_a_second_server_of_one_id_does_not() {
    let mut world = World::new();
    let first = world.register(1, plain(1, "a")).unwrap().session;
    world.list("a", &["get"]);
    let number = world.send(2, &Request::Register(Box::new(plain(1, "a"))));
    let holder = world.asks.iter().position(|(link, _)| *link == LinkId(1)).unwrap();
    let call = world.asks.remove(holder).1;
    let alive = ParentIs { parent_id: Some(OWN) }.encode();
    world.parent.handle_answer(world.now, call, Reply::Result(alive.as_bytes()));
    world.drain();
    assert!(matches!(world.answer(number), Err(Refusal::DuplicateSubserver { .. })));
    world.beat(1, &first).unwrap();
    world.asks.clear();
    let number = world.send(3, &Request::Register(Box::new(plain(1, "a"))));
    let applicant = world.asks.iter().find(|(link, _)| *link == LinkId(3)).unwrap().1;
    world.parent.handle_answer(world.now, applicant, Reply::Mute);
    world.pass(SECOND * 2);
    world.answer(number).unwrap();
    assert_eq!(world.beat(1, &first), Err(Refusal::UnknownSession { ended: Some(Ended::Replaced) }));
}

#[test]
fn nobody_takes_what_a_lost_subserver_may_come_back_for() {
    let mut world = World::new();
    world.register(1, plain(1, "a")).unwrap();
    world.list("a", &["get"]);
    world.parent.handle_link_lost(world.now, LinkId(1));
    let refused = world.register(2, plain(2, "a")).unwrap_err();
    assert!(matches!(refused, Refusal::NamespaceConflict { holder: Holder::Lost, retry_after: Some(_), .. }));
    world.identity = Identity::bare("thief");
    assert!(world.register(3, plain(1, "a")).is_err(), "the id alone is no proof");
    assert!(matches!(world.register(3, plain(1, "z")), Err(Refusal::DuplicateSubserver { .. })));
    world.pass(SECOND * 301);
    world.register(2, plain(2, "a")).unwrap();
}

#[test]
fn ax_60_a_lost_subserver_is_announced_and_its_tools_come_back_with_it() {
    let mut world = World::new();
    world.register(1, plain(1, "a")).unwrap();
    world.list("a", &["get"]);
    let session = world.key("a");
    world.events.clear();
    world.parent.handle_link_lost(world.now, LinkId(1));
    world.drain();
    let lost = Event::SubserverLost { session, segment: Segment::nearest("a"), why: Ended::LinkLost };
    assert_eq!(world.events, [lost, Event::NamespaceChanged]);
    world.register(2, plain(1, "a")).unwrap();
    world.list("a", &["get"]);
    assert!(matches!(world.parent.target("a"), Some(Target::Live(_))));
}

#[test]
fn ax_61_tools_of_a_lost_subserver_stay_as_degraded_for_a_while() {
    for (grace, after) in [(SECOND * 300, SECOND * 299), (Duration::ZERO, Duration::ZERO)] {
        let mut world = World::with(|settings| settings.grace = grace);
        world.register(1, plain(1, "a")).unwrap();
        world.list("a", &["get"]);
        let since = world.now;
        world.parent.handle_link_lost(world.now, LinkId(1));
        world.pass(after);
        if !grace.is_zero() {
            let Some(Target::Degraded(degraded)) = world.parent.target("a") else { panic!("not degraded") };
            assert_eq!((degraded.since, degraded.why, degraded.retry_after), (since, Ended::LinkLost, SECOND));
            assert!(world.listed() == ["a.get"]);
            world.pass(SECOND * 2);
        }
        assert!(world.listed().is_empty() && world.parent.target("a").is_none());
    }
}

#[test]
fn ax_62_a_lost_aggregator_takes_its_whole_subtree_with_it_and_brings_it_back() {
    let mut world = World::new();
    world.register(1, aggregator(1, "a", &[2, 3])).unwrap();
    world.list("a", &["b.c.get", "b.get", "get"]);
    assert_eq!(world.parent.subtree().len(), 4);
    world.parent.handle_link_lost(world.now, LinkId(1));
    assert!(world.is_degraded("a") && world.listed().len() == 3);
    assert_eq!(world.parent.subtree(), BTreeSet::from([OWN]));
    world.register(2, aggregator(1, "a", &[2])).unwrap();
    world.list("a", &["b.get", "get"]);
    assert!(!world.is_degraded("a") && world.listed() == ["a.b.get", "a.get"]);
}

#[test]
fn ax_10_names_that_no_longer_fit_below_what_stands_above_are_withheld() {
    let mut world = World::new();
    world.register(1, aggregator(1, "a", &[])).unwrap();
    let long = vec!["x".repeat(60); 3].join(".");
    world.list("a", &["get", &long]);
    assert_eq!(world.listed().len(), 2);
    world.parent.handle_above(Above { ancestors: vec![], prefix_length: 100 });
    assert_eq!(world.listed(), ["a.get"]);
    assert!(matches!(
        world.register(2, plain(2, &"y".repeat(63))).map(|_| world.parent.handle_above(Above { ancestors: vec![], prefix_length: 250 })),
        Ok(())
    ));
    assert!(matches!(world.register(3, plain(3, "abcdef")), Err(Refusal::NameTooLong { .. })));
    world.parent.handle_above(Above::default());
    assert_eq!(world.listed().len(), 2);
}

#[test]
fn ax_41_what_a_subserver_is_registered_for_bounds_what_is_listed() {
    let mut world = World::with(|settings| settings.policy.proof = Demand::Never);
    world.register(1, Register { auth_scope: Some(AuthScope::Read), ..plain(1, "a") }).unwrap();
    world.list("a", &["get", "set"]);
    assert_eq!(world.listed(), ["a.get"]);
}

#[test]
fn a_storm_of_registrations_is_served_in_order_and_starves_no_heartbeat() {
    let mut world = World::new();
    let session = world.register(1, plain(1, "a")).unwrap().session;
    let numbers: Vec<u64> =
        (2..1002u64).map(|n| world.send(n, &Request::Register(Box::new(plain(u128::from(n), &format!("s{n}")))))).collect();
    world.beat(1, &session).unwrap();
    let mut order = Vec::new();
    for _ in 0..400 {
        world.mute();
        world.pass(SECOND / 100);
        let begun = |event| if let Event::Registered { session, .. } = event { Some(session) } else { None };
        order.extend(world.events.drain(..).filter_map(begun));
    }
    assert!(numbers.iter().all(|number| world.answers.remove(number).unwrap().is_ok()));
    assert!(order.len() == 1001 && order.is_sorted());
}

#[test]
fn too_many_registrations_of_one_link_are_told_when_to_come_again() {
    let mut world = World::with(|settings| settings.waiting_per_link = 3);
    let last = (0..200u64).map(|n| world.send(1, &Request::Register(Box::new(plain(u128::from(n), &format!("s{n}")))))).last().unwrap();
    assert!(matches!(world.answer(last), Err(Refusal::RateLimited { .. })));
}

#[test]
fn lists_are_fetched_a_few_at_a_time_and_again_when_they_changed_meanwhile() {
    let mut world = World::with(|settings| settings.fetches = 1);
    world.register(1, plain(1, "a")).unwrap();
    world.register(2, plain(2, "b")).unwrap();
    let fetches = |world: &World| {
        world
            .events
            .iter()
            .filter_map(|e| if let Event::FetchTools { session, .. } = e { Some(*session) } else { None })
            .collect::<Vec<_>>()
    };
    let (a, b) = (world.key("a"), world.key("b"));
    assert_eq!(fetches(&world), [a]);
    world.parent.handle_list_changed(world.now, a);
    world.list("a", &["get"]);
    assert_eq!(fetches(&world), [a, b]);
    world.parent.handle_tools_failed(world.now, b);
    world.drain();
    assert_eq!(fetches(&world), [a, b, a]);
    world.list("a", &["get"]);
    let session = world.parent.session(b).unwrap().segment.clone();
    assert_eq!(session.as_str(), "b");
    world.pass(SECOND);
    assert_eq!(fetches(&world), [a, b, a, b]);
}

#[test]
fn an_aggregator_that_is_full_takes_back_whom_it_had_and_nobody_else() {
    let mut world = World::with(|settings| settings.registrations = 1);
    world.register(1, plain(1, "a")).unwrap();
    assert_eq!(world.register(2, plain(2, "b")), Err(Refusal::Full { most: 1 }));
    world.parent.handle_link_lost(world.now, LinkId(1));
    world.register(3, plain(1, "a")).unwrap();
}

#[test]
fn ax_24_nobody_brings_more_ids_than_can_be_told_upward() {
    let mut world = World::with(|settings| settings.subtree_ids = 6_000);
    let many = |from: u128, count: u128| (from..from + count).collect::<Vec<_>>();
    world.register(1, aggregator(1, "a", &many(100, 5_000))).unwrap();
    let session = world.register(2, aggregator(2, "b", &[])).unwrap().session;
    assert_eq!(world.register(3, aggregator(3, "c", &many(100, 6_000))), Err(Refusal::SubtreeTooLarge { most: 6_000 }));
    let change = SubtreeChange::All(many(50_000, 5_000).into_iter().map(NodeId::new).collect());
    assert_eq!(world.subtree(2, &session, 1, change), Err(Refusal::SubtreeTooLarge { most: 6_000 }));
    assert_eq!(world.parent.subtree().len(), 5_003);
}
