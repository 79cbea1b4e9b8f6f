//! A gate: its tree, and what judges the calls through it. Decides nothing itself.

use std::ops::Deref;
use std::sync::Arc;

use store::{Budgets, Bus};

use crate::judge::approvals::Approvals;
use crate::judge::policy::Decisions;
use crate::tree::gate::GateTree;

/// Everything that calls go through.
pub struct Gate {
    pub base: Arc<GateTree>,
    pub rules: Rules,
}

impl Deref for Gate {
    type Target = GateTree;

    fn deref(&self) -> &GateTree {
        &self.base
    }
}

/// Everything that says whether a call may be made.
pub struct Rules {
    /// The last decisions of the rules.
    pub decisions: Decisions,
    /// What callers have spent of their budgets.
    pub budget: Arc<dyn Budgets>,
    /// Calls that wait for somebody to agree.
    pub approvals: Approvals,
    /// Wakes when somebody looked at definitions, by whichever gate of this state directory.
    pub looks: Arc<dyn Bus>,
}
