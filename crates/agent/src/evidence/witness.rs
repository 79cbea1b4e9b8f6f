//! Witness of one call: makes a token for each hop, takes the tokens of agents on the way, and closes with the answer. Decides nothing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_proto::served::written::EVIDENCE;
use audit::ect::graph::EctGraph;
use audit::ect::lineage::{ANSWER, EctLineage, GATEWAY, MOST_ANCESTRY, TRANSLATE, TRANSLATE_ERROR};
use audit::ect::{EctFault, compact, spelled_hash};
use call::words::witness::Witness;
use http::{HeaderMap, HeaderValue};
use json::{Members, quote};
use url::Url;

use crate::evidence::arrived::{ArrivedEvidence, FIELD};
use crate::evidence::kept::KeptToken;
use crate::evidence::notary::{EvidenceTerms, NewToken, Notary, seconds, uuid};

/// Action of a person's agreement (AEPB, section 9).
const GRANTED: &str = "hitl:approval_granted";
/// Bindings on the two sides of the gate.
pub const A2A: &str = "a2a-v1";
const MCP: &str = "mcp-v1";
/// Most bytes of tokens sent on with a message, or back with an answer: common limits of a head are 16 KiB.
const MOST_SENT: usize = 12 << 10;
/// Most tokens made for the hops of a call, and most taken from its agents.
const MOST_HOPS: usize = 33;
const MOST_HEARD: usize = 64;

/// Witness of one call.
#[derive(Debug)]
pub struct CallWitness {
    notary: Arc<Notary>,
    terms: Arc<EvidenceTerms>,
    caller: String,
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
    heard: Vec<KeptToken>,
    /// Ids of heard tokens without a successor.
    heard_leaves: Vec<String>,
    warnings: Vec<String>,
}

/// End of a call.
#[derive(Clone, Copy, Debug)]
pub struct WitnessedEnd<'a> {
    /// State of the task, in the words of A2A.
    pub state: &'a str,
    /// Code of AEPB, of a call without an answer.
    pub fault: Option<&'static str>,
}

impl Witness for CallWitness {
    fn departs(&self, params: &[u8], approval: Option<&str>) {
        let mut seen = self.lock();
        seen.leaving = Some(spelled_hash(params));
        if let Some(approval) = approval {
            self.agree(&mut seen, Some(approval));
        }
    }
}

impl CallWitness {
    /// Makes the witness of a task.
    pub fn of_task(notary: &Arc<Notary>, arrived: ArrivedEvidence, caller: &str) -> Arc<Self> {
        let ArrivedEvidence { terms, lineage, ancestry, input, source, .. } = arrived;
        Arc::new(Self::new(notary, terms, caller, (source, input), &lineage, ancestry))
    }

    /// Makes the witness of a call from a caller without tokens; `None`: the gate makes none.
    pub fn of_call(notary: &Arc<Notary>, caller: &str, params: &[u8]) -> Option<Arc<Self>> {
        let terms = notary.terms().unwrap_or_else(|why| {
            tracing::error!(why, "the gate can't sign tokens");
            None
        })?;
        Some(Arc::new(Self::new(notary, terms, caller, (MCP, spelled_hash(params)), &EctLineage::default(), Vec::new())))
    }

    fn new(
        notary: &Arc<Notary>,
        terms: Arc<EvidenceTerms>,
        caller: &str,
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
        Self { notary: Arc::clone(notary), terms, caller: caller.to_owned(), source, input, workflow, leaves, ancestry, audience, seen }
    }

    fn lock(&self) -> MutexGuard<'_, SeenHops> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that people have agreed, once.
    pub fn agreed(&self) {
        self.agree(&mut self.lock(), None);
    }

    fn agree(&self, seen: &mut SeenHops, approval: Option<&str>) {
        if seen.agreed.is_none() {
            let named = approval.map(|id| format!(",\"banyan.approval\":{}", quote(id))).unwrap_or_default();
            seen.agreed = self.made(&self.audience, GRANTED, &self.leaves, (None, None), &format!("{{{}{named}}}", self.gateway()));
        }
    }

    /// Notes a message to the agent at `target`, and gives the tokens to go along. `None`: no token can be made.
    pub fn hop(&self, body: &[u8], target: &Url) -> Option<HeaderValue> {
        let mut seen = self.lock();
        let mut audience = self.audience.clone();
        audience.extend([target.as_str().trim_end_matches('/').to_owned(), target.origin().ascii_serialization()]);
        audience.dedup();
        let token = self.translate(&mut seen, &audience, A2A, &spelled_hash(body))?;
        let own = seen.agreed.iter().chain([&token]);
        line(self.ancestry.iter().chain(own)).and_then(|line| HeaderValue::from_str(&line).ok())
    }

    /// Makes the token of a hop. Hops of a call stand side by side: none follows another.
    fn translate(&self, seen: &mut SeenHops, audience: &[String], target: &str, output: &str) -> Option<KeptToken> {
        seen.leaving = None;
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
        self.notary.make(&self.terms, &self.caller, &new)
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
        if let Err(fault) = self.heard(&mut seen, lines) {
            tracing::warn!(caller = self.caller, %fault, "tokens of an agent do not hold");
            if seen.warnings.is_empty() {
                seen.warnings.push(format!("tokens of an agent were left out: {}", word(&fault)));
            }
        }
    }

    fn heard(&self, seen: &mut SeenHops, lines: &[&str]) -> Result<(), EctFault> {
        let texts = compact::carried(lines.iter().copied())?;
        let (names, now) = (self.terms.names(), seconds());
        let mut fresh = Vec::new();
        for text in texts {
            let known = self.ancestry.iter().chain(&seen.agreed).chain(&seen.hops).chain(&seen.heard);
            if known.map(|token| &*token.text).any(|known| known == text) {
                continue;
            }
            if seen.heard.len() + fresh.len() >= MOST_HEARD {
                return Err(EctFault::Full(MOST_HEARD));
            }
            let claims = self.terms.issuers.signed(text)?;
            claims.judge(&names, now)?;
            fresh.push(KeptToken::new(claims, text));
        }
        if fresh.is_empty() {
            return Ok(());
        }
        let all = self.ancestry.iter().chain(&seen.agreed).chain(&seen.hops).chain(&seen.heard).chain(&fresh);
        let graph = EctGraph::gather(2 * MOST_ANCESTRY, all.map(|token| (*token.claims).clone()).collect())?;
        let of_hops: Vec<&str> = seen.hops.iter().map(|hop| hop.claims.id.as_str()).collect();
        for token in &fresh {
            let before = graph.ancestors(&token.claims.id)?;
            if !before.iter().any(|ancestor| of_hops.contains(&ancestor.id.as_str())) {
                return Err(EctFault::Parent(token.claims.id.clone()));
            }
        }
        let taken: Vec<_> = fresh.iter().map(|token| (*token.claims).clone()).collect();
        self.notary.admit_once(&self.caller, &taken)?;
        fresh.iter().for_each(|token| self.notary.keep(&self.caller, token));
        seen.heard.extend(fresh);
        let followed: Vec<&String> = seen.heard.iter().flat_map(|token| &token.claims.parents).collect();
        let leaves = seen.heard.iter().map(|token| &token.claims.id).filter(|id| !followed.contains(id)).cloned().collect();
        seen.heard_leaves = leaves;
        Ok(())
    }

    /// Closes with the bytes of the answer, and gives the tokens for the caller: those of this gate, and those of agents behind.
    pub fn close(&self, output: &[u8], end: WitnessedEnd<'_>) -> Option<Arc<str>> {
        let mut seen = self.lock();
        if let Some(leaving) = seen.leaving.take() {
            self.translate(&mut seen, &self.audience, MCP, &leaving);
        }
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

/// Names a fault in a word, without text of an agent.
fn word(fault: &EctFault) -> &'static str {
    match fault {
        EctFault::Replayed(_) => "replayed",
        EctFault::Expired | EctFault::Early | EctFault::Stale => "out of time",
        EctFault::Audience => "made for others",
        EctFault::Parent(_) | EctFault::Order(_) | EctFault::Cycle(_) | EctFault::Workflow(_) | EctFault::Loop(_) | EctFault::Hops(_) => {
            "not linked to the call"
        }
        EctFault::Full(_) | EctFault::Oversized(_) => "too many",
        EctFault::Algorithm(_)
        | EctFault::Form(_)
        | EctFault::Issuer
        | EctFault::Key(_)
        | EctFault::Level
        | EctFault::Names
        | EctFault::Signature
        | EctFault::Type(_) => "not signed by a known issuer",
    }
}
