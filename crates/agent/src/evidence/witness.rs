//! Witness of one call: makes a token for each hop, takes the tokens of agents on the way, and closes with the answer. Decides nothing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_proto::served::written::EVIDENCE;
use audit::ect::graph::EctGraph;
use audit::ect::lineage::{ANSWER, EctLineage, GATEWAY, MOST_ANCESTRY, TRANSLATE, TRANSLATE_ERROR};
use audit::ect::{EctFault, SKEW, compact, spelled_hash};
use banyan_model::Principal;
use call::words::witness::Witness;
use http::{HeaderMap, HeaderValue};
use json::{Members, quote};
use url::Url;

use crate::evidence::arrived::{ArrivedEvidence, FIELD, MOST, MOST_BYTES};
use crate::evidence::kept::KeptToken;
use crate::evidence::notary::{EvidenceTerms, NewToken, Notary, seconds, uuid};

/// Action of a person's agreement (AEPB, section 9).
const GRANTED: &str = "hitl:approval_granted";
/// Bindings on the two sides of the gate.
pub const A2A: &str = "a2a-v1";
const MCP: &str = "mcp-v1";
/// Most bytes of tokens sent on with a message, or back with an answer: common limits of a head are 16 KiB.
const MOST_SENT: usize = 12 << 10;
/// Most tokens made for the hops of a call.
const MOST_HOPS: usize = 33;
/// Most tokens behind a call that has tokens of its agents: the rest of an ancestry is for the caller's next steps.
const MOST_BEHIND: usize = MOST_ANCESTRY / 2;
/// Answers of agents with false tokens, after which no token of the call's agents is read.
const MOST_FALSE: usize = 3;

/// Witness of one call.
#[derive(Debug)]
pub struct CallWitness {
    notary: Arc<Notary>,
    terms: Arc<EvidenceTerms>,
    caller: Principal,
    source: &'static str,
    input: String,
    workflow: Option<String>,
    /// Ids of the tokens without a successor that came with the message.
    leaves: Vec<String>,
    ancestry: Vec<KeptToken>,
    /// Issuers of the leaves, and the gate.
    audience: Vec<String>,
    seen: Mutex<SeenHops>,
}

/// Hops so far.
#[derive(Debug, Default)]
struct SeenHops {
    agreed: Option<KeptToken>,
    /// Hash of params on their way, until a message to an agent takes their place.
    leaving: Option<String>,
    hops: Vec<KeptToken>,
    /// Ids of hops whose messages have no sign of having left yet. Such hops are in no record.
    pending: Vec<String>,
    heard: Vec<KeptToken>,
    /// Ids of heard tokens without a successor.
    heard_leaves: Vec<String>,
    warnings: Vec<String>,
    /// Count of answers with false tokens.
    false_answers: usize,
}

/// A message to an agent, with its token made.
#[derive(Debug)]
pub struct WitnessedHop {
    /// Tokens to go along.
    pub line: HeaderValue,
    id: String,
}

/// End of a call.
#[derive(Clone, Copy, Debug)]
pub struct WitnessedEnd<'a> {
    /// State of the task, in the words of A2A.
    pub state: &'a str,
    /// Code of AEPB, of a call without an answer.
    pub fault: Option<&'static str>,
    /// The call was not sent on, or not for the last time.
    pub never_left: bool,
}

impl Witness for CallWitness {
    /// Notes params on their way. Params before them were answered with a question, and so have left.
    fn departs(&self, params: &[u8], approval: Option<&str>) {
        let (mut seen, hash) = (self.lock(), spelled_hash(params));
        if let Some(left) = seen.leaving.take() {
            self.hop_to_server(&mut seen, &left);
        }
        if let Some(approval) = approval {
            self.agree(&mut seen, Some(approval), &hash);
        }
        seen.leaving = Some(hash);
    }
}

impl CallWitness {
    /// Makes the witness of a task.
    pub fn of_task(notary: &Arc<Notary>, arrived: ArrivedEvidence, caller: &Principal) -> Arc<Self> {
        let ArrivedEvidence { terms, lineage, ancestry, input, source, .. } = arrived;
        Arc::new(Self::new(notary, terms, caller, (source, input), &lineage, ancestry))
    }

    /// Makes the witness of a call from a caller without tokens; `None`: the gate makes none.
    pub fn of_call(notary: &Arc<Notary>, caller: &Principal, params: &[u8]) -> Option<Arc<Self>> {
        let terms = notary.terms().unwrap_or_else(|why| {
            tracing::error!(why, "the gate can't sign tokens");
            None
        })?;
        Some(Arc::new(Self::new(notary, terms, caller, (MCP, spelled_hash(params)), &EctLineage::default(), Vec::new())))
    }

    fn new(
        notary: &Arc<Notary>,
        terms: Arc<EvidenceTerms>,
        caller: &Principal,
        (source, input): (&'static str, String),
        lineage: &EctLineage,
        ancestry: Vec<KeptToken>,
    ) -> Self {
        let leaves: Vec<String> = lineage.leaves.iter().map(|leaf| leaf.id.clone()).collect();
        let workflow = if leaves.is_empty() { Some(uuid()) } else { lineage.workflow.clone() };
        let mut audience: Vec<String> = lineage.leaves.iter().filter_map(|leaf| leaf.issuer.clone()).collect();
        audience.push(terms.agent.clone());
        audience.sort();
        audience.dedup();
        // A token has 32 names at most.
        audience.truncate(28);
        let seen = Mutex::default();
        Self { notary: Arc::clone(notary), terms, caller: caller.clone(), source, input, workflow, leaves, ancestry, audience, seen }
    }

    fn lock(&self) -> MutexGuard<'_, SeenHops> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that people have agreed to the call as received, once.
    pub fn agreed(&self) {
        self.agree(&mut self.lock(), None, &self.input);
    }

    /// Makes the token of an agreement. The hash of the params binds it to this call: elsewhere it is no agreement.
    fn agree(&self, seen: &mut SeenHops, approval: Option<&str>, params: &str) {
        if seen.agreed.is_none() {
            let named = approval.map(|id| format!(",\"banyan.approval\":{}", quote(id))).unwrap_or_default();
            let (hashes, extension) = ((Some(self.input.as_str()), Some(params)), format!("{{{}{named}}}", self.gateway()));
            seen.agreed = self.made(&self.audience, GRANTED, &self.leaves, hashes, &extension).inspect(|token| self.keep(token));
        }
    }

    /// Notes that an agent has the call, which leaves with messages of its own or not at all.
    pub fn entrusted(&self) {
        self.lock().leaving = None;
    }

    /// Makes the token of a message to the agent at `target`. `None`: no token can be made.
    pub fn hop(&self, body: &[u8], target: &Url) -> Option<WitnessedHop> {
        let mut seen = self.lock();
        let mut audience = self.audience.clone();
        audience.extend([target.as_str().trim_end_matches('/').to_owned(), target.origin().ascii_serialization()]);
        audience.dedup();
        let token = self.translate(&mut seen, &audience, A2A, &spelled_hash(body))?;
        let id = token.claims.id.clone();
        seen.pending.push(id.clone());
        let own = seen.agreed.iter().chain([&token]);
        let line = line(self.ancestry.iter().chain(own)).and_then(|line| HeaderValue::from_str(&line).ok())?;
        Some(WitnessedHop { line, id })
    }

    /// Notes the fate of a message: its token is kept if the message may have left, and forgotten otherwise.
    pub fn settle(&self, hop: &WitnessedHop, has_left: bool) {
        let mut seen = self.lock();
        seen.pending.retain(|id| *id != hop.id);
        if has_left {
            seen.hops.iter().filter(|token| token.claims.id == hop.id).for_each(|token| self.keep(token));
        } else {
            seen.hops.retain(|token| token.claims.id != hop.id);
        }
    }

    /// Makes and keeps the token of params that left for a server of MCP.
    fn hop_to_server(&self, seen: &mut SeenHops, output: &str) {
        self.translate(seen, &self.audience, MCP, output).iter().for_each(|token| self.keep(token));
    }

    /// Makes the token of a hop. Hops of a call stand side by side: none follows another.
    fn translate(&self, seen: &mut SeenHops, audience: &[String], target: &str, output: &str) -> Option<KeptToken> {
        if seen.hops.len() >= MOST_HOPS {
            return None;
        }
        let before = seen.agreed.as_ref().map_or_else(|| self.leaves.clone(), |agreed| vec![agreed.claims.id.clone()]);
        let (source, gateway) = (self.source, self.gateway());
        let extension = format!(
            "{{\"aepb.source_protocol\":\"{source}\",\"aepb.dest_protocol\":\"{target}\",{gateway},\"aepb.translation_warnings\":[]}}"
        );
        let token = self.made(audience, TRANSLATE, &before, (Some(&self.input), Some(output)), &extension)?;
        seen.hops.push(token.clone());
        Some(token)
    }

    fn keep(&self, token: &KeptToken) {
        self.notary.keep(&self.caller, token);
    }

    fn gateway(&self) -> String {
        format!("\"{GATEWAY}\":{},\"aepb.agent_version\":\"{}\"", quote(&self.terms.agent), env!("CARGO_PKG_VERSION"))
    }

    fn made(
        &self,
        audience: &[String],
        action: &str,
        parents: &[String],
        (input, output): (Option<&str>, Option<&str>),
        extension: &str,
    ) -> Option<KeptToken> {
        let audience: Vec<&str> = audience.iter().map(String::as_str).collect();
        let parents: Vec<&str> = parents.iter().map(String::as_str).collect();
        let workflow = self.workflow.as_deref();
        let new = NewToken { audience: &audience, workflow, action, parents: &parents, input, output, extension };
        self.notary.sign(&self.terms, &new)
    }

    /// Takes tokens from an answer of an agent. Tokens that do not hold are left out, and the last token of the call says so.
    pub fn hear(&self, headers: &HeaderMap) {
        let lines: Vec<&str> = headers.get_all(FIELD).iter().map(|line| line.to_str().unwrap_or("?")).collect();
        self.hear_lines(&lines);
    }

    /// Takes tokens from an event of an agent's stream.
    pub fn hear_event(&self, event: &[u8]) {
        let update = Members::again(event).object("statusUpdate");
        let metadata = update.as_ref().and_then(|update| update.object("metadata"));
        if let Some(line) = metadata.as_ref().and_then(|metadata| metadata.str(EVIDENCE)) {
            self.hear_lines(&[&line]);
        }
    }

    fn hear_lines(&self, lines: &[&str]) {
        let mut seen = self.lock();
        if seen.false_answers >= MOST_FALSE {
            return;
        }
        if let Err(fault) = self.heard(&mut seen, lines) {
            seen.false_answers += 1;
            if seen.warnings.is_empty() {
                tracing::warn!(caller = &*self.caller.name, %fault, "tokens of an agent do not hold");
                seen.warnings.push(format!("tokens of an agent were left out: {}", fault.kind().words()));
            }
        }
    }

    fn heard(&self, seen: &mut SeenHops, lines: &[&str]) -> Result<(), EctFault> {
        let fresh = self.fresh(seen, lines)?;
        if fresh.is_empty() {
            return Ok(());
        }
        self.linked(seen, &fresh)?;
        let taken: Vec<_> = fresh.iter().map(|token| (*token.claims).clone()).collect();
        self.notary.admit_once(&self.caller, &taken)?;
        fresh.iter().for_each(|token| self.keep(token));
        seen.heard.extend(fresh);
        let followed: Vec<&String> = seen.heard.iter().flat_map(|token| &token.claims.parents).collect();
        let leaves = seen.heard.iter().map(|token| &token.claims.id).filter(|id| !followed.contains(id)).cloned().collect();
        seen.heard_leaves = leaves;
        Ok(())
    }

    /// Verifies the tokens of lines that are not known yet.
    fn fresh(&self, seen: &SeenHops, lines: &[&str]) -> Result<Vec<KeptToken>, EctFault> {
        let texts = compact::carried(lines.iter().copied())?;
        let (names, now) = (self.terms.names(), seconds());
        let mut fresh: Vec<KeptToken> = Vec::new();
        let mut room = MOST_BYTES.saturating_sub(seen.heard.iter().map(|token| token.text.len()).sum());
        for text in texts {
            if self.all(seen).chain(&fresh).any(|known| known.is(text)) {
                continue;
            }
            if seen.heard.len() + fresh.len() >= MOST || room < text.len() {
                return Err(EctFault::Full(MOST));
            }
            room -= text.len();
            let token = KeptToken::new(self.terms.issuers.signed(text)?, text);
            token.claims.judge(&names, now)?;
            // The answer of the gate follows the token, and whoever follows the answer is refused if these two are out of order.
            if token.claims.issued >= now.saturating_add(SKEW) {
                return Err(EctFault::Early);
            }
            if token.claims.workflow != self.workflow {
                return Err(EctFault::Workflow(token.claims.id.clone()));
            }
            if self.notary.kept().has_other(&self.caller, &token) {
                return Err(EctFault::Replayed(token.claims.id.clone()));
            }
            fresh.push(token);
        }
        Ok(fresh)
    }

    /// Checks that fresh tokens follow a hop of this call, and leave the caller its next step: no message is inside this gate behind them.
    fn linked(&self, seen: &SeenHops, fresh: &[KeptToken]) -> Result<(), EctFault> {
        let all: Vec<_> = self.all(seen).chain(fresh).map(|token| (*token.claims).clone()).collect();
        if all.len() > MOST_BEHIND {
            return Err(EctFault::Full(MOST_BEHIND));
        }
        let graph = EctGraph::gather(MOST_BEHIND, all)?;
        let of_hops: Vec<&str> = seen.hops.iter().map(|hop| hop.claims.id.as_str()).collect();
        let lineage = EctLineage::of_graph(&graph)?;
        for token in fresh {
            let before = graph.ancestors(&token.claims.id)?;
            if !before.iter().any(|ancestor| of_hops.contains(&ancestor.id.as_str())) {
                return Err(EctFault::Parent(token.claims.id.clone()));
            }
            if token.claims.issuer.as_deref() == Some(&*self.terms.agent) && lineage.is_open(&token.claims.id) {
                return Err(EctFault::Loop(self.terms.agent.clone()));
            }
        }
        Ok(())
    }

    /// Lists all tokens of the call so far.
    fn all<'a>(&'a self, seen: &'a SeenHops) -> impl Iterator<Item = &'a KeptToken> {
        self.ancestry.iter().chain(&seen.agreed).chain(&seen.hops).chain(&seen.heard)
    }

    /// Closes with the bytes of the answer, and gives the tokens for the caller: those of this gate, and those of agents behind.
    pub fn close(&self, output: &[u8], end: WitnessedEnd<'_>) -> Option<Arc<str>> {
        let mut seen = self.lock();
        if let Some(leaving) = seen.leaving.take().filter(|_| !end.never_left) {
            self.hop_to_server(&mut seen, &leaving);
        }
        let pending = std::mem::take(&mut seen.pending);
        seen.hops.iter().filter(|hop| pending.contains(&hop.claims.id)).for_each(|hop| self.keep(hop));
        let mut before: Vec<String> = seen.hops.iter().map(|hop| hop.claims.id.clone()).chain(seen.heard_leaves.clone()).collect();
        if before.is_empty() {
            before = seen.agreed.as_ref().map_or_else(|| self.leaves.clone(), |agreed| vec![agreed.claims.id.clone()]);
        }
        let warnings: Vec<String> = seen.warnings.iter().map(|warning| quote(warning)).collect();
        let fault = end.fault.map(|code| format!(",\"aepb.error\":\"{code}\"")).unwrap_or_default();
        let extension = format!(
            "{{{},\"aepb.translation_warnings\":[{}],\"banyan.state\":{}{fault}}}",
            self.gateway(),
            warnings.join(","),
            quote(end.state)
        );
        let action = if end.fault.is_some() { TRANSLATE_ERROR } else { ANSWER };
        let last = self.made(&self.audience, action, &before, (Some(&self.input), Some(&spelled_hash(output))), &extension)?;
        self.keep(&last);
        line(seen.agreed.iter().chain(&seen.hops).chain(&seen.heard).chain([&last])).map(Into::into)
    }
}

/// Joins tokens into a line of `Execution-Context`: the last ones, where there is no room for all.
fn line<'a>(tokens: impl DoubleEndedIterator<Item = &'a KeptToken>) -> Option<String> {
    let mut room = MOST_SENT;
    let mut last: Vec<&str> = tokens
        .rev()
        .map(|token| &*token.text)
        .take_while(|text| {
            let fits = room > text.len() + 2;
            room = room.saturating_sub(text.len() + 2);
            fits
        })
        .collect();
    last.reverse();
    (!last.is_empty()).then(|| last.join(", "))
}
