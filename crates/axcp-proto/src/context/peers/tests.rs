use proptest::prelude::*;
use prost::Message as _;

use super::*;
use crate::context::again::PAUSES;
use crate::context::subscriber::BETWEEN_STARTS;
use crate::envelope::{MOST_FILTER, MOST_OPS};

mod asking;

const WALL: u64 = 1_000_000;

fn shared(node: &str, peers: &[&str]) -> SharedContext {
    let replica = Replica::new("c", node).unwrap();
    SharedContext::new(replica, 0, 1000, peers.iter().map(|peer| ((*peer).into(), KnownVersion::default())))
}

fn write(at: &mut SharedContext, path: &str, data: &str, now: u64) {
    let version = at.write(&[(DeltaKind::Replace, path, Bytes::copy_from_slice(data.as_bytes()))], WALL + now).unwrap();
    at.note_kept(version, now);
}

/// Lets a peer in: both greet each other.
fn meet(one: &mut SharedContext, other: &mut SharedContext, names: (&str, &str), now: u64) {
    let EnvelopePayload::SyncSubscribe(wish) = one.greet(names.1).unwrap() else { panic!("a greeting subscribes") };
    let EnvelopePayload::SyncSubscribe(back) = other.greet(names.0).unwrap() else { panic!("a greeting subscribes") };
    other.subscribe(names.0, wish, now).unwrap();
    one.subscribe(names.1, back, now).unwrap();
}

/// Brings a message to its receiver, and gives the kinds of what came back.
fn deliver(to: &mut SharedContext, from_name: &str, payload: EnvelopePayload, now: u64) -> Vec<EnvelopePayload> {
    let mut answers = Vec::new();
    let patches = if let EnvelopePayload::Retry(retry) = payload {
        retry.buffered_patches
    } else if let EnvelopePayload::ContextPatch(patch) = payload {
        vec![patch]
    } else if let EnvelopePayload::SyncRequest(wish) = payload {
        to.request(from_name, &wish).unwrap();
        Vec::new()
    } else if let EnvelopePayload::SyncSubscribe(wish) = payload {
        to.subscribe(from_name, wish, now).unwrap();
        Vec::new()
    } else {
        panic!("{payload:?}")
    };
    for patch in patches {
        answers.extend(to.patch(from_name, &patch, ContextMoment { wall: WALL + now, now }).unwrap());
    }
    let version = to.replica().version();
    to.note_kept(version, now);
    answers
}

/// Sends until both sides have nothing more. Gives all that went from `one`.
fn settle(one: &mut SharedContext, other: &mut SharedContext, names: (&str, &str), now: u64) -> Vec<EnvelopePayload> {
    let mut sent = Vec::new();
    for _ in 0..10_000 {
        let (to_other, to_one) = (one.next(names.1, now), other.next(names.0, now));
        if to_other.is_none() && to_one.is_none() {
            return sent;
        }
        let mut to_one: Vec<EnvelopePayload> = to_one.into_iter().collect();
        if let Some(payload) = to_other {
            sent.push(payload.clone());
            to_one.extend(deliver(other, names.0, payload, now));
        }
        for payload in to_one {
            for answer in deliver(one, names.1, payload, now) {
                deliver(other, names.0, answer, now);
            }
        }
    }
    panic!("two peers never have enough of each other")
}

fn bytes(of: &SharedContext) -> Vec<u8> {
    of.replica().snapshot().encode_to_vec()
}

#[test]
fn xc_10_a_refused_patch_was_not_applied() {
    let (mut one, mut other) = (shared("a", &["b"]), shared("b", &["a"]));
    meet(&mut one, &mut other, ("a", "b"), 0);
    let before = (bytes(&one), one.replica().version());
    let data = Bytes::from_static(b"1");
    let forged = DeltaOp { op: DeltaKind::Replace.into(), path: "/x".into(), data, ts: WALL, node_id: "b".into() };
    let backwards = ContextPatch { context_id: "c".into(), base_version: 5, new_version: 1, ops: vec![forged], ..ContextPatch::default() };
    assert!(matches!(one.patch("b", &backwards, ContextMoment { wall: WALL, now: 0 }), Err(AxcpError::Malformed(_))));
    assert_eq!((bytes(&one), one.replica().version()), before);
}

#[test]
fn xc_12_a_subscriber_gets_what_it_lacks_and_no_more() {
    let (mut one, mut other) = (shared("one", &["other"]), shared("other", &["one"]));
    write(&mut one, "/a", "1", 0);
    assert_eq!(one.next("other", 0), None, "nobody has subscribed");
    meet(&mut one, &mut other, ("one", "other"), 0);
    settle(&mut one, &mut other, ("one", "other"), 0);
    assert_eq!(bytes(&one), bytes(&other));
    write(&mut other, "/b", "2", 1);
    let back = settle(&mut one, &mut other, ("one", "other"), 1);
    // The author of a write does not get it back, but learns the version.
    assert!(matches!(&back[..], [EnvelopePayload::ContextPatch(patch)] if patch.ops.is_empty() && patch.new_version == 2), "{back:?}");
    assert_eq!((one.progress("other").known, other.progress("one").known), (other.replica().version(), one.replica().version()));
}

#[test]
fn xc_14_nothing_leaves_before_it_is_on_the_disk() {
    let (mut one, mut other) = (shared("one", &["other"]), shared("other", &["one"]));
    meet(&mut one, &mut other, ("one", "other"), 0);
    let version = one.write(&[(DeltaKind::Add, "/a", Bytes::from_static(b"1"))], WALL).unwrap();
    assert_eq!((one.next("other", 0), one.unkept().count()), (None, 1));
    one.note_kept(version, 0);
    assert!(one.next("other", 0).is_some() && one.unkept().count() == 0);
}

#[test]
fn xc_13_a_peer_that_comes_back_gets_kept_patches_first() {
    let (mut one, mut other) = (shared("one", &["other"]), shared("other", &["one"]));
    meet(&mut one, &mut other, ("one", "other"), 0);
    settle(&mut one, &mut other, ("one", "other"), 0);
    one.part_from("other");
    other.part_from("one");
    write(&mut one, "/a", "1", 10);
    write(&mut one, "/b", "2", 20);
    meet(&mut one, &mut other, ("one", "other"), 500);
    let sent = settle(&mut one, &mut other, ("one", "other"), 500);
    let kept: Vec<u32> =
        sent.iter().filter_map(|sent| if let EnvelopePayload::Retry(retry) = sent { Some(retry.ttl_ms) } else { None }).collect();
    assert_eq!(kept, [510, 520]);
    assert_eq!(bytes(&one), bytes(&other));
}

#[test]
fn xc_13_expired_patches_are_counted_and_their_versions_still_come() {
    let (mut one, mut other) = (shared("one", &["other"]), shared("other", &["one"]));
    meet(&mut one, &mut other, ("one", "other"), 0);
    one.part_from("other");
    write(&mut one, "/a", "1", 10);
    meet(&mut one, &mut other, ("one", "other"), 5000);
    let sent = settle(&mut one, &mut other, ("one", "other"), 5000);
    assert!(sent.iter().all(|sent| matches!(sent, EnvelopePayload::ContextPatch(_))));
    assert_eq!((one.progress("other").expired, bytes(&one)), (1, bytes(&other)));
}

#[test]
fn xc_12_whoever_is_far_behind_gets_a_snapshot() {
    let (mut one, mut other) = (shared("one", &["other"]), shared("other", &["one"]));
    let mut seed = 1_u32;
    let mut noise = || -> String {
        let mut next = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            char::from(b'a' + u8::try_from((seed >> 16) % 26).unwrap())
        };
        (0..12_000).map(|_| next()).collect()
    };
    for at in 0..700 {
        write(&mut one, &format!("/s{}/{}", at % 70, at % 3), &format!("\"{at}{}\"", noise()), 0);
    }
    assert!(one.replica().range(0, 1).is_err(), "the first version is forgotten");
    meet(&mut one, &mut other, ("one", "other"), 0);
    let sent = settle(&mut one, &mut other, ("one", "other"), 0);
    let patches: Vec<&ContextPatch> =
        sent.iter().filter_map(|sent| if let EnvelopePayload::ContextPatch(patch) = sent { Some(patch) } else { None }).collect();
    assert!(patches.len() > 2 && patches.iter().all(|patch| patch.ops.len() <= MOST_OPS && patch.encoded_len() < 2 << 20));
    assert_eq!((bytes(&one), other.progress("one").known), (bytes(&other), 700));
}

#[test]
fn xc_12_a_filter_lets_through_what_it_names() {
    let (mut one, mut other) = (shared("one", &["other"]), shared("other", &["one"]));
    for (path, data) in [("/user/a", "1"), ("/shared/b", "2"), ("/user/intent", "3")] {
        write(&mut one, path, data, 0);
    }
    let wish = SyncSubscribe { prefixes: vec!["/user/".into()], ..SyncSubscribe::default() };
    one.subscribe("other", wish, 0).unwrap();
    settle(&mut one, &mut other, ("one", "other"), 0);
    assert_eq!(other.replica().json(), r#"{"user":{"a":1,"intent":3}}"#);
    assert_eq!(other.progress("one").known, 3);
    let wish = SyncSubscribe { tags: vec!["b".into()], ..SyncSubscribe::default() };
    one.subscribe("other", wish, BETWEEN_STARTS).unwrap();
    settle(&mut one, &mut other, ("one", "other"), BETWEEN_STARTS);
    assert_eq!(other.replica().json(), r#"{"shared":{"b":2},"user":{"a":1,"intent":3}}"#);
}

#[test]
fn xc_12_a_revoked_value_is_removed() {
    let mut one = shared("one", &["other"]);
    write(&mut one, "/a/b", "1", 0);
    let news = ContextInvalidation { context_id: "c".into(), path: "/a".into(), ts: WALL + 5, ..ContextInvalidation::default() };
    one.invalidate("other", &news, WALL).unwrap();
    assert_eq!(one.replica().json(), "{}");
    assert_eq!(one.invalidate("stranger", &news, WALL), Err(AxcpError::Context));
}

fn moment(now: u64) -> ContextMoment {
    ContextMoment { wall: WALL + now * 1000, now }
}

fn op(path: &str, ts: u64, node: &str) -> DeltaOp {
    DeltaOp { op: DeltaKind::Replace.into(), path: path.into(), data: Bytes::from_static(b"1"), ts, node_id: node.into() }
}

fn patch(base_version: u64, ops: Vec<DeltaOp>) -> ContextPatch {
    ContextPatch { context_id: "c".into(), base_version, ops, ..ContextPatch::default() }
}

/// Gives the version from which a message asks for patches.
fn asked_from(message: Option<&EnvelopePayload>) -> Option<u64> {
    if let Some(EnvelopePayload::SyncSubscribe(wish)) = message { wish.from.as_ref().map(|from| from.version) } else { None }
}

#[test]
fn xc_12_a_refused_patch_is_asked_for_after_a_pause() {
    let mut one = shared("one", &["other"]);
    one.greet("other").unwrap();
    let hour = patch(0, vec![op("/a", WALL + 3_600_000_000, "")]);
    assert!(matches!(one.patch("other", &hour, moment(0)), Err(AxcpError::BadDelta(_))));
    let (due, wait) = (one.due("other").unwrap(), PAUSES[0]);
    assert_eq!((due, one.next("other", due - 1)), (wait, None));
    assert_eq!(asked_from(one.next("other", due).as_ref()), Some(0));
    assert_eq!((one.due("other"), one.next("other", due)), (Some(due + 2 * wait), None), "a question is put once a pause");
    assert!(one.progress("other").lacks, "nothing came");
    one.patch("other", &hour, moment(due)).unwrap_err();
    assert_eq!(one.due("other"), Some(due + 2 * wait), "and later each time");
    // An hour later the clock of this node has caught up.
    assert_eq!(asked_from(one.next("other", 3_600_000).as_ref()), Some(0));
    one.patch("other", &hour, moment(3_600_000)).unwrap();
    assert_eq!((one.replica().json().as_ref(), one.due("other")), (b"{\"a\":1}".as_slice(), None));
}

#[test]
fn xc_12_an_unfilled_gap_is_asked_for_again() {
    let mut one = shared("one", &["other"]);
    one.greet("other").unwrap();
    assert!(one.patch("other", &patch(5, vec![op("/a", WALL, "")]), moment(0)).unwrap().is_some());
    assert_eq!(asked_from(one.next("other", PAUSES[0]).as_ref()), Some(0));
    one.patch("other", &patch(0, (0..6).map(|at| op("/a", WALL + at, "")).collect()), moment(9)).unwrap();
    assert_eq!((one.due("other"), one.progress("other").known), (None, 6));
}

#[test]
fn xc_12_an_unread_envelope_is_asked_for_again() {
    let mut one = shared("one", &["other"]);
    one.note_unread("other", 5);
    assert_eq!(asked_from(one.next("other", 5 + PAUSES[0]).as_ref()), Some(0));
}

/// A snapshot for a peer that refuses some part, and takes the same part later.
#[test]
fn xc_12_a_snapshot_with_a_refused_part_is_sent_again() {
    let mut one = shared("one", &["other"]);
    for at in 0..6 {
        write(&mut one, &format!("/s{at}"), "1", 0);
    }
    // A sender that has forgotten its history.
    let snapshot = one.replica().snapshot();
    let restored = Replica::restore(&snapshot, "one", 6).unwrap();
    let mut one = SharedContext::new(restored, 0, 1000, [("other".into(), KnownVersion::default())]);
    let mut other = shared("other", &["one"]);
    meet(&mut one, &mut other, ("one", "other"), 0);
    while let Some(EnvelopePayload::ContextPatch(mut part)) = one.next("other", 0) {
        let tears = part.part == 1;
        if tears {
            part.ops.iter_mut().for_each(|op| op.ts += 3_600_000_000);
        }
        assert_eq!(other.patch("one", &part, moment(0)).is_err(), tears);
    }
    assert_eq!(other.progress("one").known, 0, "a torn snapshot counts for nothing");
    let now = other.due("one").unwrap();
    let EnvelopePayload::SyncSubscribe(wish) = other.next("one", now).unwrap() else { panic!("it is asked for again") };
    one.subscribe("other", wish, now).unwrap();
    settle(&mut one, &mut other, ("one", "other"), now);
    assert_eq!((bytes(&one), other.progress("one").known), (bytes(&other), 6));
}

#[test]
fn xc_14_a_snapshot_waits_for_the_disk() {
    let mut made = Replica::new("c", "one").unwrap();
    made.write(&[(DeltaKind::Add, "/a", Bytes::from_static(b"1"))], WALL).unwrap();
    let restored = Replica::restore(&made.snapshot(), "one", 1).unwrap();
    let mut one = SharedContext::new(restored, 0, 1000, [("other".into(), KnownVersion::default())]);
    one.subscribe("other", SyncSubscribe::default(), 0).unwrap();
    let sent = |one: &mut SharedContext| {
        let next = one.next("other", 0);
        next.and_then(|next| if let EnvelopePayload::ContextPatch(patch) = next { Some((patch.part, patch.ops.len())) } else { None })
    };
    let version = one.write(&[(DeltaKind::Add, "/b", Bytes::from_static(b"2"))], WALL).unwrap();
    assert_eq!(sent(&mut one), None);
    one.note_kept(version, 0);
    // One that writes without a pause keeps no snapshot from its way.
    one.write(&[(DeltaKind::Add, "/c", Bytes::from_static(b"3"))], WALL).unwrap();
    assert_eq!((sent(&mut one), sent(&mut one)), (Some((1, 2)), None));
    one.note_kept(3, 0);
    assert_eq!((sent(&mut one), sent(&mut one)), (Some((2, 1)), Some((3, 0))));
}

#[test]
fn xc_12_the_filters_of_a_peer_are_bounded() {
    let mut one = shared("one", &["other"]);
    let wish = |length: usize| SyncSubscribe { prefixes: vec!["x".repeat(length)], ..SyncSubscribe::default() };
    one.subscribe("other", wish(MOST_FILTER - size_of::<String>()), 0).unwrap();
    let refused = one.subscribe("other", wish(MOST_FILTER), 0).unwrap_err();
    assert_eq!(refused.code().number(), 7);
}

#[test]
fn xc_12_the_filters_of_all_peers_are_bounded() {
    let names: Vec<String> = (0..80).map(|at| format!("p{at}")).collect();
    let mut one = shared("one", &names.iter().map(String::as_str).collect::<Vec<_>>());
    let wish = || SyncSubscribe { tags: vec!["x".repeat(MOST_FILTER - size_of::<String>())], ..SyncSubscribe::default() };
    let most = MOST_FILTERS_HELD / MOST_FILTER;
    for (at, name) in names.iter().enumerate() {
        assert_eq!(one.subscribe(name, wish(), 0).is_ok(), at < most, "{at}");
    }
    one.subscribe(&names[0], wish(), 0).unwrap();
    one.part_from(&names[0]);
    one.subscribe(&names[79], wish(), 0).unwrap();
}

#[test]
fn xc_11_a_write_in_a_peers_name_reaches_it() {
    let (mut one, mut other) = (shared("one", &["other", "third"]), shared("other", &["one"]));
    meet(&mut one, &mut other, ("one", "other"), 0);
    one.patch("third", &patch(0, vec![op("/a", WALL, "other")]), moment(0)).unwrap();
    one.note_kept(1, 0);
    settle(&mut one, &mut other, ("one", "other"), 0);
    assert_eq!((other.replica().json().as_ref(), bytes(&one)), (b"{\"a\":1}".as_slice(), bytes(&other)));
}

#[test]
fn xc_11_a_peer_gets_its_lost_write_back() {
    let (mut one, mut other) = (shared("one", &["other"]), shared("other", &["one"]));
    meet(&mut one, &mut other, ("one", "other"), 0);
    // Not on the disk yet, when the peer comes again without its disk.
    one.patch("other", &patch(0, vec![op("/a", WALL, "")]), moment(0)).unwrap();
    let mut other = shared("other", &["one"]);
    meet(&mut one, &mut other, ("one", "other"), 0);
    one.note_kept(1, 0);
    settle(&mut one, &mut other, ("one", "other"), 0);
    assert_eq!((other.replica().json().as_ref(), bytes(&one)), (b"{\"a\":1}".as_slice(), bytes(&other)));
}

/// A node with versions up to `count`, in an epoch.
fn node_of(epoch: u64, count: u64, known: KnownVersion) -> SharedContext {
    let mut made = SharedContext::new(Replica::new("c", "one").unwrap(), epoch, 1000, [("other".into(), known)]);
    (0..count).for_each(|at| write(&mut made, &format!("/{epoch}/{at}"), "1", at));
    made
}

/// The disk of a peer is lost, and the peer has as many versions again before the two meet: the same numbers mean other versions.
#[test]
fn xc_12_a_peer_without_its_disk_is_followed_anew() {
    let mut other = shared("other", &["one"]);
    let mut first = node_of(7, 5, KnownVersion::default());
    meet(&mut first, &mut other, ("one", "other"), 0);
    settle(&mut first, &mut other, ("one", "other"), 0);
    assert_eq!((other.progress("one").known, other.progress("one").epoch), (5, 7));
    first.part_from("other");
    other.part_from("one");
    let mut second = node_of(8, 9, KnownVersion::default());
    meet(&mut second, &mut other, ("one", "other"), 0);
    settle(&mut second, &mut other, ("one", "other"), 0);
    assert_eq!(bytes(&second), bytes(&other));
    assert_eq!(other.progress("one"), PeerProgress { known: second.replica().version(), epoch: 8, ..other.progress("one") });
}

/// A step of two peers.
#[derive(Debug, Clone)]
enum Step {
    Write(bool, usize, u32),
    Part,
    Meet,
    Talk(usize),
    Later(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (any::<bool>(), 0_usize..5, any::<u32>()).prop_map(|(who, path, value)| Step::Write(who, path, value)),
        1 => Just(Step::Part),
        2 => Just(Step::Meet),
        3 => (0_usize..4).prop_map(Step::Talk),
        1 => (0_u64..800).prop_map(Step::Later),
    ];
    prop::collection::vec(step, 0..60)
}

proptest! {
    /// Links break at any place, and what was on the way is lost.
    #[test]
    fn xc_11_peers_converge_whatever_link_breaks(steps in steps()) {
        let (mut one, mut other, mut now) = (shared("one", &["other"]), shared("other", &["one"]), 0);
        let paths = ["/a", "/a/b", "/a/b/c", "/d", "/d/e"];
        for step in steps {
            match step {
                Step::Write(true, path, value) => write(&mut one, paths[path], &value.to_string(), now),
                Step::Write(false, path, value) => write(&mut other, paths[path], &value.to_string(), now),
                Step::Part => {
                    one.part_from("other");
                    other.part_from("one");
                }
                Step::Meet => meet(&mut one, &mut other, ("one", "other"), now),
                Step::Talk(messages) => for _ in 0..messages {
                    if let Some(payload) = one.next("other", now) {
                        for answer in deliver(&mut other, "one", payload, now) {
                            deliver(&mut one, "other", answer, now);
                        }
                    }
                },
                Step::Later(millis) => now += millis,
            }
        }
        meet(&mut one, &mut other, ("one", "other"), now);
        settle(&mut one, &mut other, ("one", "other"), now);
        prop_assert_eq!(bytes(&one), bytes(&other));
        prop_assert_eq!(one.progress("other").known, other.replica().version());
        prop_assert_eq!(other.progress("one").known, one.replica().version());
    }
}
