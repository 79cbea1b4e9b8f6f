//! The state machine of an aggregator: registrations, the segments and tools they hold, and their ends (MCP-AX 4.2, 5.3, 6 and 13).
//!
//! The machine only decides: calls no tools, fetches no lists, and verifies no tokens or certificates; an
//! [`Identity`](crate::authority::Identity) comes in with each request. A peer's mistake is a [`Refusal`] or an ended session, and never
//! harms another peer.

mod below;
mod claims;
mod commit;
mod ended;
mod ending;
mod examine;
mod fetches;
mod lineage;
mod listing;
mod output;
mod questions;
mod queue;
mod registering;
mod session;
mod settings;
mod target;

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use banyan_model::{Machine, Now, Segment};

use crate::id::{CallId, LinkId, RequestId, SessionId, SessionKey};
use crate::message::{Ancestry, Deregister, HeartbeatAnswer, Request};
use crate::namespace::Namespace;
use crate::random::Random;
use crate::refusal::{Refusal, SessionEnd};
use crate::reply::Reply;
use crate::timers::Timers;
use below::Below;
use claims::Claims;
use ended::EndedSessions;
use fetches::Fetches;
use questions::Questions;
use queue::Queue;
use session::Sessions;

pub use claims::Claim;
pub use output::{Event, IncomingRequest, ParentOutput, Transmit};
pub use session::{Session, Standing};
pub use settings::{Demand, SegmentPolicy, Settings};
pub use target::Target;

/// Lateness of a timer beyond which the machine blames its own sleep instead of the peers.
const OVERSLEPT: Duration = Duration::from_secs(1);

/// Purpose of a timer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Admit,
    Ask(CallId),
    Fetch(SessionKey),
    Forget(SessionKey),
    Grace(Segment),
    Heartbeat(SessionKey),
    Refetch(SessionKey),
}

impl Timer {
    fn why(&self) -> &'static str {
        match self {
            Self::Admit => "registrations wait for their turn",
            Self::Ask(_) => "a question has not been answered",
            Self::Fetch(_) => "a list has not come",
            Self::Forget(_) => "a lost subserver need not be waited for any more",
            Self::Grace(_) => "the tools of a lost subserver are to go",
            Self::Heartbeat(_) => "a heartbeat is due",
            Self::Refetch(_) => "a list is to be fetched again",
        }
    }
}

/// The state machine of an aggregator.
#[derive(Debug)]
pub struct Parent {
    settings: Settings,
    random: Random,
    above: Ancestry,
    mounts: BTreeSet<Segment>,
    sessions: Sessions,
    claims: Claims,
    below: Below,
    namespace: Namespace,
    ended: EndedSessions,
    queue: Queue,
    questions: Questions,
    fetches: Fetches,
    timers: Timers<Timer>,
    transmits: VecDeque<Transmit>,
    events: VecDeque<Event>,
    namespace_changed: bool,
    subtree_changed: bool,
    /// Number of sessions so far.
    counted: u64,
}

impl Parent {
    /// Makes an aggregator without registrations. The seed makes session ids: secret, and never used twice.
    pub fn new(settings: Settings, seed: [u8; 32]) -> Self {
        Self {
            random: Random::new(seed),
            above: Ancestry::default(),
            mounts: BTreeSet::new(),
            sessions: Sessions::default(),
            claims: Claims::default(),
            below: Below::default(),
            namespace: Namespace::default(),
            ended: EndedSessions::default(),
            queue: Queue::new(&settings),
            questions: Questions::default(),
            fetches: Fetches::new(settings.fetches),
            timers: Timers::default(),
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            namespace_changed: false,
            subtree_changed: false,
            counted: 0,
            settings,
        }
    }

    /// Takes a request of MCP-AX. The answer comes out of [`Machine::poll_output`], at once or later.
    pub fn handle_request(&mut self, now: Now, incoming: &IncomingRequest<'_>) {
        let (link, request) = (incoming.link, incoming.request);
        let answer = match Request::decode(incoming.method, incoming.params) {
            Ok(Request::Register(register)) => return self.apply(now, incoming, register),
            Ok(Request::Heartbeat(beat)) => self.handle_heartbeat(now, link, &beat.session),
            Ok(Request::Deregister(message)) => self.handle_deregister(link, &message),
            Ok(Request::Subtree(message)) => self.handle_subtree(now, link, message),
            Ok(Request::Parent(_)) => Err(Refusal::MethodUnknown),
            Err(refusal) => Err(refusal),
        };
        self.answer(link, request, answer);
    }

    /// Takes the break of a link. All registrations over the link are lost.
    pub fn handle_link_lost(&mut self, now: Now, link: LinkId) {
        self.queue.forget(link);
        for case in self.questions.of_link(link, None) {
            self.drop_case(case);
        }
        for session in self.sessions.of_link(link) {
            self.lose(now, session, SessionEnd::LinkLost);
        }
        for call in self.questions.asked_over(link) {
            self.handle_answer(now, call, Reply::Lost);
        }
    }

    /// Gives the table of names.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Lists registered subservers, and lost ones still waited for, by segment.
    pub fn sessions(&self) -> impl Iterator<Item = &Session> {
        self.sessions.iter()
    }

    /// Gives a session.
    pub fn session(&self, key: SessionKey) -> Option<&Session> {
        self.sessions.get(key)
    }

    /// Finds the live session of this name on this link, for requests outside of MCP-AX.
    pub fn session_on(&self, link: LinkId, id: &SessionId) -> Option<SessionKey> {
        self.sessions.spoken_for(id, link)
    }

    /// Lists the live sessions on a link. A notification over a link with a single session belongs to that session.
    pub fn sessions_on(&self, link: LinkId) -> Vec<SessionKey> {
        self.sessions.of_link(link)
    }

    /// Lists the claims that outlive sessions (AX-12).
    pub fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.claims.iter()
    }

    /// Enters claims kept over a restart. To be called before the first registration.
    pub fn restore(&mut self, claims: impl IntoIterator<Item = Claim>) {
        for claim in claims {
            self.claims.enter(claim);
        }
    }

    /// Releases an authority's segment, on an operator's order. The current holder keeps the segment until the session ends, and makes no
    /// new claim before, whatever settings or lists come.
    pub fn release(&mut self, segment: &Segment) -> bool {
        let released = self.claims.release(segment);
        if released {
            self.sessions.release(segment);
            self.events.push_back(Event::ClaimReleased(segment.clone()));
        }
        released
    }

    /// Applies new settings of the operator: policies, the grace and the number of registrations; rates stay. The lists of segments with a
    /// changed policy are fetched again. Holders without a newly required proof, or with another permission from now on, are put out.
    pub fn handle_settings(&mut self, now: Now, settings: Settings) {
        let before = std::mem::replace(&mut self.settings, settings);
        let is_other = |session: &&Session| before.policy(&session.segment) != self.settings.policy(&session.segment);
        let others: Vec<Session> = self.sessions.iter().filter(is_other).cloned().collect();
        for session in others {
            let policy = self.settings.policy(&session.segment);
            let is_unproven = !session.proven && policy.proof == Demand::Always;
            if is_unproven || session.asked_scope.min(policy.most_scope) != session.auth_scope {
                self.put_out(session.key);
                continue;
            }
            if session.is_live() {
                self.claim(&session, Demand::Always);
            }
            self.want_list(now, session.key);
        }
    }

    /// Ends a session on the operator's order.
    pub fn put_out(&mut self, session: SessionKey) {
        self.end_session(session, SessionEnd::NotAdmitted);
    }

    /// Takes the segments of configured mounts, closed to registration from now on. Current holders stay.
    pub fn handle_mounts(&mut self, segments: BTreeSet<Segment>) {
        self.mounts = segments;
    }

    fn handle_heartbeat(&mut self, now: Now, link: LinkId, id: &SessionId) -> Result<String, Refusal> {
        let session = self.touch(now, link, id)?;
        let withheld = self.withheld(session);
        Ok(HeartbeatAnswer { above: self.shown_above(), withheld }.encode())
    }

    fn handle_deregister(&mut self, link: LinkId, message: &Deregister) -> Result<String, Refusal> {
        let session = self.spoken_for(link, &message.session)?;
        self.end_session(session, SessionEnd::Deregistered);
        Ok(Deregister::RESULT.to_owned())
    }

    /// Finds the session of a request on this link.
    fn spoken_for(&self, link: LinkId, id: &SessionId) -> Result<SessionKey, Refusal> {
        self.sessions.spoken_for(id, link).ok_or_else(|| Refusal::UnknownSession { ended: self.ended.why(id) })
    }

    /// Finds the session of a request, and notes the sign of life.
    fn touch(&mut self, now: Now, link: LinkId, id: &SessionId) -> Result<SessionKey, Refusal> {
        let key = self.spoken_for(link, id)?;
        if let Some(session) = self.sessions.live(key) {
            session.heard_at = now.instant;
            session.excused = false;
            if !session.interval.is_zero() {
                self.timers.set(Timer::Heartbeat(key), now.instant + session.interval * 3);
            }
        }
        Ok(key)
    }

    /// Excuses missed heartbeats after a sleep. A machine woken much too late (suspended, starved) may have slept through heartbeats that
    /// did arrive. So each peer gets one more interval, once.
    fn excuse(&mut self, now: Now) {
        let slept = self.timers.next().is_some_and(|(at, _)| at + OVERSLEPT < now.instant);
        if !slept {
            return;
        }
        let keys: Vec<SessionKey> = self.sessions.iter().filter(|s| s.is_live() && !s.excused).map(|s| s.key).collect();
        for key in keys {
            let timer = Timer::Heartbeat(key);
            if let Some(session) = self.sessions.live(key)
                && self.timers.at(&timer).is_some_and(|at| at < now.instant + session.interval)
            {
                session.excused = true;
                self.timers.set(timer, now.instant + session.interval);
            }
        }
    }

    fn answer(&mut self, link: LinkId, request: RequestId, answer: Result<String, Refusal>) {
        self.transmits.push_back(Transmit::Answer { link, request, answer });
    }
}

impl Machine for Parent {
    type Output = ParentOutput;

    fn handle_timeout(&mut self, now: Now) {
        self.excuse(now);
        while let Some((_, timer)) = self.timers.expire(now.instant) {
            match timer {
                Timer::Admit => self.admit(now),
                Timer::Ask(call) => self.handle_answer(now, call, Reply::Lost),
                Timer::Fetch(session) => self.handle_tools_failed(now, session),
                Timer::Forget(session) => self.forget(session),
                Timer::Grace(segment) => self.remove_part(&segment),
                Timer::Heartbeat(session) => self.lose(now, session, SessionEnd::Silent),
                Timer::Refetch(session) => self.want_list(now, session),
            }
        }
    }

    fn poll_output(&mut self) -> Option<ParentOutput> {
        let event = self.events.pop_front();
        // The table and the subtree are told of last, once for all that happened before.
        let event = event.or_else(|| std::mem::take(&mut self.subtree_changed).then_some(Event::SubtreeChanged));
        let event = event.or_else(|| std::mem::take(&mut self.namespace_changed).then_some(Event::NamespaceChanged));
        event.map(ParentOutput::Event).or_else(|| self.transmits.pop_front().map(ParentOutput::Transmit))
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        self.timers.next().map(|(at, timer)| (at, timer.why()))
    }
}
