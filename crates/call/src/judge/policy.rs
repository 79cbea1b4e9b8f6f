//! The doing half of policies and budgets: who a caller is to them, what was decided once and holds for a whole snapshot, and what was
//! decided lately. What a rule or a budget says is decided in the crate `policy`, not here.

pub mod decisions;
pub mod moment;
pub mod purses;
pub mod recorded;

pub use crate::judge::policy::decisions::{DecidedRule, DecidedShadow, Decision as DecisionRow};
pub use crate::judge::policy::decisions::{DecisionId, Decisions, Facts};
pub use crate::judge::policy::moment::now;
pub use crate::judge::policy::purses::BudgetStatus;
pub use crate::judge::policy::purses::{Spending, budget_of, charge, status, sweep, take};
