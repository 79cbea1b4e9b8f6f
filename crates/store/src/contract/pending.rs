//! Promises of [`crate::Pending`]. Content of rows is not tried here.

use super::stores::StorePlace;
use crate::pending::KEPT;
use crate::{Row, RowKind, StoreError};

fn row(kind: RowKind, id: &str, over: Option<u64>, body: Option<&str>) -> Row {
    Row { kind, id: id.to_owned(), over, body: body.map(str::to_owned) }
}

fn all(place: &StorePlace, gate: &str, kind: RowKind, now: u64) -> Vec<String> {
    let mut rows = place().pending(gate, now).unwrap();
    let turn = rows.begin().unwrap();
    turn.all(kind).unwrap()
}

pub(super) fn rows_are_there_after_a_restart_and_operators_are_every_gates(place: &StorePlace) {
    let mut rows = place().pending("a", 100).unwrap();
    let first = [
        row(RowKind::Approval, "1", None, Some("one")),
        row(RowKind::Approval, "2", Some(100), Some("two")),
        row(RowKind::Operator, "k", None, Some("anna")),
        row(RowKind::Grant, "g", None, Some("grant")),
    ];
    rows.begin().unwrap().write(&first).unwrap();
    let changed = [row(RowKind::Grant, "g", None, None), row(RowKind::Approval, "1", None, Some("changed"))];
    rows.begin().unwrap().write(&changed).unwrap();
    let turn = rows.begin().unwrap();
    assert_eq!(turn.one(RowKind::Approval, "1").unwrap().as_deref(), Some("changed"));
    assert_eq!(turn.one(RowKind::Grant, "g").unwrap(), None);
    drop(turn);
    drop(rows);
    assert_eq!(all(place, "a", RowKind::Approval, 200), ["changed", "two"]);
    assert_eq!((all(place, "b", RowKind::Approval, 200).len(), all(place, "a", RowKind::Grant, 200).len()), (0, 0));
    assert_eq!(all(place, "b", RowKind::Operator, 200), ["anna"]);
}

pub(super) fn what_is_over_for_long_is_forgotten(place: &StorePlace) {
    let mut rows = place().pending("a", 100).unwrap();
    let both = [row(RowKind::Approval, "1", None, Some("one")), row(RowKind::Approval, "2", Some(100), Some("two"))];
    rows.begin().unwrap().write(&both).unwrap();
    drop(rows);
    assert_eq!(all(place, "a", RowKind::Approval, KEPT + 100), ["one", "two"]);
    assert_eq!(all(place, "a", RowKind::Approval, KEPT + 101), ["one"]);
}

/// Lets several gates count up one row, with a retry after each conflict: no increment is lost.
pub(super) fn no_turn_writes_over_what_another_wrote_meanwhile(place: &StorePlace) {
    const TIMES: u32 = 50;
    std::thread::scope(|scope| {
        for gate in ["a", "b", "c"] {
            let stores = place();
            scope.spawn(move || {
                let mut rows = stores.pending(gate, 0).unwrap();
                for _ in 0..TIMES {
                    loop {
                        let turn = rows.begin().unwrap();
                        let before = turn.one(RowKind::Operator, "n").unwrap().map_or(0, |body| body.parse::<u32>().unwrap());
                        let more = (before + 1).to_string();
                        match turn.write(&[row(RowKind::Operator, "n", None, Some(&more))]) {
                            Ok(()) => break,
                            Err(StoreError::Changed) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
            });
        }
    });
    assert_eq!(all(place, "a", RowKind::Operator, 0), [(3 * TIMES).to_string()]);
}
