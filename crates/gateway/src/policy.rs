//! The doing half of policies and budgets: who a caller is to them, what was decided once and holds for a whole snapshot, and what was
//! decided lately. What a rule or a budget says is decided in the crate `policy`, not here.

mod decisions;
pub(crate) mod moment;
mod purses;
pub(crate) mod recorded;
mod standing;

pub use decisions::{DecidedRule, DecidedShadow, Decision as DecisionRow};
pub(crate) use decisions::{DecisionId, Decisions, Facts};
pub(crate) use moment::now;
pub use purses::BudgetStatus;
pub(crate) use purses::{Spending, budget_of, charge, status, sweep, take};
pub(crate) use standing::{Settled, Standing, Standings, tool_target};
