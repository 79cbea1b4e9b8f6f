//! Refusals of requests (AX-27): a code, a stable message, and data with advice. Does not cover failed calls of tools.
//!
//! Codes -31001 to -31019 stand for a single refusal each. JSON-RPC leaves the numbers above -32000 to applications, and no refused call of a
//! tool has any of these codes.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::authority::Authority;
use crate::id::NodeId;

/// A refusal. One variant for each reaction of the refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The alleged authority is not among the proved.
    #[error(
        "you claim `{claimed}` and prove another; register with the authority of your token or certificate, or get one for `{claimed}`"
    )]
    AuthorityMismatch { claimed: Authority },
    /// The namespace takes proved authorities only.
    #[error(
        "the segment `{segment}` takes no one without proof; send `authority` with a signed token or a client certificate that names it"
    )]
    AuthorityRequired { segment: String },
    /// A plain subserver lists a dotted name (AX-14).
    #[error(
        "the tool name `{name}` holds a dot; only an aggregator, which sends `x-mcpax-subtree-ids`, may list such names: rename the tool"
    )]
    DottedName { name: String },
    /// Two live nodes have one subserver id.
    #[error("another live server is registered here with this subserver_id; give each server an id of its own, and keep it over restarts")]
    DuplicateSubserver {
        /// Time until the other one may be gone.
        retry_after: Duration,
    },
    #[error("{most} servers are registered here already, which is the limit; register elsewhere, or raise it")]
    Full { most: usize },
    /// An interval neither 0 nor in range.
    #[error("heartbeat_interval_ms is {given}; use 0 for none, or {least} to {most}")]
    HeartbeatInterval {
        /// Milliseconds.
        given: u64,
        /// Milliseconds.
        least: u64,
        /// Milliseconds.
        most: u64,
    },
    #[error("there is no such method; use mcpax/register, mcpax/heartbeat, mcpax/deregister, mcpax/subtree or mcpax/parent")]
    MethodUnknown,
    /// The name is too long below the prefixes above (AX-10).
    #[error("`{name}` and what stands before it have {length} characters, 255 are allowed; shorten the name or a segment above it")]
    NameTooLong {
        name: String,
        /// Length of the whole name.
        length: usize,
    },
    /// The segment has another holder (AX-11, AX-12).
    #[error("the segment `{segment}` belongs to {}; choose another segment{}", .holder.words(), if .retry_after.is_some() { ", or wait" } else { "" })]
    NamespaceConflict {
        segment: String,
        holder: Holder,
        /// Time until the segment may be free; `None`: waiting does not help.
        retry_after: Option<Duration>,
    },
    /// The requester may not register here, or nobody may.
    #[error("{why}")]
    NotAdmitted {
        /// The reason, and whom to ask.
        why: String,
    },
    #[error("`{member}` {why}")]
    ParamsInvalid {
        /// The member at fault.
        member: String,
        /// The fault.
        why: String,
    },
    /// The owners of segments can't be recorded at present, so that none is given away (AX-12).
    #[error("who owns which segment can't be kept here at present; try again after the time given, and let its operator look into its log")]
    ClaimsUnavailable { retry_after: Duration },
    #[error("too many registrations wait already; try again after the time given")]
    RateLimited { retry_after: Duration },
    /// The registration, or a node that joined below, would close a cycle (AX-24).
    #[error("this would make a node its own ancestor; take the named aggregators out from below, or register elsewhere")]
    RegistrationCycle {
        /// Ids both above and below.
        ids: Vec<NodeId>,
        /// The refusing node stands below the refused, as far as known. Otherwise a node below lies, or has not noticed yet.
        below_you: bool,
    },
    /// `x-mcpax-route` or `x-mcpax-cursor` cannot be followed (AX-30).
    #[error("the route cannot be followed: {why}; list the tools again and call by the listed name")]
    RouteInvalid { why: String },
    /// The name is not a legal segment (AX-10).
    #[error("`{given}` is not a legal name; use 1 to 63 of a-z, 0-9, `_` and `-`")]
    SegmentInvalid {
        /// Cut to a readable length.
        given: String,
    },
    /// The subserver is registered with another aggregator of the same tree (AX-25).
    #[error(
        "this subserver is registered with another aggregator of this tree; deregister there first, or wait until that registration ends"
    )]
    SplitBrain {
        /// The other aggregator, where known.
        registered_with: Option<NodeId>,
        retry_after: Duration,
    },
    /// The subserver did not answer the question for its parent.
    #[error("you did not answer `mcpax/parent` in time; answer it, or refuse it with -32601, and register again")]
    SubserverSilent { retry_after: Duration },
    /// A change of the subtree does not follow the previous one.
    #[error("this change does not follow the last one taken; send all the ids")]
    SubtreeOutOfStep,
    /// Too many ids below.
    #[error("more aggregators stand below than the {most} that are taken; divide the subtree")]
    SubtreeTooLarge { most: usize },
    /// The session is unknown, on another link, or over.
    #[error("there is no such session{}; register again", .ended.map(|why| format!(": it ended, {}", why.words())).unwrap_or_default())]
    UnknownSession {
        /// Reason of the end, where remembered.
        ended: Option<SessionEnd>,
    },
    #[error("version `{given}` is not spoken here; use `{}`", crate::message::VERSION)]
    VersionUnsupported { given: String },
}

/// Holders of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    Registered,
    /// A lost server that may come back.
    Lost,
    /// An authority with lasting ownership.
    Authority,
    /// A mount of that name in the aggregator's configuration.
    Mount,
}

impl Holder {
    /// Gives the stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Authority => "authority",
            Self::Lost => "lost",
            Self::Mount => "mount",
            Self::Registered => "registered",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Authority => "another authority",
            Self::Lost => "a server that was lost and may come back",
            Self::Mount => "a server of the configuration",
            Self::Registered => "a registered server",
        }
    }
}

/// Reasons for the end of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SessionEnd {
    Deregistered,
    /// The subserver listed a dotted name.
    DottedName,
    /// The subserver brought an aggregator that stands above.
    Cycle,
    LinkLost,
    /// The operator has put the subserver out.
    NotAdmitted,
    /// Three heartbeats were missed.
    Silent,
    /// The same subserver registered anew.
    Replaced,
}

impl SessionEnd {
    /// Gives the stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cycle => "registration_cycle",
            Self::Deregistered => "deregistered",
            Self::DottedName => "dotted_name",
            Self::LinkLost => "link_lost",
            Self::NotAdmitted => "not_admitted",
            Self::Replaced => "replaced",
            Self::Silent => "heartbeats_missed",
        }
    }

    /// Reads a word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|ended| ended.as_str() == word)
    }

    /// All reasons.
    pub const ALL: [Self; 7] =
        [Self::Deregistered, Self::DottedName, Self::Cycle, Self::LinkLost, Self::NotAdmitted, Self::Silent, Self::Replaced];

    /// Gives the reason as the end of a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Self::Cycle => "because it brought an aggregator that stands above",
            Self::Deregistered => "because it was deregistered",
            Self::DottedName => "because it listed a dotted tool name",
            Self::LinkLost => "because its link broke",
            Self::NotAdmitted => "because it may not be registered here any more",
            Self::Replaced => "because the same server registered anew",
            Self::Silent => "because three heartbeats were missed",
        }
    }
}

/// The error object of a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorObject {
    /// The JSON-RPC code.
    pub code: i64,
    /// The stable message.
    pub message: &'static str,
    /// The raw `data` object. `reason` repeats the message, `hint` is advice.
    pub data: String,
}

impl Refusal {
    /// Makes the error for the requester.
    pub fn error(&self) -> ErrorObject {
        let (code, message) = self.code();
        let mut data = Map::new();
        data.insert("reason".into(), message.into());
        data.insert("hint".into(), self.to_string().into());
        if let Value::Object(more) = self.details() {
            data.extend(more.into_iter().filter(|(_, value)| !value.is_null()));
        }
        ErrorObject { code, message, data: Value::Object(data).to_string() }
    }

    /// Gives the time until the same request may succeed; `None`: waiting does not help.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::ClaimsUnavailable { retry_after }
            | Self::DuplicateSubserver { retry_after }
            | Self::RateLimited { retry_after }
            | Self::SplitBrain { retry_after, .. }
            | Self::SubserverSilent { retry_after } => Some(*retry_after),
            Self::NamespaceConflict { retry_after, .. } => *retry_after,
            Self::AuthorityMismatch { .. }
            | Self::AuthorityRequired { .. }
            | Self::DottedName { .. }
            | Self::Full { .. }
            | Self::HeartbeatInterval { .. }
            | Self::MethodUnknown
            | Self::NameTooLong { .. }
            | Self::NotAdmitted { .. }
            | Self::ParamsInvalid { .. }
            | Self::RegistrationCycle { .. }
            | Self::RouteInvalid { .. }
            | Self::SegmentInvalid { .. }
            | Self::SubtreeOutOfStep
            | Self::SubtreeTooLarge { .. }
            | Self::UnknownSession { .. }
            | Self::VersionUnsupported { .. } => None,
        }
    }

    fn code(&self) -> (i64, &'static str) {
        match self {
            Self::AuthorityMismatch { .. } => (-31006, "authority_mismatch"),
            Self::AuthorityRequired { .. } => (-31007, "authority_required"),
            Self::ClaimsUnavailable { .. } => (-31014, "claims_unavailable"),
            Self::DottedName { .. } => (-31009, "dotted_name"),
            Self::DuplicateSubserver { .. } => (-31004, "duplicate_subserver"),
            Self::Full { .. } => (-31013, "aggregator_full"),
            Self::HeartbeatInterval { .. } => (-31016, "heartbeat_interval_invalid"),
            Self::MethodUnknown => (-32601, "method_unknown"),
            Self::NameTooLong { .. } => (-31010, "name_too_long"),
            Self::NamespaceConflict { .. } => (-31001, "namespace_conflict"),
            Self::NotAdmitted { .. } => (-31008, "not_admitted"),
            Self::ParamsInvalid { .. } => (-32602, "params_invalid"),
            Self::RateLimited { .. } => (-31015, "registration_rate_limited"),
            Self::RegistrationCycle { .. } => (-31002, "registration_cycle"),
            Self::RouteInvalid { .. } => (-32001, "route_invalid"),
            Self::SegmentInvalid { .. } => (-31011, "segment_invalid"),
            Self::SplitBrain { .. } => (-31003, "split_brain"),
            Self::SubserverSilent { .. } => (-31005, "subserver_silent"),
            Self::SubtreeOutOfStep => (-31017, "subtree_out_of_step"),
            Self::SubtreeTooLarge { .. } => (-31018, "subtree_too_large"),
            Self::UnknownSession { .. } => (-31012, "unknown_session"),
            Self::VersionUnsupported { .. } => (-31019, "version_unsupported"),
        }
    }

    /// Gives the members peculiar to a variant; null members are left out.
    fn details(&self) -> Value {
        let ms = |d: &Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
        let after = self.retry_after().as_ref().map(ms);
        match self {
            Self::AuthorityMismatch { claimed } => json!({ "claimed": claimed.to_string() }),
            Self::AuthorityRequired { segment } => json!({ "segment": segment }),
            Self::DottedName { name } => json!({ "name": name }),
            Self::ClaimsUnavailable { .. } | Self::DuplicateSubserver { .. } | Self::RateLimited { .. } | Self::SubserverSilent { .. } => {
                json!({ "retry_after_ms": after })
            }
            Self::HeartbeatInterval { given, least, most } => json!({ "given_ms": given, "least_ms": least, "most_ms": most }),
            Self::NameTooLong { name, length } => json!({ "name": name, "length": length, "most": 255 }),
            Self::NamespaceConflict { segment, holder, .. } => {
                json!({ "segment": segment, "holder": holder.as_str(), "retry_after_ms": after })
            }
            Self::ParamsInvalid { member, .. } => json!({ "member": member }),
            Self::RegistrationCycle { ids, below_you } => {
                json!({ "ids": ids.iter().map(NodeId::to_string).collect::<Vec<_>>(), "below_you": below_you })
            }
            Self::SegmentInvalid { given } => json!({ "given": given }),
            Self::SplitBrain { registered_with, .. } => {
                json!({ "registered_with": registered_with.map(|id| id.to_string()), "retry_after_ms": after })
            }
            Self::Full { most } | Self::SubtreeTooLarge { most } => json!({ "most": most }),
            Self::UnknownSession { ended } => json!({ "ended": ended.map(SessionEnd::as_str) }),
            Self::VersionUnsupported { given } => json!({ "given": given, "supported": [crate::message::VERSION] }),
            Self::MethodUnknown | Self::NotAdmitted { .. } | Self::RouteInvalid { .. } | Self::SubtreeOutOfStep => Value::Null,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Refusal> {
        let (name, wait) = ("a.b".to_owned(), Duration::from_secs(5));
        let authority = Authority::parse("dns:a.example").unwrap();
        vec![
            Refusal::AuthorityMismatch { claimed: authority },
            Refusal::AuthorityRequired { segment: "a".into() },
            Refusal::ClaimsUnavailable { retry_after: wait },
            Refusal::DottedName { name: name.clone() },
            Refusal::DuplicateSubserver { retry_after: wait },
            Refusal::HeartbeatInterval { given: 1, least: 100, most: 1000 },
            Refusal::Full { most: 7 },
            Refusal::MethodUnknown,
            Refusal::NameTooLong { name: name.clone(), length: 300 },
            Refusal::NamespaceConflict { segment: "a".into(), holder: Holder::Lost, retry_after: Some(wait) },
            Refusal::NamespaceConflict { segment: "a".into(), holder: Holder::Authority, retry_after: None },
            Refusal::NotAdmitted { why: "nobody may register here; ask its operator".into() },
            Refusal::ParamsInvalid { member: "segment".into(), why: "is missing".into() },
            Refusal::RateLimited { retry_after: wait },
            Refusal::RegistrationCycle { ids: vec![NodeId::new(7)], below_you: true },
            Refusal::RouteInvalid { why: "it is empty".into() },
            Refusal::SegmentInvalid { given: name },
            Refusal::SplitBrain { registered_with: Some(NodeId::new(7)), retry_after: wait },
            Refusal::SubserverSilent { retry_after: wait },
            Refusal::SubtreeOutOfStep,
            Refusal::SubtreeTooLarge { most: 7 },
            Refusal::UnknownSession { ended: Some(SessionEnd::Silent) },
            Refusal::VersionUnsupported { given: "1".into() },
        ]
    }

    #[test]
    fn ax_27_a_code_stands_for_one_reason() {
        let mut reasons = std::collections::BTreeMap::new();
        for error in all().iter().map(Refusal::error) {
            assert_eq!(*reasons.entry(error.code).or_insert(error.message), error.message, "{error:?}");
        }
        let words: std::collections::BTreeSet<_> = reasons.values().collect();
        assert_eq!((words.len(), reasons.len()), (reasons.len(), 22));
    }

    #[test]
    fn ax_27_every_refusal_has_code_message_and_advice() {
        for refusal in all() {
            let error = refusal.error();
            let of_call = matches!(refusal, Refusal::RouteInvalid { .. });
            let ours = if of_call { error.code == -32001 } else { (-31019..=-31001).contains(&error.code) };
            assert!(ours || [-32601, -32602].contains(&error.code), "{error:?}");
            let data: Value = serde_json::from_str(&error.data).unwrap();
            assert_eq!(data["reason"], error.message);
            assert!(data["hint"].as_str().unwrap().len() > 20 || error.code == -32602, "{error:?}");
            assert_eq!(data["retry_after_ms"].as_u64(), refusal.retry_after().map(|_| 5000), "{error:?}");
            assert!(error.message.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'));
        }
    }
}
