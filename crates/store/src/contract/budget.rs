//! Promises of a [`Budgets`]. The crate `policy` decides on limits, not tried here.

use std::sync::Arc;
use std::time::Duration;

use policy::budget::{Charge, Limits};

use crate::{BudgetAccount, Budgets};

/// Tries every promise, each on a fresh budget.
pub fn holds(fresh: impl Fn() -> Arc<dyn Budgets>) {
    many_at_once_take_no_more_than_there_is(&*fresh());
    what_is_given_back_is_there_for_the_next(&*fresh());
    nothing_is_forgotten_of_whoever_has_a_purse(&*fresh());
}

fn accounts() -> [(BudgetAccount, Limits); 1] {
    [(("b".into(), None), Limits { calls_per_minute: Some(10), ..Limits::default() })]
}

fn many_at_once_take_no_more_than_there_is(budget: &dyn Budgets) {
    let taken: usize = std::thread::scope(|scope| {
        let all: Vec<_> = (0..8)
            .map(|_| {
                let purse = budget.purse(&"ann".into());
                scope.spawn(move || (0..10).filter(|_| purse.charge(&accounts(), Charge::default()).is_ok()).count())
            })
            .collect();
        all.into_iter().map(|one| one.join().unwrap()).sum()
    });
    assert_eq!(taken, 10);
    assert!(budget.purse(&"bob".into()).charge(&accounts(), Charge::default()).is_ok(), "each caller has a purse of its own");
}

fn what_is_given_back_is_there_for_the_next(budget: &dyn Budgets) {
    let purse = budget.purse(&"ann".into());
    let held: Vec<_> = (0..10).map(|_| purse.charge(&accounts(), Charge::default()).unwrap()).collect();
    let refused = purse.charge(&accounts(), Charge::default()).unwrap_err();
    assert_eq!(&*refused.account.0, "b");
    held.into_iter().for_each(|one| purse.give_back(one));
    assert!(purse.charge(&accounts(), Charge::default()).is_ok());
}

fn nothing_is_forgotten_of_whoever_has_a_purse(budget: &dyn Budgets) {
    let purse = budget.purse(&"ann".into());
    (0..10).for_each(|_| drop(purse.charge(&accounts(), Charge::default()).unwrap()));
    budget.forget_idle(Duration::ZERO);
    assert_eq!(budget.spent().len(), 1);
    assert!(budget.purse(&"ann".into()).charge(&accounts(), Charge::default()).is_err());
    drop(purse);
    budget.forget_idle(Duration::ZERO);
    assert!(budget.spent().is_empty());
    assert!(budget.purse(&"ann".into()).charge(&accounts(), Charge::default()).is_ok());
}
