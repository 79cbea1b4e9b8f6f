//! Parsing of policies: from text to rules that can be evaluated, or to all faults of the text. Reads no files.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use cedar_policy_core::ast::Policy;
use cedar_policy_core::parser::parse_policyset;
use cedar_policy_core::validator::{ValidationMode, Validator};

use super::arguments::{Arguments, BadArguments};
use super::flaw::Flaw;
use super::infer::{Inference, Node};
use super::rule::{CompiledRule, Rule, span};
use super::schema::{self, Types};

/// Policies, ready to be asked.
#[derive(Debug)]
pub struct Policies {
    pub(super) rules: Vec<CompiledRule>,
    pub(super) types: Types,
    arguments: Node,
}

impl Policies {
    /// Reads policies. Names unknown to the schema are refused.
    pub fn parse(text: &str) -> Result<Self, Vec<Flaw>> {
        let whole = 0..text.len().min(1);
        let inside = |error: String| vec![Flaw::new(whole.clone(), error)];
        let set = parse_policyset(text)
            .map_err(|errors| errors.iter().map(|one| Flaw::from_diagnostic(one, whole.clone())).collect::<Vec<_>>())?;
        let mut policies: Vec<Policy> = set.policies().cloned().collect();
        policies.sort_by_key(|policy| span(policy, text).start);
        let mut inference = Inference::default();
        for template in set.templates() {
            let at = template.loc().map_or_else(|| whole.clone(), |at| at.start()..at.end());
            let flaw = Flaw::new(at, "a template stands for policies that nobody makes here");
            inference.flaws.push(flaw.help("write `principal` and `resource`, or name them, in place of `?principal` and `?resource`"));
        }
        let rules: Vec<CompiledRule> = policies.into_iter().map(|policy| CompiledRule::new(policy, text, &mut inference)).collect();
        let Inference { root: arguments, mut flaws, .. } = inference;
        flaws.extend(twice(&rules, text));
        if !flaws.is_empty() {
            return Err(sorted(flaws));
        }
        let validator = Validator::new(schema::schema(&arguments).map_err(inside)?);
        let result = validator.validate(&set, ValidationMode::Strict);
        let errors = result.validation_errors();
        let flaws: Vec<Flaw> = errors.map(|error| Flaw::from_diagnostic(error, whole.clone())).collect();
        if !flaws.is_empty() {
            return Err(one_each(sorted(flaws)));
        }
        Ok(Self { rules, types: Types::new().map_err(inside)?, arguments })
    }

    /// The rules, in the order of the text.
    pub fn rules(&self) -> impl Iterator<Item = &Arc<Rule>> {
        self.rules.iter().map(|one| &one.rule)
    }

    /// Reads the arguments that some rule asks for, from a raw JSON object.
    pub fn arguments(&self, raw: &[u8]) -> Result<Arguments, BadArguments> {
        if self.arguments.children.is_empty() { Ok(Arguments::none()) } else { Arguments::read(raw, &self.arguments) }
    }

    /// Lists the dotted names of those arguments.
    pub fn wanted(&self) -> Vec<String> {
        let mut all = Vec::new();
        names(&self.arguments, "", &mut all);
        all
    }
}

fn names(node: &Node, above: &str, all: &mut Vec<String>) {
    for (name, child) in &node.children {
        let name = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        names(child, &name, all);
        if child.children.is_empty() {
            all.push(name);
        }
    }
}

/// Finds rules of one name, which could not be told apart.
fn twice(rules: &[CompiledRule], text: &str) -> Vec<Flaw> {
    let mut first: BTreeMap<&str, usize> = BTreeMap::new();
    let mut flaws = Vec::new();
    for one in rules {
        let Some(line) = first.insert(&one.rule.id, one.rule.line) else { continue };
        let at: Range<usize> = span(&one.policy, text);
        let flaw = Flaw::new(at, format!("there are two rules named `{}`", one.rule.id));
        flaws.push(flaw.help(format!("the other one begins in line {line}; give each a name of its own")));
    }
    flaws
}

/// Keeps one flaw for each place, tools first: the library reports a flaw once for every possible kind of resource.
fn one_each(flaws: Vec<Flaw>) -> Vec<Flaw> {
    let mut kept: Vec<Flaw> = Vec::new();
    for flaw in flaws {
        match kept.last_mut().filter(|last| last.span == flaw.span) {
            Some(last) if flaw.message.contains("`Tool`") => *last = flaw,
            Some(_) => {}
            None => kept.push(flaw),
        }
    }
    kept
}

fn sorted(mut flaws: Vec<Flaw>) -> Vec<Flaw> {
    flaws.sort_by_key(|flaw| flaw.span.start);
    flaws.dedup();
    flaws
}
