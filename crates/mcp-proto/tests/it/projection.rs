//! Properties of the shown names of any set of tools.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use banyan_model::{Route, Segment};
use mcp_proto::projection::{Entry, Projection, Style, local_names, local_routes};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// Names that are likely to collide, and names of all kinds.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[aAbB_.-]{0,4}",
        1 => "[a-zA-Z_.]{50,140}",
        1 => any::<String>(),
        1 => select(vec!["getUser", "get_user", "GetUser", "get.user", "a__b", "b"]).prop_map(str::to_owned),
    ]
}

fn style() -> impl Strategy<Value = Style> {
    select(vec![Style::Dotted, Style::Qualified, Style::Safe])
}

fn entries(most: usize) -> impl Strategy<Value = Vec<Entry>> {
    let mount = option::weighted(0.9, select(vec!["a", "a_", "a__b", "b", "b-c"]));
    let name = prop_oneof![name(), path()];
    vec((mount, name, option::weighted(0.1, self::name())), 0..most).prop_map(|list| list.into_iter().map(entry).collect())
}

/// Names as another gate has them: short ones that are likely to become each other, and long ones.
fn path() -> impl Strategy<Value = String> {
    prop_oneof![4 => vec("[ab_]{1,2}", 1..4), 1 => vec("[a-z]{5,20}", 4..9)].prop_map(|segments| segments.join("."))
}

/// Makes an entry. A mount is a gate for all of its names, or for none.
fn entry((mount, original, rename): (Option<&str>, String, Option<String>)) -> Entry {
    let is_gate = mount.is_some_and(|mount| mount.starts_with("a_"));
    let local = if is_gate { local_routes(&[&original]).remove(0) } else { Route(local_names(&[&original])) };
    Entry { mount: mount.map(Segment::nearest), original: original.into(), local: local.into(), rename: rename.map(Arc::from) }
}

/// The shown name of each different entry.
fn shown(style: Style, entries: &[Entry]) -> BTreeMap<String, String> {
    let table = Projection::build(style, entries);
    let name = |index: usize| table.shown(index).map(|name| name.to_string()).unwrap_or_default();
    entries.iter().enumerate().map(|(index, entry)| (format!("{entry:?}"), name(index))).collect()
}

fn legal(style: Style, name: &str) -> bool {
    let (limit, dot) = match style {
        Style::Dotted => (128, true),
        Style::Qualified => (255, true),
        Style::Safe => (64, false),
    };
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-' || (dot && b == b'.');
    (1..=limit).contains(&name.len()) && name.bytes().all(allowed)
}

proptest! {
    #[test]
    fn ax_15_local_names_are_legal_distinct_and_stable(names in vec(name(), 0..40), seed in any::<prop::sample::Index>()) {
        let locals = local_names(&names);
        prop_assert_eq!(locals.len(), names.len());
        let by_name: BTreeMap<&String, &Segment> = names.iter().zip(&locals).collect();
        let distinct: BTreeSet<_> = by_name.values().collect();
        prop_assert_eq!(distinct.len(), by_name.len());
        for (name, local) in &by_name {
            prop_assert!(Segment::new(local.as_str()).is_ok());
            prop_assert!(Segment::new(name).is_err() || *name == local.as_str());
        }
        let mut turned = names.clone();
        turned.rotate_left(if names.is_empty() { 0 } else { seed.index(names.len()) });
        turned.reverse();
        for (name, local) in turned.iter().zip(local_names(&turned)) {
            prop_assert_eq!(by_name.get(name), Some(&&local));
        }
    }

    #[test]
    fn ax_02_the_paths_of_a_gate_are_legal_and_distinct(names in vec(prop_oneof![path(), name()], 0..40)) {
        let routes = local_routes(&names);
        let by_name: BTreeMap<&String, &Route> = names.iter().zip(&routes).collect();
        let distinct: BTreeSet<String> = by_name.values().map(|route| route.to_string()).collect();
        prop_assert_eq!((routes.len(), distinct.len()), (names.len(), by_name.len()));
        for (name, route) in by_name {
            let legal = name.split('.').all(|segment| Segment::new(segment).is_ok());
            prop_assert!(!route.0.is_empty() && (!legal || route.to_string() == *name), "{name}: {route}");
        }
    }

    #[test]
    fn ax_15_every_original_is_found_again_by_its_shown_name(entries in entries(40), style in style()) {
        let table = Projection::build(style, entries.clone());
        for (index, entry) in entries.iter().enumerate() {
            let shown = table.shown(index).cloned().unwrap_or_default();
            prop_assert!(legal(style, &shown), "{shown}");
            prop_assert_eq!(table.entry(&shown), Some(entry));
        }
        let different: BTreeSet<String> = entries.iter().map(|entry| format!("{entry:?}")).collect();
        let rows: BTreeSet<_> = table.rows().map(|row| row.shown.to_owned()).collect();
        prop_assert_eq!((rows.len(), table.rows().count()), (different.len(), different.len()));
    }

    #[test]
    fn shown_names_do_not_depend_on_the_order(entries in entries(40).prop_flat_map(|list| (Just(list.clone()), Just(list).prop_shuffle())), style in style()) {
        prop_assert_eq!(shown(style, &entries.0), shown(style, &entries.1));
    }

    #[test]
    fn another_tool_changes_no_name_but_the_one_it_wants_itself(entries in entries(20), new in entries(2), style in style()) {
        let before = shown(style, &entries);
        let wanted: BTreeSet<String> = shown(style, &new).into_values().collect();
        let after = shown(style, &[entries, new].concat());
        for (entry, name) in &before {
            prop_assert!(after.get(entry) == Some(name) || wanted.contains(name), "{entry} was {name}, is {:?}", after.get(entry));
        }
    }
}
