//! Acting half of policies and budgets: subjects of callers, decisions valid for a whole snapshot, and recent decisions. Does not interpret
//! rules or budgets; the crate `policy` does.

pub mod decisions;
pub mod moment;
pub mod purses;
pub mod recorded;

pub use crate::judge::policy::decisions::{DecidedRule, DecidedShadow, Decision as DecisionRow};
pub use crate::judge::policy::decisions::{DecisionId, Decisions, Facts};
pub use crate::judge::policy::moment::now;
pub use crate::judge::policy::purses::BudgetStatus;
pub use crate::judge::policy::purses::{Spending, budget_of, charge, status, sweep, take_budget};
