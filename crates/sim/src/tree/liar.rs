//! Nodes that lie: they speak the protocol without its machine, to claim others' property. The consequences are not judged here.

use std::collections::BTreeSet;

use banyan_model::Segment;
use mesh_proto::authority::Identity;
use mesh_proto::id::{NodeId, SessionId};
use mesh_proto::message::{Deregister, Heartbeat, Register, RegistrationResult, Request, Subtree, SubtreeChange};

use super::node::Node;
use super::plan::INTERVAL;
use crate::random::Random;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lie {
    /// Claims that others stand below it.
    Below,
    /// The same, but later.
    BelowLater,
    /// Lists dotted names without being an aggregator.
    Dots,
    /// Uses the id of another.
    Id,
    /// Speaks for foreign sessions.
    Session,
    /// Wants the segment of another.
    Segment,
}

const LIES: [Lie; 6] = [Lie::Below, Lie::BelowLater, Lie::Dots, Lie::Id, Lie::Session, Lie::Segment];

/// A liar, with one link to one aggregator.
#[derive(Debug)]
pub(super) struct Liar {
    pub(super) at: usize,
    pub(super) link: Option<u64>,
    pub(super) identity: Identity,
    number: usize,
    lie: Lie,
    victim: usize,
    session: Option<SessionId>,
    version: u64,
}

impl Liar {
    pub(super) fn draw(number: usize, nodes: &[Node], random: &mut Random) -> Option<Self> {
        let aggregators: Vec<usize> = (0..nodes.len()).filter(|at| nodes[*at].plan.aggregates).collect();
        let at = random.pick(&aggregators)?;
        let lie = random.pick(&LIES)?;
        let identity = Identity::bare("liar");
        Some(Self { at, link: None, identity, number, lie, victim: random.below(nodes.len()), session: None, version: 0 })
    }

    /// Makes the next request.
    pub(super) fn speak(&mut self, nodes: &[Node]) -> Request {
        let victim = &nodes[self.victim];
        match (self.lie, &self.session) {
            (Lie::BelowLater, Some(session)) => {
                self.version += 1;
                let change = SubtreeChange::Step { joined: BTreeSet::from([victim.id]), left: BTreeSet::new() };
                Request::Subtree(Subtree { session: session.clone(), version: self.version, change })
            }
            (Lie::Session, Some(session)) => {
                let guess = SessionId::of_bits(u128::from(self.version));
                self.version += 1;
                if self.version.is_multiple_of(2) {
                    return Request::Heartbeat(Heartbeat { session: session.clone() });
                }
                Request::Deregister(Deregister { session: guess })
            }
            (_, Some(session)) => Request::Heartbeat(Heartbeat { session: session.clone() }),
            (_, None) => Request::Register(Box::new(self.register(victim))),
        }
    }

    fn register(&self, victim: &Node) -> Register {
        let own = NodeId::new(9000 + self.number as u128);
        let mut register = Register::plain(own, Segment::nearest(&format!("liar{}", self.number)));
        register.heartbeat_interval = INTERVAL;
        match self.lie {
            Lie::Below => {
                register.aggregator_id = Some(own);
                register.subtree = Some(BTreeSet::from([own, victim.id]));
            }
            Lie::BelowLater => {
                register.aggregator_id = Some(own);
                register.subtree = Some(BTreeSet::from([own]));
            }
            Lie::Id => register.subserver_id = victim.id,
            Lie::Segment => register.segment = victim.segment.clone(),
            Lie::Dots | Lie::Session => {}
        }
        register
    }

    /// Takes an answer.
    pub(super) fn hear(&mut self, answer: &Result<String, String>) {
        match answer {
            Ok(result) => {
                if let Ok(registered) = RegistrationResult::decode(result.as_bytes()) {
                    self.session = Some(registered.session);
                }
            }
            Err(error) if error.contains("unknown_session") && self.lie != Lie::Session => self.session = None,
            Err(_) => {}
        }
    }

    pub(super) fn names(&self) -> &'static [&'static str] {
        if self.lie == Lie::Dots { &["ok", "n1.a"] } else { &["ok"] }
    }

    /// Begins anew with nothing.
    pub(super) fn forget(&mut self) {
        (self.link, self.session, self.version) = (None, None, 0);
    }
}
