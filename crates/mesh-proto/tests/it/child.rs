//! A subserver's way to a registration with one of its parents, one case at a time.

#![expect(clippy::unwrap_used, reason = "a test whose ground is missing fails loudly")]
#![expect(clippy::disallowed_methods, reason = "a test has to begin at some time")]

use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime};

use banyan_model::{Machine, Now, Segment};
use mesh_proto::child::{Child, ChildOutput, ChildSettings, Event, LostWhy, Transmit};
use mesh_proto::id::{CallId, LinkId, NodeId, SessionId};
use mesh_proto::message::{
    Ancestry, AskParent, Budget, HeartbeatAnswer, Method, ParentAnswer, Register, RegistrationResult, Request, SubtreeChange,
};
use mesh_proto::refusal::{Refusal, SessionEnd};
use mesh_proto::reply::Reply;

const SECOND: Duration = Duration::from_secs(1);
const OWN: NodeId = NodeId::new(1);

/// Both clocks at an instant; no machine of the mesh reads the wall clock.
fn at(instant: Instant) -> Now {
    Now { instant, wall: SystemTime::UNIX_EPOCH }
}

/// A request of the child, with its time.
#[derive(Debug, Clone)]
struct Sent {
    at: Instant,
    link: LinkId,
    call: CallId,
    request: Request,
}

struct World {
    child: Child,
    start: Instant,
    now: Instant,
    links: u64,
    /// Reachable parents, which answer.
    up: BTreeSet<usize>,
    dialled: Vec<(Instant, usize)>,
    hung_up: Vec<LinkId>,
    sent: Vec<Sent>,
    events: Vec<Event>,
}

impl World {
    fn new(parents: usize) -> Self {
        let mut register = Register::plain(OWN, Segment::nearest("a"));
        register.heartbeat_interval = SECOND;
        register.aggregator_id = Some(OWN);
        register.subtree = Some(BTreeSet::from([OWN]));
        Self::of(ChildSettings { parents, ..ChildSettings::new(register) }, [3; 32])
    }

    fn of(settings: ChildSettings, seed: [u8; 32]) -> Self {
        let start = Instant::now();
        let up = (0..settings.parents).collect();
        let child = Child::new(settings, seed);
        let mut world = Self { child, start, now: start, links: 0, up, dialled: vec![], hung_up: vec![], sent: vec![], events: vec![] };
        world.child.start(at(start));
        world.drain();
        world
    }

    fn drain(&mut self) {
        while let Some(output) = self.child.poll_output() {
            match output {
                ChildOutput::Event(event) => self.events.push(event),
                ChildOutput::Transmit(Transmit::Dial { parent }) => {
                    self.dialled.push((self.now, parent));
                    if self.up.contains(&parent) {
                        self.links += 1;
                        self.child.handle_link_up(at(self.now), parent, LinkId(self.links));
                    } else {
                        self.child.handle_dial_failed(at(self.now), parent);
                    }
                }
                ChildOutput::Transmit(Transmit::HangUp { link }) => self.hung_up.push(link),
                ChildOutput::Transmit(Transmit::Request { link, call, method, params }) => {
                    let request = Request::decode(method.as_str(), params.as_bytes()).unwrap();
                    self.sent.push(Sent { at: self.now, link, call, request });
                }
            }
        }
    }

    /// Takes the new requests of a kind.
    fn take(&mut self, method: Method) -> Vec<Sent> {
        let (taken, left) = self.sent.drain(..).partition(|sent: &Sent| sent.request.encode().0 == method);
        self.sent = left;
        taken
    }

    fn reply(&mut self, call: CallId, result: &str) {
        self.child.handle_answer(at(self.now), call, Reply::Result(result.as_bytes()));
        self.drain();
    }

    fn refuse(&mut self, call: CallId, refusal: &Refusal) {
        let error = refusal.error();
        let text = format!(r#"{{"code":{},"message":"{}","data":{}}}"#, error.code, error.message, error.data);
        self.child.handle_answer(at(self.now), call, Reply::Error(text.as_bytes()));
        self.drain();
    }

    /// Refuses the latest registration for ids unknown to this parent, again and again while the child hopes that the parent may hear of
    /// them. Gives the last registration, refused as well.
    fn refuse_for_good(&mut self, ids: &[NodeId]) -> Sent {
        let first = self.now;
        loop {
            self.until(Method::Register);
            let asked = self.take(Method::Register).pop().unwrap();
            self.refuse(asked.call, &Refusal::RegistrationCycle { ids: ids.to_vec(), below_you: false });
            if self.now >= first + SECOND {
                return asked;
            }
            assert!(!self.events.iter().any(|event| matches!(event, Event::Cycle { .. })), "it may still hear of it");
        }
    }

    /// Accepts the latest registration.
    fn accept(&mut self) -> LinkId {
        let asked = self.take(Method::Register).pop().unwrap();
        let registered = RegistrationResult {
            segment: Segment::nearest("a"),
            session: SessionId::of_bits(u128::from(asked.link.0)),
            deadline: SECOND * 3,
            budget: Budget::default(),
            aggregator_id: Some(NodeId::new(100 + u128::from(asked.link.0))),
            above: Ancestry { ancestors: vec![NodeId::new(100)], prefix_length: 5 },
        };
        self.reply(asked.call, &registered.encode());
        asked.link
    }

    fn step(&mut self) {
        self.now = self.child.poll_timeout().unwrap().0;
        self.child.handle_timeout(at(self.now));
        self.drain();
    }

    /// Steps until a request of this kind is sent; heartbeats are answered meanwhile.
    fn until(&mut self, method: Method) {
        while !self.sent.iter().any(|sent| sent.request.encode().0 == method) {
            for beat in self.take(Method::Heartbeat) {
                self.reply(beat.call, &HeartbeatAnswer::default().encode());
            }
            self.step();
        }
    }

    /// Lets time pass; heartbeats are answered if `answered`.
    fn pass(&mut self, time: Duration, answered: bool) -> Vec<Sent> {
        let (end, mut beats) = (self.now + time, Vec::new());
        while self.child.poll_timeout().is_some_and(|(at, _)| at <= end) {
            self.step();
            for beat in self.take(Method::Heartbeat) {
                if answered {
                    self.reply(beat.call, &HeartbeatAnswer::default().encode());
                }
                beats.push(beat);
            }
        }
        self.now = end;
        beats
    }
}

#[test]
fn ax_22_heartbeats_come_within_each_interval_with_jitter() {
    let mut offsets = BTreeSet::new();
    for seed in 0..10 {
        let mut register = Register::plain(OWN, Segment::nearest("a"));
        register.heartbeat_interval = SECOND;
        let mut world = World::of(ChildSettings::new(register), [seed; 32]);
        world.accept();
        let beats = world.pass(SECOND * 20, true);
        let mut last = world.start;
        for beat in &beats {
            let pause = beat.at - last;
            assert!(pause >= SECOND / 2 && pause <= SECOND * 3 / 4, "{pause:?}");
            last = beat.at;
        }
        offsets.insert(beats[0].at - world.start);
    }
    assert!(offsets.len() > 5);
}

#[test]
fn ax_62_a_silent_parent_is_left_within_three_intervals() {
    let mut world = World::new(2);
    world.accept();
    world.pass(SECOND * 10, true);
    let silent_since = world.now;
    while world.child.registered_at().is_some() {
        world.step();
    }
    assert!(world.hung_up.contains(&LinkId(1)));
    world.until(Method::Register);
    assert_eq!(world.dialled.last().unwrap().1, 1);
    world.accept();
    assert_eq!(world.child.registered_at(), Some((1, LinkId(2))));
    assert!(world.now - silent_since < SECOND * 3, "{:?}", world.now - silent_since);
    assert!(world.events.contains(&Event::Lost { parent: 0, why: LostWhy::Silent }));
}

#[test]
fn ax_62_the_return_to_a_preferred_parent_deregisters_first() {
    let mut world = World::new(2);
    world.up = BTreeSet::from([1]);
    world.child.handle_link_lost(at(world.now), LinkId(1));
    world.sent.clear();
    world.until(Method::Register);
    let backup = world.accept();
    world.up.insert(0);
    world.until(Method::Deregister);
    assert!(world.take(Method::Register).is_empty(), "it must let go first");
    assert_eq!(world.child.parent_id(), None);
    let deregister = world.take(Method::Deregister).pop().unwrap();
    assert_eq!(deregister.link, backup);
    world.reply(deregister.call, "{}");
    world.accept();
    assert_eq!(world.child.registered_at().unwrap().0, 0);
    assert!(world.hung_up.contains(&backup));
}

#[test]
fn ax_62_a_refused_return_leads_back_to_the_backup() {
    let mut world = World::new(2);
    world.up = BTreeSet::from([1]);
    world.child.handle_link_lost(at(world.now), LinkId(1));
    world.sent.clear();
    world.until(Method::Register);
    world.accept();
    world.up.insert(0);
    world.until(Method::Deregister);
    let deregister = world.take(Method::Deregister).pop().unwrap();
    world.reply(deregister.call, "{}");
    let asked = world.take(Method::Register).pop().unwrap();
    world.refuse(asked.call, &Refusal::RateLimited { retry_after: SECOND });
    world.accept();
    assert_eq!(world.child.registered_at().unwrap().0, 1);
}

#[test]
fn a_restarted_parent_is_registered_with_anew_at_once() {
    let mut world = World::new(1);
    world.accept();
    world.pass(SECOND * 3, true);
    while world.sent.is_empty() {
        world.step();
    }
    let beat = world.take(Method::Heartbeat).pop().unwrap();
    world.refuse(beat.call, &Refusal::UnknownSession { ended: None });
    assert_eq!(world.take(Method::Register).len(), 1, "over the same link, without waiting");
}

#[test]
fn a_subserver_at_fault_comes_back_later() {
    let mut world = World::new(1);
    world.accept();
    world.pass(SECOND * 3, true);
    while world.sent.is_empty() {
        world.step();
    }
    let beat = world.take(Method::Heartbeat).pop().unwrap();
    world.refuse(beat.call, &Refusal::UnknownSession { ended: Some(SessionEnd::DottedName) });
    assert!(world.take(Method::Register).is_empty());
    assert!(
        world.events.iter().any(|event| matches!(event, Event::Refused { refused, .. } if refused.ended == Some(SessionEnd::DottedName)))
    );
    world.until(Method::Register);
}

#[test]
fn retries_back_off_up_to_an_interval() {
    let mut world = World::new(1);
    world.up.clear();
    world.child.handle_link_lost(at(world.now), LinkId(1));
    world.drain();
    world.dialled.clear();
    for _ in 0..12 {
        world.step();
    }
    let pauses: Vec<Duration> = world.dialled.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    assert!(pauses[0] < SECOND / 2, "{pauses:?}");
    assert!(pauses.iter().all(|pause| *pause <= SECOND) && pauses.iter().skip(4).all(|pause| *pause >= SECOND / 2), "{pauses:?}");
}

#[test]
fn ax_25_it_says_with_whom_it_is_registered() {
    let mut world = World::new(1);
    let ask = |id| Request::Parent(AskParent { aggregator_id: NodeId::new(9), subserver_id: id }).encode().1;
    let answer =
        |world: &mut World| ParentAnswer::decode(world.child.handle_request("mcpax/parent", ask(OWN).as_bytes()).unwrap().as_bytes());
    assert_eq!(answer(&mut world), Ok(ParentAnswer { parent_id: None }), "while it registers it is registered with nobody");
    let link = world.accept();
    assert_eq!(answer(&mut world), Ok(ParentAnswer { parent_id: Some(NodeId::new(100 + u128::from(link.0))) }));
    assert!(world.child.handle_request("mcpax/parent", ask(NodeId::new(2)).as_bytes()).is_err());
    assert_eq!(world.child.handle_request("mcpax/register", b"{}").unwrap_err().error().message, "params_invalid");
    world.child.stop(at(world.now));
    assert_eq!(answer(&mut world), Ok(ParentAnswer { parent_id: None }));
}

#[test]
fn ax_24_the_subtree_is_announced_one_change_at_a_time() {
    let mut world = World::new(1);
    world.accept();
    let ids = |ids: &[u128]| ids.iter().map(|id| NodeId::new(*id)).chain([OWN]).collect::<BTreeSet<_>>();
    world.child.handle_subtree(at(world.now), ids(&[2]));
    world.child.handle_subtree(at(world.now), ids(&[2, 3]));
    world.drain();
    let first = world.take(Method::Subtree);
    assert_eq!(first.len(), 1);
    let change = |sent: &Sent| if let Request::Subtree(message) = &sent.request { message.change.clone() } else { panic!() };
    let joined = |id| SubtreeChange::Step { joined: BTreeSet::from([NodeId::new(id)]), left: BTreeSet::new() };
    assert_eq!(change(&first[0]), joined(2));
    world.reply(first[0].call, "{}");
    let second = world.take(Method::Subtree);
    assert_eq!(change(&second[0]), joined(3));
    world.refuse(second[0].call, &Refusal::RegistrationCycle { ids: vec![NodeId::new(3)], below_you: true });
    assert!(world.events.contains(&Event::Cycle { ids: vec![NodeId::new(3)] }));
    assert!(world.take(Method::Subtree).is_empty(), "what was refused is not sent again");
    world.child.handle_subtree(at(world.now), ids(&[2]));
    world.drain();
    let third = world.take(Method::Subtree);
    assert_eq!(change(&third[0]), SubtreeChange::All(ids(&[2])));
    world.refuse(third[0].call, &Refusal::SubtreeOutOfStep);
    assert_eq!(change(&world.take(Method::Subtree)[0]), SubtreeChange::All(ids(&[2])));
    world.pass(SECOND * 3, true);
    assert!(!world.take(Method::Subtree).is_empty(), "what nobody answered is sent anew");
}

#[test]
fn ax_24_a_cycle_unknown_to_the_parent_blames_nodes_below() {
    let mut world = World::new(1);
    world.refuse_for_good(&[OWN, NodeId::new(7)]);
    assert!(world.events.contains(&Event::Cycle { ids: vec![NodeId::new(7)] }));
    world.child.handle_subtree(at(world.now), BTreeSet::from([OWN]));
    world.drain();
    assert_eq!(world.take(Method::Register).len(), 1, "at once, now that it has gone");
}

#[test]
fn ax_24_a_cycle_known_to_the_parent_blames_nobody() {
    for at_first in [true, false] {
        let mut world = World::new(1);
        for below_you in [at_first, true, true] {
            world.until(Method::Register);
            let asked = world.take(Method::Register).pop().unwrap();
            world.refuse(asked.call, &Refusal::RegistrationCycle { ids: vec![OWN, NodeId::new(7)], below_you });
        }
        assert!(!world.events.iter().any(|event| matches!(event, Event::Cycle { .. })));
        world.child.handle_subtree(at(world.now), BTreeSet::from([OWN]));
        world.drain();
        assert!(world.take(Method::Register).is_empty(), "nothing was blamed for it");
    }
}

#[test]
fn ancestry_is_reported_and_withdrawn_with_the_parent() {
    let mut world = World::new(1);
    world.accept();
    let above = Ancestry { ancestors: vec![NodeId::new(100)], prefix_length: 5 + 2 };
    assert!(world.events.contains(&Event::Above(above)));
    world.child.handle_link_lost(at(world.now), LinkId(1));
    world.drain();
    assert_eq!(world.events.last(), Some(&Event::Above(Ancestry::default())));
}

#[test]
fn a_node_that_stands_above_itself_leaves() {
    let mut world = World::new(1);
    world.accept();
    let inside = HeartbeatAnswer { above: Ancestry { ancestors: vec![NodeId::new(100), OWN], prefix_length: 5 }, withheld: 0 };
    for _ in 0..2 {
        assert!(world.child.registered_at().is_some());
        world.step();
        let beat = world.take(Method::Heartbeat).pop().unwrap();
        world.reply(beat.call, &inside.encode());
    }
    assert!(world.events.contains(&Event::Lost { parent: 0, why: LostWhy::Cycle }));
    assert!(world.child.registered_at().is_none());
}

#[test]
fn a_subserver_that_slept_does_not_blame_its_parent() {
    let mut world = World::new(1);
    world.accept();
    world.pass(SECOND * 3, true);
    world.now += SECOND * 3600;
    world.child.handle_timeout(at(world.now));
    world.drain();
    assert!(world.child.registered_at().is_some());
    let beat = world.take(Method::Heartbeat).pop().unwrap();
    world.reply(beat.call, &HeartbeatAnswer::default().encode());
    world.pass(SECOND * 3, true);
    assert!(world.child.registered_at().is_some());
}

#[test]
fn it_leaves_when_it_is_told_to() {
    let mut world = World::new(1);
    let link = world.accept();
    world.child.stop(at(world.now));
    world.drain();
    let deregister = world.take(Method::Deregister).pop().unwrap();
    world.reply(deregister.call, "{}");
    assert_eq!((world.events.last(), world.hung_up.last()), (Some(&Event::Stopped), Some(&link)));
    assert_eq!(world.child.poll_timeout(), None);
}

#[test]
fn ax_25_a_mute_parent_loses_its_link_before_the_move() {
    let mut world = World::new(2);
    world.up = BTreeSet::from([1]);
    world.child.handle_link_lost(at(world.now), LinkId(1));
    world.sent.clear();
    world.until(Method::Register);
    let backup = world.accept();
    world.up.insert(0);
    world.until(Method::Deregister);
    world.until(Method::Register);
    assert!(world.hung_up.contains(&backup));
    world.accept();
    assert_eq!(world.child.registered_at().unwrap().0, 0);
}

#[test]
fn ax_24_a_liar_below_does_not_choose_the_parent() {
    let mut world = World::new(2);
    let liar = NodeId::new(7);
    world.child.handle_subtree(at(world.now), BTreeSet::from([OWN, liar]));
    let asked = world.refuse_for_good(&[liar]);
    world.child.handle_subtree(at(world.now), BTreeSet::from([OWN]));
    world.drain();
    let again = world.take(Method::Register).pop().unwrap();
    assert_eq!(again.link, asked.link, "the same parent, not the backup");
    world.child.handle_subtree(at(world.now), BTreeSet::from([OWN, liar]));
    world.refuse(again.call, &Refusal::RegistrationCycle { ids: vec![liar], below_you: false });
    world.until(Method::Register);
    assert_eq!(world.dialled.last().unwrap().1, 1, "but not for ever");
}
