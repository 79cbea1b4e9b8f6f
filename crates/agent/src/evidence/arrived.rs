//! Tokens that came with a message, verified and traced to their beginnings. Takes no id: a message sent again is no replay.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent_proto::served::rejection::{ClientRefusal, RefusalReason};
use audit::ect::EctFault;
use audit::ect::compact::carried;
use audit::ect::graph::EctGraph;
use audit::ect::lineage::{EctLineage, MOST_ANCESTRY};
use audit::ect::spelled_hash;
use banyan_model::Principal;
use http::HeaderMap;

use crate::evidence::kept::KeptToken;
use crate::evidence::notary::{EvidenceTerms, Notary, seconds};

/// Field with tokens.
pub const FIELD: &str = "execution-context";
/// Most tokens of a message or an answer, and their bytes.
pub(super) const MOST: usize = 32;
pub(super) const MOST_BYTES: usize = 24 << 10;

/// Evidence of a message.
#[derive(Debug)]
pub struct ArrivedEvidence {
    pub terms: Arc<EvidenceTerms>,
    pub lineage: EctLineage,
    /// All tokens of the ancestry, each behind its predecessors.
    pub ancestry: Vec<KeptToken>,
    /// Tokens that the message brought.
    brought: Vec<KeptToken>,
    /// Hash of the body of the message.
    pub input: String,
    /// Binding of the message.
    pub source: &'static str,
}

/// Refusal of a message for its tokens.
#[derive(Debug)]
pub enum EvidenceRefusal {
    /// The tokens do not hold, or there is none.
    Untrue(EctFault),
    Missing,
    /// The message is in a circle, or too far from its beginning: its tokens hold.
    Astray(EctFault, Box<ArrivedEvidence>),
    /// Too many messages of the caller were refused, and nothing is read for this many seconds.
    Paced(u64),
    /// The gate can't sign.
    Unable(String),
}

impl Notary {
    /// Verifies the tokens of a message of `caller`. `None`: the gate takes no tokens, and reads none.
    ///
    /// # Errors
    /// When the tokens do not hold, or the message may not go on.
    pub fn arrived(
        &self,
        headers: &HeaderMap,
        (body, source): (&[u8], &'static str),
        caller: &Principal,
    ) -> Result<Option<ArrivedEvidence>, EvidenceRefusal> {
        let Some(terms) = self.terms().map_err(EvidenceRefusal::Unable)? else { return Ok(None) };
        if !headers.contains_key(FIELD) && terms.evidence.is_required {
            return Err(EvidenceRefusal::Missing);
        }
        if let Some(pause) = self.pause(caller).filter(|_| headers.contains_key(FIELD)) {
            return Err(EvidenceRefusal::Paced(pause.as_secs().saturating_add(1)));
        }
        self.judged(terms, headers, (body, source), caller).map(Some).inspect_err(|refusal| match refusal {
            EvidenceRefusal::Untrue(_) | EvidenceRefusal::Astray(..) => self.count_refusal(caller),
            EvidenceRefusal::Missing | EvidenceRefusal::Paced(_) | EvidenceRefusal::Unable(_) => {}
        })
    }

    fn judged(
        &self,
        terms: Arc<EvidenceTerms>,
        headers: &HeaderMap,
        (body, source): (&[u8], &'static str),
        caller: &Principal,
    ) -> Result<ArrivedEvidence, EvidenceRefusal> {
        let texts = texts(headers)?;
        if texts.is_empty() && terms.evidence.is_required {
            return Err(EvidenceRefusal::Missing);
        }
        let brought = self.verified(&terms, &texts, caller)?;
        let tokens = self.traced(&brought, caller)?;
        let graph = EctGraph::gather(MOST_ANCESTRY, tokens.values().map(|token| (*token.claims).clone()).collect())?;
        let lineage = EctLineage::of_graph(&graph)?;
        let now = seconds();
        lineage.leaves.iter().try_for_each(|leaf| leaf.judge(&terms.names(), now))?;
        lineage.ends(&terms.agent)?;
        let ancestry = graph.ordered().filter_map(|claims| tokens.get(&claims.id).cloned()).collect();
        let (passed, input) = (lineage.pass(&terms.agent, terms.evidence.hops), spelled_hash(body));
        let arrived = ArrivedEvidence { terms, lineage, ancestry, brought, input, source };
        match passed {
            Ok(()) => Ok(arrived),
            Err(fault) => Err(EvidenceRefusal::Astray(fault, Box::new(arrived))),
        }
    }

    /// Verifies signatures. An id that is known for another text is no id.
    fn verified(&self, terms: &EvidenceTerms, texts: &[&str], caller: &Principal) -> Result<Vec<KeptToken>, EctFault> {
        let mut verified = Vec::with_capacity(texts.len());
        for text in texts {
            let token = KeptToken::new(terms.issuers.signed(text)?, text);
            if self.kept().has_other(caller, &token) {
                return Err(EctFault::Replayed(token.claims.id.clone()));
            }
            verified.push(token);
        }
        Ok(verified)
    }

    /// Adds the predecessors of tokens that earlier messages of the caller brought.
    fn traced(&self, brought: &[KeptToken], caller: &Principal) -> Result<BTreeMap<String, KeptToken>, EctFault> {
        let mut tokens = BTreeMap::new();
        for token in brought {
            if tokens.insert(token.claims.id.clone(), token.clone()).is_some() {
                return Err(EctFault::Replayed(token.claims.id.clone()));
            }
        }
        let kept = self.kept();
        let mut next: Vec<String> = brought.iter().flat_map(|token| token.claims.parents.clone()).collect();
        while let Some(id) = next.pop() {
            if tokens.contains_key(&id) {
                continue;
            }
            if tokens.len() >= MOST_ANCESTRY {
                return Err(EctFault::Ancestry(MOST_ANCESTRY));
            }
            let known = kept.find(caller, &id).ok_or(EctFault::Parent(id.clone()))?;
            next.extend(known.claims.parents.iter().cloned());
            tokens.insert(id, known.clone());
        }
        Ok(tokens)
    }

    /// Takes the tokens of a message that begins or goes on with a task, or that leaves an error, and keeps them.
    ///
    /// # Errors
    /// When a token without a successor has come before, or the caller has too many.
    pub fn admit(&self, arrived: &ArrivedEvidence, caller: &Principal) -> Result<(), ClientRefusal> {
        self.admit_once(caller, &arrived.lineage.leaves).map_err(|fault| {
            let refusal = EvidenceRefusal::Untrue(fault);
            self.count_refusal(caller);
            refusal.log(&caller.name);
            refusal.client()
        })?;
        arrived.brought.iter().for_each(|token| self.keep(caller, token));
        Ok(())
    }
}

/// Splits the field into tokens, within its bounds.
fn texts(headers: &HeaderMap) -> Result<Vec<&str>, EctFault> {
    let lines: Option<Vec<&str>> = headers.get_all(FIELD).iter().map(|line| line.to_str().ok()).collect();
    let lines = lines.ok_or_else(|| EctFault::Form("`Execution-Context` is no text".into()))?;
    if lines.iter().map(|line| line.len()).sum::<usize>() > MOST_BYTES {
        return Err(EctFault::Oversized("24576 bytes in `Execution-Context`"));
    }
    let texts = carried(lines)?;
    if texts.len() > MOST { Err(EctFault::Oversized("32 tokens in `Execution-Context`")) } else { Ok(texts) }
}

impl From<EctFault> for EvidenceRefusal {
    fn from(fault: EctFault) -> Self {
        Self::Untrue(fault)
    }
}

impl EvidenceRefusal {
    /// Tells the client. Before a signature of a known issuer holds, nobody hears which check has failed.
    pub fn client(&self) -> ClientRefusal {
        let refused = |text: String| ClientRefusal::new(RefusalReason::Evidence, text);
        match self {
            Self::Untrue(fault @ EctFault::Crowded(wait)) => {
                ClientRefusal::new(RefusalReason::Paced(*wait), format!("The tokens in `Execution-Context` are not taken: {fault}."))
            }
            Self::Untrue(fault) if fault.kind().has_issuer() => {
                refused(format!("The tokens in `Execution-Context` do not hold: {fault}."))
            }
            Self::Untrue(_) => refused(
                "The tokens in `Execution-Context` do not hold: send signed tokens of issuers that this gate knows, or leave the field out."
                    .into(),
            ),
            Self::Paced(wait) => ClientRefusal::new(
                RefusalReason::Paced(*wait),
                format!("Too many messages of this caller were refused for their tokens: come again in {wait} seconds, with tokens that hold."),
            ),
            Self::Missing => refused("This gate takes messages with a token in `Execution-Context` alone: sign one for each task.".into()),
            Self::Astray(fault, _) => refused(format!("The message may not go on: {fault}.")),
            Self::Unable(_) => ClientRefusal::new(RefusalReason::Crowded, "This gate can't sign tokens now; its operator finds why in its log."),
        }
    }

    /// Tells the operator, in the log.
    pub fn log(&self, caller: &str) {
        match self {
            Self::Untrue(fault) | Self::Astray(fault, _) => tracing::warn!(caller, %fault, "a message was refused for its tokens"),
            Self::Paced(_) => tracing::debug!(caller, "a message was refused unread, after many with tokens that do not hold"),
            Self::Missing => tracing::debug!(caller, "a message without a token was refused"),
            Self::Unable(why) => tracing::error!(why, "the gate can't sign tokens"),
        }
    }
}
