//! Questions to the policies. The library evaluates each rule once; the rules' answers are combined here as Cedar does it (a forbidding
//! rule wins, and no permission means denial), with gates and shadows added. A rule that fails denies: it is never passed over.

use std::collections::HashMap;
use std::sync::Arc;

use cedar_policy_core::ast::{Context, EntityUIDEntry, Literal, Request, RestrictedExpr, Value, ValueKind};
use cedar_policy_core::entities::{Entities, NoEntitiesSchema, TCComputation};
use cedar_policy_core::evaluator::Evaluator;
use cedar_policy_core::extensions::Extensions;

use super::arguments::Arguments;
use super::parse::Policies;
use super::rule::{CompiledRule, Mode, Rule};
use super::subject::Subject;
use super::target::Target;
use super::verdict::{Cause, Foresight, Shadow, Verdict};
use super::{Moment, schema};
use crate::Effect;

/// A question to the policies.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    pub subject: &'a Subject,
    pub target: &'a Target<'a>,
    /// The caller's profile of shown tools; empty without one.
    pub profile: &'a str,
}

/// The answer of one rule.
enum RuleAnswer {
    Failed(Arc<str>),
    Holds,
    HoldsNot,
}

impl Policies {
    /// Decides about a call.
    pub fn decide(&self, asked: &Asked<'_>, arguments: &Arguments, moment: Moment) -> Verdict {
        let evaluated = self.with(asked, self.context(asked, arguments, moment), |evaluator| {
            let said = self.rules.iter().map(|one| (one, evaluate(evaluator, one)));
            verdict(&said.collect::<Vec<_>>())
        });
        evaluated.unwrap_or_else(unaskable)
    }

    /// Answers as far as possible before arguments and time are known.
    pub fn foresee(&self, asked: &Asked<'_>) -> Foresight {
        let nothing = self.context(asked, &Arguments::none(), Moment::default());
        let foreseen = self.with(asked, nothing, |evaluator| {
            let (mut known, mut open, mut permits) = (Vec::new(), false, false);
            for one in &self.rules {
                let Some(scope) = &one.scope else {
                    known.push((one, evaluate(evaluator, one)));
                    continue;
                };
                // What can't be evaluated may concern it.
                let concerned = evaluator.interpret(scope, &HashMap::new()).map_or(true, |value| is_true(&value));
                open |= concerned;
                permits |= concerned && one.rule.permits && one.rule.mode == Mode::Enforce;
            }
            let verdict = verdict(&known);
            if !open {
                return Foresight::Settled(verdict);
            }
            let hopeless = verdict.effect == Effect::Deny && !(permits && verdict.cause == Cause::NotPermitted);
            Foresight::Open { hopeless }
        });
        foreseen.unwrap_or_else(|| Foresight::Settled(unaskable()))
    }

    fn context(&self, asked: &Asked<'_>, arguments: &Arguments, moment: Moment) -> Option<Context> {
        let Moment { unix, hour, minute, weekday } = moment;
        let numbers = [("unix", unix), ("hour", hour), ("minute", minute), ("weekday", weekday)];
        let time = RestrictedExpr::record(numbers.map(|(name, value)| (name.into(), RestrictedExpr::val(value)))).ok()?;
        let members =
            [("arguments".into(), arguments.0.clone()), ("profile".into(), RestrictedExpr::val(asked.profile)), ("time".into(), time)];
        Context::from_pairs(members, Extensions::none()).ok()
    }

    /// `None`: the request can't be put into the library's words.
    fn with<T>(&self, asked: &Asked<'_>, context: Option<Context>, ask: impl FnOnce(&Evaluator<'_>) -> T) -> Option<T> {
        let (subject, target) = (asked.subject.entity(&self.types)?, asked.target.entity(&self.types)?);
        let known = |uid| EntityUIDEntry::known(uid, None);
        let action = self.types.uid(schema::ACTION, asked.target.action.as_str())?;
        let request = Request::new_unchecked(known(subject.uid().clone()), known(action), known(target.uid().clone()), Some(context?));
        let all = [subject, target];
        let schema = None::<&NoEntitiesSchema>;
        let entities = Entities::from_entities(all, schema, TCComputation::AssumeAlreadyComputed, Extensions::none()).ok()?;
        Some(ask(&Evaluator::new(request, &entities, Extensions::none())))
    }
}

fn evaluate(evaluator: &Evaluator<'_>, one: &CompiledRule) -> RuleAnswer {
    match evaluator.evaluate(&one.policy) {
        Ok(true) => RuleAnswer::Holds,
        Ok(false) => RuleAnswer::HoldsNot,
        Err(error) => RuleAnswer::Failed(error.to_string().into()),
    }
}

fn is_true(value: &Value) -> bool {
    matches!(value.value_kind(), ValueKind::Lit(Literal::Bool(true)))
}

/// Combines the answers of the rules in force, and of all rules including shadows.
fn verdict(said: &[(&CompiledRule, RuleAnswer)]) -> Verdict {
    let (effect, cause, rules) = outcome(said.iter().filter(|(one, _)| one.rule.mode == Mode::Enforce));
    let mut verdict = Verdict { effect, cause, rules, shadow: None };
    if said.iter().any(|(one, _)| one.rule.mode == Mode::Shadow) {
        let (effect, cause, rules) = outcome(said.iter());
        if (effect, &cause) != (verdict.effect, &verdict.cause) {
            verdict.shadow = Some(Box::new(Shadow { effect, cause, rules }));
        }
    }
    verdict
}

fn outcome<'a>(said: impl Iterator<Item = &'a (&'a CompiledRule, RuleAnswer)>) -> (Effect, Cause, Vec<Arc<Rule>>) {
    let (mut forbids, mut failed, mut gates, mut permits) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (one, said) in said {
        let rule = Arc::clone(&one.rule);
        match said {
            RuleAnswer::HoldsNot => {}
            RuleAnswer::Failed(error) => failed.push((rule, Arc::clone(error))),
            RuleAnswer::Holds => {
                if one.rule.gates {
                    gates.push(Arc::clone(&rule));
                }
                match (one.rule.permits, one.rule.gates) {
                    (true, _) => permits.push(rule),
                    (false, true) => {}
                    (false, false) => forbids.push(rule),
                }
            }
        }
    }
    if !forbids.is_empty() {
        (Effect::Deny, Cause::Forbidden, forbids)
    } else if let Some((_, error)) = failed.first() {
        let cause = Cause::Error(Arc::clone(error));
        (Effect::Deny, cause, failed.into_iter().map(|(rule, _)| rule).collect())
    } else if permits.is_empty() {
        (Effect::Deny, Cause::NotPermitted, Vec::new())
    } else if !gates.is_empty() {
        (Effect::Gate, Cause::Gated, gates)
    } else {
        (Effect::Allow, Cause::Permitted, permits)
    }
}

fn unaskable() -> Verdict {
    let cause = Cause::Error("the request can't be written as Cedar has it".into());
    Verdict { effect: Effect::Deny, cause, rules: Vec::new(), shadow: None }
}
