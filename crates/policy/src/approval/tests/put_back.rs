//! A change that could not be kept has not happened, and changes by other gates hold.

use super::model::{Step, person, step};
use super::*;

/// The stored state of a desk.
#[derive(Default)]
struct Store {
    approvals: BTreeMap<String, Approval>,
    grants: BTreeMap<String, Grant>,
}

impl Store {
    fn keep(&mut self, desk: &mut Desk) {
        for change in desk.changes() {
            match change {
                Change::Approval(id) => drop(desk.approval(id).map(|approval| self.approvals.insert(id.clone(), approval.clone()))),
                Change::Grant(id) => drop(desk.grant(id).map(|grant| self.grants.insert(id.clone(), grant.clone()))),
                Change::Operator(_) => {}
            }
        }
        desk.kept();
        while desk.poll_output().is_some() {}
    }

    fn lose(&self, desk: &mut Desk) {
        let (mut approvals, mut grants) = (Vec::new(), Vec::new());
        for change in desk.changes() {
            match change {
                Change::Approval(id) => approvals.extend(self.approvals.get(id).cloned()),
                Change::Grant(id) => grants.extend(self.grants.get(id).cloned()),
                Change::Operator(_) => {}
            }
        }
        desk.put_back(approvals, grants);
    }
}

#[test]
fn ax_46_a_release_that_could_not_be_kept_is_none_and_may_be_given_again() {
    let keys = keys();
    let (mut desk, challenge) = waiting(&keys);
    let mut store = Store::default();
    store.keep(&mut desk);
    let (id, proof) = (challenge.id.as_str(), ssh(&keys, Challenge::NAMESPACE, &challenge.text()));
    assert_eq!(desk.confirm(clock(NOW), id, &proof), Ok(Standing::Released));
    store.lose(&mut desk);
    assert_eq!((desk.changes().count(), desk.poll_output()), (0, None), "nothing has happened, and nobody is told that it did");
    assert_eq!(desk.approval(id), store.approvals.get(id));
    assert_eq!(desk.claim(clock(NOW), id, &challenge.call), Err(Refusal::Over(Standing::Pending)));
    assert_eq!(desk.confirm(clock(NOW), id, &proof), Ok(Standing::Released));
    store.keep(&mut desk);
    assert!(desk.claim(clock(NOW), id, &challenge.call).is_ok());
    store.lose(&mut desk);
    assert!(desk.claim(clock(NOW), id, &challenge.call).is_ok(), "it did not go out the first time");
    store.keep(&mut desk);
    desk.handle_timeout(clock(NOW + 400));
    desk.finish(clock(NOW + 400), id, End::NotSent);
    store.lose(&mut desk);
    assert_eq!(desk.approval(id).unwrap().standing, Standing::Dispatched);
    desk.finish(clock(NOW + 401), id, End::NotSent);
    assert_eq!(desk.approval(id).unwrap().standing, Standing::Expired, "what is due is due still");
}

#[test]
fn a_use_of_a_grant_that_could_not_be_kept_is_not_counted_and_one_that_could_not_is_not_there() {
    let keys = keys();
    let mut desk = desk(1);
    desk.enroll(operator("anna", keys.ed(), None));
    let mut store = Store::default();
    store.keep(&mut desk);
    let terms =
        Terms { tool: "*".into(), caller: "*".into(), arguments: BTreeMap::new(), any_other: true, expires: NOW + 99, uses: Some(1) };
    let proof = ssh(&keys, Terms::NAMESPACE, &terms.statement("g", "gate-1").text);
    desk.give(clock(NOW), "g", terms.clone(), std::slice::from_ref(&proof)).unwrap();
    store.lose(&mut desk);
    assert_eq!(desk.grant("g"), None);
    desk.give(clock(NOW), "g", terms, &[proof]).unwrap();
    store.keep(&mut desk);
    for _ in 0..2 {
        assert_eq!(hold(&mut desk, &call("ci", "{}"), 1, true), Held::Granted("g".into()));
        store.lose(&mut desk);
    }
    assert_eq!(desk.grant("g").unwrap().used, 0);
}

#[test]
fn ax_46_a_key_that_another_gate_took_away_takes_back_what_it_agreed_to_also_when_it_comes_back() {
    let keys = keys();
    for is_back in [false, true] {
        let (mut desk, challenge) = waiting(&keys);
        let (id, proof) = (challenge.id.as_str(), ssh(&keys, Challenge::NAMESPACE, &challenge.text()));
        desk.confirm(clock(NOW), id, &proof).unwrap();
        let again = Operator { enrolled: NOW + 2, ..operator("anna", keys.ed(), None) };
        desk.know(clock(NOW + 2), if is_back { vec![again] } else { Vec::new() });
        assert_eq!(desk.claim(clock(NOW + 2), id, &challenge.call), Err(Refusal::Over(Standing::Void)), "back: {is_back}");
        assert!(desk.changes().any(|change| *change == Change::Approval(id.to_owned())), "it has to be kept");
        let reachable = desk.anchors().reachable("ci");
        assert_eq!(reachable, usize::from(is_back));
    }
}

#[test]
fn ax_46_a_key_that_was_taken_away_while_the_gate_was_down_or_a_call_was_on_its_way_frees_nothing() {
    let keys = keys();
    let (mut before, challenge) = waiting(&keys);
    let (id, proof) = (challenge.id.as_str(), ssh(&keys, Challenge::NAMESPACE, &challenge.text()));
    before.confirm(clock(NOW), id, &proof).unwrap();
    let mut after = desk(1);
    after.restore(clock(NOW + 1), vec![before.approval(id).unwrap().clone()]);
    assert_eq!(after.approval(id).unwrap().standing, Standing::Void);
    before.claim(clock(NOW), id, &challenge.call).unwrap();
    before.know(clock(NOW), Vec::new());
    assert_eq!(before.approval(id).unwrap().standing, Standing::Dispatched, "it is on its way");
    before.finish(clock(NOW), id, End::NotSent);
    assert_eq!(before.approval(id).unwrap().standing, Standing::Void);
}

#[test]
fn ax_46_what_a_service_agreed_to_counts_while_the_service_does() {
    let keys = keys();
    let (mut desk, challenge) = waiting(&keys);
    desk.trust(vec![service(&keys)]);
    let digest = hex(&challenge.statement().digest());
    let proof = Proof::of_text(&token(&keys, &json!({"sub": "carl", "digest": digest}))).unwrap();
    assert_eq!(desk.confirm(clock(NOW), &challenge.id, &proof), Ok(Standing::Released));
    desk.trust(Vec::new());
    assert_eq!(desk.claim(clock(NOW), &challenge.id, &challenge.call), Err(Refusal::Over(Standing::Void)));
}

fn all(desk: &Desk) -> Vec<Approval> {
    desk.approvals().cloned().collect()
}

/// Does one step and gives the outcome as text.
fn take(desk: &mut Desk, step: &Step, now: u64, next: usize) -> String {
    let id = |nth: usize| fresh(next.saturating_sub(nth + 1)).id;
    let argument = |n: u8| call("ci", &format!("{{\"n\":{n}}}"));
    match *step {
        Step::Hold { argument: n, attends } => {
            format!("{:?}", desk.hold(clock(now), argument(n), (vec![Cause::Mode], "{}".into()), fresh(next), attends))
        }
        Step::Vote { nth, person: n } => {
            desk.handle_timeout(clock(now));
            format!("{:?}", desk.vote(&id(nth), person(n)))
        }
        Step::Deny { nth } => format!("{:?}", desk.deny(clock(now), &id(nth), "no")),
        Step::Withdraw { nth } => format!("{:?}", desk.withdraw(clock(now), &id(nth))),
        Step::Claim { nth, argument: n } => format!("{:?}", desk.claim(clock(now), &id(nth), &argument(n))),
        Step::Finish { nth, end } => {
            let end = [End::Answered, End::HeldBelow, End::NotSent, End::Unknown][usize::from(end)];
            format!("{:?}", desk.finish(clock(now), &id(nth), end))
        }
        Step::Detach { nth } => format!("{:?}", desk.detach(&id(nth))),
        Step::Wait { .. } | Step::Back { .. } | Step::Restart => String::new(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn ax_46_a_desk_that_could_not_keep_some_steps_is_one_that_never_took_them(
        required in 1u8..3, steps in prop::collection::vec((step(), prop::bool::weighted(0.3)), 1..60),
    ) {
        let (keys, mut store) = (keys(), Store::default());
        let (mut one, mut other) = (desk(required), desk(required));
        [&mut one, &mut other].into_iter().for_each(|desk| desk.trust(vec![service(&keys)]));
        let (mut now, mut next) = (NOW, 0);
        for (step, is_lost) in steps {
            if let Step::Wait { seconds } = step {
                now += seconds;
            }
            let said = take(&mut one, &step, now, next);
            if is_lost {
                store.lose(&mut one);
                continue;
            }
            store.keep(&mut one);
            prop_assert_eq!(&said, &take(&mut other, &step, now, next));
            next += usize::from(other.approval(&fresh(next).id).is_some());
            [&mut one, &mut other].into_iter().for_each(|desk| desk.handle_timeout(clock(now)));
            store.keep(&mut one);
            prop_assert_eq!(all(&one), all(&other));
        }
    }
}
