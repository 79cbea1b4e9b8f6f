//! A gate: its tree, and the parts that judge calls. Decides nothing itself.

use std::ops::Deref;
use std::sync::Arc;

use store::{Budgets, Bus};

use crate::judge::approvals::Approvals;
use crate::judge::policy::Decisions;
use crate::tree::gate::GateTree;

/// Parts used by calls.
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

/// Parts that decide about calls.
pub struct Rules {
    /// The last decisions of the rules.
    pub decisions: Decisions,
    /// Spending of callers.
    pub budget: Arc<dyn Budgets>,
    /// Calls that wait for approval.
    pub approvals: Approvals,
    /// Signals decisions about definitions, by any gate of this state directory.
    pub looks: Arc<dyn Bus>,
}
