//! What was decided, and by what. What becomes of the call is not decided here.

use std::sync::Arc;

use super::rule::Rule;
use crate::Effect;

/// A decision.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// What becomes of the call.
    pub effect: Effect,
    /// Why.
    pub cause: Cause,
    /// The rules that made it; empty where no rule permits.
    pub rules: Vec<Arc<Rule>>,
    /// What it would be if the rules in shadow mode were in force, where that differs.
    pub shadow: Option<Box<Shadow>>,
}

/// Why something was decided as it was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cause {
    /// A rule could not be evaluated, and this is what was wrong: nothing is allowed by mistake.
    Error(Arc<str>),
    /// Rules forbid it.
    Forbidden,
    /// Rules want somebody to agree first.
    Gated,
    /// No rule permits it.
    NotPermitted,
    /// Rules permit it.
    Permitted,
}

/// What rules in shadow mode would do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shadow {
    /// What would become of the call.
    pub effect: Effect,
    /// Why.
    pub cause: Cause,
    /// The rules that would make it so, those in force included.
    pub rules: Vec<Arc<Rule>>,
}

/// What can be said of a call before its arguments and its time are known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Foresight {
    /// It depends on them. Whether it can be anything but a denial is told.
    Open {
        /// No arguments and no time would be allowed.
        hopeless: bool,
    },
    /// It does not.
    Settled(Verdict),
}

impl Foresight {
    /// Whether every such call is denied.
    pub fn is_hopeless(&self) -> bool {
        match self {
            Self::Open { hopeless } => *hopeless,
            Self::Settled(verdict) => verdict.effect == Effect::Deny,
        }
    }
}

impl Cause {
    /// The word in records and in JSON.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Error(_) => "policy_error",
            Self::Forbidden => "forbidden",
            Self::Gated => "gated",
            Self::NotPermitted => "not_permitted",
            Self::Permitted => "permitted",
        }
    }
}
