//! Budgets against a model that remembers everything and recounts from the beginning (AX-48).

#![expect(clippy::disallowed_methods, reason = "a test has to begin at some time")]

use std::time::{Duration, Instant};

use policy::budget::{Charge, Exceeded, Held, Limits, Purse, Spent, WINDOW};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    /// So many milliseconds pass.
    Wait(u64),
    /// A call of these accounts.
    Call { accounts: Vec<u8>, mutable: bool, units: u64 },
    /// The call made so many calls ago never left.
    GiveBack(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let call = (prop::collection::btree_set(0u8..3, 1..3), any::<bool>(), 0u64..4).prop_map(|(accounts, mutable, units)| Step::Call {
        accounts: accounts.into_iter().collect(),
        mutable,
        units,
    });
    let step = prop_oneof![4 => call, 2 => (0u64..40_000).prop_map(Step::Wait), 1 => (0usize..6).prop_map(Step::GiveBack)];
    prop::collection::vec(step, 0..120)
}

fn limits() -> impl Strategy<Value = Limits> {
    let maybe = |most: u64| prop::option::of(0..most);
    (maybe(6), maybe(12), maybe(25)).prop_map(|(calls, mutable, units)| Limits {
        calls_per_minute: calls.map(|calls| calls as u32),
        mutable_calls_per_session: mutable,
        cost_units_per_session: units,
    })
}

/// Every call made and not given back.
#[derive(Default)]
struct Model(Vec<(Instant, Vec<u8>, Charge)>);

impl Model {
    fn spent(&self, account: u8, now: Instant) -> Spent {
        let of = || self.0.iter().filter(|(_, accounts, _)| accounts.contains(&account));
        Spent {
            calls_in_window: of().filter(|(at, _, _)| *at + WINDOW > now).count(),
            mutable_calls: of().filter(|(_, _, charge)| charge.mutable).count() as u64,
            cost_units: of().map(|(_, _, charge)| charge.units).sum(),
        }
    }

    fn fits(&self, account: u8, limits: &Limits, charge: Charge, now: Instant) -> bool {
        let spent = self.spent(account, now);
        limits.calls_per_minute.is_none_or(|most| spent.calls_in_window < most as usize)
            && limits.mutable_calls_per_session.is_none_or(|most| !charge.mutable || spent.mutable_calls < most)
            && limits.cost_units_per_session.is_none_or(|most| spent.cost_units + charge.units <= most)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn ax_48_a_budget_lets_through_exactly_what_it_allows(steps in steps(), limits in prop::collection::vec(limits(), 3)) {
        let (mut purse, mut model) = (Purse::<u8>::default(), Model::default());
        let mut held: Vec<Option<(Held<u8>, usize)>> = Vec::new();
        let mut now = Instant::now();
        for step in steps {
            match step {
                Step::Wait(ms) => now += Duration::from_millis(ms),
                Step::Call { accounts, mutable, units } => {
                    let charge = Charge { mutable, units };
                    let asked: Vec<_> = accounts.iter().map(|a| (*a, limits[usize::from(*a)])).collect();
                    let first_full = asked.iter().find(|(a, limits)| !model.fits(*a, limits, charge, now)).map(|(a, _)| *a);
                    match purse.take(&asked, charge, now) {
                        Ok(taken) => {
                            prop_assert_eq!(first_full, None);
                            model.0.push((now, accounts, charge));
                            held.push(Some((taken, model.0.len() - 1)));
                        }
                        Err(refused) => prop_assert_eq!(Some(refused.account), first_full),
                    }
                }
                Step::GiveBack(ago) => {
                    let place = held.len().checked_sub(ago + 1);
                    if let Some((taken, call)) = place.and_then(|place| held[place].take()) {
                        purse.give_back(taken);
                        model.0[call].1.clear();
                    }
                }
            }
            for (account, spent) in purse.spent(now) {
                let mut expected = model.spent(*account, now);
                // What nobody limits is not counted.
                if limits[usize::from(*account)].calls_per_minute.is_none() {
                    expected.calls_in_window = 0;
                }
                prop_assert_eq!(spent, expected);
            }
        }
    }
}

fn calls(per_minute: u32) -> [((), Limits); 1] {
    [((), Limits { calls_per_minute: Some(per_minute), ..Limits::default() })]
}

#[test]
fn ax_48_who_is_over_budget_is_told_when_to_come_back_and_is_let_in_then() {
    let (mut purse, start) = (Purse::default(), Instant::now());
    let at = |s| start + Duration::from_secs(s);
    let accounts = calls(2);
    for s in [0, 10] {
        drop(purse.take(&accounts, Charge::default(), at(s)).unwrap());
    }
    let refused = purse.take(&accounts, Charge::default(), at(30)).unwrap_err();
    assert_eq!(refused.why, Exceeded::CallsPerMinute { limit: 2, retry_after: Duration::from_secs(30) });
    assert!(purse.take(&accounts, Charge::default(), at(59)).is_err());
    assert!(purse.take(&accounts, Charge::default(), at(60)).is_ok());
    assert_eq!(purse.take(&accounts, Charge::default(), at(61)).unwrap_err().why.retry_after(), Some(Duration::from_secs(9)));
    let none = purse.take(&calls(0), Charge::default(), at(200)).unwrap_err();
    assert_eq!(none.why.retry_after(), Some(WINDOW));
}

#[test]
fn ax_48_a_clock_that_is_read_late_makes_no_room() {
    let (mut purse, start) = (Purse::default(), Instant::now() + WINDOW);
    drop(purse.take(&calls(1), Charge::default(), start).unwrap());
    let early = start - Duration::from_secs(30);
    assert_eq!(purse.take(&calls(1), Charge::default(), early).unwrap_err().why.retry_after(), Some(WINDOW));
}

#[test]
fn an_account_is_forgotten_when_it_was_idle_for_long_enough() {
    let (mut purse, start) = (Purse::default(), Instant::now());
    drop(purse.take(&calls(1), Charge::default(), start).unwrap());
    assert!(!purse.forget_idle(Duration::from_secs(300), start + Duration::from_secs(299)));
    assert!(purse.forget_idle(Duration::from_secs(300), start + Duration::from_secs(300)));
}
