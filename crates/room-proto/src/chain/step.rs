//! The links of a chain, and what a message turned out to be. How they come together is not known here.

use std::borrow::Cow;
use std::time::SystemTime;

use banyan_model::Now;
use json::Members;
use serde::{Deserialize, Serialize};

use super::ChainId;
use crate::envelope::{Envelope, MAX_KIND};
use crate::participant::named;

/// The member of a request's `_meta` that names the rule by which it was made.
pub(crate) const RULE: &str = "io.banyan/rule";

/// The member of a request's `_meta` that names who agreed to it at the gate.
pub(crate) const APPROVAL: &str = "io.banyan/approval";

/// No longer reason is kept, in bytes.
const MAX_REASON: usize = 1_000;

/// One message of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its id.
    pub id: String,
    /// Whose it is.
    pub from: String,
    /// For whom; empty: for everybody.
    pub to: Vec<String>,
    /// Its kind.
    pub kind: String,
    /// When it was seen.
    pub at: SystemTime,
}

impl Step {
    pub(super) fn of(now: Now, envelope: &Envelope<'_>) -> Self {
        Self {
            id: envelope.id.to_string(),
            from: envelope.from.to_string(),
            to: envelope.to.iter().map(ToString::to_string).collect(),
            kind: envelope.kind().as_str().to_owned(),
            at: now.wall,
        }
    }
}

/// Operation of a proposal or a request: 3.2 leaves it to the sender whether the kind has a CONTEXT, and a call is the same without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Operation {
    method: String,
    /// The tool, resource or prompt.
    name: Option<String>,
}

impl Operation {
    /// Read from the payload where the kind does not name it; kind and payload were held against each other before. `None`: the name is
    /// longer than any kind can say, and is not kept.
    pub(super) fn of(envelope: &Envelope<'_>) -> Option<Self> {
        let kind = envelope.kind();
        let method = kind.method()?;
        let of_payload = || named(method, &Members::again(envelope.payload).object("params")?).map(Cow::into_owned);
        let name = kind.context().map(str::to_owned).or_else(of_payload);
        let is_kept = name.as_ref().is_none_or(|name| name.len() <= MAX_KIND);
        is_kept.then(|| Self { method: method.to_owned(), name })
    }
}

/// Checks whether two raw `params` say the same but for their `_meta`: every other member in the same words and the same order.
pub(crate) fn same_params(one: &[u8], other: &[u8]) -> bool {
    let (one, other) = (Members::again(one), Members::again(other));
    let (mut one, mut other) = (one.iter().filter(|(key, _)| key != "_meta"), other.iter().filter(|(key, _)| key != "_meta"));
    one.by_ref().eq(other.by_ref())
}

/// The rule that a request names.
pub(super) fn rule(request: &Envelope<'_>) -> Option<String> {
    let params = Members::again(request.payload).object("params")?;
    Some(params.object("_meta")?.object(RULE)?.str("id")?.into_owned())
}

/// Raw `params` with one raw value as their `_meta`. What the proposer put there nobody looked at, and it does not stay.
pub(crate) fn with_meta(params: &[u8], key: &str, value: &[u8]) -> String {
    let members = Members::again(params);
    let kept = members.iter().filter(|(key, _)| key != "_meta");
    let kept: String = kept.map(|(key, value)| format!("{}:{},", json::quote(&key), String::from_utf8_lossy(value))).collect();
    format!("{{{kept}\"_meta\":{{{}:{}}}}}", json::quote(key), String::from_utf8_lossy(value))
}

/// Why a proposal ended, as whoever ended it says.
pub(super) fn reason(end: &Envelope<'_>) -> Option<String> {
    let reason = Members::again(end.payload).str("reason")?;
    reason.get(..reason.floor_char_boundary(MAX_REASON)).map(str::to_owned)
}

/// What came of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A result that is no error.
    Done,
    /// An error, of JSON-RPC or of the tool.
    Failed,
}

impl Outcome {
    /// Reads a response.
    pub fn of(response: &Envelope<'_>) -> Self {
        let payload = Members::again(response.payload);
        let is_error = payload.has("error") || payload.object("result").is_some_and(|result| result.get("isError") == Some(b"true"));
        if is_error { Self::Failed } else { Self::Done }
    }
}

/// How a chain stands, in a word that stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// There is a response.
    Answered,
    /// Nobody fulfilled the proposal in time.
    Expired,
    /// The proposal waits.
    Open,
    /// Somebody has spoken against the proposal.
    Rejected,
    /// The request is made: a proposal is fulfilled by that.
    Requested,
    /// Its proposer has taken the proposal back.
    Withdrawn,
}

impl State {
    /// As it is exported.
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

/// What a message turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// The response to a request, from one it was for.
    Answered(ChainId),
    /// A request that names a proposal and asks for something else.
    Deviates {
        /// The proposal that it names.
        proposal: ChainId,
        /// The request, in a chain of its own.
        request: ChainId,
    },
    /// The end of a proposal: it is withdrawn or rejected.
    Ended(ChainId),
    /// The request that fulfils a proposal: the first one does.
    Fulfilled(ChainId),
    /// A request for a proposal that does not wait any more. A target that must not do a thing twice does not do this one.
    Late {
        /// The proposal.
        proposal: ChainId,
        /// How it stood.
        state: State,
        /// The request, in a chain of its own.
        request: ChainId,
    },
    /// A proposal.
    Proposed(ChainId),
    /// A message with the id of another: it is not what anything refers to.
    Repeated,
    /// A request that fulfils nothing.
    Requested(ChainId),
    /// A response, or an end of a proposal, that nobody here waits for or that is not its sender's to give.
    Stray,
    /// Nothing that belongs to a chain.
    Unrelated,
}
