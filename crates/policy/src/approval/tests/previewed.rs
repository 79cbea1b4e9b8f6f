//! Previews at the desk: signed with the call, and compared when the call leaves. No server is asked here.

use super::*;

fn foreseen(text: &str) -> Call {
    Call { preview: Some(Preview::Shown(text.into())), ..call("ci", "{}") }
}

/// Holds a call, agrees to it, and gives its id.
fn agreed(desk: &mut Desk, keys: &Keys, call: &Call, n: usize) -> String {
    assert_eq!(hold(desk, call, n, false), Held::Waits(fresh(n).id));
    let challenge = desk.approval(&fresh(n).id).unwrap().challenge.clone();
    desk.confirm(clock(NOW), &challenge.id, &ssh(keys, challenge.namespace(), &challenge.text())).unwrap();
    challenge.id
}

#[test]
fn a_call_goes_out_with_its_signed_preview_alone() {
    let keys = keys();
    for (seen, now, goes) in [
        (foreseen("- a"), foreseen("- a"), true),
        (foreseen("- a"), foreseen("- b"), false),
        (foreseen("- a"), call("ci", "{}"), false),
        (foreseen("- a"), Call { preview: Some(Preview::Missing("- a".into())), ..call("ci", "{}") }, false),
        (call("ci", "{}"), foreseen("- b"), true),
    ] {
        let mut desk = desk(1);
        desk.enroll(operator("anna", keys.ed(), None));
        let id = agreed(&mut desk, &keys, &seen, 1);
        let claimed = desk.claim(clock(NOW), &id, &now);
        assert_eq!(claimed.is_ok(), goes, "{seen:?} {now:?}");
        if !goes {
            assert_eq!(claimed, Err(Refusal::PreviewChanged));
            assert_eq!(desk.claim(clock(NOW), &id, &seen), Err(Refusal::Over(Standing::Void)), "not even with the old one");
            assert_eq!(hold(&mut desk, &now, 2, false), Held::Waits(fresh(2).id), "the next call is shown anew");
        }
    }
}

#[test]
fn a_signer_that_shows_no_preview_agrees_to_none() {
    let keys = keys();
    let mut desk = desk(1);
    desk.enroll(operator("anna", keys.ed(), None));
    hold(&mut desk, &foreseen("- a"), 1, false);
    let challenge = desk.approval(&fresh(1).id).unwrap().challenge.clone();
    for namespace in [Challenge::NAMESPACE, Challenge::NAMESPACE_OF_MORE] {
        assert!(desk.confirm(clock(NOW), &challenge.id, &ssh(&keys, namespace, &challenge.text())).is_err(), "{namespace}");
    }
    let hash = hex(&Sha256::digest("- a"));
    assert!(challenge.text().contains(&format!("\"preview_sha256\":\"{hash}\"")), "{}", challenge.text());
}

#[test]
fn it_is_known_beforehand_if_people_would_be_asked() {
    let keys = keys();
    let mut desk = desk(1);
    desk.enroll(operator("anna", keys.ed(), None));
    let call = call("ci", "{}");
    assert_eq!(desk.foreknown(clock(NOW), &call), Foreknown::New);
    let id = agreed(&mut desk, &keys, &call, 1);
    assert_eq!(desk.foreknown(clock(NOW), &foreseen("- a")), Foreknown::Known, "a preview makes no other call");
    desk.claim(clock(NOW), &id, &call).unwrap();
    assert_eq!(desk.foreknown(clock(NOW), &call), Foreknown::New);
    desk.finish(clock(NOW), &id, End::Answered);
    hold(&mut desk, &call, 2, false);
    desk.deny(clock(NOW), &fresh(2).id, "no").unwrap();
    assert_eq!([desk.foreknown(clock(NOW), &call), desk.foreknown(clock(NOW), &call)], [Foreknown::Known; 2], "asking tells nobody");
}
