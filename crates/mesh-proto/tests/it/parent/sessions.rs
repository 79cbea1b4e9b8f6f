//! Begin, life and end of sessions, and refused registrants. The aftermath is in `losses.rs`.

use std::collections::BTreeSet;
use std::time::Duration;

use banyan_model::Machine;
use mesh_proto::authority::Identity;
use mesh_proto::id::{LinkId, NodeId};
use mesh_proto::message::{Ancestry, Deregister, ParentAnswer, Request, SubtreeChange};
use mesh_proto::parent::{Event, Target};
use mesh_proto::refusal::{Refusal, SessionEnd};
use mesh_proto::reply::Reply;

use super::world::{OWN, SECOND, World, aggregator, at, authority, of_authority, offer, plain};

#[test]
fn ax_21_the_answer_has_session_segment_deadline_and_budget() {
    let mut world = World::with(|settings| settings.budget.calls_per_minute = Some(60));
    let registered = world.register(1, plain(1, "a")).unwrap();
    assert_eq!((registered.segment.as_str(), registered.deadline), ("a", SECOND * 3));
    assert_eq!((registered.budget.calls_per_minute, registered.aggregator_id), (Some(60), Some(OWN)));
    let mut silent = plain(2, "b");
    silent.heartbeat_interval = Duration::ZERO;
    assert_eq!(world.register(1, silent).unwrap().deadline, Duration::ZERO);
}

#[test]
fn ax_22_three_missed_heartbeats_end_a_registration() {
    let mut world = World::new();
    let session = world.register(1, plain(1, "a")).unwrap().session;
    world.list("a", &["get"]);
    for _ in 0..5 {
        world.pass(SECOND * 29 / 10);
        world.beat(1, &session).unwrap();
    }
    world.pass(SECOND * 29 / 10);
    assert!(!world.is_degraded("a"));
    world.pass(SECOND / 5);
    assert!(world.is_degraded("a"));
    assert_eq!(world.beat(1, &session), Err(Refusal::UnknownSession { ended: Some(SessionEnd::Silent) }));
    let mut quiet = plain(2, "b");
    quiet.heartbeat_interval = Duration::ZERO;
    world.register(2, quiet).unwrap();
    world.list("b", &["get"]);
    world.pass(SECOND * 100_000);
    assert!(matches!(world.parent.target("b"), Some(Target::Live(_))));
}

#[test]
fn ax_22_an_aggregator_that_slept_does_not_blame_the_others() {
    let mut world = World::new();
    let session = world.register(1, plain(1, "a")).unwrap().session;
    world.list("a", &["get"]);
    world.now += SECOND * 3600;
    world.parent.handle_timeout(at(world.now));
    world.drain();
    world.pass(SECOND * 9 / 10);
    world.beat(1, &session).unwrap();
    world.now += SECOND * 3600;
    world.parent.handle_timeout(at(world.now));
    world.pass(SECOND * 11 / 10);
    assert!(world.is_degraded("a"), "and waits one interval only");
}

#[test]
fn ax_22_nobody_speaks_for_a_session_on_another_link() {
    let mut world = World::new();
    let session = world.register(1, plain(1, "a")).unwrap().session;
    assert_eq!(world.beat(2, &session), Err(Refusal::UnknownSession { ended: None }));
    let number = world.send(2, &Request::Deregister(Deregister { session: session.clone() }));
    assert!(world.answer(number).is_err());
    world.beat(1, &session).unwrap();
}

#[test]
fn ax_23_a_deregistration_takes_effect_and_shows_at_once() {
    let mut world = World::new();
    let session = world.register(1, plain(1, "a")).unwrap().session;
    world.list("a", &["get"]);
    world.events.clear();
    let number = world.send(1, &Request::Deregister(Deregister { session }));
    world.answer(number).unwrap();
    assert!(world.listed().is_empty() && world.parent.target("a").is_none());
    assert!(world.events.contains(&Event::NamespaceChanged));
    world.register(2, plain(2, "a")).unwrap();
}

#[test]
fn ax_24_who_stands_above_may_not_stand_below() {
    let mut world = World::new();
    assert_eq!(world.register(1, aggregator(1, "a", &[0xA])), Err(Refusal::RegistrationCycle { ids: vec![OWN], below_you: false }));
    world.parent.handle_above(Ancestry { ancestors: vec![NodeId::new(0xB), NodeId::new(0xC)], prefix_length: 0 });
    let refused = world.register(1, aggregator(0xC, "a", &[1, 2])).unwrap_err();
    assert_eq!(refused, Refusal::RegistrationCycle { ids: vec![NodeId::new(0xC)], below_you: true });
    let registered = world.register(1, aggregator(1, "a", &[2])).unwrap();
    assert_eq!(registered.above.ancestors, [OWN, NodeId::new(0xB), NodeId::new(0xC)]);
}

#[test]
fn ax_24_a_later_cycle_is_refused_and_its_bringer_ended() {
    let mut world = World::new();
    let ids = |ids: &[u128]| ids.iter().map(|id| NodeId::new(*id)).collect::<BTreeSet<_>>();
    let session = world.register(1, aggregator(1, "a", &[2])).unwrap().session;
    let step = |joined: &[u128], left: &[u128]| SubtreeChange::Step { joined: ids(joined), left: ids(left) };
    world.subtree(1, &session, 1, step(&[3], &[2])).unwrap();
    assert_eq!(world.parent.subtree(), ids(&[0xA, 1, 3]));
    let refused = world.subtree(1, &session, 2, step(&[0xA], &[])).unwrap_err();
    assert_eq!(refused, Refusal::RegistrationCycle { ids: vec![OWN], below_you: false });
    assert_eq!(world.subtree(1, &session, 3, step(&[4], &[])), Err(Refusal::SubtreeOutOfStep));
    world.subtree(1, &session, 4, SubtreeChange::All(ids(&[1, 4]))).unwrap();
    assert_eq!(world.parent.subtree(), ids(&[0xA, 1, 4]));
    world.parent.handle_cycle(&[NodeId::new(4)]);
    world.drain();
    assert_eq!(world.beat(1, &session), Err(Refusal::UnknownSession { ended: Some(SessionEnd::Cycle) }));
    assert_eq!(world.parent.subtree(), ids(&[0xA]));
    assert_eq!(world.events.last(), Some(&Event::SubtreeChanged));
}

#[test]
fn ax_25_who_says_that_it_is_registered_elsewhere_is_refused() {
    let says = |parent: Option<u128>| ParentAnswer { parent_id: parent.map(NodeId::new) }.encode();
    for (answer, taken) in [(says(None), true), (says(Some(0xA)), true), (says(Some(0xB)), false), ("[]".into(), false)] {
        let mut world = World::new();
        let number = world.send(1, &Request::Register(Box::new(plain(1, "a"))));
        let (link, call) = world.asks.pop().unwrap();
        assert_eq!(link, LinkId(1));
        world.parent.handle_answer(at(world.now), call, Reply::Result(answer.as_bytes()));
        world.drain();
        assert_eq!(world.answer(number).is_ok(), taken, "{answer}");
    }
    let mut world = World::new();
    let number = world.send(1, &Request::Register(Box::new(plain(1, "a"))));
    world.pass(SECOND * 3);
    assert!(matches!(world.answer(number), Err(Refusal::SubserverSilent { .. })));
}

#[test]
fn ax_26_a_reboot_voids_old_definitions() {
    let mut world = World::new();
    world.register(1, plain(1, "a")).unwrap();
    world.list("a", &["old"]);
    world.parent.handle_link_lost(at(world.now), LinkId(1));
    world.register(2, plain(1, "a")).unwrap();
    assert!(world.is_degraded("a") && world.listed() == ["a.old"]);
    world.list("a", &["new"]);
    assert!(matches!(world.parent.target("a"), Some(Target::Live(session)) if session.link == LinkId(2)));
    assert_eq!(world.listed(), ["a.new"]);
    world.pass(SECOND);
    let stale = world.key("a");
    world.register(2, plain(1, "b")).unwrap();
    world.parent.handle_tools(at(world.now), stale, vec![offer("stale")]);
    assert!(world.listed().is_empty(), "a list that comes for a session that is over is let go, and so is the segment");
}

#[test]
fn ax_25_reboots_take_over_and_twins_do_not() {
    let mut world = World::new();
    let first = world.register(1, plain(1, "a")).unwrap().session;
    world.list("a", &["get"]);
    let number = world.send(2, &Request::Register(Box::new(plain(1, "a"))));
    let holder = world.asks.iter().position(|(link, _)| *link == LinkId(1)).unwrap();
    let call = world.asks.remove(holder).1;
    let alive = ParentAnswer { parent_id: Some(OWN) }.encode();
    world.parent.handle_answer(at(world.now), call, Reply::Result(alive.as_bytes()));
    world.drain();
    assert!(matches!(world.answer(number), Err(Refusal::DuplicateSubserver { .. })));
    world.beat(1, &first).unwrap();
    world.asks.clear();
    let number = world.send(3, &Request::Register(Box::new(plain(1, "a"))));
    let applicant = world.asks.iter().find(|(link, _)| *link == LinkId(3)).unwrap().1;
    world.parent.handle_answer(at(world.now), applicant, Reply::Mute);
    world.pass(SECOND * 2);
    world.answer(number).unwrap();
    assert_eq!(world.beat(1, &first), Err(Refusal::UnknownSession { ended: Some(SessionEnd::Replaced) }));
}

#[test]
fn m11_only_its_principal_or_owner_takes_a_session_over() {
    let mut world = World::new();
    world.identity = Identity::bare("owner");
    world.register(1, plain(1, "tools")).unwrap();
    for reply in [Reply::Error(b"{}"), Reply::Mute, Reply::Lost] {
        world.identity = Identity::bare("mallory").with(authority("mallory.example"));
        let number = world.send(2, &Request::Register(Box::new(of_authority(1, "tools", "mallory.example"))));
        let call = world.asks.iter().find(|(link, _)| *link == LinkId(1)).expect("the holder is asked").1;
        world.parent.handle_answer(at(world.now), call, reply);
        world.drain();
        assert!(matches!(world.answer(number), Err(Refusal::DuplicateSubserver { .. })), "{reply:?}");
        world.asks.clear();
    }
    world.identity = Identity::bare("owner").with(authority("owner.example"));
    world.send(3, &Request::Register(Box::new(of_authority(1, "tools", "owner.example"))));
    assert!(world.asks.iter().all(|(link, _)| *link != LinkId(1)), "who comes back with a proof need not wait for itself");
}
