//! What became of what: proposal, fulfilment, response, put together from the messages that somebody sees in a room (MCPx v0.1, 3.1.2, 3.2.1
//! and 10.2). Every participant that has to know keeps this for itself; the room does not, and nothing is sent from here. Expired proposals are the output. Messages are
//! taken in the order in which they came; whether payloads hold is checked before, by [`crate::participant`].

mod export;
mod step;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use step::Operation;
pub(crate) use step::{APPROVAL, RULE, same_params, with_meta};
pub use step::{Found, Outcome, State, Step};

use crate::envelope::Envelope;
use crate::kind::Kind;
use banyan_model::{Machine, Now};

/// What the methods of notifications begin with; they go as requests do.
const NOTIFIES: &str = "notifications/";

/// How much is kept, and for how long a proposal waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// How many chains are kept; the oldest goes first.
    pub chains: usize,
    /// A proposal that nobody fulfilled for so long has expired.
    pub expiry: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { chains: 10_000, expiry: Duration::from_secs(300) }
    }
}

/// Which chain: they are numbered as they begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChainId(pub u64);

/// One chain. A request that fulfils no proposal is one, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// What was proposed.
    pub proposal: Option<Step>,
    /// The request: it fulfils the proposal, where there is one.
    pub request: Option<Step>,
    /// Its answer.
    pub response: Option<Step>,
    /// By what the proposal was rejected or withdrawn.
    pub end: Option<Step>,
    /// Why, where that was said.
    pub reason: Option<String>,
    /// The rule by which the request says that it was made.
    pub rule: Option<String>,
    /// What came of it.
    pub outcome: Option<Outcome>,
    /// How it stands.
    pub state: State,
    /// Operation that was proposed, however its kind is spelt.
    operation: Option<Operation>,
    expires: Option<Instant>,
}

/// All chains of one room.
#[derive(Debug)]
pub struct Chains {
    bounds: Bounds,
    chains: BTreeMap<ChainId, Chain>,
    /// Proposals and requests by their ids: the first message of an id has it.
    ids: BTreeMap<String, ChainId>,
    waiting: BTreeSet<(Instant, ChainId)>,
    begun: u64,
    expired: VecDeque<ChainId>,
}

impl Chains {
    /// None yet.
    pub fn new(bounds: Bounds) -> Self {
        let (chains, ids, waiting, expired) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new(), VecDeque::new());
        Self { bounds, chains, ids, waiting, begun: 0, expired }
    }

    /// A message was seen in the room, sent by whom its `from` says.
    pub fn handle_envelope(&mut self, now: Now, envelope: &Envelope<'_>) -> Found {
        self.handle_timeout(now);
        let kind = envelope.kind();
        match kind.class() {
            "mcp/proposal" => self.proposed(now, envelope),
            "mcp/reject" => self.ended(now, envelope, State::Rejected),
            // A notification is nobody's to answer, and is asked for by nobody.
            "mcp/request" if kind.method().is_some_and(|method| method.starts_with(NOTIFIES)) => Found::Unrelated,
            "mcp/request" => self.requested(now, envelope),
            "mcp/response" => self.answered(now, envelope),
            "mcp/withdraw" => self.ended(now, envelope, State::Withdrawn),
            _ => Found::Unrelated,
        }
    }

    /// One of them, while it is kept.
    pub fn get(&self, id: ChainId) -> Option<&Chain> {
        self.chains.get(&id)
    }

    /// All that are kept, in the order in which they began.
    pub fn iter(&self) -> impl Iterator<Item = (ChainId, &Chain)> {
        self.chains.iter().map(|(id, chain)| (*id, chain))
    }

    /// The proposals that wait for somebody, the one that expires first in front.
    pub fn open(&self) -> impl Iterator<Item = (ChainId, &Chain)> {
        self.waiting.iter().filter_map(|(_, id)| Some((*id, self.chains.get(id)?)))
    }

    /// The proposal that was made by the message of an id, while it is kept.
    pub fn proposed_by(&self, id: &str) -> Option<ChainId> {
        let is_proposal = |chain: &Chain| chain.proposal.as_ref().is_some_and(|step| step.id == id);
        self.ids.get(id).copied().filter(|id| self.chains.get(id).is_some_and(is_proposal))
    }

    /// Whom the response to a request is for (3.2.1): whoever sent the request, and whoever proposed it. The proposer is known only where the
    /// proposal was seen.
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
    fn proposed(&mut self, now: Now, envelope: &Envelope<'_>) -> Found {
        if self.ids.contains_key(&*envelope.id) {
            return Found::Repeated;
        }
        let expires = now.instant.checked_add(self.bounds.expiry);
        let (proposal, operation) = (Some(Step::of(now, envelope)), Operation::of(envelope));
        let id = self.begin(&envelope.id, Chain { proposal, operation, expires, ..Chain::new(State::Open) });
        self.waiting.extend(expires.map(|at| (at, id)));
        Found::Proposed(id)
    }

    fn requested(&mut self, now: Now, envelope: &Envelope<'_>) -> Found {
        if self.ids.contains_key(&*envelope.id) {
            return Found::Repeated;
        }
        let proposed = envelope.correlation_id.as_ref().and_then(|of| self.ids.get(&**of)).copied();
        let Some(id) = proposed.filter(|id| self.chains.get(id).is_some_and(|chain| chain.proposal_is(envelope))) else {
            return Found::Requested(self.begin(&envelope.id, Chain::of_request(now, envelope)));
        };
        let Some(chain) = self.chains.get_mut(&id) else { return Found::Unrelated };
        let state = chain.state;
        let is_asked = chain.is_asked_by(envelope);
        if !is_asked || state != State::Open {
            // It is a request all the same, and its answer belongs to it.
            let own = self.begin(&envelope.id, Chain::of_request(now, envelope));
            return if is_asked {
                Found::Late { proposal: id, state, request: own }
            } else {
                Found::Deviates { proposal: id, request: own }
            };
        }
        chain.request = Some(Step::of(now, envelope));
        chain.rule = step::rule(envelope);
        self.settle(id, State::Requested);
        self.ids.insert(envelope.id.to_string(), id);
        Found::Fulfilled(id)
    }

    fn answered(&mut self, now: Now, envelope: &Envelope<'_>) -> Found {
        let of = envelope.correlation_id.as_deref().unwrap_or_default();
        let Some((id, chain)) = self.ids.get(of).and_then(|id| Some((*id, self.chains.get_mut(id)?))) else { return Found::Stray };
        let is_awaited = chain.state == State::Requested
            && chain.request.as_ref().is_some_and(|request| {
                let may_answer = request.to.is_empty() || request.to.iter().any(|to| *to == envelope.from);
                request.id == of && may_answer && Kind::new(&request.kind).method() == envelope.kind().method()
            });
        if !is_awaited {
            return Found::Stray;
        }
        chain.response = Some(Step::of(now, envelope));
        chain.outcome = Some(Outcome::of(envelope));
        chain.state = State::Answered;
        Found::Answered(id)
    }

    /// Somebody takes a proposal back, or speaks against it. Only its proposer takes it back.
    fn ended(&mut self, now: Now, envelope: &Envelope<'_>, state: State) -> Found {
        let of = envelope.correlation_id.as_deref().unwrap_or_default();
        let Some((id, chain)) = self.ids.get(of).and_then(|id| Some((*id, self.chains.get_mut(id)?))) else { return Found::Stray };
        let proposal = chain.proposal.as_ref().filter(|step| step.id == of && chain.state == State::Open);
        match proposal {
            Some(step) if state != State::Withdrawn || step.from == envelope.from => {
                chain.end = Some(Step::of(now, envelope));
                chain.reason = step::reason(envelope);
                self.settle(id, state);
                Found::Ended(id)
            }
            Some(_) | None => Found::Stray,
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

    /// Drops the oldest.
    fn forget(&mut self) {
        let Some((id, chain)) = self.chains.pop_first() else { return };
        if let Some(at) = chain.expires {
            self.waiting.remove(&(at, id));
        }
        for step in [chain.proposal, chain.request].into_iter().flatten() {
            self.ids.remove(&step.id);
        }
    }

    /// A proposal waits no more.
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
        Self { request: Some(Step::of(now, envelope)), rule: step::rule(envelope), ..Self::new(State::Requested) }
    }

    /// Whether a message refers to its proposal.
    fn proposal_is(&self, envelope: &Envelope<'_>) -> bool {
        self.proposal.as_ref().is_some_and(|proposal| Some(proposal.id.as_str()) == envelope.correlation_id.as_deref())
    }

    /// Says yes to a request for what was proposed: one method, and one tool, resource or prompt. Its arguments may have been amended by
    /// whoever fulfils the proposal.
    fn is_asked_by(&self, request: &Envelope<'_>) -> bool {
        self.operation.is_some() && self.operation == Operation::of(request)
    }
}

#[cfg(test)]
mod tests;
