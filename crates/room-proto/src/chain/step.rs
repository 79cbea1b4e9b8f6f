//! Links of a chain, and roles of messages. Does not link.

use std::borrow::Cow;
use std::time::SystemTime;

use banyan_model::Now;
use json::Members;
use serde::{Deserialize, Serialize};

use super::ChainId;
use crate::envelope::{Envelope, MAX_KIND};
use crate::participant::named;

/// Member of a request's `_meta` for the rule that made the request.
pub(crate) const RULE: &str = "io.banyan/rule";

/// Member of a request's `_meta` for the person who approved at the gate.
pub(crate) const APPROVAL: &str = "io.banyan/approval";

/// Longest reason kept, in bytes.
const MAX_REASON: usize = 1_000;

/// A message of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub id: String,
    pub from: String,
    /// Addressees; empty: everybody.
    pub to: Vec<String>,
    pub kind: String,
    /// Time seen.
    pub at: SystemTime,
}

impl Step {
    pub(super) fn from_envelope(now: Now, envelope: &Envelope<'_>) -> Self {
        Self {
            id: envelope.id.to_string(),
            from: envelope.from.to_string(),
            to: envelope.to.iter().map(ToString::to_string).collect(),
            kind: envelope.kind().as_str().to_owned(),
            at: now.wall,
        }
    }
}

/// Operation of a proposal or a request: 3.2 leaves the CONTEXT of the kind to the sender, and a call is the same without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Operation {
    method: String,
    /// The tool, resource or prompt.
    name: Option<String>,
}

impl Operation {
    /// Reads the name from the payload where the kind has none; kind and payload were compared before. `None`: the name is longer than any
    /// kind can say, and is not kept.
    pub(super) fn from_envelope(envelope: &Envelope<'_>) -> Option<Self> {
        let kind = envelope.kind();
        let method = kind.method()?;
        let of_payload = || named(method, &Members::again(envelope.payload).object("params")?).map(Cow::into_owned);
        let name = kind.context().map(str::to_owned).or_else(of_payload);
        let is_kept = name.as_ref().is_none_or(|name| name.len() <= MAX_KIND);
        is_kept.then(|| Self { method: method.to_owned(), name })
    }
}

/// Compares two raw `params` except their `_meta`: every other member in the same words and the same order.
pub(crate) fn same_params(one: &[u8], other: &[u8]) -> bool {
    let (one, other) = (Members::again(one), Members::again(other));
    let (mut one, mut other) = (one.iter().filter(|(key, _)| key != "_meta"), other.iter().filter(|(key, _)| key != "_meta"));
    one.by_ref().eq(other.by_ref())
}

/// The rule named by a request.
pub(super) fn rule(request: &Envelope<'_>) -> Option<String> {
    let params = Members::again(request.payload).object("params")?;
    Some(params.object("_meta")?.object(RULE)?.str("id")?.into_owned())
}

/// Gives raw `params` with one raw value as their `_meta`. A proposer's own `_meta` was not reviewed, and is dropped.
pub(crate) fn with_meta(params: &[u8], key: &str, value: &[u8]) -> String {
    let members = Members::again(params);
    let kept = members.iter().filter(|(key, _)| key != "_meta");
    let kept: String = kept.map(|(key, value)| format!("{}:{},", json::quote(&key), String::from_utf8_lossy(value))).collect();
    format!("{{{kept}\"_meta\":{{{}:{}}}}}", json::quote(key), String::from_utf8_lossy(value))
}

/// Reason given for the end of a proposal.
pub(super) fn reason(end: &Envelope<'_>) -> Option<String> {
    let reason = Members::again(end.payload).str("reason")?;
    reason.get(..reason.floor_char_boundary(MAX_REASON)).map(str::to_owned)
}

/// Result of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A result without an error.
    Done,
    /// An error, of JSON-RPC or of the tool.
    Failed,
}

impl Outcome {
    /// Reads a response.
    pub fn from_response(response: &Envelope<'_>) -> Self {
        let payload = Members::again(response.payload);
        let is_error = payload.has("error") || payload.object("result").is_some_and(|result| result.get("isError") == Some(b"true"));
        if is_error { Self::Failed } else { Self::Done }
    }
}

/// State of a chain. The words are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    Answered,
    /// Nobody fulfilled the proposal in time.
    Expired,
    /// The proposal waits.
    Open,
    Rejected,
    /// The request is made; a proposal counts as fulfilled by the request.
    Requested,
    /// The proposer took the proposal back.
    Withdrawn,
}

impl State {
    /// Gives the exported word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Expired => "expired",
            Self::Open => "open",
            Self::Rejected => "rejected",
            Self::Requested => "requested",
            Self::Withdrawn => "withdrawn",
        }
    }
}

/// Role of a message in the chains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageRole {
    /// The response of an addressee to a request.
    Answered(ChainId),
    /// A request that names a proposal and asks for something else.
    Deviates {
        proposal: ChainId,
        /// In a chain of its own.
        request: ChainId,
    },
    /// The end of a proposal: withdrawn or rejected.
    Ended(ChainId),
    /// The first request for a proposal.
    Fulfilled(ChainId),
    /// A request for a proposal that waits no more. A target that must not act twice ignores such a request.
    Late {
        proposal: ChainId,
        /// State of the proposal at that time.
        state: State,
        /// In a chain of its own.
        request: ChainId,
    },
    Proposed(ChainId),
    /// A message with the id of another. References mean the first.
    Repeated,
    /// A request that fulfils nothing.
    Requested(ChainId),
    /// A response or an end of a proposal that nobody waits for, or from the wrong sender.
    Stray,
    /// A message outside of all chains.
    Unrelated,
}
