//! Properties of any set of subservers and lists.

#![expect(clippy::unwrap_used, reason = "a test whose ground is missing fails loudly")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use banyan_model::Segment;
use bytes::Bytes;
use mesh_proto::annotation::{Annotation, AuthScope, Transport};
use mesh_proto::namespace::{Limits, Namespace, Offer, Part, WithholdReason};
use mesh_proto::refusal::Refusal;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;

const OPEN: Limits = Limits { dotted: true, before: 0, unproven: false, scope: AuthScope::Admin };

fn offer(name: &str) -> Offer {
    let definition = Bytes::from(format!("{{\"name\":\"{name}\",\"annotations\":{{\"readOnlyHint\":{}}}}}", !name.ends_with('w')));
    let annotation = Annotation::of_tool(&definition, &Transport::default());
    Offer { name: name.to_owned(), definition, annotation }
}

fn part(segment: &str, names: &[String]) -> Arc<Part> {
    Arc::new(Part::new(Segment::new(segment).unwrap(), names.iter().map(|n| offer(n)).collect(), &OPEN).unwrap())
}

/// Similar names, with and without dots, some illegal.
fn names() -> impl Strategy<Value = Vec<String>> {
    vec(prop_oneof![6 => "[ab_-]{1,2}(\\.[ab-]{1,2}){0,3}", 1 => "[a-bA.]{0,4}"], 0..12)
}

fn segment() -> impl Strategy<Value = &'static str> {
    select(vec!["a", "a-", "a-b", "a_", "b", "b0"])
}

/// Lists by segment.
fn world() -> impl Strategy<Value = BTreeMap<&'static str, Vec<String>>> {
    btree_map(segment(), names(), 0..6)
}

fn table(world: &BTreeMap<&'static str, Vec<String>>) -> Namespace {
    world.iter().fold(Namespace::default(), |table, (segment, names)| table.with(part(segment, names)))
}

fn listed(table: &Namespace) -> Vec<String> {
    table.listed().map(|handle| table.name(handle).unwrap().to_string()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn ax_30_every_listed_name_leads_to_tool_and_route(world in world()) {
        let table = table(&world);
        for name in listed(&table) {
            let handle = table.resolve(&name).unwrap();
            let (part, tool) = table.tool(handle).unwrap();
            let route = table.route(handle).unwrap();
            prop_assert_eq!(route.0.iter().map(Segment::as_str).collect::<Vec<_>>().join("."), name.clone());
            prop_assert_eq!((route.0.first(), route.0.last()), (Some(part.segment()), Some(tool.local())));
        }
        for name in ["", ".", "a", "a.", "a..a", "zz.a", "a.A"] {
            prop_assert!(table.resolve(name).is_none() || listed(&table).contains(&name.to_owned()));
        }
    }

    #[test]
    fn ax_10_only_legal_names_are_listed_and_each_once(names in names()) {
        let part = part("a", &names);
        let legal = |name: &&String| name.split('.').all(|segment| Segment::new(segment).is_ok());
        let expected: BTreeSet<&String> = names.iter().filter(legal).collect();
        prop_assert_eq!(part.tools().len(), expected.len());
        prop_assert_eq!(part.tools().len() + part.refused().len(), names.len());
    }
}

#[test]
fn ax_14_only_aggregators_list_dotted_names() {
    let build = |dotted| Part::new(Segment::nearest("x"), vec![offer("ok"), offer("a.b")], &Limits { dotted, ..OPEN });
    assert_eq!(build(false), Err(Refusal::DottedName { name: "a.b".into() }));
    assert_eq!(build(true).unwrap().listed(), 2);
}

#[test]
fn ax_13_changing_tools_are_withheld_until_proof() {
    let unproven = Limits { unproven: true, ..OPEN };
    let part = Part::new(Segment::nearest("x"), vec![offer("read"), offer("draw")], &unproven).unwrap();
    assert_eq!(part.tools().iter().map(|t| t.withheld()).collect::<Vec<_>>(), [Some(WithholdReason::AuthorityRequired), None]);
    let table = Namespace::default().with(Arc::new(part.clone()));
    assert!(table.resolve("x.draw").is_none() && table.resolve("x.read").is_some());
    assert_eq!(part.limited(&OPEN).unwrap().listed(), 2);
    assert!(part.limited(&unproven).is_none());
}

#[test]
fn ax_41_a_subserver_registered_for_reading_lists_nothing_that_writes() {
    let limits = Limits { scope: AuthScope::Read, ..OPEN };
    let part = Part::new(Segment::nearest("x"), vec![offer("read"), offer("draw")], &limits).unwrap();
    assert_eq!(part.tools()[0].withheld(), Some(WithholdReason::ScopeExceeded));
    assert_eq!(part.listed(), 1);
    // Whatever it says that it needs.
    let mut draw = offer("draw");
    draw.annotation.auth_scope = AuthScope::Read;
    let part = Part::new(Segment::nearest("x"), vec![draw], &limits).unwrap();
    assert_eq!((part.listed(), part.tools()[0].withheld()), (0, Some(WithholdReason::ScopeExceeded)));
}

#[test]
fn ax_10_a_whole_name_has_255_characters_at_most() {
    let long = "a".repeat(63);
    let name = format!("{long}.{long}.{long}");
    let part = |before| Part::new(Segment::nearest("x"), vec![offer(&name)], &Limits { before, ..OPEN }).unwrap();
    assert_eq!(part(255 - 191).listed(), 1);
    assert_eq!(part(256 - 191).tools()[0].withheld(), Some(WithholdReason::NameTooLong));
}

/// The work of a change does not grow with the unchanged rest; figures are in `bench`.
#[test]
fn a_change_of_one_subserver_shares_all_other_parts() {
    let names: Vec<String> = (0..100).map(|n| format!("tool-{n}")).collect();
    let table = (0..1000).fold(Namespace::default(), |table, n| table.with(part(&format!("s{n}"), &names)));
    assert_eq!(table.len(), 100_000);
    let changed = table.with(part("s500", &names[..99]));
    assert_eq!(changed.len(), 99_999);
    let shared = table.parts().zip(changed.parts()).filter(|(a, b)| Arc::ptr_eq(a, b)).count();
    assert_eq!(shared, 999);
    assert!(changed.resolve("s500.tool-99").is_none() && table.resolve("s500.tool-99").is_some());
}
