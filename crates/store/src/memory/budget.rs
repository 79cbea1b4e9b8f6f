//! Budgets of a single gate. Does not decide on limits: the crate `policy` does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use policy::budget::{Charge, Held, Limits, Purse, RefusedAccount, Spent};

use super::lock;
use crate::{BudgetAccount, Budgets, CallerPurse};

type SharedPurse = Arc<Mutex<Purse<BudgetAccount>>>;

/// Budgets that begin anew with every run.
#[derive(Default)]
pub struct MemoryBudget(Mutex<HashMap<Arc<str>, SharedPurse>>);

impl Budgets for MemoryBudget {
    fn purse(&self, principal: &Arc<str>) -> Arc<dyn CallerPurse> {
        let purse: SharedPurse = Arc::clone(lock(&self.0).entry(Arc::clone(principal)).or_default());
        purse
    }

    fn forget_idle(&self, idle: Duration) {
        let now = Instant::now();
        // Whoever has a purse is about to spend.
        lock(&self.0).retain(|_, purse| Arc::strong_count(purse) > 1 || !lock(purse).forget_idle(idle, now));
    }

    fn spent(&self) -> Vec<(Arc<str>, BudgetAccount, Spent)> {
        let (now, mut all) = (Instant::now(), Vec::new());
        for (principal, purse) in lock(&self.0).iter() {
            all.extend(lock(purse).spent(now).map(|(account, spent)| (Arc::clone(principal), account.clone(), spent)));
        }
        all
    }
}

impl CallerPurse for Mutex<Purse<BudgetAccount>> {
    fn charge(&self, accounts: &[(BudgetAccount, Limits)], charge: Charge) -> Result<Held<BudgetAccount>, RefusedAccount<BudgetAccount>> {
        lock(self).take(accounts, charge, Instant::now())
    }

    fn give_back(&self, held: Held<BudgetAccount>) {
        lock(self).give_back(held);
    }
}
