//! Choice of a protocol for two agents (AEPB, section 4): the lowest sum of both priorities, never below the demands of either.
//! Both sides come to the same choice. Fetches no document, and asks no gateway.

use std::cmp::Reverse;

use super::constraints::{AssuranceLevel, ProtocolSecurity};
use super::document::{CapabilityDocument, OfferedProtocol};
use super::lifecycle::LifecycleStatus;

/// A side of a negotiation: its offers, and its demands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NegotiatingParty {
    pub protocols: Vec<OfferedProtocol>,
    pub assurance: AssuranceLevel,
    pub least_security: ProtocolSecurity,
    pub least_assurance: AssuranceLevel,
    pub status: LifecycleStatus,
}

impl NegotiatingParty {
    /// Makes the side of a document. Documents name no demands, so those are the least.
    pub fn new(document: &CapabilityDocument) -> Self {
        let (protocols, assurance, status) = (document.protocols.clone(), document.assurance, document.lifecycle.status);
        Self { protocols, assurance, least_security: ProtocolSecurity::Plain, least_assurance: AssuranceLevel::L1, status }
    }
}

/// Outcome of a negotiation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Negotiation {
    /// Protocol in use from now on; without a protocol, nothing is sent.
    pub chosen: Result<ProtocolChoice, NoProtocol>,
    /// Every other protocol, this side's first.
    pub rejected: Vec<RejectedProtocol>,
}

/// A protocol spoken by both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolChoice {
    pub own: OfferedProtocol,
    pub peer: OfferedProtocol,
    /// Sum of both priorities.
    pub priority: u64,
    /// Security of the weaker endpoint.
    pub security: ProtocolSecurity,
}

/// A side of a negotiation, seen from this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NegotiatingSide {
    Own,
    Peer,
}

/// A protocol passed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedProtocol {
    pub side: NegotiatingSide,
    pub protocol: OfferedProtocol,
    pub reason: ProtocolRejection,
}

/// Reasons not to choose a protocol, in the order of distance from a choice: the furthest first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum ProtocolRejection {
    #[error("only one side speaks it")]
    NotShared,
    #[error("the other side speaks a version that does not go with it")]
    VersionsApart,
    #[error("its security is {}, and {} is demanded", .0.name(), .1.name())]
    TooWeak(ProtocolSecurity, ProtocolSecurity),
    #[error("the evidence of a side is {}, and {} is demanded", .0.name(), .1.name())]
    LittleAssurance(AssuranceLevel, AssuranceLevel),
    #[error("a side is {}, and takes no new work", .0.name())]
    NoNewWork(LifecycleStatus),
    #[error("another protocol is preferred")]
    LessPreferred,
}

/// Reasons for no choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoProtocol {
    /// The reaction is to look for a gateway.
    #[error("no protocol is spoken by both sides")]
    NotShared,
    /// The document is refused: a gateway would not make it stronger.
    #[error("no protocol has the security {}, which is the least that is allowed", .0.name())]
    TooWeak(ProtocolSecurity),
    #[error("the evidence of a side is below {}, which is the least that is allowed", .0.name())]
    LittleAssurance(AssuranceLevel),
    /// The document is refused: a gateway would lead to the same agent.
    #[error("a side is {}, and takes no new work", .0.name())]
    NoNewWork(LifecycleStatus),
}

/// Chooses a protocol between this side and a peer.
pub fn negotiate(own: &NegotiatingParty, peer: &NegotiatingParty) -> Negotiation {
    let least = own.least_security.max(peer.least_security);
    let assurance = (own.assurance.min(peer.assurance), own.least_assurance.max(peer.least_assurance));
    let ending = [own.status, peer.status].into_iter().filter(|status| !status.takes_work()).max();
    let judge = |one: &OfferedProtocol, other: &OfferedProtocol| {
        fits(one, other, least, assurance).or_else(|| ending.map(ProtocolRejection::NoNewWork))
    };
    let pairs = own.protocols.iter().flat_map(|ours| peer.protocols.iter().map(move |theirs| (ours, theirs)));
    let fitting = pairs.filter(|(ours, theirs)| judge(ours, theirs).is_none());
    let best = fitting.min_by_key(|(ours, theirs)| rank(ours, theirs));
    let reasons = |side, list: &[OfferedProtocol], others: &[OfferedProtocol], chosen: Option<&OfferedProtocol>| {
        let left = list.iter().filter(|one| chosen.is_none_or(|chosen| !std::ptr::eq(*one, chosen)));
        let reason = |one: &OfferedProtocol| {
            let nearest = others.iter().map(|other| judge(one, other).unwrap_or(ProtocolRejection::LessPreferred)).max();
            nearest.unwrap_or(ProtocolRejection::NotShared)
        };
        left.map(|one| RejectedProtocol { side, protocol: one.clone(), reason: reason(one) }).collect::<Vec<_>>()
    };
    let mut rejected = reasons(NegotiatingSide::Own, &own.protocols, &peer.protocols, best.map(|(ours, _)| ours));
    rejected.extend(reasons(NegotiatingSide::Peer, &peer.protocols, &own.protocols, best.map(|(_, theirs)| theirs)));
    let chosen = best.map(|(ours, theirs)| ProtocolChoice {
        own: ours.clone(),
        peer: theirs.clone(),
        priority: u64::from(ours.priority) + u64::from(theirs.priority),
        security: ours.security.min(theirs.security),
    });
    let is_weak = |party: &NegotiatingParty| party.protocols.iter().all(|one| one.security < least);
    let chosen = chosen.ok_or_else(|| {
        if let Some(status) = ending {
            NoProtocol::NoNewWork(status)
        } else if assurance.0 < assurance.1 {
            NoProtocol::LittleAssurance(assurance.1)
        } else if is_weak(own) || is_weak(peer) || rejected.iter().any(|one| matches!(one.reason, ProtocolRejection::TooWeak(..))) {
            NoProtocol::TooWeak(least)
        } else {
            NoProtocol::NotShared
        }
    });
    Negotiation { chosen, rejected }
}

/// Finds a reason against a pair of protocols.
fn fits(
    one: &OfferedProtocol,
    other: &OfferedProtocol,
    least: ProtocolSecurity,
    (assurance, demanded): (AssuranceLevel, AssuranceLevel),
) -> Option<ProtocolRejection> {
    let security = one.security.min(other.security);
    if one.id != other.id {
        return Some(ProtocolRejection::NotShared);
    }
    if !are_compatible(&one.version, &other.version) {
        return Some(ProtocolRejection::VersionsApart);
    }
    if security < least {
        return Some(ProtocolRejection::TooWeak(security, least));
    }
    (assurance < demanded).then_some(ProtocolRejection::LittleAssurance(assurance, demanded))
}

/// Order of preference, the same from both sides: priority, binding, the later version, then the endpoints.
fn rank<'a>(one: &'a OfferedProtocol, other: &'a OfferedProtocol) -> impl Ord + use<'a> {
    let versions = [&one.version, &other.version].map(|version| (numbers(version), version));
    let (lower, higher) = if versions[0] <= versions[1] { (0, 1) } else { (1, 0) };
    let versions = Reverse([&versions[lower], &versions[higher]].map(Clone::clone));
    let mut endpoints = [&one.endpoint, &other.endpoint];
    endpoints.sort_unstable();
    (u64::from(one.priority) + u64::from(other.priority), &one.id, versions, endpoints)
}

/// Checks that two versions of a binding understand each other: equal dates, or numbers with one major number.
fn are_compatible(one: &str, other: &str) -> bool {
    let breaking = |version: &str| -> String {
        let mut parts = version.split('.');
        let first = parts.next().unwrap_or_default();
        if first == "0" { format!("0.{}", parts.next().unwrap_or_default()) } else { first.to_owned() }
    };
    one == other || breaking(one) == breaking(other)
}

/// Numbers of a version, for the order of versions.
fn numbers(version: &str) -> Vec<u64> {
    version.split(['.', '-']).map(|part| part.parse().unwrap_or(0)).collect()
}
