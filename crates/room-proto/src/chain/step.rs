//! The links of a chain, and what a message turned out to be. How they come together is not known here.

use super::ChainId;
use crate::envelope::Envelope;

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
}

impl Step {
    pub(super) fn of(envelope: &Envelope<'_>) -> Self {
        Self {
            id: envelope.id.to_string(),
            from: envelope.from.to_string(),
            to: envelope.to.iter().map(ToString::to_string).collect(),
            kind: envelope.kind().as_str().to_owned(),
        }
    }
}

/// How a chain stands.
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
