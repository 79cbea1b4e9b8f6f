//! The machine of a subserver: it keeps one registration with one of its parents (MCP-AX 6, 13.3 and 13.4).
//!
//! It never asks for a second registration before it has given up the first, so that it is never registered with two parents of one
//! tree by its own doing. It dials nobody itself, and does not know what its tools are.

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
use crate::message::{Above, AskParent, ParentIs, Request};
use crate::random::Random;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::timers::Timers;
use lineage::Told;

pub use output::{ChildOutput, Event, LostWhy, Transmit};
pub use settings::ChildSettings;

/// What a timer is for.
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

/// Where it stands.
#[derive(Debug, Clone)]
enum State {
    /// A connection is being made.
    Dialling { parent: usize },
    /// It gives up its registration, for another parent to which a link is open, or for good.
    Leaving { from: Place, call: CallId, then: Then },
    /// It is registered.
    Registered(Box<Membership>),
    /// It waits for the answer to a registration. The link to the parent that it left is kept until then.
    Registering { at: Place, call: CallId, fallback: Option<Place> },
    /// It does nothing.
    Stopped,
    /// It waits before it tries again, over a link that is still open or a new one.
    Waiting { parent: usize, link: Option<LinkId> },
}

/// What comes after leaving a parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    /// To register there.
    Register(Place),
    /// Nothing.
    Stop,
}

/// A parent and the link to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    parent: usize,
    link: LinkId,
}

/// A registration.
#[derive(Debug, Clone)]
struct Membership {
    at: Place,
    session: SessionId,
    parent_id: Option<NodeId>,
    segment_length: usize,
    above: Above,
    /// The heartbeats that were sent last.
    heartbeats: BTreeSet<CallId>,
    told: Told,
    withheld: u64,
    /// Whether silence was excused since the parent was last heard of.
    excused: bool,
    /// In how many answers in a row its own id stood above it.
    own_id_above: u32,
    /// A better parent that is being dialled.
    scouting: Option<usize>,
}

/// The machine of one subserver.
#[derive(Debug)]
pub struct Child {
    settings: ChildSettings,
    random: Random,
    state: State,
    timers: Timers<Timer>,
    transmits: VecDeque<Transmit>,
    events: VecDeque<Event>,
    /// The aggregators below and itself.
    subtree: BTreeSet<NodeId>,
    next_call: u64,
    /// What stood below when a registration was refused for it, and is not to.
    unwanted: Vec<NodeId>,
    /// Whether it tried again without that since it was last registered.
    cleaned: bool,
    /// The parent that refused it for a cycle of which that parent does not know yet, and since when it does.
    doubted: Option<(usize, Instant)>,
    /// How often it has tried since it was last well.
    attempts: u32,
    /// How often it went back to a better parent in vain.
    returns: u32,
}

impl Child {
    /// A subserver that is registered with nobody. The seed makes its jitter.
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

    /// Joins the tree, if it is not about to.
    pub fn start(&mut self, now: Now) {
        if matches!(self.state, State::Stopped) && self.settings.parents > 0 {
            self.dial(now, 0);
        }
    }

    /// A connection to a parent is there.
    pub fn handle_link_up(&mut self, now: Now, parent: usize, link: LinkId) {
        match &mut self.state {
            State::Dialling { parent: dialled } if *dialled == parent => self.register(now, Place { parent, link }, None),
            State::Registered(membership) if membership.scouting == Some(parent) => self.leave_for(now, Place { parent, link }),
            State::Dialling { .. }
            | State::Leaving { .. }
            | State::Registered(_)
            | State::Registering { .. }
            | State::Stopped
            | State::Waiting { .. } => self.hang_up(link),
        }
    }

    /// No connection to a parent could be made.
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

    /// A link broke.
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

    /// A request was answered, or never will be.
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

    /// A parent asks something: whom it is registered with (AX-25).
    ///
    /// # Errors
    /// When it is another question, or meant for another subserver.
    pub fn handle_request(&mut self, method: &str, params: &[u8]) -> Result<String, Refusal> {
        let Request::Parent(AskParent { subserver_id, .. }) = Request::decode(method, params)? else { return Err(Refusal::MethodUnknown) };
        if subserver_id != self.settings.register.subserver_id {
            return Err(Refusal::ParamsInvalid { member: "subserver_id".into(), why: "is not that of this server".into() });
        }
        Ok(ParentIs { parent_id: self.parent_id() }.encode())
    }

    /// With whom it is registered, where the parent said who it is.
    pub fn parent_id(&self) -> Option<NodeId> {
        match &self.state {
            State::Registered(membership) => membership.parent_id,
            State::Dialling { .. } | State::Leaving { .. } | State::Registering { .. } | State::Stopped | State::Waiting { .. } => None,
        }
    }

    /// The parent it is registered with, and the link.
    pub fn registered_at(&self) -> Option<(usize, LinkId)> {
        match &self.state {
            State::Registered(membership) => Some((membership.at.parent, membership.at.link)),
            State::Dialling { .. } | State::Leaving { .. } | State::Registering { .. } | State::Stopped | State::Waiting { .. } => None,
        }
    }

    /// The link over which to say that a list changed: that on which it is registered, or asks to be. The parent may have taken the
    /// registration already and be fetching the list, before the answer is here.
    pub fn link(&self) -> Option<LinkId> {
        match &self.state {
            State::Registered(membership) => Some(membership.at.link),
            State::Registering { at, .. } => Some(at.link),
            State::Dialling { .. } | State::Leaving { .. } | State::Stopped | State::Waiting { .. } => None,
        }
    }

    /// Its session.
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
