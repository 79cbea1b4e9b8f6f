//! One policy, and what its annotations say. Whether it holds for a call is not decided here.

use std::ops::Range;
use std::sync::Arc;

use cedar_policy_core::ast::{Effect as Cedar, Expr, Policy};

use super::flaw::Flaw;
use super::infer::Inference;

/// Whether a rule is in force.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// It is.
    #[default]
    Enforce,
    /// What it would do is told, and not done.
    Shadow,
}

/// What people know a rule by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// Its `@id`, or `line N`.
    pub id: Arc<str>,
    /// Its `@description`, for people.
    pub description: Option<Arc<str>>,
    /// Whether it permits what it holds for; otherwise it forbids it.
    pub permits: bool,
    /// Whether somebody has to agree first: its `@effect("gate")`.
    pub gates: bool,
    /// Its `@remedy`: what whoever is refused by it can do.
    pub remedy: Option<Arc<str>>,
    /// Its `@scope`: whoever is refused by it may sign in again and ask for this.
    pub scope: Option<Arc<str>>,
    /// Whether it is in force.
    pub mode: Mode,
    /// The line where it begins, counted from 1.
    pub line: usize,
    /// Its text.
    pub text: Arc<str>,
}

/// A rule that can be evaluated.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) rule: Arc<Rule>,
    pub(super) policy: Policy,
    /// Whom and what it concerns, where its conditions read the context; `None`: they don't, and it can be evaluated without.
    pub(super) scope: Option<Expr>,
}

const KEYS: [&str; 6] = ["description", "effect", "id", "mode", "remedy", "scope"];

impl Compiled {
    /// Reads a policy of `text`; what it reads of the arguments is added to `inference`.
    pub(super) fn new(policy: Policy, text: &str, inference: &mut Inference) -> Self {
        let span = span(&policy, text);
        let said = |key: &str| policy.annotations().find(|(known, _)| known.as_ref() == key).map(|(_, said)| Arc::from(said.val.as_str()));
        let mut word = |key: &str, words: &[&str]| {
            let value = said(key);
            if let Some(value) = value.as_ref().filter(|value| !words.contains(&&***value)) {
                let flaw = Flaw::new(span.clone(), format!("`@{key}(\"{value}\")` means nothing"));
                inference.flaws.push(flaw.help(format!("write one of: {}", words.join(", "))));
            }
            value
        };
        let shadow = word("mode", &["enforce", "shadow"]).is_some_and(|mode| &*mode == "shadow");
        let gates = word("effect", &["gate"]).is_some();
        // Where people read what a rule is called, or what helps, nothing would stand.
        for (key, _) in policy.annotations().filter(|(_, said)| said.val.trim().is_empty()) {
            let flaw = Flaw::new(span.clone(), format!("`@{key}` is empty"));
            inference.flaws.push(flaw.help("write something in it, or take it away"));
        }
        for (key, _) in policy.annotations().filter(|(key, _)| !KEYS.contains(&key.as_ref())) {
            let flaw = Flaw::new(span.clone(), format!("`@{key}` is not known"));
            inference.flaws.push(flaw.help(format!("there are: @{}", KEYS.join(", @"))));
        }
        inference.reads_context = false;
        if let Some(condition) = policy.non_scope_constraints() {
            inference.condition(condition);
        }
        let line = text[..span.start].matches('\n').count() + 1;
        let rule = Rule {
            id: said("id").unwrap_or_else(|| format!("line {line}").into()),
            description: said("description"),
            permits: policy.effect() == Cedar::Permit,
            gates,
            remedy: said("remedy"),
            scope: said("scope"),
            mode: if shadow { Mode::Shadow } else { Mode::Enforce },
            line,
            text: text.get(span).unwrap_or_default().into(),
        };
        let scope = inference.reads_context.then(|| {
            let who_and_what = Expr::and(policy.principal_constraint().as_expr(), policy.resource_constraint().as_expr());
            Expr::and(policy.action_constraint().as_expr(), who_and_what)
        });
        Self { rule: Arc::new(rule), scope, policy }
    }
}

/// Where it stands in `text`.
pub(super) fn span(policy: &Policy, text: &str) -> Range<usize> {
    policy.loc().map_or(0..0, |at| at.start().min(text.len())..at.end().min(text.len()))
}
