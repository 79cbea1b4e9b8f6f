//! Calls whose servers ask for input before they go on: each state given by a server lets one request through, and nothing else does.

use super::*;

const FIRST: [u8; 32] = [1; 32];
const SECOND: [u8; 32] = [2; 32];

/// A call that was agreed to, went out, and was asked for input with the first state.
fn asked() -> (Desk, Challenge) {
    let keys = keys();
    let (mut desk, challenge) = waiting(&keys);
    desk.confirm(clock(NOW), &challenge.id, &ssh(&keys, Challenge::NAMESPACE, &challenge.text())).unwrap();
    desk.claim(clock(NOW), &challenge.id, &challenge.call).unwrap();
    desk.finish(clock(NOW), &challenge.id, End::Asked(FIRST));
    (desk, challenge)
}

#[test]
fn h4_a_call_that_is_asked_for_input_goes_on_once_and_begins_no_second_time() {
    let (mut desk, Challenge { id, call, .. }) = asked();
    assert_eq!(desk.claim(clock(NOW), &id, &call), Err(Refusal::Over(Standing::Below)));
    assert!(matches!(hold(&mut desk, &call, 7, false), Held::Waits(other) if other != id), "to make it anew is another call");
    assert_eq!(desk.go_on(clock(NOW), &call, SECOND), None);
    assert_eq!(desk.go_on(clock(NOW), &Call { arguments: "{}".into(), ..call.clone() }, FIRST), None);
    assert_eq!(desk.go_on(clock(NOW), &call, FIRST), Some(Agreement::Approval(id.clone())));
    assert_eq!(desk.go_on(clock(NOW), &call, FIRST), None);
    desk.finish(clock(NOW), &id, End::NotSent);
    assert_eq!(desk.claim(clock(NOW), &id, &call), Err(Refusal::Over(Standing::Below)), "the server waits for its input still");
    assert_eq!(desk.go_on(clock(NOW), &call, FIRST), Some(Agreement::Approval(id.clone())));
    desk.finish(clock(NOW), &id, End::Asked(SECOND));
    assert_eq!(desk.go_on(clock(NOW), &call, FIRST), None);
    assert_eq!(desk.go_on(clock(NOW), &call, SECOND), Some(Agreement::Approval(id.clone())));
    desk.finish(clock(NOW), &id, End::Answered);
    assert_eq!((desk.go_on(clock(NOW), &call, SECOND), desk.approval(&id).unwrap().standing), (None, Standing::Done));
}

#[test]
fn h4_what_is_asked_for_too_late_or_after_a_restart_is_as_bound_as_before() {
    let (desk_before, Challenge { id, call, expires, .. }) = asked();
    let kept = desk_before.approval(&id).unwrap().clone();
    let mut after = desk(1);
    after.enroll(operator("anna", keys().ed(), None));
    after.restore(clock(NOW + 1), vec![serde_json::from_str(&serde_json::to_string(&kept).unwrap()).unwrap()]);
    assert_eq!(after.claim(clock(NOW + 1), &id, &call).unwrap_err().reason(), "approval_used");
    assert_eq!(after.go_on(clock(expires), &call, FIRST), None, "its time was over");
}

#[test]
fn h4_what_a_grant_let_through_goes_on_once_as_long_as_the_grant_is_there() {
    let keys = keys();
    let mut desk = desk(1);
    desk.enroll(operator("anna", keys.ed(), None));
    let terms = Terms {
        tool: "files.*".into(),
        caller: "ci".into(),
        arguments: BTreeMap::new(),
        any_other: true,
        expires: NOW + 1000,
        uses: Some(1),
    };
    let proof = ssh(&keys, Terms::NAMESPACE, &terms.statement("g", "gate-1").text);
    desk.give(clock(NOW), "g", terms, &[proof]).unwrap();
    let made = call("ci", "{}");
    assert_eq!(hold(&mut desk, &made, 1, true), Held::Granted("g".into()));
    desk.asked("g", &made, FIRST);
    assert_eq!(desk.go_on(clock(NOW), &made, FIRST), Some(Agreement::Grant("g".into())), "its one use was counted before");
    assert_eq!(desk.go_on(clock(NOW), &made, FIRST), None);
    desk.asked("g", &made, SECOND);
    assert!(desk.revoke(clock(NOW), "g"));
    assert_eq!(desk.go_on(clock(NOW), &made, SECOND), None);
}
