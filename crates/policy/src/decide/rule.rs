//! A policy and its annotations. Does not evaluate the policy for a call.

use std::ops::Range;
use std::sync::Arc;

use cedar_policy_core::ast::{Effect as Cedar, Expr, Policy};

use super::flaw::Flaw;
use super::infer::Inference;

/// The mode of a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    #[default]
    Enforce,
    /// Effects are reported, not applied.
    Shadow,
}

/// A rule as people know it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// `@id`, or `line N`.
    pub id: Arc<str>,
    /// `@description`, for people.
    pub description: Option<Arc<str>>,
    /// Permits matching calls; otherwise forbids them.
    pub permits: bool,
    /// Somebody has to agree first: `@effect("gate")`.
    pub gates: bool,
    /// People see a preview of the call before they agree: `@preview("required")`.
    pub wants_preview: bool,
    /// `@remedy`: advice for a refused caller.
    pub remedy: Option<Arc<str>>,
    /// `@scope`: a refused caller may sign in again and ask for this scope.
    pub scope: Option<Arc<str>>,
    pub mode: Mode,
    /// The first line, counted from 1.
    pub line: usize,
    pub text: Arc<str>,
}

/// A rule that can be evaluated.
#[derive(Debug)]
pub(super) struct CompiledRule {
    pub(super) rule: Arc<Rule>,
    pub(super) policy: Policy,
    /// Principals, actions and resources of a rule whose conditions read the context; `None`: the rule can be evaluated without context.
    pub(super) scope: Option<Expr>,
}

const KEYS: [&str; 7] = ["description", "effect", "id", "mode", "preview", "remedy", "scope"];

impl CompiledRule {
    /// Reads a policy of `text`; adds the arguments read by the policy to `inference`.
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
        let wants_preview = word("preview", &["required"]).is_some();
        if wants_preview && !gates {
            let flaw = Flaw::new(span.clone(), "`@preview` is of use only where somebody has to agree".to_owned());
            inference.flaws.push(flaw.help("write `@effect(\"gate\")` above the rule as well, or take it away"));
        }
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
            wants_preview,
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

/// Gives the place of a policy in `text`.
pub(super) fn span(policy: &Policy, text: &str) -> Range<usize> {
    policy.loc().map_or(0..0, |at| at.start().min(text.len())..at.end().min(text.len()))
}
