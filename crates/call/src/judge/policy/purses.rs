//! Spending of callers from their budgets (AX-48), and its return for a call that never left. Does not judge what fits; the crate `policy`
//! does.

use std::sync::Arc;
use std::time::Duration;

use banyan_model::Method;
use config::resolved::{Budget, Config};
use mcp_proto::glob::Glob;
use mesh_proto::annotation::CostClass;
use policy::budget::{Charge, Exceeded, Held, Limits};
use serde::{Deserialize, Serialize};
use store::{BudgetAccount, Budgets, CallerPurse};

use crate::tree::caller::Caller;

/// Cost taken for a call, given back on drop unless kept.
#[derive(Debug)]
pub struct Spending {
    purse: Arc<dyn CallerPurse>,
    held: Option<Held<BudgetAccount>>,
}

/// State of an account, in `GET /-/status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetStatus {
    pub budget: String,
    pub principal: String,
    /// Beginning of the session's id, for a budget counted by session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Calls in the last minute.
    pub calls_in_minute: u64,
    pub max_calls_per_minute: Option<u32>,
    pub mutable_calls: u64,
    pub max_mutable_calls_per_session: Option<u64>,
    pub cost_units: u64,
    pub max_cost_units_per_session: Option<u64>,
}

/// Takes the cost of a call from its caller's budgets; `None` if no budget applies. The error names the budget without room.
pub fn take_budget(
    budget: &dyn Budgets,
    config: &Config,
    caller: &Caller,
    charge: Charge,
) -> Result<Option<Spending>, (Arc<str>, Exceeded)> {
    let name = &caller.principal.name;
    let session = caller.session.as_ref().map(|session| &session.id);
    let concerned = config.budgets.iter().filter(|budget| concerns(budget, name));
    let accounts: Vec<(BudgetAccount, Limits)> =
        concerned.map(|budget| ((Arc::clone(&budget.name), session.filter(|_| budget.per_session).cloned()), budget.limits)).collect();
    if accounts.is_empty() {
        return Ok(None);
    }
    let purse = budget.purse(name);
    match purse.charge(&accounts, charge) {
        Ok(held) => Ok(Some(Spending { purse, held: Some(held) })),
        Err(refused) => Err((refused.account.0, refused.why)),
    }
}

/// Ends accounts of callers without a call for long.
pub fn sweep(budget: &dyn Budgets, config: &Config) {
    let idle = config.budgets.iter().filter_map(|budget| budget.idle).chain([config.limits.session_idle]).max();
    budget.forget_idle(idle.unwrap_or(Duration::ZERO));
}

/// Reads the state of the accounts of existing budgets, by caller.
pub fn status(budget: &dyn Budgets, config: &Config) -> Vec<BudgetStatus> {
    let mut rows = Vec::new();
    for (principal, (name, session), spent) in budget.spent() {
        let Some(budget) = config.budgets.iter().find(|budget| budget.name == name) else { continue };
        rows.push(BudgetStatus {
            budget: name.to_string(),
            principal: principal.to_string(),
            session: session.as_ref().map(|id| id.chars().take(6).collect()),
            calls_in_minute: spent.calls_in_window.try_into().unwrap_or(u64::MAX),
            max_calls_per_minute: budget.limits.calls_per_minute,
            mutable_calls: spent.mutable_calls,
            max_mutable_calls_per_session: budget.limits.mutable_calls_per_session,
            cost_units: spent.cost_units,
            max_cost_units_per_session: budget.limits.cost_units_per_session,
        });
    }
    rows.sort_by(|a, b| (&a.budget, &a.principal, &a.session).cmp(&(&b.budget, &b.principal, &b.session)));
    rows
}

/// Limits of a principal in a session: the least left by any budget (AX-21).
pub fn budget_of(config: &Config, principal: &str) -> mesh_proto::message::Budget {
    let limits = || config.budgets.iter().filter(|budget| concerns(budget, principal)).map(|budget| budget.limits);
    mesh_proto::message::Budget {
        calls_per_minute: limits().filter_map(|limits| limits.calls_per_minute).min().map(u64::from),
        mutable_calls_per_session: limits().filter_map(|limits| limits.mutable_calls_per_session).min(),
        cost_units_per_session: limits().filter_map(|limits| limits.cost_units_per_session).min(),
    }
}

fn concerns(budget: &Budget, principal: &str) -> bool {
    budget.principals.iter().any(|glob| Glob::new(glob).matches(principal))
}

/// Cost of a call; `None` if calls of the method are not counted. A tool without annotation counts as changing something (AX-33).
pub fn charge(method: Method, annotation: Option<&mesh_proto::annotation::Annotation>) -> Option<Charge> {
    match method {
        Method::Complete | Method::Confirm | Method::LogLevel | Method::Subscribe | Method::TaskList | Method::Trace => None,
        Method::PromptGet | Method::ResourceRead => Some(Charge::default()),
        Method::Task | Method::ToolCall | Method::Unknown => {
            Some(annotation.map_or(Charge { mutable: true, units: 1 }, |annotation| Charge {
                mutable: annotation.mutable,
                units: match annotation.cost_class {
                    CostClass::Free => 0,
                    CostClass::Metered => 1,
                    CostClass::Expensive => 10,
                },
            }))
        }
    }
}

impl Spending {
    /// Notes that the call has left, so that its cost stays spent.
    pub fn keep(&mut self) {
        self.held = None;
    }
}

impl Drop for Spending {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            self.purse.give_back(held);
        }
    }
}
