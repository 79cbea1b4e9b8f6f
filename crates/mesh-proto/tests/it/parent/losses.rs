//! Tools of lost subservers, and crowds of registrants.

use std::collections::BTreeSet;
use std::time::Duration;

use banyan_model::Segment;
use mesh_proto::annotation::AuthScope;
use mesh_proto::authority::Identity;
use mesh_proto::id::{LinkId, NodeId};
use mesh_proto::message::{Ancestry, Register, Request, SubtreeChange};
use mesh_proto::parent::{Demand, Event, Target};
use mesh_proto::refusal::{Holder, Refusal, SessionEnd};

use super::world::{OWN, SECOND, World, aggregator, at, plain};

#[test]
fn a_lost_subservers_segment_is_kept_for_it() {
    let mut world = World::new();
    world.register(1, plain(1, "a")).unwrap();
    world.list("a", &["get"]);
    world.parent.handle_link_lost(at(world.now), LinkId(1));
    let refused = world.register(2, plain(2, "a")).unwrap_err();
    assert!(matches!(refused, Refusal::NamespaceConflict { holder: Holder::Lost, retry_after: Some(_), .. }));
    world.identity = Identity::bare("thief");
    assert!(world.register(3, plain(1, "a")).is_err(), "the id alone is no proof");
    assert!(matches!(world.register(3, plain(1, "z")), Err(Refusal::DuplicateSubserver { .. })));
    world.pass(SECOND * 301);
    world.register(2, plain(2, "a")).unwrap();
}

#[test]
fn ax_60_a_loss_is_announced_and_the_return_restores_tools() {
    let mut world = World::new();
    world.register(1, plain(1, "a")).unwrap();
    world.list("a", &["get"]);
    let session = world.key("a");
    world.events.clear();
    world.parent.handle_link_lost(at(world.now), LinkId(1));
    world.drain();
    let lost = Event::SubserverLost { session, segment: Segment::nearest("a"), why: SessionEnd::LinkLost };
    assert_eq!(world.events, [lost, Event::NamespaceChanged]);
    world.register(2, plain(1, "a")).unwrap();
    world.list("a", &["get"]);
    assert!(matches!(world.parent.target("a"), Some(Target::Live(_))));
}

#[test]
fn ax_61_tools_of_a_lost_subserver_stay_degraded_meanwhile() {
    for (grace, after) in [(SECOND * 300, SECOND * 299), (Duration::ZERO, Duration::ZERO)] {
        let mut world = World::with(|settings| settings.grace = grace);
        world.register(1, plain(1, "a")).unwrap();
        world.list("a", &["get"]);
        let since = world.now;
        world.parent.handle_link_lost(at(world.now), LinkId(1));
        world.pass(after);
        if !grace.is_zero() {
            let Some(Target::Degraded(degraded)) = world.parent.target("a") else { panic!("not degraded") };
            assert_eq!((degraded.since, degraded.why, degraded.retry_after), (since, SessionEnd::LinkLost, SECOND));
            assert!(world.listed() == ["a.get"]);
            world.pass(SECOND * 2);
        }
        assert!(world.listed().is_empty() && world.parent.target("a").is_none());
    }
}

#[test]
fn ax_61_heartbeats_keep_no_unreachable_tools_listed() {
    for interval in [SECOND, Duration::ZERO] {
        let mut world = World::new();
        let session = world.register(1, Register { heartbeat_interval: interval, ..plain(1, "a") }).unwrap().session;
        world.list("a", &["get"]);
        let (key, since) = (world.key("a"), world.now);
        world.events.clear();
        for second in 0..300 {
            world.parent.handle_tools_failed(at(world.now), key);
            world.pass(SECOND - Duration::from_millis(1));
            let Some(Target::Degraded(degraded)) = world.parent.target("a") else { panic!("{second}: not degraded") };
            assert_eq!((degraded.since, degraded.why), (since, SessionEnd::LinkLost));
            world.pass(Duration::from_millis(1));
            world.beat(1, &session).unwrap();
        }
        let told = |world: &World| world.events.iter().filter(|event| matches!(event, Event::Unreachable { .. })).count();
        assert_eq!((told(&world), world.listed().len(), world.parent.target("a").is_none()), (1, 0, true));
        // It is still registered, and back with its list.
        world.beat(1, &session).unwrap();
        world.list("a", &["get"]);
        assert!(world.listed() == ["a.get"] && matches!(world.parent.target("a"), Some(Target::Live(_))));
        world.pass(SECOND);
        world.parent.handle_tools_failed(at(world.now), key);
        world.drain();
        assert!(world.is_degraded("a") && told(&world) == 2);
    }
    let mut none = World::with(|settings| settings.grace = Duration::ZERO);
    none.register(1, plain(1, "a")).unwrap();
    none.list("a", &["get"]);
    none.parent.handle_tools_failed(at(none.now), none.key("a"));
    assert!(none.listed().is_empty() && none.parent.target("a").is_none());
}

#[test]
fn ax_62_a_lost_aggregator_takes_and_restores_its_subtree() {
    let mut world = World::new();
    world.register(1, aggregator(1, "a", &[2, 3])).unwrap();
    world.list("a", &["b.c.get", "b.get", "get"]);
    assert_eq!(world.parent.subtree().len(), 4);
    world.parent.handle_link_lost(at(world.now), LinkId(1));
    assert!(world.is_degraded("a") && world.listed().len() == 3);
    assert_eq!(world.parent.subtree(), BTreeSet::from([OWN]));
    world.register(2, aggregator(1, "a", &[2])).unwrap();
    world.list("a", &["b.get", "get"]);
    assert!(!world.is_degraded("a") && world.listed() == ["a.b.get", "a.get"]);
}

#[test]
fn ax_10_names_too_long_under_a_new_ancestry_are_withheld() {
    let mut world = World::new();
    world.register(1, aggregator(1, "a", &[])).unwrap();
    let long = vec!["x".repeat(60); 3].join(".");
    world.list("a", &["get", &long]);
    assert_eq!(world.listed().len(), 2);
    world.parent.handle_above(Ancestry { ancestors: vec![], prefix_length: 100 });
    assert_eq!(world.listed(), ["a.get"]);
    assert!(matches!(
        world.register(2, plain(2, &"y".repeat(63))).map(|_| world.parent.handle_above(Ancestry { ancestors: vec![], prefix_length: 250 })),
        Ok(())
    ));
    assert!(matches!(world.register(3, plain(3, "abcdef")), Err(Refusal::NameTooLong { .. })));
    world.parent.handle_above(Ancestry::default());
    assert_eq!(world.listed().len(), 2);
}

#[test]
fn ax_41_the_registered_scope_bounds_the_list() {
    let mut world = World::with(|settings| settings.policy.proof = Demand::Never);
    world.register(1, Register { auth_scope: Some(AuthScope::Read), ..plain(1, "a") }).unwrap();
    world.list("a", &["get", "set"]);
    assert_eq!(world.listed(), ["a.get"]);
}

#[test]
fn a_storm_of_registrations_starves_no_heartbeat() {
    let mut world = World::new();
    let session = world.register(1, plain(1, "a")).unwrap().session;
    let numbers: Vec<u64> =
        (2..1002u64).map(|n| world.send(n, &Request::Register(Box::new(plain(u128::from(n), &format!("s{n}")))))).collect();
    world.beat(1, &session).unwrap();
    let mut order = Vec::new();
    for _ in 0..400 {
        world.mute();
        world.pass(SECOND / 100);
        let begun = |event| if let Event::Registered { session, .. } = event { Some(session) } else { None };
        order.extend(world.events.drain(..).filter_map(begun));
    }
    assert!(numbers.iter().all(|number| world.answers.remove(number).unwrap().is_ok()));
    assert!(order.len() == 1001 && order.is_sorted());
}

#[test]
fn too_many_registrations_of_one_link_must_wait() {
    let mut world = World::with(|settings| settings.waiting_per_link = 3);
    let last = (0..200u64).map(|n| world.send(1, &Request::Register(Box::new(plain(u128::from(n), &format!("s{n}")))))).last().unwrap();
    assert!(matches!(world.answer(last), Err(Refusal::RateLimited { .. })));
}

#[test]
fn fetches_are_bounded_and_repeated_after_changes() {
    let mut world = World::with(|settings| settings.fetches = 1);
    world.register(1, plain(1, "a")).unwrap();
    world.register(2, plain(2, "b")).unwrap();
    let fetches = |world: &World| {
        world
            .events
            .iter()
            .filter_map(|e| if let Event::FetchTools { session, .. } = e { Some(*session) } else { None })
            .collect::<Vec<_>>()
    };
    let (a, b) = (world.key("a"), world.key("b"));
    assert_eq!(fetches(&world), [a]);
    world.parent.handle_list_changed(at(world.now), a);
    world.list("a", &["get"]);
    assert_eq!(fetches(&world), [a, b]);
    world.parent.handle_tools_failed(at(world.now), b);
    world.drain();
    assert_eq!(fetches(&world), [a, b, a]);
    world.list("a", &["get"]);
    let session = world.parent.session(b).unwrap().segment.clone();
    assert_eq!(session.as_str(), "b");
    world.pass(SECOND);
    assert_eq!(fetches(&world), [a, b, a, b]);
}

#[test]
fn a_full_aggregator_takes_back_its_own_subservers_only() {
    let mut world = World::with(|settings| settings.registrations = 1);
    world.register(1, plain(1, "a")).unwrap();
    assert_eq!(world.register(2, plain(2, "b")), Err(Refusal::Full { most: 1 }));
    world.parent.handle_link_lost(at(world.now), LinkId(1));
    world.register(3, plain(1, "a")).unwrap();
}

#[test]
fn ax_24_nobody_brings_more_ids_than_can_be_told_upward() {
    let mut world = World::with(|settings| settings.subtree_ids = 6_000);
    let many = |from: u128, count: u128| (from..from + count).collect::<Vec<_>>();
    world.register(1, aggregator(1, "a", &many(100, 5_000))).unwrap();
    let session = world.register(2, aggregator(2, "b", &[])).unwrap().session;
    assert_eq!(world.register(3, aggregator(3, "c", &many(100, 6_000))), Err(Refusal::SubtreeTooLarge { most: 6_000 }));
    let change = SubtreeChange::All(many(50_000, 5_000).into_iter().map(NodeId::new).collect());
    assert_eq!(world.subtree(2, &session, 1, change), Err(Refusal::SubtreeTooLarge { most: 6_000 }));
    assert_eq!(world.parent.subtree().len(), 5_003);
}
