//! Ownership of segments under any sequence of registrations, departures, breaks and returns: compared with a small model.

#![expect(clippy::disallowed_methods, reason = "a test has to begin at some time")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

use banyan_model::{Machine, Now, Segment};
use mesh_proto::authority::{Authority, Identity};
use mesh_proto::id::{LinkId, NodeId, RequestId, SessionId};
use mesh_proto::message::{Deregister, Register, RegistrationResult, Request};
use mesh_proto::parent::{Demand, IncomingRequest, Parent, ParentOutput, Settings, Transmit};
use mesh_proto::refusal::Refusal;
use mesh_proto::reply::Reply;
use proptest::collection::vec;
use proptest::prelude::*;

const GRACE: Duration = Duration::from_secs(10);
const SEGMENTS: [&str; 3] = ["a", "b", "c"];

/// Both clocks at an instant; no machine of the mesh reads the wall clock.
fn at(instant: Instant) -> Now {
    Now { instant, wall: SystemTime::UNIX_EPOCH }
}

/// Five servers: two without proof, two of one authority, and one of another.
const AUTHORITIES: [Option<&str>; 5] = [None, None, Some("x.example"), Some("x.example"), Some("y.example")];

#[derive(Debug, Clone, Copy)]
enum Step {
    Deregister(usize),
    LoseLink(usize),
    Pass(u64),
    Register(usize, usize),
}

fn step() -> impl Strategy<Value = Step> {
    let party = 0..AUTHORITIES.len();
    prop_oneof![
        5 => (party.clone(), 0..SEGMENTS.len()).prop_map(|(party, segment)| Step::Register(party, segment)),
        2 => party.clone().prop_map(Step::Deregister),
        2 => party.prop_map(Step::LoseLink),
        2 => (1..12u64).prop_map(Step::Pass),
    ]
}

/// The obvious owners of segments.
#[derive(Debug, Default)]
struct Model {
    /// By segment: the party, and the time of the loss.
    holders: BTreeMap<usize, (usize, Option<Duration>)>,
    claims: BTreeMap<usize, &'static str>,
    now: Duration,
}

impl Model {
    fn may_register(&self, party: usize, segment: usize) -> bool {
        let authority = AUTHORITIES[party];
        let claimed = self.claims.get(&segment).is_none_or(|owner| Some(*owner) == authority);
        let free = match self.holders.get(&segment) {
            None => true,
            Some((holder, lost)) => *holder == party || (lost.is_some() && authority.is_some() && AUTHORITIES[*holder] == authority),
        };
        claimed && free
    }

    fn register(&mut self, party: usize, segment: usize) {
        self.holders.retain(|_, (holder, _)| *holder != party);
        self.holders.insert(segment, (party, None));
        if let Some(authority) = AUTHORITIES[party] {
            self.claims.insert(segment, authority);
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.holders.retain(|_, (_, lost)| lost.is_none_or(|since| since + GRACE > self.now));
    }
}

struct World {
    parent: Parent,
    start: Instant,
    now: Duration,
    requests: u64,
    links: u64,
    /// By party: link and session.
    parties: BTreeMap<usize, (u64, Option<SessionId>)>,
}

impl World {
    fn new() -> Self {
        let mut settings = Settings::new(NodeId::new(0xA));
        settings.policy.sticky = Demand::Always;
        settings.grace = GRACE;
        let parent = Parent::new(settings, [1; 32]);
        Self { parent, start: Instant::now(), now: Duration::ZERO, requests: 0, links: 0, parties: BTreeMap::new() }
    }

    fn request(&mut self, party: usize, request: &Request) -> Option<Result<String, Refusal>> {
        self.requests += 1;
        let link = LinkId(self.parties.get(&party)?.0);
        let authority = AUTHORITIES[party].and_then(Authority::of_dns_name);
        let bare = Identity::bare(&format!("party {party}"));
        let identity = authority.into_iter().fold(bare, Identity::with);
        let (method, params) = request.encode();
        let (number, now) = (RequestId(self.requests), at(self.start + self.now));
        let incoming = IncomingRequest { link, request: number, identity: &identity, method: method.as_str(), params: params.as_bytes() };
        self.parent.handle_request(now, &incoming);
        loop {
            match self.parent.poll_output()? {
                ParentOutput::Event(_) => {}
                ParentOutput::Transmit(Transmit::Ask { call, .. }) => self.parent.handle_answer(now, call, Reply::Mute),
                ParentOutput::Transmit(Transmit::Answer { request, answer, .. }) if request == number => return Some(answer),
                ParentOutput::Transmit(Transmit::Answer { .. }) => {}
            }
        }
    }

    fn register(&mut self, party: usize, segment: usize) -> Option<bool> {
        let mut register = Register::plain(NodeId::new(party as u128), Segment::nearest(SEGMENTS[segment]));
        register.authority = AUTHORITIES[party].and_then(Authority::of_dns_name);
        if !self.parties.contains_key(&party) {
            self.links += 1;
            self.parties.insert(party, (self.links, None));
        }
        let answer = self.request(party, &Request::Register(Box::new(register)))?;
        let taken = answer.is_ok();
        if let (Ok(result), Some(known)) = (answer, self.parties.get_mut(&party)) {
            known.1 = RegistrationResult::decode(result.as_bytes()).ok().map(|registered| registered.session);
        }
        Some(taken)
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some((due, _)) = self.parent.poll_timeout().filter(|(due, _)| *due <= self.start + end) {
            self.parent.handle_timeout(at(due));
        }
        self.now = end;
    }

    /// By segment: the holder, and its presence.
    fn holders(&self) -> BTreeMap<usize, (usize, bool)> {
        let place = |segment: &Segment| SEGMENTS.iter().position(|known| *known == segment.as_str());
        let held =
            self.parent.sessions().filter_map(|s| Some((place(&s.segment)?, (usize::try_from(s.subserver_id.bits()).ok()?, s.is_live()))));
        held.collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn ax_12_a_segment_has_one_owner_in_any_story(steps in vec(step(), 0..60)) {
        let (mut world, mut model) = (World::new(), Model::default());
        for step in steps {
            match step {
                Step::Register(party, segment) => {
                    let may = model.may_register(party, segment);
                    prop_assert_eq!(world.register(party, segment), Some(may), "{:?} {:?}", step, model);
                    if may {
                        model.register(party, segment);
                    }
                }
                Step::Deregister(party) => {
                    if let Some((_, Some(session))) = world.parties.get(&party).cloned() {
                        world.request(party, &Request::Deregister(Deregister { session }));
                        model.holders.retain(|_, (holder, lost)| *holder != party || lost.is_some());
                    }
                }
                Step::LoseLink(party) => {
                    if let Some((link, _)) = world.parties.remove(&party) {
                        world.parent.handle_link_lost(at(world.start + world.now), LinkId(link));
                        let now = model.now;
                        let lost = model.holders.values_mut().filter(|(holder, lost)| *holder == party && lost.is_none());
                        lost.for_each(|(_, lost)| *lost = Some(now));
                    }
                }
                Step::Pass(seconds) => {
                    world.pass(Duration::from_secs(seconds));
                    model.pass(Duration::from_secs(seconds));
                }
            }
            let expected = model.holders.iter().map(|(segment, (party, lost))| (*segment, (*party, lost.is_none()))).collect();
            prop_assert_eq!(world.holders(), expected, "{:?} {:?}", step, model);
        }
    }
}
