//! Owners of segments, and withheld tools. Sessions are in `sessions.rs`.

use std::collections::BTreeSet;

use banyan_model::Segment;
use mesh_proto::annotation::AuthScope;
use mesh_proto::authority::Identity;
use mesh_proto::id::LinkId;
use mesh_proto::message::{Deregister, Register, Request};
use mesh_proto::parent::{Claim, Demand, Event, SegmentPolicy, Settings};
use mesh_proto::refusal::{Holder, Refusal, SessionEnd};

use super::world::{OWN, SECOND, World, aggregator, at, authority, of_authority, plain};

#[test]
fn ax_11_the_first_keeps_a_segment_against_the_second() {
    let mut world = World::new();
    world.register(1, plain(1, "a")).unwrap();
    let refused = world.register(2, plain(2, "a")).unwrap_err();
    assert_eq!(refused, Refusal::NamespaceConflict { segment: "a".into(), holder: Holder::Registered, retry_after: None });
    world.register(2, plain(2, "b")).unwrap();
    world.parent.handle_mounts(BTreeSet::from([Segment::nearest("m")]));
    assert!(matches!(world.register(3, plain(3, "m")), Err(Refusal::NamespaceConflict { holder: Holder::Mount, .. })));
}

#[test]
fn ax_12_a_claim_outlives_the_session_and_a_restart() {
    let mut world = World::new();
    world.identity = Identity::bare("a").with(authority("a.example"));
    let session = world.register(1, of_authority(1, "a", "a.example")).unwrap().session;
    world.list("a", &["set"]);
    let number = world.send(1, &Request::Deregister(Deregister { session }));
    world.answer(number).unwrap();
    world.pass(SECOND * 1000);
    let mut again = World::new();
    again.parent.restore(world.parent.claims().map(|claim| Claim::decode(claim.encode().as_bytes()).unwrap()));
    for world in [&mut world, &mut again] {
        world.identity = Identity::bare("b").with(authority("b.example"));
        for register in [plain(2, "a"), of_authority(2, "a", "b.example")] {
            let refused = world.register(2, register).unwrap_err();
            assert!(matches!(refused, Refusal::NamespaceConflict { holder: Holder::Authority, retry_after: None, .. }), "{refused:?}");
        }
        world.identity = Identity::bare("a").with(authority("a.example"));
        world.register(3, of_authority(3, "a", "a.example")).unwrap();
    }
    assert!(again.parent.release(&Segment::nearest("a")) && again.parent.claims().count() == 0);
}

#[test]
fn ax_12_a_release_outlives_other_settings_and_lists() {
    let mut world = World::with(|settings| settings.policy.sticky = Demand::Always);
    world.identity = Identity::bare("a").with(authority("a.example"));
    world.register(1, of_authority(1, "a", "a.example")).unwrap();
    assert!(world.parent.release(&Segment::nearest("a")) && world.parent.claims().count() == 0);
    for sticky in [Demand::ForChanges, Demand::Always] {
        let mut settings = Settings::new(OWN);
        settings.policy.sticky = sticky;
        world.parent.handle_settings(at(world.now), settings);
        world.drain();
        world.list("a", &["set"]);
        assert_eq!(world.parent.claims().count(), 0, "{sticky:?}: its holder lives, and claims nothing anew");
    }
    // Whoever comes next with a proof makes a claim again.
    world.parent.handle_link_lost(at(world.now), LinkId(1));
    world.pass(SECOND * 1000);
    world.register(2, of_authority(1, "a", "a.example")).unwrap();
    assert_eq!(world.parent.claims().count(), 1);
}

#[test]
fn ax_12_readers_leave_no_claim_unless_the_policy_wants() {
    for (sticky, free) in [(Demand::ForChanges, true), (Demand::Always, false), (Demand::Never, true)] {
        let mut world = World::with(|settings| settings.policy.sticky = sticky);
        world.identity = Identity::bare("a").with(authority("a.example"));
        world.register(1, of_authority(1, "a", "a.example")).unwrap();
        world.list("a", &["get"]);
        world.parent.handle_link_lost(at(world.now), LinkId(1));
        world.pass(SECOND * 1000);
        assert_eq!(world.register(2, plain(2, "a")).is_ok(), free, "{sticky:?}");
    }
}

#[test]
fn ax_12_a_proof_beats_a_bare_claim() {
    let mut world = World::with(|settings| settings.policy.sticky = Demand::Always);
    world.register(1, of_authority(1, "a", "a.example")).unwrap();
    world.parent.handle_link_lost(at(world.now), LinkId(1));
    world.pass(SECOND * 1000);
    assert!(world.register(2, plain(2, "a")).is_err());
    world.identity = Identity::bare("b").with(authority("b.example"));
    world.register(3, of_authority(3, "a", "b.example")).unwrap();
}

#[test]
fn ax_13_an_authority_is_proved_where_the_policy_wants_it() {
    let mut world = World::with(|settings| settings.policy.proof = Demand::Always);
    for register in [plain(1, "a"), of_authority(1, "a", "a.example")] {
        assert_eq!(world.register(1, register), Err(Refusal::AuthorityRequired { segment: "a".into() }));
    }
    world.identity = Identity::bare("b").with(authority("b.example"));
    let refused = world.register(1, of_authority(1, "a", "a.example"));
    assert_eq!(refused, Err(Refusal::AuthorityMismatch { claimed: authority("a.example") }));
    world.register(1, of_authority(1, "b", "b.example")).unwrap();
}

#[test]
fn ax_13_changing_tools_without_proof_are_withheld_and_counted() {
    let mut world = World::new();
    let session = world.register(1, of_authority(1, "a", "a.example")).unwrap().session;
    world.list("a", &["get", "set"]);
    assert_eq!(world.listed(), ["a.get"]);
    assert_eq!(world.beat(1, &session).unwrap().withheld, 1);
    world.identity = Identity::bare("peer").with(authority("a.example"));
    world.register(1, of_authority(1, "a", "a.example")).unwrap();
    world.list("a", &["get", "set"]);
    assert_eq!(world.listed(), ["a.get", "a.set"]);
}

#[test]
fn another_policy_holds_at_once_for_whoever_is_registered() {
    let mut world = World::with(|settings| settings.policy.proof = Demand::Never);
    let session = world.register(1, plain(1, "a")).unwrap().session;
    world.list("a", &["get", "set"]);
    world.register(2, plain(2, "b")).unwrap();
    assert_eq!(world.listed(), ["a.get", "a.set"]);
    world.events.clear();
    let mut settings = Settings::new(OWN);
    settings
        .policies
        .insert(Segment::nearest("b"), SegmentPolicy { proof: Demand::Always, sticky: Demand::Never, ..SegmentPolicy::default() });
    world.parent.handle_settings(at(world.now), settings);
    world.drain();
    let key = world.key("a");
    assert!(world.events.iter().any(|event| matches!(event, Event::FetchTools { session, .. } if *session == key)), "{:?}", world.events);
    world.list("a", &["get", "set"]);
    assert_eq!(world.listed(), ["a.get"]);
    assert!(world.events.iter().any(|event| matches!(event, Event::Ended { why: SessionEnd::NotAdmitted, .. })), "{:?}", world.events);
    assert_eq!(world.register(2, plain(2, "b")), Err(Refusal::AuthorityRequired { segment: "b".into() }));
    world.parent.put_out(key);
    assert_eq!(world.beat(1, &session), Err(Refusal::UnknownSession { ended: Some(SessionEnd::NotAdmitted) }));
    assert!(world.listed().is_empty());
}

#[test]
fn ax_41_an_operator_caps_what_a_subserver_asks_for() {
    for (asked, most, granted) in [
        (None, AuthScope::Read, AuthScope::Read),
        (Some(AuthScope::Admin), AuthScope::Write, AuthScope::Write),
        (Some(AuthScope::Read), AuthScope::Write, AuthScope::Read),
        (None, AuthScope::Admin, AuthScope::Admin),
    ] {
        let policy = SegmentPolicy { proof: Demand::Never, most_scope: most, ..SegmentPolicy::default() };
        let mut world = World::with(|settings| settings.policy = policy);
        let session = world.register(1, Register { auth_scope: asked, ..plain(1, "a") }).unwrap().session;
        let key = world.key("a");
        assert_eq!(world.parent.session(key).unwrap().auth_scope, granted);
        world.list("a", &["get", "set"]);
        assert_eq!(world.listed().contains(&"a.set".to_owned()), granted >= AuthScope::Write);
        // A cap that changes the permission holds at once; one that does not puts nobody out.
        let mut settings = Settings::new(OWN);
        settings.policy = SegmentPolicy { most_scope: AuthScope::Read, ..policy };
        world.parent.handle_settings(at(world.now), settings);
        world.drain();
        assert_eq!(world.beat(1, &session).is_ok(), granted == AuthScope::Read, "{asked:?} {most:?}");
    }
}

#[test]
fn ax_14_a_plain_subserver_with_dotted_names_is_ended() {
    let mut world = World::new();
    let session = world.register(1, plain(1, "a")).unwrap().session;
    world.list("a", &["ok", "b.c"]);
    assert!(world.listed().is_empty());
    assert_eq!(world.beat(1, &session), Err(Refusal::UnknownSession { ended: Some(SessionEnd::DottedName) }));
    world.register(1, aggregator(2, "b", &[])).unwrap();
    world.list("b", &["ok", "b.c"]);
    assert_eq!(world.listed(), ["b.b.c", "b.ok"]);
}
