use proptest::prelude::*;

use super::constraints::{AssuranceLevel, NodeConstraints, ProtocolSecurity};
use super::document::{CapabilityDocument, CapabilityError, OfferedProtocol, major};
use super::lifecycle::{Lifecycle, LifecycleChange, LifecycleError, LifecycleStatus};
use super::negotiation::{NegotiatingParty, NoProtocol, ProtocolRejection, negotiate};
use super::successor::{SuccessorRefusal, SuccessorWalk};
use super::written::{ServedCapabilities, zone_record};

const EXAMPLE: &str = r#"{"aepb_version":"1.0","agent_id":"spiffe://example.com/agent/pricing","x-ours":{"a":[1]},
 "protocols":[{"id":"a2a-v1","version":"1.0","endpoint":"https://agent.example.com/a2a","priority":10},
  {"id":"mcp-v1","version":"2025-03-26","endpoint":"https://agent.example.com/mcp"}],
 "translation_gateways":["https://gateway.example.com/aepb/translate"],"ect_assurance_level":"L2","ect_namespaces":["atd","hitl","apae"],
 "lifecycle":{"status":"active","version":"2.1.0","deprecated_at":null,"sunset_at":null,"successor":null}}"#;

fn document(from: &str, to: &str) -> Result<CapabilityDocument, CapabilityError> {
    assert!(EXAMPLE.contains(from), "{from}");
    CapabilityDocument::read(EXAMPLE.replace(from, to).as_bytes())
}

#[test]
fn ae_01_the_example_of_the_draft_is_read() {
    let read = CapabilityDocument::read(EXAMPLE.as_bytes()).unwrap();
    assert_eq!(read.raw, EXAMPLE.as_bytes(), "what is unknown here stays");
    assert_eq!((read.protocols[0].priority, read.protocols[1].priority), (10, 100));
    assert_eq!(read.protocols[0].security, ProtocolSecurity::Tls13);
    assert_eq!((read.assurance, read.namespaces.len(), read.gateways.len()), (AssuranceLevel::L2, 3, 1));
    assert_eq!((read.lifecycle.status, &*read.lifecycle.version), (LifecycleStatus::Active, "2.1.0"));
}

#[test]
fn ae_01_documents_without_sense_are_refused() {
    let wrong = [
        ("\"aepb_version\":\"1.0\"", "\"aepb_version\":\"2.0\"", CapabilityError::OtherVersion("2.0".into())),
        ("\"id\":\"a2a-v1\",", "", CapabilityError::Missing("id")),
        ("https://agent.example.com/a2a", "agent", CapabilityError::Wrong("endpoint")),
        ("https://agent.example.com/a2a", "https://me:pw@agent.example.com/", CapabilityError::Wrong("endpoint")),
        ("\"priority\":10", "\"priority\":-1", CapabilityError::Wrong("priority")),
        ("\"L2\"", "\"L4\"", CapabilityError::Wrong("ect_assurance_level")),
        ("\"active\"", "\"asleep\"", CapabilityError::Wrong("lifecycle.status")),
        ("\"2.1.0\"", "\"2.1\"", CapabilityError::Wrong("lifecycle.version")),
        ("\"sunset_at\":null", "\"sunset_at\":\"soon\"", CapabilityError::Wrong("sunset_at")),
    ];
    for (from, to, error) in wrong {
        assert_eq!(document(from, to), Err(error), "{to}");
    }
    assert!(
        matches!(document("\"L2\",", "\"L2\",\"agent_id\":\"a:b\","), Err(CapabilityError::Malformed(_))),
        "of two members none counts"
    );
    assert_eq!(CapabilityDocument::read(&vec![b' '; 300 << 10]), Err(CapabilityError::TooLong));
}

#[test]
fn ae_05_claims_of_security_never_lift_plain_text() {
    let at = |endpoint: &str| document("https://agent.example.com/a2a\"", &format!("{endpoint}\",\"security\":\"tls-1.3+mtls\"")).unwrap();
    assert_eq!(at("https://agent.example.com/").protocols[0].security, ProtocolSecurity::Tls13Mtls);
    assert_eq!(at("http://agent.example.com/").protocols[0].security, ProtocolSecurity::Plain);
    assert_eq!(at("http://127.0.0.1:1/").protocols[0].security, ProtocolSecurity::Loopback);
    let odd = document("https://agent.example.com/a2a\"", "https://agent.example.com/\",\"security\":\"tls-1.2\"").unwrap();
    assert_eq!(odd.protocols[0].security, ProtocolSecurity::Plain, "an unknown word is no security");
}

#[test]
fn ae_34_only_semantic_versions_have_a_major_number() {
    let cases = ["1.2.3", "0.0.1-rc.1+build.5", "10.0.0", "1.2", "1.2.3.4", "01.2.3", "1..3", "a.b.c", "1.2.3-", "+1.2.3", ""];
    assert_eq!(cases.map(major), [Some(1), Some(0), Some(10), None, None, None, None, None, None, None, None]);
}

#[test]
fn ae_16_the_stricter_of_two_constraints_counts() {
    let read = |text: &str| NodeConstraints::read(text.as_bytes());
    let one =
        read(r#"{"constraints":{"aepb.min_protocol_security":"tls-1.3+mtls","aepb.allowed_dest_protocols":["a2a-v1","mcp-v1"]}}"#).unwrap();
    let other = read(r#"{"constraints":{"aepb.max_translation_hops":2,"aepb.allowed_dest_protocols":["mcp-v1","slim-v1"]}}"#).unwrap();
    let joined = one.stricter(&other);
    assert_eq!((joined.most_hops, joined.least_security, joined.sources.as_ref()), (2, ProtocolSecurity::Tls13Mtls, None));
    assert_eq!(joined, other.stricter(&one));
    assert_eq!(joined.destinations, Some(vec!["mcp-v1".to_owned()]));
    for wrong in
        [r#"{"aepb.min_protocol_security":"tls-1.2"}"#, r#"{"aepb.max_translation_hops":-1}"#, r#"{"aepb.allowed_source_protocols":"x"}"#]
    {
        assert!(matches!(read(&format!("{{\"constraints\":{wrong}}}")), Err(CapabilityError::Wrong(_))), "{wrong}");
    }
}

fn party(protocols: Vec<OfferedProtocol>) -> NegotiatingParty {
    let (assurance, least_assurance) = (AssuranceLevel::L2, AssuranceLevel::L1);
    NegotiatingParty { protocols, assurance, least_security: ProtocolSecurity::Tls13, least_assurance, status: LifecycleStatus::Active }
}

fn offered(id: &str, version: &str, endpoint: &str, priority: u32) -> OfferedProtocol {
    OfferedProtocol::at(id, version, endpoint.to_owned(), priority)
}

#[test]
fn ae_03_every_protocol_left_has_its_reason() {
    let own = party(vec![offered("a2a-v1", "1.0", "https://a/1", 10), offered("mcp-v1", "2026-07-28", "https://a/2", 1)]);
    let peer = party(vec![
        offered("mcp-v1", "2025-03-26", "https://b/2", 1),
        offered("a2a-v1", "1.1", "http://b/plain", 0),
        offered("a2a-v1", "1.1", "https://b/1", 20),
        offered("a2a-v1", "1.0", "https://b/late", 30),
        offered("slim-v1", "1", "https://b/3", 1),
    ]);
    let outcome = negotiate(&own, &peer);
    let chosen = outcome.chosen.unwrap();
    assert_eq!((&*chosen.peer.endpoint, chosen.priority), ("https://b/1", 30));
    let reasons: Vec<_> = outcome.rejected.iter().map(|one| (&*one.protocol.endpoint, one.reason.clone())).collect();
    assert_eq!(
        reasons,
        [
            ("https://a/2", ProtocolRejection::VersionsApart),
            ("https://b/2", ProtocolRejection::VersionsApart),
            ("http://b/plain", ProtocolRejection::TooWeak(ProtocolSecurity::Plain, ProtocolSecurity::Tls13)),
            ("https://b/late", ProtocolRejection::LessPreferred),
            ("https://b/3", ProtocolRejection::NotShared),
        ]
    );
}

#[test]
fn ae_05_only_weaker_protocols_are_a_downgrade() {
    let own = party(vec![offered("a2a-v1", "1.0", "https://a/1", 10)]);
    let weak = party(vec![offered("a2a-v1", "1.0", "http://b/1", 10)]);
    assert_eq!(negotiate(&own, &weak).chosen, Err(NoProtocol::TooWeak(ProtocolSecurity::Tls13)));
    let strange = party(vec![offered("slim-v1", "1", "https://b/1", 10)]);
    assert_eq!(negotiate(&own, &strange).chosen, Err(NoProtocol::NotShared));
    let evidence = NegotiatingParty { least_assurance: AssuranceLevel::L3, ..party(own.protocols.clone()) };
    assert_eq!(negotiate(&own, &evidence).chosen, Err(NoProtocol::LittleAssurance(AssuranceLevel::L3)));
}

#[test]
fn ae_03_no_agent_at_its_end_is_chosen() {
    let offers = || party(vec![offered("a2a-v1", "1.0", "https://a/1", 10)]);
    for status in LifecycleStatus::ALL {
        let ending = NegotiatingParty { status, ..offers() };
        let expected = if status.takes_work() { Ok(()) } else { Err(NoProtocol::NoNewWork(status)) };
        for (own, peer) in [(offers(), ending.clone()), (ending, offers())] {
            let outcome = negotiate(&own, &peer);
            assert_eq!(outcome.chosen.map(drop), expected, "{}", status.name());
            assert_eq!(outcome.rejected.len(), if expected.is_ok() { 0 } else { 2 });
        }
    }
}

fn protocols(side: &'static str) -> impl Strategy<Value = Vec<OfferedProtocol>> {
    let security = prop::sample::select(vec![
        ProtocolSecurity::Plain,
        ProtocolSecurity::Loopback,
        ProtocolSecurity::Tls13,
        ProtocolSecurity::Tls13Mtls,
        ProtocolSecurity::Tls13Wpt,
    ]);
    let ids = prop::sample::select(vec!["a2a-v1", "mcp-v1", "slim-v1"]);
    let one = (ids, prop::sample::select(vec!["1.0", "1.1", "2.0", "2026-07-28"]), 0_u32..4, security);
    prop::collection::vec(one, 0..6).prop_map(move |list| {
        let named = list.into_iter().enumerate();
        let made = named.map(|(place, (id, version, priority, security))| OfferedProtocol {
            security,
            ..offered(id, version, &format!("https://{side}/{place}"), priority)
        });
        made.collect()
    })
}

fn least() -> impl Strategy<Value = ProtocolSecurity> {
    prop::sample::select(vec![ProtocolSecurity::Plain, ProtocolSecurity::Tls13, ProtocolSecurity::Tls13Mtls, ProtocolSecurity::Tls13Wpt])
}

proptest! {
    #[test]
    fn ae_03_both_sides_choose_the_same(own in protocols("a"), peer in protocols("b"), least in least(), least_there in least()) {
        let own = NegotiatingParty { least_security: least, ..party(own) };
        let peer = NegotiatingParty { least_security: least_there, ..party(peer) };
        let (here, there) = (negotiate(&own, &peer).chosen, negotiate(&peer, &own).chosen);
        prop_assert_eq!(here.as_ref().map(|one| (&one.own, &one.peer)), there.as_ref().map(|one| (&one.peer, &one.own)));
        let turned = NegotiatingParty { protocols: own.protocols.iter().rev().cloned().collect(), ..own };
        prop_assert_eq!(&negotiate(&turned, &peer).chosen, &here, "the order of a list means nothing");
        if let Ok(chosen) = here {
            prop_assert!(chosen.own.security >= least.max(least_there) && chosen.peer.security >= least.max(least_there));
        }
    }

    #[test]
    fn ae_05_a_higher_minimum_never_weakens_the_choice(own in protocols("a"), peer in protocols("b"), one in least(), other in least()) {
        let with = |least| negotiate(&NegotiatingParty { least_security: least, ..party(own.to_vec()) }, &party(peer.to_vec())).chosen;
        let (low, high) = (with(one.min(other)), with(one.max(other)));
        if let Ok(high) = high {
            let low = low.expect("what passes a high minimum passes a low one");
            prop_assert!(low.priority <= high.priority, "a demand never finds what is preferred more");
            prop_assert!(high.security >= one.max(other));
            prop_assert!(low == high || low.security < one.max(other), "a choice stays as long as it is strong enough");
        }
    }

    #[test]
    fn ae_03_nothing_is_left_out(own in protocols("a"), peer in protocols("b")) {
        let outcome = negotiate(&party(own.clone()), &party(peer.clone()));
        let chosen = if outcome.chosen.is_ok() { 2 } else { 0 };
        prop_assert_eq!(outcome.rejected.len() + chosen, own.len() + peer.len());
    }

    #[test]
    fn ae_30_a_life_is_kept_over_a_restart(steps in prop::collection::vec((0_usize..4, 0_u64..1000, any::<bool>()), 0..12)) {
        let (mut life, mut now) = (Lifecycle::default(), 1_800_000_000);
        for (to, later, has_successor) in steps {
            now += later;
            let successor = has_successor.then(|| "https://b.example/.well-known/aepb".to_owned());
            let wish = LifecycleChange { to: LifecycleStatus::ALL[to], successor, sunset: Some(now + later) };
            let was = life.status;
            match life.change(&wish, now) {
                Ok(next) => {
                    prop_assert!(was.may_become(next.status) && was != LifecycleStatus::Retired);
                    life = next;
                }
                Err(error) => prop_assert_eq!(error, LifecycleError::Transition { from: was, to: wish.to }),
            }
            prop_assert_eq!(Lifecycle::read(life.write().as_bytes()), Ok(life.clone()));
            prop_assert!(life.deprecated.is_none_or(|at| life.sunset.is_none_or(|sunset| at <= sunset)), "no end before its notice");
        }
    }
}

#[test]
fn ae_30_only_the_transitions_of_the_picture_exist() {
    let picture = [(0, 1), (0, 2), (1, 2), (1, 0), (2, 0), (2, 3)];
    for (from, before) in LifecycleStatus::ALL.into_iter().enumerate() {
        for (to, next) in LifecycleStatus::ALL.into_iter().enumerate() {
            assert_eq!(before.may_become(next), picture.contains(&(from, to)), "{before:?} to {next:?}");
        }
    }
    let retired = Lifecycle { status: LifecycleStatus::Retired, ..Lifecycle::default() };
    let wish = LifecycleChange { to: LifecycleStatus::Active, successor: None, sunset: None };
    assert_eq!(retired.change(&wish, 1).unwrap_err().to_string(), "an agent that is retired does not become active: retirement is final");
}

#[test]
fn ae_31_the_fields_are_those_of_their_rfcs() {
    let successor = Some("https://b.example/.well-known/aepb".to_owned());
    let wish = LifecycleChange { to: LifecycleStatus::Deprecated, successor, sunset: Some(1_688_256_000) };
    let life = Lifecycle::default().change(&wish, 1_688_169_600).unwrap();
    let expected = [
        ("deprecation", "@1688169600"),
        ("sunset", "Sun, 02 Jul 2023 00:00:00 GMT"),
        ("link", "<https://b.example/.well-known/aepb>; rel=\"successor-version\""),
    ];
    assert_eq!(life.fields(), expected.map(|(name, value)| (name, value.to_owned())));
    assert_eq!(Lifecycle::default().fields(), []);
    assert_eq!((life.retry_after(1_688_169_600), life.retry_after(1_688_255_900), life.retry_after(u64::MAX)), (3600, 100, 60));
}

#[test]
fn ae_31_addresses_that_break_a_field_are_refused() {
    for wrong in [
        "ftp://b/",
        "http://b.example/",
        "https://b/\r\nx: y",
        "https://b/>",
        "https://me@b/",
        "b",
        &format!("https://b/{}", "x".repeat(3000)),
    ] {
        let wish = LifecycleChange { to: LifecycleStatus::Deprecated, successor: Some(wrong.to_owned()), sunset: None };
        assert_eq!(Lifecycle::default().change(&wish, 1), Err(LifecycleError::Successor), "{wrong}");
    }
    let past = LifecycleChange { to: LifecycleStatus::Draining, successor: None, sunset: Some(5) };
    assert_eq!(Lifecycle::default().change(&past, 6), Err(LifecycleError::Sunset));
}

#[test]
fn ae_33_a_successor_with_less_assurance_is_refused() {
    let before = document("\"L2\"", "\"L2\"").unwrap();
    assert_eq!(document("\"L2\"", "\"L3\"").unwrap().succeeds(&before), Ok(false));
    assert_eq!(document("\"2.1.0\"", "\"3.0.0\"").unwrap().succeeds(&before), Ok(true), "a major version may break callers");
    let less = SuccessorRefusal::LessAssurance(AssuranceLevel::L1, AssuranceLevel::L2);
    assert_eq!(document("\"L2\"", "\"L1\"").unwrap().succeeds(&before), Err(less));
    assert_eq!(document("\"active\"", "\"retired\"").unwrap().succeeds(&before), Err(SuccessorRefusal::Retired));
}

#[test]
fn ae_33_successors_end_after_three_and_in_no_circle() {
    let mut walk = SuccessorWalk::new("https://a/");
    assert_eq!(walk.step("https://a/"), Err(SuccessorRefusal::Circle("https://a/".into())));
    for next in ["https://b/", "https://c/", "https://d/"] {
        walk.step(next).unwrap();
    }
    assert_eq!(walk.step("https://e/"), Err(SuccessorRefusal::TooFar));
}

#[test]
fn ae_01_our_own_document_is_read_again() {
    let protocols = [offered("a2a-v1", "1.0", "https://gate.example/a2a", 10)];
    let lifecycle = Lifecycle { deprecated: Some(1), status: LifecycleStatus::Deprecated, ..Lifecycle::default() };
    let agent = "spiffe://gate.example/agent/banyan";
    let text =
        ServedCapabilities { agent, version: "1.2.3", protocols: &protocols, assurance: AssuranceLevel::L1, lifecycle: &lifecycle }.write();
    let read = CapabilityDocument::read(text.as_bytes()).unwrap();
    assert_eq!((&read.protocols[..], &*read.agent), (&protocols[..], agent));
    assert_eq!(read.lifecycle.deprecated_at.as_deref(), Some("1970-01-01T00:00:01Z"));
}

#[test]
fn ae_02_a_zone_leads_to_the_document() {
    let record = zone_record(&"https://gate.example:8443/x".parse().unwrap());
    let expected =
        "_aepb._tcp.gate.example. 3600 IN SVCB 1 gate.example. port=8443 key65400=\"https://gate.example:8443/.well-known/aepb\"\n";
    assert_eq!(record.as_deref(), Some(expected));
    assert_eq!(zone_record(&"https://10.0.0.1/".parse().unwrap()), None, "no name, no record");
}
