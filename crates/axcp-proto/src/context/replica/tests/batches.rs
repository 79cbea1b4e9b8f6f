//! Bytes of what a peer has unpacked or packed at one time.

use super::*;

/// Registers of one segment, each under a long pointer, are more bytes as operations than in memory.
#[test]
fn xc_12_no_batch_of_a_snapshot_is_long() {
    let mut replica = replica();
    let above = format!("/s/{}", "x".repeat(900));
    for at in 0..20 {
        let members: Vec<String> = (0..400).map(|member| format!("\"{member}\":1")).collect();
        let whole = format!("{{{}}}", members.join(","));
        replica.apply(&patch(vec![op(DeltaKind::Add, &format!("{above}/{at}"), &whole, at + 1, "x")]), "peer", WALL).unwrap();
    }
    let (mut after, mut other, mut batches) = (None, Replica::new("c", "other").unwrap(), 0);
    while let Some((last, parts)) = replica.snapshot_after(after.as_deref()) {
        let bytes: usize = parts.iter().flat_map(|part| &part.ops).map(|op| op.path.len() + op.data.len()).sum();
        assert!(bytes < 1_200_000, "{bytes}");
        for part in parts {
            other.apply(&part, "peer", WALL).unwrap();
        }
        (after, batches) = (Some(last), batches + 1);
    }
    assert!(batches > 3, "{batches}");
    assert_eq!(other.snapshot(), replica.snapshot());
}

#[test]
fn xc_11_space_around_data_counts_and_is_not_recorded() {
    let mut replica = replica();
    let spaced = pack(Bytes::from(format!("{}1", " ".repeat(60_000))));
    let ops = |count: u64| (0..count).map(|at| DeltaOp { data: spaced.clone(), ..op(DeltaKind::Add, "/a", "1", at + 1, "x") }).collect();
    let refused = replica.apply(&patch(ops(40)), "peer", WALL).unwrap_err();
    assert_eq!(refused.code().number(), 7);
    replica.apply(&patch(ops(1)), "peer", WALL).unwrap();
    assert_eq!(replica.history().last().unwrap().op.data, "1");
}

#[test]
fn xc_12_a_snapshot_comes_in_parts_that_fit() {
    let mut replica = replica();
    for at in 0..12_u64 {
        let members: Vec<String> = (0..400).map(|name| format!("\"m{name}\":{name}")).collect();
        let whole = format!("{{{}}}", members.join(","));
        replica.apply(&patch(vec![op(DeltaKind::Add, &format!("/s{}/p{at}", at % 2), &whole, at + 1, "x")]), "peer", WALL).unwrap();
    }
    let (mut after, mut other) = (None, Replica::new("c", "other").unwrap());
    while let Some((last, parts)) = replica.snapshot_after(after.as_deref()) {
        for part in parts {
            assert!(part.ops.len() <= MOST_OPS && part.is_part);
            other.apply(&part, "peer", WALL).unwrap();
        }
        after = Some(last);
    }
    assert_eq!(other.snapshot(), replica.snapshot());
}

/// A call of many operations at the bound of a segment, the last of which breaks the bound.
#[test]
fn xc_10_a_call_at_the_bound_leaves_no_trace() {
    let mut replica = replica();
    let long = Bytes::from(format!("\"{}\"", "x".repeat(60 << 10)));
    let part = |n: u64| patch(vec![DeltaOp { data: long.clone(), ..op(DeltaKind::Add, &format!("/s/k{n}"), "", n, "y") }]);
    assert!((1..100).any(|n| replica.apply(&part(n), "y", WALL).is_err()), "the segment is full");
    let before = (replica.snapshot(), replica.tree.held(), replica.version());
    let one = Bytes::from_static(b"1");
    let changes = [
        (DeltaKind::Replace, "/s/k1", one.clone()),
        (DeltaKind::Add, "/t", one),
        (DeltaKind::Add, "/s/more", long.clone()),
        (DeltaKind::Add, "/s/most", long.clone()),
    ];
    let refused = replica.write(&changes, WALL).unwrap_err();
    assert_eq!(refused, AxcpError::TooLarge { what: "the bytes held for a segment", most: MOST_SEGMENT });
    assert_eq!((replica.snapshot(), replica.tree.held(), replica.version()), before);
}

proptest! {
    #[test]
    fn xc_12_batches_of_any_length_make_the_whole(ops in operations(), most in 0_usize..2000) {
        let made = applied(&ops);
        let mut joined = made.registers(None, most);
        while let Some(last) = joined.last().map(|last| last.path.clone()) {
            let more = made.registers(Some(&last), most);
            if more.is_empty() {
                break;
            }
            joined.extend(more);
        }
        prop_assert_eq!(joined, made.snapshot().ops);
    }
}
