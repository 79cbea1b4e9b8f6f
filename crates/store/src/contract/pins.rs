//! Promises of [`crate::Pins`]. Standing of definitions is not tried here.

use policy::pin::{Definition, Kind, Standing, Why};

use super::stores::StorePlace;
use crate::StoreError;
use crate::pins::{MOST_HELD, MOST_PASSING_HELD, Pin, Source};

fn source() -> Source {
    Source { mount: "m".into(), server: "s".into() }
}

fn pin(kind: Kind, name: &str, since: u64, standing: Standing) -> Pin {
    let definition = Definition::of_text(format!("{name} {since}"));
    Pin { source: source(), kind, name: name.to_owned(), standing, why: Why::Changed, since, definition }
}

pub(super) fn are_known_after_a_restart_and_one_tool_does_not_fill_the_store(place: &StorePlace) {
    let mut pins = place().pins().unwrap();
    let tool = |since, standing| pin(Kind::Tool, "t", since, standing);
    pins.add(&source(), Kind::Tool, &[tool(0, Standing::Accepted)]).unwrap();
    (1..20).for_each(|since| pins.add(&source(), Kind::Tool, &[tool(since, Standing::Held)]).unwrap());
    drop(pins);
    let mut pins = place().pins().unwrap();
    assert_eq!(pins.known(&source(), Kind::Tool).unwrap()["t"].len(), 1 + MOST_HELD);
    let all = pins.all(Some("m")).unwrap();
    assert_eq!(all.iter().map(|pin| pin.since).collect::<Vec<_>>(), [0, 12, 13, 14, 15, 16, 17, 18, 19]);
    pins.set(&all[8], Standing::Refused, 20).unwrap();
    let refused = pins.known(&source(), Kind::Tool).unwrap()["t"].iter().filter(|one| one.standing == Standing::Refused).count();
    assert_eq!((refused, pins.all(None).unwrap().len(), pins.all(Some("other")).unwrap().len()), (1, 9, 0));
    assert_eq!(pins.last_good(&source(), Kind::Tool, "t").unwrap(), Some(tool(0, Standing::Accepted).definition));
    let elsewhere = Source { server: "other".into(), ..source() };
    assert!(pins.known(&elsewhere, Kind::Tool).unwrap().is_empty(), "another server under that name is another one");
}

pub(super) fn what_comes_and_goes_does_not_flood_whoever_looks(place: &StorePlace) {
    let mut pins = place().pins().unwrap();
    let held: Vec<Pin> = (0..200).map(|n| pin(Kind::Resource, &n.to_string(), 0, Standing::Held)).collect();
    pins.add(&source(), Kind::Resource, &held).unwrap();
    let waiting = |pins: &dyn crate::Pins| pins.all(None).unwrap().into_iter().filter(|one| one.standing == Standing::Held).count();
    assert_eq!(waiting(&*pins), MOST_PASSING_HELD);
    pins.set(&held[0], Standing::Accepted, 1).unwrap();
    pins.add(&source(), Kind::Resource, &held[MOST_PASSING_HELD..]).unwrap();
    assert_eq!(waiting(&*pins), MOST_PASSING_HELD, "the next one has its turn");
}

pub(super) fn what_fails_leaves_nothing_behind(place: &StorePlace) {
    let mut pins = place().pins().unwrap();
    let mut given = Vec::new();
    pins.together(&mut |pins| {
        for n in 0..10_u64 {
            given.push(pins.apart_with(|pins| {
                pins.add(&source(), Kind::Tool, &[pin(Kind::Tool, &n.to_string(), 0, Standing::Accepted)])?;
                if n == 7 { Err(StoreError::Failed("its own fault".to_owned())) } else { Ok(n) }
            }));
        }
    })
    .unwrap();
    assert_eq!(given.iter().flatten().copied().collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6, 8, 9]);
    assert_eq!(given[7], Err(StoreError::Failed("its own fault".to_owned())));
    assert_eq!(place().pins().unwrap().all(None).unwrap().len(), 9);
}

pub(super) fn looks_are_heard_by_whoever_asks_from_where_he_was(place: &StorePlace) {
    let (mut pins, other) = (place().pins().unwrap(), place().pins().unwrap());
    let tool = pin(Kind::Tool, "t", 0, Standing::Held);
    pins.add(&source(), Kind::Tool, std::slice::from_ref(&tool)).unwrap();
    assert_eq!(other.looked(100).unwrap(), 0);
    pins.set(&tool, Standing::Accepted, 10).unwrap();
    let from = other.looked(20).unwrap();
    assert_eq!(other.looks_after(from).unwrap(), (from, Vec::new()));
    pins.set(&tool, Standing::Refused, 30).unwrap();
    let (last, looks) = other.looks_after(from).unwrap();
    assert!(last > from);
    assert_eq!(looks, [("m".to_owned(), Kind::Tool)]);
    assert_eq!(other.looks_after(last).unwrap(), (last, Vec::new()));
}

pub(super) fn gates_are_those_that_said_so_when_they_were_first_seen(place: &StorePlace) {
    let mut pins = place().pins().unwrap();
    let [gate, server, pinned] = ["gate", "server", "pinned"].map(|server| Source { server: server.into(), ..source() });
    assert!(pins.was_gate(&gate, false, 1).unwrap());
    for own in [&server, &pinned] {
        let tool = Pin { source: own.clone(), ..pin(Kind::Tool, "t", 0, Standing::Accepted) };
        pins.add(own, Kind::Tool, &[tool]).unwrap();
    }
    assert!(!pins.was_gate(&server, false, 2).unwrap() && pins.was_gate(&pinned, true, 2).unwrap());
    let mut again = place().pins().unwrap();
    assert!(again.was_gate(&gate, false, 3).unwrap() && !again.was_gate(&server, false, 3).unwrap());
}
