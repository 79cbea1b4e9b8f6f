//! The state machine of a subserver: keeps one registration with one of several parents (MCP-AX 6, 13.3 and 13.4).
//!
//! The machine gives up a registration before asking for the next, and so never registers twice in one tree by its own doing. Dials no
//! connection, and does not know the tools.

mod joining;
mod lineage;
mod living;
mod moving;
mod output;
mod settings;

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use banyan_model::{Machine, Now};

use crate::id::{CallId, LinkId, NodeId, SessionId};
use crate::message::{Ancestry, AskParent, ParentAnswer, Request};
use crate::random::Random;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::timers::Timers;
use lineage::KnownSubtree;

pub use output::{ChildOutput, Event, LostWhy, Transmit};
pub use settings::ChildSettings;

/// Purpose of a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Answer,
    Dial,
    Heartbeat,
    Return,
    Silence,
}

impl Timer {
    fn why(self) -> &'static str {
        match self {
            Self::Answer => "an answer has not come",
            Self::Dial => "a parent is to be tried",
            Self::Heartbeat => "a heartbeat is to be sent",
            Self::Return => "a parent that is preferred is to be tried",
            Self::Silence => "the parent has not been heard of",
        }
    }
}

/// State of the machine.
#[derive(Debug, Clone)]
enum State {
    /// A connection is being made.
    Dialling {
        parent: usize,
    },
    /// A registration is being given up, for another parent with an open link, or for good.
    Leaving {
        from: ParentLink,
        call: CallId,
        then: Then,
    },
    Registered(Box<Membership>),
    /// A registration waits for an answer. The link to the previous parent is kept meanwhile.
    Registering {
        at: ParentLink,
        call: CallId,
        fallback: Option<ParentLink>,
    },
    Stopped,
    /// A pause before the next attempt, over an open link or a new one.
    Waiting {
        parent: usize,
        link: Option<LinkId>,
    },
}

/// Plan after leaving a parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Register(ParentLink),
    Stop,
}

/// A parent and the link to that parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ParentLink {
    parent: usize,
    link: LinkId,
}

/// A registration.
#[derive(Debug, Clone)]
struct Membership {
    at: ParentLink,
    session: SessionId,
    parent_id: Option<NodeId>,
    segment_length: usize,
    above: Ancestry,
    /// The last heartbeats.
    heartbeats: BTreeSet<CallId>,
    told: KnownSubtree,
    withheld: u64,
    /// Silence was excused once since the last sign of the parent.
    excused: bool,
    /// Consecutive answers with the subserver's own id among the ancestors.
    own_id_above: u32,
    /// A preferred parent being dialled.
    scouting: Option<usize>,
}

/// The state machine of a subserver.
#[derive(Debug)]
pub struct Child {
    settings: ChildSettings,
    random: Random,
    state: State,
    timers: Timers<Timer>,
    transmits: VecDeque<Transmit>,
    events: VecDeque<Event>,
    /// Ids of the aggregators below, and the own id.
    subtree: BTreeSet<NodeId>,
    next_call: u64,
    /// Ids below that led to the refusal of a registration and have to go.
    unwanted: Vec<NodeId>,
    /// A registration without the unwanted ids was tried since the last success.
    cleaned: bool,
    /// A parent that refused for a cycle unknown to it, and the time of the first such refusal.
    doubted: Option<(usize, Instant)>,
    /// Attempts since the last sound registration.
    attempts: u32,
    /// Vain returns to a preferred parent.
    returns: u32,
}

impl Child {
    /// Makes a subserver without a registration. The seed makes the jitter.
    pub fn new(settings: ChildSettings, seed: [u8; 32]) -> Self {
        let subtree = settings.register.subtree.clone().unwrap_or_default();
        Self {
            settings,
            random: Random::new(seed),
            state: State::Stopped,
            timers: Timers::default(),
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            subtree,
            unwanted: Vec::new(),
            cleaned: false,
            doubted: None,
            next_call: 0,
            attempts: 0,
            returns: 0,
        }
    }

    /// Joins the tree; without effect once started.
    pub fn start(&mut self, now: Now) {
        if matches!(self.state, State::Stopped) && self.settings.parents > 0 {
            self.dial(now, 0);
        }
    }

    /// Takes a new connection to a parent.
    pub fn handle_link_up(&mut self, now: Now, parent: usize, link: LinkId) {
        match &mut self.state {
            State::Dialling { parent: dialled } if *dialled == parent => self.register(now, ParentLink { parent, link }, None),
            State::Registered(membership) if membership.scouting == Some(parent) => self.leave_for(now, ParentLink { parent, link }),
            State::Dialling { .. }
            | State::Leaving { .. }
            | State::Registered(_)
            | State::Registering { .. }
            | State::Stopped
            | State::Waiting { .. } => self.hang_up(link),
        }
    }

    /// Takes the failure of a connection to a parent.
    pub fn handle_dial_failed(&mut self, now: Now, parent: usize) {
        match &self.state {
            State::Dialling { parent: dialled } if *dialled == parent => self.try_next(now, parent),
            State::Registered(membership) if membership.scouting == Some(parent) => self.return_later(now),
            State::Dialling { .. }
            | State::Leaving { .. }
            | State::Registered(_)
            | State::Registering { .. }
            | State::Stopped
            | State::Waiting { .. } => {}
        }
    }

    /// Takes the break of a link.
    pub fn handle_link_lost(&mut self, now: Now, link: LinkId) {
        match self.state.clone() {
            State::Registered(membership) if membership.at.link == link => self.lose(now, &membership, LostWhy::LinkLost),
            State::Registering { at, fallback, .. } if at.link == link => self.not_registered(now, at, fallback),
            State::Registering { at, call, fallback: Some(old) } if old.link == link => {
                self.state = State::Registering { at, call, fallback: None };
            }
            State::Leaving { from, then, .. } if from.link == link => self.left_without_link(now, from, then),
            State::Leaving { from, call, then: Then::Register(next) } if next.link == link => {
                self.state = State::Leaving { from, call, then: Then::Register(from) };
            }
            State::Waiting { parent, link: Some(held) } if held == link => self.state = State::Waiting { parent, link: None },
            State::Dialling { .. }
            | State::Leaving { .. }
            | State::Registered(_)
            | State::Registering { .. }
            | State::Stopped
            | State::Waiting { .. } => {}
        }
    }

    /// Takes the answer to a request, or its absence.
    pub fn handle_answer(&mut self, now: Now, call: CallId, reply: Reply<'_>) {
        match self.state.clone() {
            State::Registering { at, call: asked, fallback } if asked == call => self.registration_answered(now, at, fallback, reply),
            State::Leaving { from, call: asked, then } if asked == call => match reply {
                Reply::Error(_) | Reply::Result(_) => self.left(now, from, then),
                Reply::Lost | Reply::Mute => self.left_unheard(now, from, then),
            },
            State::Registered(membership) => self.membership_answered(now, &membership, call, reply),
            State::Dialling { .. } | State::Leaving { .. } | State::Registering { .. } | State::Stopped | State::Waiting { .. } => {}
        }
    }

    /// Answers a parent's question for the current registration (AX-25).
    ///
    /// # Errors
    /// When the question is another, or meant for another subserver.
    pub fn handle_request(&mut self, method: &str, params: &[u8]) -> Result<String, Refusal> {
        let Request::Parent(AskParent { subserver_id, .. }) = Request::decode(method, params)? else { return Err(Refusal::MethodUnknown) };
        if subserver_id != self.settings.register.subserver_id {
            return Err(Refusal::ParamsInvalid { member: "subserver_id".into(), why: "is not that of this server".into() });
        }
        Ok(ParentAnswer { parent_id: self.parent_id() }.encode())
    }

    /// Gives the id of the current parent, where known.
    pub fn parent_id(&self) -> Option<NodeId> {
        match &self.state {
            State::Registered(membership) => membership.parent_id,
            State::Dialling { .. } | State::Leaving { .. } | State::Registering { .. } | State::Stopped | State::Waiting { .. } => None,
        }
    }

    /// Gives the current parent, with the link.
    pub fn registered_at(&self) -> Option<(usize, LinkId)> {
        match &self.state {
            State::Registered(membership) => Some((membership.at.parent, membership.at.link)),
            State::Dialling { .. } | State::Leaving { .. } | State::Registering { .. } | State::Stopped | State::Waiting { .. } => None,
        }
    }

    /// Gives the link for announcing a changed list: the link of the registration, granted or requested. A parent may grant a registration
    /// and fetch the list before the answer arrives here.
    pub fn link(&self) -> Option<LinkId> {
        match &self.state {
            State::Registered(membership) => Some(membership.at.link),
            State::Registering { at, .. } => Some(at.link),
            State::Dialling { .. } | State::Leaving { .. } | State::Stopped | State::Waiting { .. } => None,
        }
    }

    /// Gives the session.
    pub fn session(&self) -> Option<&SessionId> {
        match &self.state {
            State::Registered(membership) => Some(&membership.session),
            State::Dialling { .. } | State::Leaving { .. } | State::Registering { .. } | State::Stopped | State::Waiting { .. } => None,
        }
    }

    fn interval(&self) -> Duration {
        self.settings.register.heartbeat_interval
    }

    fn request(&mut self, link: LinkId, request: &Request) -> CallId {
        self.next_call += 1;
        let call = CallId(self.next_call);
        let (method, params) = request.encode();
        self.transmits.push_back(Transmit::Request { link, call, method, params });
        call
    }

    fn hang_up(&mut self, link: LinkId) {
        self.transmits.push_back(Transmit::HangUp { link });
    }
}

impl Machine for Child {
    type Output = ChildOutput;

    fn handle_timeout(&mut self, now: Now) {
        while let Some((due, timer)) = self.timers.expire(now.instant) {
            match timer {
                Timer::Answer => self.answer_missing(now),
                Timer::Dial => self.try_again(now),
                Timer::Heartbeat => self.beat(now),
                Timer::Return => self.scout(now),
                Timer::Silence => self.silence(now, due),
            }
        }
    }

    fn poll_output(&mut self) -> Option<ChildOutput> {
        self.events.pop_front().map(ChildOutput::Event).or_else(|| self.transmits.pop_front().map(ChildOutput::Transmit))
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        self.timers.next().map(|(at, timer)| (at, timer.why()))
    }
}
