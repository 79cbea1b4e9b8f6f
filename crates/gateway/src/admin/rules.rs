//! Rules for the admin API: those in force, their last decisions, and the decisions of rules in shadow mode. Decides nothing.

mod recalled;
mod replay;

use std::sync::Arc;

use policy::decide::Mode;

pub(crate) use crate::admin::rules::recalled::recalled;
pub(crate) use crate::admin::rules::replay::replay;
pub use crate::admin::rules::replay::{GuessingRule, ReplayReport, ReplayedRow};

use crate::Gateway;
use crate::admin::shapes::{RuleRow, Rules};
use call::judge::policy::{BudgetStatus, DecisionRow, status};

impl Gateway {
    /// Lists the last decisions of the rules, the newest first; with an id, only the decision of that id.
    pub fn decisions(&self, id: Option<&str>) -> Vec<DecisionRow> {
        self.0.gate.rules.decisions.find(id)
    }

    /// Lists the rules in force and in shadow mode, with counts of their last decisions.
    pub fn rules(&self) -> Rules {
        let config = self.0.gate.config.load();
        let Some(policy) = &config.policy else { return Rules { file: None, version: None, rules: Vec::new() } };
        let tally = self.0.gate.rules.decisions.tally();
        let text = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
        let rules = policy.policies.rules().map(|rule| {
            let (made, would) = tally.get(&*rule.id).copied().unwrap_or_default();
            RuleRow {
                id: rule.id.to_string(),
                line: rule.line,
                effect: if rule.permits { "permit" } else { "forbid" }.to_owned(),
                gate: rule.gates,
                shadow: rule.mode == Mode::Shadow,
                description: text(&rule.description),
                remedy: text(&rule.remedy),
                scope: text(&rule.scope),
                text: rule.text.to_string(),
                made,
                would,
            }
        });
        let rules = rules.collect();
        Rules { file: Some(policy.file.display().to_string()), version: Some(policy::approval::hex(&policy.digest)), rules }
    }

    /// Lists the spending of every budget.
    pub fn budgets(&self) -> Vec<BudgetStatus> {
        status(&*self.0.gate.rules.budget, &self.0.gate.config.load())
    }
}
