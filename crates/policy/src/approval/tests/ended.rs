//! Calls after agreement: sent or not, with a known end or not, and the number that may wait.

use super::*;

/// A desk with a call of `ci` on its way.
fn dispatched(keys: &Keys) -> (Desk, Challenge) {
    let (mut desk, challenge) = waiting(keys);
    desk.confirm(clock(NOW), &challenge.id, &ssh(keys, Challenge::NAMESPACE, &challenge.text())).unwrap();
    desk.claim(clock(NOW), &challenge.id, &challenge.call).unwrap();
    (desk, challenge)
}

#[test]
fn ax_46_what_did_not_go_out_expires_also_when_its_time_came_while_it_was_on_its_way() {
    let keys = keys();
    for end in [End::NotSent, End::HeldBelow] {
        let (mut desk, challenge) = dispatched(&keys);
        desk.handle_timeout(clock(NOW + 400));
        assert_eq!(desk.approval(&challenge.id).unwrap().standing, Standing::Dispatched, "it is on its way");
        desk.finish(clock(NOW + 400), &challenge.id, end);
        assert_eq!(desk.approval(&challenge.id).unwrap().standing, Standing::Expired, "{end:?}");
        assert_eq!(desk.claim(clock(NOW + 401), &challenge.id, &challenge.call), Err(Refusal::Over(Standing::Expired)), "{end:?}");
    }
    let (mut desk, challenge) = dispatched(&keys);
    desk.finish(clock(NOW + 1), &challenge.id, End::NotSent);
    assert!(desk.claim(clock(NOW + 2), &challenge.id, &challenge.call).is_ok(), "in time it may be tried again");
    desk.finish(clock(NOW + 3), &challenge.id, End::NotSent);
    assert_eq!(desk.claim(clock(NOW + 300), &challenge.id, &challenge.call), Err(Refusal::Over(Standing::Expired)));
}

#[test]
fn ax_46_a_call_of_which_nobody_knows_whether_it_went_out_is_made_by_nobody_again() {
    let keys = keys();
    let (mut desk, challenge) = dispatched(&keys);
    desk.finish(clock(NOW), &challenge.id, End::Unknown);
    assert_eq!(desk.approval(&challenge.id).unwrap().standing, Standing::OutcomeUnknown);
    assert_eq!(desk.claim(clock(NOW), &challenge.id, &challenge.call).unwrap_err().reason(), "outcome_unknown");
    assert_eq!(hold(&mut desk, &challenge.call, 2, false), Held::Over(challenge.id), "whoever asks again is told, once");
    assert_eq!(hold(&mut desk, &challenge.call, 2, false), Held::Waits(fresh(2).id), "and then somebody has to agree anew");
}

#[test]
fn ax_46_what_was_free_for_a_caller_that_waited_when_the_gate_ended_may_have_gone_out() {
    let keys = keys();
    for (attends, standing) in [(true, Standing::OutcomeUnknown), (false, Standing::Released)] {
        let mut before = desk(1);
        before.enroll(operator("anna", keys.ed(), None));
        assert_eq!(hold(&mut before, &call("ci", "{}"), 1, attends), Held::Waits(fresh(1).id));
        let text = before.approval(&fresh(1).id).unwrap().challenge.text();
        before.confirm(clock(NOW), &fresh(1).id, &ssh(&keys, Challenge::NAMESPACE, &text)).unwrap();
        let mut after = desk(1);
        after.enroll(operator("anna", keys.ed(), None));
        after.restore(clock(NOW + 1), vec![before.approval(&fresh(1).id).unwrap().clone()]);
        assert_eq!(after.approval(&fresh(1).id).unwrap().standing, standing, "attended: {attends}");
    }
}

#[test]
fn ax_46_a_caller_that_comes_back_after_a_restart_hears_of_the_last_one_it_asked_for() {
    let keys = keys();
    let (mut before, denied) = waiting(&keys);
    before.deny(clock(NOW + 1), &denied.id, "not today").unwrap();
    before.hear(&denied.id);
    before.hold(clock(NOW + 9), denied.call.clone(), (vec![Cause::Mode], "{}".into()), fresh(2), false);
    for heard in [true, false] {
        // As they are kept: what is over stands last.
        let mut kept = [2, 1].map(|n| before.approval(&fresh(n).id).unwrap().clone());
        kept[1].told &= heard;
        let mut after = desk(1);
        after.enroll(operator("anna", keys.ed(), None));
        after.restore(clock(NOW + 20), kept.to_vec());
        let again = after.hold(clock(NOW + 20), denied.call.clone(), (vec![Cause::Mode], "{}".into()), fresh(3), false);
        assert_eq!(again, Held::Waits(fresh(2).id), "heard: {heard}");
    }
}

#[test]
fn ax_46_that_its_caller_has_heard_how_it_ended_is_kept() {
    let (mut desk, challenge) = waiting(&keys());
    desk.deny(clock(NOW), &challenge.id, "no").unwrap();
    desk.kept();
    desk.hear(&challenge.id);
    assert_eq!(desk.changes().collect::<Vec<_>>(), [&Change::Approval(challenge.id.clone())]);
    desk.kept();
    desk.hear(&challenge.id);
    assert_eq!(desk.changes().count(), 0);
}

#[test]
fn more_calls_than_anybody_reads_do_not_wait_and_those_of_one_caller_leave_room_for_others() {
    let keys = keys();
    let mut desk = desk(1);
    desk.enroll(operator("anna", keys.ed(), None));
    let mut ask = |caller: &str, n: usize| hold(&mut desk, &call(caller, &format!("{{\"n\":{n}}}")), n, false);
    assert!((0..100).all(|n| matches!(ask("flood", n), Held::Waits(_))));
    assert_eq!(ask("flood", 100), Held::Full(100));
    assert!((1..10).all(|caller| (0..100).all(|n| matches!(ask(&format!("ci-{caller}"), caller * 100 + n), Held::Waits(_)))));
    assert!(matches!(ask("one-more", 1001), Held::Full(_)), "a thousand wait");
    desk.withdraw(clock(NOW), &fresh(0).id);
    assert!(matches!(hold(&mut desk, &call("one-more", "{}"), 1001, false), Held::Waits(_)));
}
