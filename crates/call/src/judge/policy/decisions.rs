//! Recent decisions that people may ask about: everything not simply allowed. Bounded, in memory only; not the record.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use policy::Effect;
use policy::decide::{Action, Rule, Subject, Verdict};
use serde::{Deserialize, Serialize};

use runtime::random;

/// Decisions kept.
const KEPT: usize = 4096;
/// Longest name kept; longer ones are cut.
const MOST_CHARS: usize = 512;

/// Id of a decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DecisionId(u64);

impl fmt::Display for DecisionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "d-{:016x}", self.0)
    }
}

/// Decision in the admin API: `GET /-/decisions`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    pub id: String,
    /// Time, in seconds since 1970.
    pub at: u64,
    pub principal: String,
    /// Kind of its credential: `certificate`, `issuer`, `local`, `parent` or `token`.
    pub kind: String,
    /// Groups and roles of the principal.
    pub groups: Vec<String>,
    /// Name by which the client program calls itself.
    pub client: String,
    /// `call`, `prompt`, `read` or `send`.
    pub action: String,
    /// Name in the tree, or the caller's own text for an unknown name.
    pub resource: String,
    /// Other inputs of rules, by name; of arguments only the shape, since values may be secret.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, String>,
    /// `allow`, `gate` or `deny`.
    pub effect: String,
    /// `forbidden`, `not_permitted`, `policy_error`, `gated`, `permitted`, or `unknown` for an unknown name.
    pub cause: String,
    /// Error of a rule that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Rules that decided.
    pub rules: Vec<DecidedRule>,
    /// Decision if rules in shadow mode were in force, where different.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shadow: Option<DecidedShadow>,
    /// The decision comes from the record, which lacks the caller's credential and has only names of rules, whose texts are those of today.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recorded: bool,
}

/// Rule behind a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecidedRule {
    pub id: String,
    /// Line of the file where the rule begins.
    pub line: usize,
    /// Remedy for the refused caller.
    pub remedy: Option<String>,
    pub text: String,
}

/// Decision of rules in shadow mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecidedShadow {
    /// `allow`, `gate` or `deny`.
    pub effect: String,
    pub cause: String,
    /// Rules that would decide.
    pub rules: Vec<DecidedRule>,
}

/// Facts of a decision.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    pub subject: &'a Subject,
    pub action: Action,
    /// Name of the resource, made only if it will be read.
    pub resource: &'a dyn Fn() -> String,
    /// Other inputs, made only if they will be read.
    pub inputs: &'a dyn Fn() -> BTreeMap<String, String>,
}

/// Recent decisions.
pub struct Decisions {
    next: AtomicU64,
    kept: Mutex<VecDeque<Decision>>,
}

impl Default for Decisions {
    fn default() -> Self {
        Self::new()
    }
}

impl Decisions {
    /// Makes an empty memory, with ids counted from a random number.
    pub fn new() -> Self {
        let seed = random::seed();
        let first = seed.iter().take(8).fold(0, |bits, byte| bits << 8 | u64::from(*byte));
        Self { next: AtomicU64::new(first), kept: Mutex::default() }
    }

    /// Draws an id, unique in this run.
    pub fn id(&self) -> DecisionId {
        DecisionId(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Keeps a decision that people may ask about, and returns its id.
    pub fn keep(&self, facts: Facts<'_>, verdict: &Verdict) -> DecisionId {
        let id = self.id();
        if verdict.effect != Effect::Allow || verdict.shadow.is_some() {
            self.push(of_verdict(id, facts, verdict));
        }
        id
    }

    /// Keeps a decision about an unknown name, and returns its id.
    pub fn keep_unknown(&self, facts: Facts<'_>) -> DecisionId {
        let id = self.id();
        self.push(Decision { cause: "unknown".into(), ..about(id, facts) });
        id
    }

    /// Finds a decision by id; without an id the last ones, newest first.
    pub fn find(&self, id: Option<&str>) -> Vec<Decision> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = kept.iter().rev().filter(|one| id.is_none_or(|id| one.id == id));
        wanted.take(if id.is_some() { 1 } else { 100 }).cloned().collect()
    }

    /// Counts for each rule, by name, the kept decisions it made, and those it would have changed in shadow mode.
    pub fn tally(&self) -> HashMap<String, (usize, usize)> {
        let mut tally: HashMap<String, (usize, usize)> = HashMap::new();
        for one in self.kept.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            one.rules.iter().for_each(|rule| tally.entry(rule.id.clone()).or_default().0 += 1);
            one.shadow.iter().flat_map(|shadow| &shadow.rules).for_each(|rule| tally.entry(rule.id.clone()).or_default().1 += 1);
        }
        tally
    }

    fn push(&self, decision: Decision) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT {
            kept.pop_front();
        }
        kept.push_back(decision);
    }
}

fn about(id: DecisionId, facts: Facts<'_>) -> Decision {
    let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let subject = facts.subject;
    Decision {
        id: id.to_string(),
        at,
        principal: subject.name.clone(),
        kind: subject.kind.as_str().into(),
        groups: subject.groups.iter().chain(&subject.roles).cloned().collect(),
        client: subject.client.chars().take(MOST_CHARS).collect(),
        action: facts.action.as_str().into(),
        resource: (facts.resource)().chars().take(MOST_CHARS).collect(),
        inputs: (facts.inputs)(),
        effect: Effect::Deny.as_str().into(),
        cause: String::new(),
        error: None,
        rules: Vec::new(),
        shadow: None,
        recorded: false,
    }
}

fn of_verdict(id: DecisionId, facts: Facts<'_>, verdict: &Verdict) -> Decision {
    let rules = |rules: &[std::sync::Arc<Rule>]| rules.iter().map(|rule| decided(rule)).collect();
    let shadow = verdict.shadow.as_ref().map(|shadow| DecidedShadow {
        effect: shadow.effect.as_str().into(),
        cause: shadow.cause.as_str().into(),
        rules: rules(&shadow.rules),
    });
    let error = match &verdict.cause {
        policy::decide::Cause::Error(error) => Some(error.to_string()),
        policy::decide::Cause::Forbidden
        | policy::decide::Cause::Gated
        | policy::decide::Cause::NotPermitted
        | policy::decide::Cause::Permitted => None,
    };
    Decision {
        effect: verdict.effect.as_str().into(),
        cause: verdict.cause.as_str().into(),
        error,
        rules: rules(&verdict.rules),
        shadow,
        ..about(id, facts)
    }
}

fn decided(rule: &Rule) -> DecidedRule {
    let remedy = rule.remedy.as_deref().map(str::to_owned);
    DecidedRule { id: rule.id.to_string(), line: rule.line, remedy, text: rule.text.to_string() }
}

#[cfg(test)]
mod tests {
    use policy::decide::Cause;

    use super::*;

    #[test]
    fn the_last_ones_are_kept_and_no_more() {
        let decisions = Decisions::new();
        let subject = Subject { name: "a".into(), ..Subject::default() };
        let facts = Facts { subject: &subject, action: Action::Call, resource: &|| "m.t".into(), inputs: &BTreeMap::new };
        let denied = Verdict { effect: Effect::Deny, cause: Cause::NotPermitted, rules: Vec::new(), shadow: None };
        let first = decisions.keep(facts, &denied).to_string();
        let allowed = Verdict { effect: Effect::Allow, cause: Cause::Permitted, ..denied };
        let plain = decisions.keep(facts, &allowed).to_string();
        let rule = |id: &str| DecidedRule { id: id.into(), line: 1, remedy: None, text: String::new() };
        let shadow = Some(DecidedShadow { effect: "deny".into(), cause: "forbidden".into(), rules: vec![rule("b")] });
        decisions.push(Decision { rules: vec![rule("a")], shadow, ..about(decisions.id(), facts) });
        assert_eq!(decisions.tally(), HashMap::from([("a".into(), (1, 0)), ("b".into(), (0, 1))]));
        assert_eq!((decisions.find(Some(&first)).len(), decisions.find(Some(&plain)).len()), (1, 0));
        for _ in 0..KEPT {
            decisions.keep_unknown(facts);
        }
        assert!(decisions.find(Some(&first)).is_empty());
        assert_eq!(decisions.find(None)[0].cause, "unknown");
    }
}
