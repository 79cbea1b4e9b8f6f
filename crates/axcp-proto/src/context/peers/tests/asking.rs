//! Questions for what a peer refused or did not send, and their pauses.

use super::*;
use crate::context::replica::HistoryBounds;

/// A part that is refused for ever, in a snapshot that takes longer than the shortest pause.
#[test]
fn xc_12_a_part_refused_for_ever_is_asked_for_seldom() {
    let (mut other, mut asked, mut ended, mut part) = (shared("other", &["one"]), Vec::new(), 0, 1);
    other.greet("one").unwrap();
    for now in (0..600_000).step_by(500) {
        if other.next("one", now).is_some() {
            asked.push(now);
            part = 1;
        }
        let made = |is_part, ops| ContextPatch { is_part, part, new_version: 9, ..patch(0, ops) };
        match part {
            2 => drop(other.patch("one", &made(true, vec![op("/late", u64::MAX, "")]), moment(now)).unwrap_err()),
            1..10 => drop(other.patch("one", &made(true, vec![op(&format!("/s{part}"), WALL, "")]), moment(now)).unwrap()),
            10 => {
                other.patch("one", &made(false, Vec::new()), moment(now)).unwrap();
                ended += 1;
            }
            _ => continue,
        }
        part += 1;
    }
    assert!(asked.len() < 16, "{asked:?}");
    assert_eq!(ended, asked.len() + 1, "each snapshot comes to its end");
    assert!(other.replica().value("/s9").unwrap().is_some());
}

#[test]
fn xc_12_a_question_without_an_answer_is_put_again() {
    let mut one = shared("one", &["other"]);
    one.note_unread("other", 0);
    let asked: Vec<u64> = (0..20_000).step_by(500).filter(|now| one.next("other", *now).is_some()).collect();
    assert_eq!(asked, [2_000, 6_000, 14_000]);
    assert!(one.progress("other").lacks);
}

#[test]
fn xc_12_who_asks_again_is_told_that_nothing_is_left() {
    let (mut one, mut other) = (shared("one", &["other"]), shared("other", &["one"]));
    write(&mut one, "/a", "1", 0);
    meet(&mut one, &mut other, ("one", "other"), 0);
    settle(&mut one, &mut other, ("one", "other"), 0);
    other.note_unread("one", 0);
    settle(&mut one, &mut other, ("one", "other"), PAUSES[0]);
    assert_eq!((other.due("one"), other.progress("one").lacks, one.next("other", PAUSES[0])), (None, false, None));
}

/// A writer whose clock is at the bound writes at `one` again and again, whose clock is five seconds ahead of that of `other`.
#[test]
fn xc_11_a_writer_at_the_bound_delays_no_other() {
    let (mut one, mut other) = (shared("one", &["other", "bound"]), shared("other", &["one"]));
    meet(&mut one, &mut other, ("one", "other"), 0);
    let ahead = |now: u64| ContextMoment { wall: WALL + (now + 5_000) * 1000, now };
    for now in (0..120_000).step_by(1_000) {
        let at = ahead(now);
        one.patch("bound", &patch(now / 1000, vec![op(&format!("/bound/{now}"), at.wall + 60_000_000, "")]), at).unwrap();
        // The honest write of this second has a time behind the bound too.
        one.write(&[(DeltaKind::Replace, &format!("/own/{now}"), Bytes::from_static(b"1"))], at.wall).unwrap();
        let version = one.replica().version();
        one.note_kept(version, now);
        while let Some(payload) = one.next("other", now) {
            if let EnvelopePayload::ContextPatch(patch) = payload {
                drop(other.patch("one", &patch, moment(now)));
            }
        }
        if let Some(EnvelopePayload::SyncSubscribe(wish)) = other.next("one", now) {
            one.subscribe("other", wish, now).unwrap();
        }
    }
    assert!(other.replica().value("/own/100000").unwrap().is_some(), "{:?}", other.progress("one"));
    assert!(other.progress("one").known > 200, "{:?}", other.progress("one"));
}

#[test]
fn xc_11_the_timely_part_of_a_patch_is_known() {
    let mut one = shared("one", &["other"]);
    let hour = WALL + 3_600_000_000;
    let mixed = patch(0, vec![op("/a", WALL, ""), op("/late", hour, ""), op("/b", WALL + 1, "")]);
    let answer = one.patch("other", &mixed, moment(0)).unwrap();
    assert!(matches!(answer, Some(EnvelopePayload::Error(refused)) if refused.code == 6));
    assert_eq!((one.replica().json().as_ref(), one.progress("other").known), (b"{\"a\":1,\"b\":1}".as_slice(), 1));
    assert_eq!(asked_from(one.next("other", PAUSES[0]).as_ref()), Some(1));
}

#[test]
fn xc_12_repeated_subscriptions_start_once_a_second() {
    let mut one = shared("one", &["other"]);
    write(&mut one, "/a", "1", 0);
    let mut sent = Vec::new();
    for now in (0..3_500).step_by(100) {
        one.subscribe("other", SyncSubscribe::default(), now).unwrap();
        sent.extend(one.next("other", now).map(|_| now));
        assert!(one.due("other").is_none_or(|due| due > now), "the writer is told when to go on");
    }
    assert_eq!(sent, [0, 1_000, 2_000, 3_000]);
}

#[test]
fn xc_12_a_gap_that_is_gone_holds_nothing_back() {
    let small = Replica::new("c", "one").unwrap().bounded(HistoryBounds { journal: 1000, batch: 1000 });
    let mut one = SharedContext::new(small, 0, 1000, [("other".into(), KnownVersion::default())]);
    let mut other = shared("other", &["one"]);
    write(&mut one, "/a", "1", 0);
    meet(&mut one, &mut other, ("one", "other"), 0);
    settle(&mut one, &mut other, ("one", "other"), 0);
    let from = ContextGraphVersion { context_id: "c".into(), ..ContextGraphVersion::default() };
    one.request("other", &SyncRequest { missing_from: Some(from), to_version: 1 }).unwrap();
    (0..20).for_each(|at| write(&mut one, &format!("/s{at}"), "1", 0));
    assert!(one.replica().check_range(0, 1).is_err(), "the versions of the gap are gone");
    assert!(one.next("other", 0).is_some(), "what else there is goes out at once");
}
