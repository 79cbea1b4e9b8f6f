use proptest::prelude::*;
use prost::Message as _;
use serde_json::{Map, Value, json};

use super::*;
use crate::context::operation::MOST_ID;
use crate::context::path::{MOST_LEVELS, MOST_POINTER, TOO_LONG};
use crate::context::tree::RegisterValue;
use crate::envelope::MOST_OPS;
use crate::gzip::MOST_UNPACKED;

mod batches;

const WALL: u64 = 1_000_000;

fn op(kind: DeltaKind, path: &str, data: &str, ts: u64, node: &str) -> DeltaOp {
    DeltaOp { op: kind.into(), path: path.into(), data: Bytes::copy_from_slice(data.as_bytes()), ts, node_id: node.into() }
}

fn patch(ops: Vec<DeltaOp>) -> ContextPatch {
    ContextPatch { context_id: "c".into(), ops, ..ContextPatch::default() }
}

fn replica() -> Replica {
    Replica::new("c", "me").unwrap()
}

/// Applies operations one by one, and gives the replica.
fn applied(ops: &[DeltaOp]) -> Replica {
    let mut replica = replica();
    for op in ops {
        replica.apply(&patch(vec![op.clone()]), "peer", WALL).unwrap();
    }
    replica
}

fn value(replica: &Replica) -> Value {
    serde_json::from_slice(&replica.json()).unwrap()
}

#[test]
fn xc_11_each_operation_has_its_effect() {
    let made = [
        op(DeltaKind::Add, "/user", r#" {"mood":"calm","address":{"city":"Bari"}} "#, 1, "a"),
        op(DeltaKind::Replace, "/user/mood", "[1, 2]", 2, "a"),
        op(DeltaKind::Merge, "/user", r#"{"address":{"street":"x"},"mood":null}"#, 3, "a"),
        op(DeltaKind::Remove, "/user/address/city", "", 4, "a"),
        op(DeltaKind::Add, "/balance", "100", 5, "a"),
    ];
    assert_eq!(value(&applied(&made)), json!({"user": {"address": {"street": "x"}}, "balance": 100}));
}

#[test]
fn xc_11_a_younger_child_outlives_its_parents_removal() {
    let child = op(DeltaKind::Add, "/a/b", "1", 5, "x");
    for (removed, left) in [(4, json!({"a": {"b": 1}})), (6, json!({}))] {
        let removal = op(DeltaKind::Remove, "/a", "", removed, "y");
        for order in [[child.clone(), removal.clone()], [removal, child.clone()]] {
            assert_eq!(value(&applied(&order)), left);
        }
    }
}

#[test]
fn xc_11_equal_times_are_decided_by_the_author() {
    let both = [op(DeltaKind::Replace, "/a", "\"of a\"", 5, "a"), op(DeltaKind::Replace, "/a", "\"of b\"", 5, "b")];
    assert_eq!(value(&applied(&both)), json!({"a": "of b"}));
}

#[test]
fn xc_11_the_peer_is_the_author_where_none_is_named() {
    let unnamed = patch(vec![op(DeltaKind::Add, "/a", "1", 5, "")]);
    let mut replica = replica();
    replica.apply(&unnamed, "did:key:z6", WALL).unwrap();
    assert_eq!(replica.snapshot().ops[0].node_id, "did:key:z6");
}

#[test]
fn xc_11_operations_that_break_a_rule_change_nothing() {
    let mut replica = applied(&[op(DeltaKind::Add, "/a", "1", 5, "x")]);
    let before = replica.snapshot();
    let deep = "[".repeat(MOST_LEVELS) + &"]".repeat(MOST_LEVELS);
    let bad = [
        (op(DeltaKind::Add, "", "{}", 6, "x"), 6),
        (op(DeltaKind::Add, "/a", "{", 6, "x"), 6),
        (op(DeltaKind::Add, "/a", "", 6, "x"), 6),
        (op(DeltaKind::Add, "/a", r#"{"k":1,"k":2}"#, 6, "x"), 6),
        (op(DeltaKind::Add, "/a", "1", 0, "x"), 6),
        (op(DeltaKind::Add, "/a", "1", u64::MAX, "x"), 6),
        (DeltaOp { op: 4, ..op(DeltaKind::Add, "/a", "1", 6, "x") }, 6),
        (op(DeltaKind::Add, "/a", &deep, 6, "x"), 7),
        (op(DeltaKind::Add, "/a", "1", 6, &"x".repeat(MOST_ID + 1)), 7),
    ];
    for (bad, code) in bad {
        let both = patch(vec![op(DeltaKind::Add, "/b", "2", 6, "x"), bad.clone()]);
        assert_eq!(replica.apply(&both, "peer", WALL).unwrap_err().code().number(), code, "{bad:?}");
        assert_eq!((replica.snapshot(), replica.version()), (before.clone(), 1));
    }
    let other = ContextPatch { context_id: "d".into(), ..ContextPatch::default() };
    assert_eq!(replica.apply(&other, "peer", WALL).unwrap_err().code().number(), 1);
}

#[test]
fn xc_10_a_segment_has_64_kib_at_most() {
    let mut replica = replica();
    let half = Bytes::from(format!("\"{}\"", "x".repeat(MOST_DATA / 2)));
    replica.write(&[(DeltaKind::Add, "/s/one", half.clone())], WALL).unwrap();
    let before = replica.snapshot();
    assert_eq!(replica.write(&[(DeltaKind::Add, "/s/two", half.clone())], WALL).unwrap_err().code().number(), 7);
    assert_eq!((replica.snapshot(), replica.version()), (before, 1));
    // Of writers that did not know of each other, all keep both.
    let other = DeltaOp { data: half, ..op(DeltaKind::Add, "/s/two", "", 9, "other") };
    replica.apply(&patch(vec![other]), "other", WALL).unwrap();
    assert_eq!(replica.segment("s").unwrap_err().code().number(), 7);
    replica.write(&[(DeltaKind::Remove, "/s/one", Bytes::new())], WALL).unwrap();
    assert!(replica.segment("s").unwrap().is_some());
}

#[test]
fn xc_10_removed_values_are_bounded_too() {
    let mut replica = replica();
    let mut ts = 0;
    let refused = loop {
        let ops = (0..1000).map(|n| op(DeltaKind::Remove, &format!("/s/{}", ts + n), "", ts + n + 1, "x")).collect();
        ts += 1000;
        if let Err(refused) = replica.apply(&patch(ops), "peer", WALL) {
            break refused;
        }
        assert!(ts < 100_000, "removed values pile up");
    };
    assert_eq!(refused, AxcpError::TooLarge { what: "the bytes held for a segment", most: MOST_SEGMENT });
    replica.apply(&patch(vec![op(DeltaKind::Replace, "/s", "{}", ts, "x")]), "peer", WALL).unwrap();
    assert_eq!(replica.snapshot().ops.len(), 1, "a whole new segment forgets them");
}

#[test]
fn xc_10_a_patch_passes_no_bound_on_its_way() {
    let long = Bytes::from(format!("\"{}\"", "x".repeat(60 << 10)));
    let many = |from: u64| -> Vec<DeltaOp> {
        (from..from + 25).map(|n| DeltaOp { data: long.clone(), ..op(DeltaKind::Add, &format!("/s/k{n}"), "", 10 + n, "x") }).collect()
    };
    let mut replica = replica();
    for from in [0, 25] {
        replica.apply(&patch(many(from)), "peer", WALL).unwrap();
    }
    let before = (replica.snapshot(), replica.version());
    let mut ops = many(50);
    // In the end little is left: a node that reads the versions back one by one would find the bound broken.
    ops.push(op(DeltaKind::Remove, "/s", "", 99, "x"));
    let refused = replica.apply(&patch(ops), "peer", WALL).unwrap_err();
    assert_eq!(refused, AxcpError::TooLarge { what: "the bytes held for a segment", most: MOST_SEGMENT });
    assert_eq!((replica.snapshot(), replica.version()), before);
}

#[test]
fn xc_10_a_segment_too_long_may_shrink_key_by_key() {
    let part =
        |n: u64| DeltaOp { data: format!("\"{}\"", "x".repeat(30 << 10)).into(), ..op(DeltaKind::Add, &format!("/s/k{n}"), "", 9, "y") };
    let mut replica = applied(&(0..5).map(part).collect::<Vec<_>>());
    assert!(replica.segment("s").is_err(), "others made the segment too long");
    let grow = [(DeltaKind::Add, "/s/more", Bytes::from_static(b"1"))];
    assert_eq!(replica.write(&grow, WALL).unwrap_err().code().number(), 7);
    for left in [4, 3, 2] {
        replica.write(&[(DeltaKind::Remove, &format!("/s/k{left}"), Bytes::new())], WALL).unwrap();
    }
    replica.write(&grow, WALL).unwrap();
    assert!(replica.segment("s").is_ok());
}

#[test]
fn xc_10_a_full_segment_may_shrink() {
    let mut replica = replica();
    let data = Bytes::from(format!("\"{}\"", "x".repeat(60 << 10)));
    let part = |n: u64| patch(vec![DeltaOp { data: data.clone(), ..op(DeltaKind::Add, &format!("/s/k{n}"), "", n, "y") }]);
    let full = (1..).find(|n| replica.apply(&part(*n), "y", WALL).is_err()).unwrap();
    assert!(full > 60);
    replica.write(&[(DeltaKind::Remove, "/s/k1", Bytes::new())], WALL).unwrap();
    replica.apply(&part(full), "y", WALL).unwrap();
}

#[test]
fn xc_10_what_is_above_a_bound_may_shrink() {
    // A snapshot of a time when more was admitted.
    let data = Bytes::from(format!("\"{}\"", "x".repeat(60 << 10)));
    let ops = (0..80).map(|n| DeltaOp { data: data.clone(), ..op(DeltaKind::Add, &format!("/s/k{n}"), "", 1 + n, "y") }).collect();
    let mut replica = Replica::restore(&patch(ops), "me", 80).unwrap();
    let held = replica.held();
    assert!(held > MOST_SEGMENT);
    replica.write(&[(DeltaKind::Remove, "/s/k1", Bytes::new())], WALL).unwrap();
    assert!(replica.held() < held && replica.held() > MOST_SEGMENT);
    let grow = patch(vec![op(DeltaKind::Add, "/s/more", "1", 99, "y")]);
    assert_eq!(replica.apply(&grow, "y", WALL).unwrap_err().code().number(), 7);
}

#[test]
fn xc_11_a_writer_does_not_reach_into_an_array() {
    let mut replica = replica();
    replica.write(&[(DeltaKind::Add, "/s", Bytes::from_static(b"{\"list\":[1,2]}"))], WALL).unwrap();
    for path in ["/s/list/0", "/s/list/-", "/s/list/0/x"] {
        let refused = replica.write(&[(DeltaKind::Add, path, Bytes::from_static(b"1"))], WALL).unwrap_err();
        assert!(matches!(refused, AxcpError::BadDelta(_)), "{path}");
    }
}

#[test]
fn xc_10_every_change_is_a_version_with_time_and_author() {
    let mut replica = applied(&[op(DeltaKind::Add, "/a", "1", 5, "x"), op(DeltaKind::Add, "/a", "0", 4, "y")]);
    assert_eq!(replica.version(), 1, "an older write changes nothing");
    let written = replica.write(&[(DeltaKind::Add, "/b", Bytes::from_static(b"2")), (DeltaKind::Remove, "/a", Bytes::new())], 7).unwrap();
    assert_eq!((written.base_version, written.ops.len(), replica.version()), (1, 2, 3));
    let history: Vec<_> = replica.history().map(|entry| (entry.version, entry.stamp.ts, entry.stamp.node.as_ref().to_owned())).collect();
    assert_eq!(history, [(1, 5, "x".into()), (2, 7, "me".into()), (3, 8, "me".into())]);
    let late = ContextPatch { base_version: 1, ..patch(vec![op(DeltaKind::Add, "/c", "3", 9, "z")]) };
    replica.apply(&late, "z", WALL).unwrap();
    assert_eq!(replica.history().map(|entry| entry.merged).collect::<Vec<_>>(), [None, None, None, Some(1)]);
}

#[test]
fn xc_12_a_gap_is_filled_or_refused() {
    let mut replica = applied(&(1..=5).map(|ts| op(DeltaKind::Add, &format!("/a/{ts}"), "1", ts, "x")).collect::<Vec<_>>());
    let gap = replica.range(2, 4).unwrap();
    assert_eq!((gap.base_version, gap.ops.iter().map(|op| op.ts).collect::<Vec<_>>()), (2, vec![3, 4]));
    assert!(replica.range(5, 5).unwrap().ops.is_empty());
    for (from, to) in [(4, 6), (3, 2), (6, 6)] {
        assert_eq!(replica.range(from, to).unwrap_err().code().number(), 15);
    }
    let large: String = "xyzabc".repeat(1000);
    for ts in 6..2000 {
        // Each text is another, and no packing helps against the count.
        let data = format!("\"{ts}{}\"", &large[..3000 + usize::try_from(ts).unwrap() % 7]);
        replica.apply(&patch(vec![DeltaOp { data: data.into(), ..op(DeltaKind::Add, "/a/x", "", ts, "x") }]), "x", WALL).unwrap();
    }
    assert!(replica.journal_bytes <= MOST_JOURNAL);
    assert!(matches!(replica.range(0, 4), Err(AxcpError::MissingRange { oldest, newest: 1999 }) if oldest > 4));
}

#[test]
fn xc_14_every_member_has_a_path_for_the_snapshot() {
    let long = |length: usize| patch(vec![op(DeltaKind::Add, "/a", &format!(r#"{{"~":{{"{}":1}}}}"#, "/".repeat(length)), 5, "x")]);
    // The pointer `/a/~0/`, and two bytes for each `/` of the key.
    let fits = (MOST_POINTER - 6) / 2;
    let mut kept = replica();
    kept.apply(&long(fits), "x", WALL).unwrap();
    assert_eq!(Replica::restore(&kept.snapshot(), "me", 1).unwrap().snapshot(), kept.snapshot());
    assert_eq!(replica().apply(&long(fits + 1), "x", WALL), Err(TOO_LONG));
}

/// Path, stamp, content, and if the write covers.
type FlatWrite = (Vec<String>, (u64, String), RegisterValue, bool);

/// All writes ever, and the rules of the tree read off them one by one.
#[derive(Default)]
struct FlatReference(Vec<FlatWrite>);

impl FlatReference {
    fn add(&mut self, op: &DeltaOp) {
        let path: Vec<String> = op.path.split('/').skip(1).map(str::to_owned).collect();
        let stamp = (op.ts, op.node_id.clone());
        let kind = DeltaKind::try_from(op.op).unwrap();
        let data = serde_json::from_slice(&op.data).unwrap_or(Value::Null);
        if kind != DeltaKind::Remove {
            for end in 1..path.len() {
                self.0.push((path[..end].to_vec(), stamp.clone(), RegisterValue::Object, false));
            }
        }
        match kind {
            DeltaKind::Remove => self.0.push((path, stamp, RegisterValue::Removed, true)),
            DeltaKind::Merge => self.value(path, &stamp, &data, data.is_object()),
            DeltaKind::Add | DeltaKind::Replace => self.value(path, &stamp, &data, false),
        }
    }

    fn value(&mut self, path: Vec<String>, stamp: &(u64, String), data: &Value, merges: bool) {
        let Some(members) = data.as_object() else {
            return self.0.push((path, stamp.clone(), RegisterValue::Plain(data.to_string().into_bytes().into()), true));
        };
        self.0.push((path.clone(), stamp.clone(), RegisterValue::Object, !merges));
        for (name, member) in members {
            let path = [path.clone(), vec![name.clone()]].concat();
            if merges && member.is_null() {
                self.0.push((path, stamp.clone(), RegisterValue::Removed, true));
            } else {
                self.value(path, stamp, member, merges && member.is_object());
            }
        }
    }

    fn at(&self, path: &[String]) -> Option<Value> {
        let floor =
            self.0.iter().filter(|(at, .., covers)| *covers && at.len() < path.len() && path.starts_with(at)).map(|(_, s, ..)| s).max();
        let living = self.0.iter().filter(|(at, stamp, ..)| at == path && floor.is_none_or(|floor| stamp >= floor));
        match living.map(|(_, stamp, value, _)| (stamp, value)).max()?.1 {
            RegisterValue::Removed => None,
            RegisterValue::Plain(text) => Some(serde_json::from_slice(text).unwrap()),
            RegisterValue::Object => Some(self.members(path)),
        }
    }

    fn members(&self, path: &[String]) -> Value {
        let names = self.0.iter().filter(|(at, ..)| at.len() == path.len() + 1 && at.starts_with(path)).map(|(at, ..)| at.last().unwrap());
        let found = names.filter_map(|name| Some((name.clone(), self.at(&[path, std::slice::from_ref(name)].concat())?)));
        Value::Object(found.collect::<Map<_, _>>())
    }
}

fn operations() -> impl Strategy<Value = Vec<DeltaOp>> {
    let kinds = prop::sample::select(vec![DeltaKind::Add, DeltaKind::Replace, DeltaKind::Remove, DeltaKind::Merge]);
    let wide = (0..12).map(|name| format!("/a/w{name}"));
    let paths: Vec<String> =
        ["/a", "/a/b", "/a/b/c", "/a/b/c/d", "/a/e", "/f", "/f/b"].map(str::to_owned).into_iter().chain(wide).collect();
    let paths = prop::sample::select(paths);
    let texts =
        prop::sample::select(vec!["1", "[2]", "null", "{}", r#"{"b":3}"#, r#"{"b":{"c":4},"e":5}"#, r#"{"b":null}"#, r#"{"c":{"d":[6]}}"#]);
    let one = (kinds, paths, texts, 1_u64..30, prop::sample::select(vec!["x", "y", "z"]));
    prop::collection::vec(one.prop_map(|(kind, path, text, ts, node)| op(kind, &path, text, ts, node)), 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn xc_11_replicas_are_equal_in_any_order(
        (ops, shuffled) in operations().prop_flat_map(|ops| (Just(ops.clone()), Just(ops).prop_shuffle())),
        repeated in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
        sizes in prop::collection::vec(1_usize..6, 1..30),
    ) {
        let one = applied(&ops);
        let mut other = replica();
        let mut left = shuffled.clone();
        left.extend(repeated.iter().filter(|_| !shuffled.is_empty()).map(|at| at.get(&shuffled).clone()));
        for size in sizes.iter().cycle() {
            if left.is_empty() {
                break;
            }
            let some = left.drain(..left.len().min(*size)).collect();
            other.apply(&patch(some), "peer", WALL).unwrap();
        }
        prop_assert_eq!(one.snapshot().encode_to_vec(), other.snapshot().encode_to_vec());
        prop_assert_eq!(one.json(), other.json());
    }

    #[test]
    fn xc_11_the_tree_is_what_all_writes_say(ops in operations()) {
        let mut reference = FlatReference::default();
        ops.iter().for_each(|op| reference.add(op));
        prop_assert_eq!(value(&applied(&ops)), reference.members(&[]));
    }

    #[test]
    fn xc_14_a_snapshot_makes_the_replica_again(before in operations(), after in operations()) {
        let mut whole = applied(&before);
        let mut restored = Replica::restore(&whole.snapshot(), "me", whole.version()).unwrap();
        prop_assert_eq!(restored.snapshot(), whole.snapshot());
        let (one, other) = (whole.apply(&patch(after.clone()), "peer", WALL), restored.apply(&patch(after), "peer", WALL));
        prop_assert_eq!(one, other);
        prop_assert_eq!(restored.snapshot().encode_to_vec(), whole.snapshot().encode_to_vec());
        prop_assert_eq!(restored.version(), whole.version());
    }

    /// A receiver of the sender's own changes alone, lost and repeated in any way, equals the sender once all gaps are filled.
    #[test]
    fn xc_12_filled_gaps_make_replicas_equal(ops in operations(), lost in prop::collection::vec(any::<bool>(), 40), back in 0_u64..5) {
        let (mut sender, mut receiver, mut known) = (replica(), replica(), 0);
        for (op, lost) in ops.iter().zip(lost) {
            sender.apply(&patch(vec![op.clone()]), "peer", WALL).unwrap();
            if !lost {
                let gap = sender.range(known.max(back) - back, sender.version()).or_else(|_| sender.range(known, sender.version())).unwrap();
                receiver.apply(&gap, "sender", WALL).unwrap();
                known = sender.version();
            }
        }
        receiver.apply(&sender.range(known, sender.version()).unwrap(), "sender", WALL).unwrap();
        prop_assert_eq!(receiver.snapshot().encode_to_vec(), sender.snapshot().encode_to_vec());
    }
}

#[test]
fn xc_11_what_is_kept_holds_no_frame() {
    let frame = Bytes::from(format!("\"text\"{}", " ".repeat(1 << 20)).into_bytes());
    let mut replica = replica();
    let sent = patch(vec![DeltaOp { data: frame.slice(..6), ..op(DeltaKind::Add, "/a", "", 5, "x") }]);
    replica.apply(&sent, "peer", WALL).unwrap();
    drop(sent);
    assert!(frame.is_unique(), "a register or a version holds the whole frame");
}

#[test]
fn xc_11_the_unpacked_bytes_of_a_patch_are_bounded() {
    let packed = pack(format!("\"{}\"", "x".repeat(MOST_DATA - 2)).into());
    let many = |count: usize| {
        let op = |at| DeltaOp { data: packed.clone(), ..op(DeltaKind::Add, &format!("/s{at}"), "", 5, "x") };
        patch((0..count).map(op).collect())
    };
    let fits = MOST_UNPACKED / MOST_DATA;
    assert!(many(fits + 1).encoded_len() < 10_000);
    assert_eq!(replica().apply(&many(fits), "peer", WALL), Ok(u64::try_from(fits).unwrap()));
    let refused = AxcpError::TooLarge { what: "the unpacked bytes of a patch", most: MOST_UNPACKED };
    assert_eq!(replica().apply(&many(fits + 1), "peer", WALL), Err(refused));
}

#[test]
fn xc_12_a_refused_patch_is_due_once_there_is_room() {
    let mut replica = replica();
    let large = format!("\"{}\"", "x".repeat(MOST_DATA - 10));
    let mut ts = 1;
    while replica.apply(&patch(vec![op(DeltaKind::Add, &format!("/s/{ts}"), &large, ts, "x")]), "peer", WALL).is_ok() {
        ts += 1;
    }
    assert!(!replica.has_room_again());
    replica.apply(&patch(vec![op(DeltaKind::Replace, "/s", "{}", ts, "x")]), "peer", WALL).unwrap();
    assert!(replica.has_room_again() && !replica.has_room_again());
}

#[test]
fn xc_14_kept_versions_are_made_again() {
    let mut whole = applied(&[op(DeltaKind::Add, "/a", "1", 5, "x"), op(DeltaKind::Add, "/b", "2", 6, "y")]);
    let mut again = Replica::restore(&replica().snapshot(), "me", 0).unwrap();
    whole.history().cloned().collect::<Vec<_>>().iter().for_each(|entry| again.replay(entry).unwrap());
    assert_eq!((again.snapshot(), again.version(), again.range(0, 2)), (whole.snapshot(), 2, whole.range(0, 2)));
    let last = whole.history().last().unwrap().clone();
    assert!(again.replay(&last).is_err(), "a version is made once");
    let next = |replica: &mut Replica| replica.write(&[(DeltaKind::Remove, "/a", Bytes::new())], 0).unwrap().ops[0].ts;
    assert_eq!((next(&mut again), next(&mut whole)), (7, 7));
}

#[test]
fn xc_14_versions_not_on_the_disk_are_never_forgotten() {
    let mut replica = replica();
    replica.note_kept(0);
    let noise: String = (0..40_000_u32).map(|at| char::from(b'!' + u8::try_from(at.wrapping_mul(2_654_435_761) >> 26).unwrap())).collect();
    let noise = noise.replace(['"', '\\'], "x");
    for ts in 1..200 {
        replica.apply(&patch(vec![op(DeltaKind::Add, "/a", &format!("\"{ts}{noise}\""), ts, "x")]), "peer", WALL).unwrap();
    }
    assert_eq!(replica.between(0, 199).count(), 199);
    replica.note_kept(199);
    assert!(replica.range(0, 1).is_err() && replica.journal_bytes <= MOST_JOURNAL);
}

/// Gives the resident memory of the process, in bytes.
#[cfg(target_os = "linux")]
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// Chains of nodes with a single child each are what a map holds worst.
#[cfg(target_os = "linux")]
#[test]
fn xc_10_the_memory_of_single_children_is_counted() {
    let before = resident();
    let mut replicas = Vec::new();
    while resident() < before + (48 << 20) && replicas.len() < 1000 {
        let mut replica = replica();
        for at in 0..100 {
            let chain = format!("/s{at}{}", "/a".repeat(60));
            replica.apply(&patch(vec![op(DeltaKind::Add, &chain, "1", 5, "x")]), "peer", WALL).unwrap();
        }
        replicas.push(replica);
    }
    let (real, counted) = (resident() - before, replicas.iter().map(Replica::held).sum::<usize>());
    assert!(counted >= real / 10 * 9 && counted < 2 * real, "{real} bytes are counted as {counted}");
}

proptest! {
    #[test]
    fn xc_10_the_bytes_held_are_counted_right(ops in operations()) {
        let made = applied(&ops);
        prop_assert_eq!(made.tree.held(), made.tree.counted());
        let restored = Replica::restore(&made.snapshot(), "me", 1).unwrap();
        prop_assert_eq!(restored.tree.held(), made.tree.held());
    }

    #[test]
    fn xc_11_the_oldest_write_below_is_known(ops in operations()) {
        prop_assert!(applied(&ops).tree.ages_are_right());
    }

    #[test]
    fn xc_10_a_refused_write_leaves_no_trace(before in operations(), path in "/[a-f](/[a-e]){0,2}") {
        let mut replica = applied(&before);
        let (snapshot, held, version) = (replica.snapshot(), replica.tree.held(), replica.version());
        let changes = [(DeltaKind::Add, path.as_str(), Bytes::from_static(b"1")), (DeltaKind::Add, "/g", Bytes::from_static(b"{"))];
        prop_assert!(replica.write(&changes, WALL).is_err());
        prop_assert_eq!((replica.snapshot(), replica.tree.held(), replica.version()), (snapshot, held, version));
    }
}
