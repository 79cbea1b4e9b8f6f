//! Decisions and the rules behind them. Does not act on a decision.

use std::sync::Arc;

use super::rule::Rule;
use crate::Effect;

/// A decision.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    pub effect: Effect,
    pub cause: Cause,
    /// The deciding rules; empty where no rule permits.
    pub rules: Vec<Arc<Rule>>,
    /// The decision with shadow rules in force, if different.
    pub shadow: Option<Box<Shadow>>,
}

/// Causes of a decision.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cause {
    /// A rule failed with this fault: nothing is allowed by mistake.
    Error(Arc<str>),
    Forbidden,
    /// Rules want somebody to agree first.
    Gated,
    /// No rule permits the call.
    NotPermitted,
    Permitted,
}

/// The decision that shadow rules would make.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shadow {
    pub effect: Effect,
    pub cause: Cause,
    /// The deciding rules, including those in force.
    pub rules: Vec<Arc<Rule>>,
}

/// A decision made before arguments and time are known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Foresight {
    /// Depends on arguments or time. `hopeless`: always a denial.
    Open {
        /// No arguments and no time would be allowed.
        hopeless: bool,
    },
    Settled(Verdict),
}

impl Foresight {
    /// Tells if every such call is denied.
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
