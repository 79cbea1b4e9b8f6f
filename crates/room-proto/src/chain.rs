//! Proposals, fulfilments and responses, put together from the messages seen in a room (MCPx v0.1, 3.1.2, 3.2.1 and 10.2). Interested
//! participants keep chains for themselves; the room keeps none. Sends nothing: the output are expired proposals. Takes messages in order
//! of arrival, with payloads checked before by [`crate::participant`].

mod export;
mod step;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use step::Operation;
pub(crate) use step::{APPROVAL, RULE, same_params, with_meta};
pub use step::{MessageRole, Outcome, State, Step};

use crate::envelope::Envelope;
use crate::kind::Kind;
use banyan_model::{Machine, Now};

/// Beginning of the methods of notifications, which travel as requests do.
const NOTIFIES: &str = "notifications/";

/// Limits on memory, and the patience of proposals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Chains kept; the oldest goes first.
    pub chains: usize,
    /// Time until an unfulfilled proposal expires.
    pub expiry: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { chains: 10_000, expiry: Duration::from_secs(300) }
    }
}

/// Number of a chain, counting up from the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChainId(pub u64);

/// A chain. A request without a proposal begins a chain, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    pub proposal: Option<Step>,
    /// Fulfils the proposal, where there is one.
    pub request: Option<Step>,
    pub response: Option<Step>,
    /// The rejection or withdrawal of the proposal.
    pub end: Option<Step>,
    /// Reason given for the end.
    pub reason: Option<String>,
    /// Rule named by the request as its maker.
    pub rule: Option<String>,
    pub outcome: Option<Outcome>,
    pub state: State,
    /// Proposed operation, independent of the spelling of the kind.
    operation: Option<Operation>,
    expires: Option<Instant>,
}

/// All chains of one room.
#[derive(Debug)]
pub struct Chains {
    bounds: Bounds,
    chains: BTreeMap<ChainId, Chain>,
    /// Ids of proposals and requests: an id belongs to its first message.
    ids: BTreeMap<String, ChainId>,
    waiting: BTreeSet<(Instant, ChainId)>,
    begun: u64,
    expired: VecDeque<ChainId>,
}

impl Chains {
    /// Begins without chains.
    pub fn new(bounds: Bounds) -> Self {
        let (chains, ids, waiting, expired) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new(), VecDeque::new());
        Self { bounds, chains, ids, waiting, begun: 0, expired }
    }

    /// Takes a message of the room. The driver vouches for its `from`.
    pub fn handle_envelope(&mut self, now: Now, envelope: &Envelope<'_>) -> MessageRole {
        self.handle_timeout(now);
        let kind = envelope.kind();
        match kind.class() {
            "mcp/proposal" => self.proposed(now, envelope),
            "mcp/reject" => self.ended(now, envelope, State::Rejected),
            // A notification is nobody's to answer, and is asked for by nobody.
            "mcp/request" if kind.method().is_some_and(|method| method.starts_with(NOTIFIES)) => MessageRole::Unrelated,
            "mcp/request" => self.requested(now, envelope),
            "mcp/response" => self.answered(now, envelope),
            "mcp/withdraw" => self.ended(now, envelope, State::Withdrawn),
            _ => MessageRole::Unrelated,
        }
    }

    /// Gives a chain, while kept.
    pub fn get(&self, id: ChainId) -> Option<&Chain> {
        self.chains.get(&id)
    }

    /// Lists kept chains, in the order of their beginnings.
    pub fn iter(&self) -> impl Iterator<Item = (ChainId, &Chain)> {
        self.chains.iter().map(|(id, chain)| (*id, chain))
    }

    /// Lists waiting proposals, the next to expire in front.
    pub fn open(&self) -> impl Iterator<Item = (ChainId, &Chain)> {
        self.waiting.iter().filter_map(|(_, id)| Some((*id, self.chains.get(id)?)))
    }

    /// Finds the proposal with a message id, while kept.
    pub fn proposed_by(&self, id: &str) -> Option<ChainId> {
        let is_proposal = |chain: &Chain| chain.proposal.as_ref().is_some_and(|step| step.id == id);
        self.ids.get(id).copied().filter(|id| self.chains.get(id).is_some_and(is_proposal))
    }

    /// Names the addressees of the response to a request (3.2.1): the sender of the request, and the proposer. The proposer is known only
    /// where the proposal was seen.
    pub fn audience(&self, request: &Envelope<'_>) -> Vec<String> {
        let proposal = self.ids.get(&*request.id).and_then(|id| self.chains.get(id)).and_then(|chain| chain.proposal.as_ref());
        let proposer = proposal.map(|step| step.from.clone()).filter(|proposer| *proposer != request.from);
        std::iter::once(request.from.to_string()).chain(proposer).collect()
    }
}

impl Machine for Chains {
    type Output = ChainId;

    fn handle_timeout(&mut self, now: Now) {
        while let Some((_, id)) = self.waiting.first().copied().filter(|(at, _)| *at <= now.instant) {
            self.settle(id, State::Expired);
            self.expired.push_back(id);
        }
    }

    fn poll_output(&mut self) -> Option<ChainId> {
        self.expired.pop_front()
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        self.waiting.first().map(|(at, _)| (*at, "a proposal expires"))
    }
}

impl Chains {
    fn proposed(&mut self, now: Now, envelope: &Envelope<'_>) -> MessageRole {
        if self.ids.contains_key(&*envelope.id) {
            return MessageRole::Repeated;
        }
        let expires = now.instant.checked_add(self.bounds.expiry);
        let (proposal, operation) = (Some(Step::from_envelope(now, envelope)), Operation::from_envelope(envelope));
        let id = self.begin(&envelope.id, Chain { proposal, operation, expires, ..Chain::new(State::Open) });
        self.waiting.extend(expires.map(|at| (at, id)));
        MessageRole::Proposed(id)
    }

    fn requested(&mut self, now: Now, envelope: &Envelope<'_>) -> MessageRole {
        if self.ids.contains_key(&*envelope.id) {
            return MessageRole::Repeated;
        }
        let proposed = envelope.correlation_id.as_ref().and_then(|of| self.ids.get(&**of)).copied();
        let Some(id) = proposed.filter(|id| self.chains.get(id).is_some_and(|chain| chain.proposal_is(envelope))) else {
            return MessageRole::Requested(self.begin(&envelope.id, Chain::of_request(now, envelope)));
        };
        let Some(chain) = self.chains.get_mut(&id) else { return MessageRole::Unrelated };
        let state = chain.state;
        let is_asked = chain.is_asked_by(envelope);
        if !is_asked || state != State::Open {
            // It is a request all the same, and its answer belongs to it.
            let own = self.begin(&envelope.id, Chain::of_request(now, envelope));
            return if is_asked {
                MessageRole::Late { proposal: id, state, request: own }
            } else {
                MessageRole::Deviates { proposal: id, request: own }
            };
        }
        chain.request = Some(Step::from_envelope(now, envelope));
        chain.rule = step::rule(envelope);
        self.settle(id, State::Requested);
        self.ids.insert(envelope.id.to_string(), id);
        MessageRole::Fulfilled(id)
    }

    fn answered(&mut self, now: Now, envelope: &Envelope<'_>) -> MessageRole {
        let of = envelope.correlation_id.as_deref().unwrap_or_default();
        let Some((id, chain)) = self.ids.get(of).and_then(|id| Some((*id, self.chains.get_mut(id)?))) else { return MessageRole::Stray };
        let is_awaited = chain.state == State::Requested
            && chain.request.as_ref().is_some_and(|request| {
                let may_answer = request.to.is_empty() || request.to.iter().any(|to| *to == envelope.from);
                request.id == of && may_answer && Kind::new(&request.kind).method() == envelope.kind().method()
            });
        if !is_awaited {
            return MessageRole::Stray;
        }
        chain.response = Some(Step::from_envelope(now, envelope));
        chain.outcome = Some(Outcome::from_response(envelope));
        chain.state = State::Answered;
        MessageRole::Answered(id)
    }

    /// Withdraws or rejects a proposal. Only its proposer withdraws.
    fn ended(&mut self, now: Now, envelope: &Envelope<'_>, state: State) -> MessageRole {
        let of = envelope.correlation_id.as_deref().unwrap_or_default();
        let Some((id, chain)) = self.ids.get(of).and_then(|id| Some((*id, self.chains.get_mut(id)?))) else { return MessageRole::Stray };
        let proposal = chain.proposal.as_ref().filter(|step| step.id == of && chain.state == State::Open);
        match proposal {
            Some(step) if state != State::Withdrawn || step.from == envelope.from => {
                chain.end = Some(Step::from_envelope(now, envelope));
                chain.reason = step::reason(envelope);
                self.settle(id, state);
                MessageRole::Ended(id)
            }
            Some(_) | None => MessageRole::Stray,
        }
    }

    fn begin(&mut self, id: &str, chain: Chain) -> ChainId {
        while self.chains.len() >= self.bounds.chains.max(1) {
            self.forget();
        }
        self.begun += 1;
        let chain_id = ChainId(self.begun);
        self.ids.insert(id.to_owned(), chain_id);
        self.chains.insert(chain_id, chain);
        chain_id
    }

    /// Drops the oldest chain.
    fn forget(&mut self) {
        let Some((id, chain)) = self.chains.pop_first() else { return };
        if let Some(at) = chain.expires {
            self.waiting.remove(&(at, id));
        }
        for step in [chain.proposal, chain.request].into_iter().flatten() {
            self.ids.remove(&step.id);
        }
    }

    /// Ends the waiting of a proposal.
    fn settle(&mut self, id: ChainId, state: State) {
        let Some(chain) = self.chains.get_mut(&id) else { return };
        chain.state = state;
        if let Some(at) = chain.expires.take() {
            self.waiting.remove(&(at, id));
        }
    }
}

impl Chain {
    fn new(state: State) -> Self {
        let (proposal, request, response, end) = (None, None, None, None);
        Self { proposal, request, response, end, reason: None, rule: None, outcome: None, state, operation: None, expires: None }
    }

    /// A request that fulfils nothing.
    fn of_request(now: Now, envelope: &Envelope<'_>) -> Self {
        Self { request: Some(Step::from_envelope(now, envelope)), rule: step::rule(envelope), ..Self::new(State::Requested) }
    }

    /// Tells whether a message refers to the proposal.
    fn proposal_is(&self, envelope: &Envelope<'_>) -> bool {
        self.proposal.as_ref().is_some_and(|proposal| Some(proposal.id.as_str()) == envelope.correlation_id.as_deref())
    }

    /// Compares a request with the proposed operation: one method, and one tool, resource or prompt. The fulfiller may have amended the
    /// arguments.
    fn is_asked_by(&self, request: &Envelope<'_>) -> bool {
        self.operation.is_some() && self.operation == Operation::from_envelope(request)
    }
}

#[cfg(test)]
mod tests;
