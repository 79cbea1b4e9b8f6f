//! Rules as the admin API shows them: those in force, what they decided lately, and what they would have decided. Decides nothing.

mod recalled;
mod replay;

use std::sync::Arc;

use policy::decide::Mode;

pub(crate) use crate::admin::rules::recalled::recalled;
pub(crate) use crate::admin::rules::replay::replay;
pub use crate::admin::rules::replay::{Guessed, Replayed, ReplayedRow};

use crate::Gateway;
use crate::admin::shapes::{RuleRow, Rules};
use call::judge::policy::{BudgetStatus, DecisionRow, status};

impl Gateway {
    /// The last decisions of the rules, the newest first; with an id, the one of that id.
    pub fn decisions(&self, id: Option<&str>) -> Vec<DecisionRow> {
        self.0.gate.rules.decisions.find(id)
    }

    /// The rules that are in force or tried, and what they decided lately.
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

    /// How the budgets stand.
    pub fn budgets(&self) -> Vec<BudgetStatus> {
        status(&*self.0.gate.rules.budget, &self.0.gate.config.load())
    }
}
