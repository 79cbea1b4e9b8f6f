//! The desk beside a small model of its rules, over any steps: calls, votes, clocks and restarts. The proofs themselves are not tried here.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
pub(super) enum Step {
    Hold { argument: u8, attends: bool },
    Vote { nth: usize, person: u8 },
    Deny { nth: usize },
    Withdraw { nth: usize },
    Claim { nth: usize, argument: u8 },
    Finish { nth: usize, end: u8 },
    Detach { nth: usize },
    Wait { seconds: u64 },
    Back { seconds: u64 },
    Restart,
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let nth = 0usize..6;
    prop_oneof![
        3 => (0u8..3, any::<bool>()).prop_map(|(argument, attends)| Step::Hold { argument, attends }),
        6 => (nth.clone(), 0u8..4).prop_map(|(nth, person)| Step::Vote { nth, person }),
        1 => nth.clone().prop_map(|nth| Step::Deny { nth }),
        1 => nth.clone().prop_map(|nth| Step::Withdraw { nth }),
        6 => (nth.clone(), 0u8..3).prop_map(|(nth, argument)| Step::Claim { nth, argument }),
        3 => (nth.clone(), 0u8..4).prop_map(|(nth, end)| Step::Finish { nth, end }),
        2 => nth.prop_map(|nth| Step::Detach { nth }),
        2 => (1u64..200).prop_map(|seconds| Step::Wait { seconds }),
        1 => (1u64..200).prop_map(|seconds| Step::Back { seconds }),
        1 => Just(Step::Restart),
    ]
}

/// Rules for one approval, kept apart from the machine.
#[derive(Debug, Clone)]
struct Model {
    argument: u8,
    expires: u64,
    people: BTreeSet<u8>,
    is_dead: bool,
    /// On its way, with an unknown end.
    out: bool,
    /// Out for good, never to go again.
    gone: bool,
}

pub(super) fn person(n: u8) -> Verified {
    let name = ["ci", "anna", "bert", "carl"][usize::from(n)];
    let key = keys().ed().fingerprint();
    Verified { person: name.into(), by: "service desk".into(), key, principals: BTreeSet::new(), counted: None, proof: String::new() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn ax_46_whatever_happens_a_call_goes_out_once_only_as_shown_agreed_to_by_enough_and_in_time(
        required in 1u8..3, steps in prop::collection::vec(step(), 1..60),
    ) {
        let (keys, mut desk) = (keys(), desk(required));
        desk.trust(vec![service(&keys)]);
        desk.handle_timeout(clock(NOW));
        let argument = |n: u8| call("ci", &format!("{{\"n\":{n}}}"));
        let (mut now, mut latest, mut next) = (NOW, NOW, 0);
        let mut ids: Vec<String> = Vec::new();
        let mut models: BTreeMap<String, Model> = BTreeMap::new();
        for step in steps {
            let pick = |nth: usize| ids.get(nth).cloned();
            match step {
                Step::Hold { argument: n, attends } => {
                    let held = desk.hold(clock(now), argument(n), (vec![Cause::Mode], "{}".into()), fresh(next), attends);
                    if let Held::Waits(id) = &held && *id == fresh(next).id {
                        let model = Model { argument: n, expires: latest + 300, people: BTreeSet::new(), is_dead: false, out: false, gone: false };
                        models.insert(id.clone(), model);
                        ids.insert(0, id.clone());
                        next += 1;
                    }
                    if let Held::Waits(id) | Held::Free(id) = held {
                        prop_assert_eq!(models[&id].argument, n, "it was given another call's approval");
                    }
                }
                Step::Vote { nth, person: n } => if let Some(id) = pick(nth) {
                    desk.handle_timeout(clock(now));
                    let model = models.get_mut(&id).unwrap();
                    let counts = !model.is_dead && !model.gone && !model.out && latest < model.expires
                        && model.people.len() < usize::from(required) && n != 0 && !model.people.contains(&n);
                    let voted = desk.vote(&id, person(n));
                    prop_assert_eq!(voted.is_ok(), counts, "{:?}", voted);
                    if counts {
                        model.people.insert(n);
                    }
                },
                Step::Deny { nth } => if let Some(id) = pick(nth) {
                    let denied = desk.deny(clock(now), &id, "no").is_ok();
                    let model = models.get_mut(&id).unwrap();
                    prop_assert!(!denied || (!model.out && !model.gone));
                    model.is_dead |= denied;
                },
                Step::Withdraw { nth } => if let Some(id) = pick(nth) {
                    desk.withdraw(clock(now), &id);
                    let model = models.get_mut(&id).unwrap();
                    model.is_dead |= !model.out && !model.gone;
                },
                Step::Claim { nth, argument: n } => if let Some(id) = pick(nth) {
                    let model = models.get_mut(&id).unwrap();
                    let may = !model.is_dead && !model.gone && !model.out && latest < model.expires
                        && model.people.len() >= usize::from(required);
                    let claimed = desk.claim(clock(now), &id, &argument(n));
                    prop_assert_eq!(claimed.is_ok(), may && n == model.argument, "{:?}", claimed);
                    model.out |= claimed.is_ok();
                    // Asked for with other arguments, it is good for nothing any more.
                    model.is_dead |= may && n != model.argument;
                },
                Step::Finish { nth, end } => if let Some(id) = pick(nth) {
                    let end = [End::Answered, End::HeldBelow, End::NotSent, End::Unknown][usize::from(end)];
                    desk.finish(clock(now), &id, end);
                    let model = models.get_mut(&id).unwrap();
                    model.gone |= model.out && matches!(end, End::Answered | End::Unknown);
                    model.out = false;
                },
                Step::Detach { nth } => if let Some(id) = pick(nth) { desk.detach(&id) },
                Step::Wait { seconds } => now += seconds,
                Step::Back { seconds } => now -= seconds,
                Step::Restart => {
                    let kept: Vec<Approval> = ids.iter().rev().filter_map(|id| desk.approval(id).cloned()).collect();
                    for approval in kept.iter().filter(|a| a.standing == Standing::Released && a.attended) {
                        models.get_mut(approval.id()).unwrap().is_dead = true;
                    }
                    let mut anew = Desk::new(Settings { gate: "gate-1".into(), patience: 300, required, warning: 60 });
                    anew.trust(vec![service(&keys)]);
                    anew.restore(clock(latest), kept);
                    desk = anew;
                    for model in models.values_mut() {
                        model.gone |= std::mem::take(&mut model.out);
                    }
                }
            }
            latest = latest.max(now);
            desk.handle_timeout(clock(now));
            for (id, model) in &models {
                let standing = desk.approval(id).unwrap().standing;
                prop_assert!(latest < model.expires || standing.is_over() || standing == Standing::Dispatched, "{} {:?}", id, standing);
                prop_assert_eq!(standing == Standing::Dispatched, model.out, "{} {:?}", id, standing);
            }
        }
    }
}
