//! Messages: reading inverts writing, and illegal messages are refused with a reason.

#![expect(clippy::unwrap_used, reason = "a test whose ground is missing fails loudly")]

use std::time::Duration;

use banyan_model::Segment;
use mesh_proto::annotation::{AuthScope, Transport};
use mesh_proto::authority::Authority;
use mesh_proto::id::{NodeId, SessionId};
use mesh_proto::message::{
    Ancestry, AskParent, Budget, Capabilities, Deregister, Heartbeat, HeartbeatAnswer, ParentAnswer, Proof, Register, RegistrationResult,
    Request, Subtree, SubtreeChange,
};
use mesh_proto::refusal::Refusal;
use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

const DRAFT: &str = r#"{
    "subserver_id": "550e8400-e29b-41d4-a716-446655440000", "segment": "stm32h7", "authority": "dns:edge01.factory.example.com",
    "capabilities": {"tools": true, "resources": false, "notifications": true}, "heartbeat_interval_ms": 5000,
    "transport_class": "uart_cbor", "version": "2026-05-01"
}"#;

fn refused(method: &str, params: &str) -> String {
    Request::decode(method, params.as_bytes()).unwrap_err().error().message.to_owned()
}

#[test]
fn ax_20_the_request_of_the_draft_is_understood() {
    let Ok(Request::Register(register)) = Request::decode("mcpax/register", DRAFT.as_bytes()) else { panic!("no register") };
    assert_eq!(register.segment.as_str(), "stm32h7");
    assert_eq!(register.heartbeat_interval, Duration::from_secs(5));
    assert_eq!(register.transport.as_str(), "uart_cbor");
    assert_eq!(register.authority.as_ref().unwrap().dns_name(), "edge01.factory.example.com");
    assert!(register.capabilities.tools && register.capabilities.notifications && !register.is_aggregator());
}

#[test]
fn ax_20_a_refusal_names_the_wrong_member() {
    let with = |member: &str, value: &str| {
        let mut params: serde_json::Value = serde_json::from_str(DRAFT).unwrap();
        params[member] = serde_json::from_str(value).unwrap();
        refused("mcpax/register", &params.to_string())
    };
    assert_eq!(with("segment", "\"A.b\""), "segment_invalid");
    assert_eq!(with("heartbeat_interval_ms", "99"), "heartbeat_interval_invalid");
    assert_eq!(with("heartbeat_interval_ms", "3600001"), "heartbeat_interval_invalid");
    assert_eq!(with("version", "\"2027-01-01\""), "version_unsupported");
    let ids = vec!["\"550e8400-e29b-41d4-a716-446655440000\""; 10_001].join(",");
    assert_eq!(with("x-mcpax-subtree-ids", &format!("[{ids}]")), "subtree_too_large");
    let others = [
        ("subserver_id", "null"),
        ("subserver_id", "\"x\""),
        ("segment", "7"),
        ("authority", "\"edge01\""),
        ("heartbeat_interval_ms", "-1"),
        ("heartbeat_interval_ms", "null"),
        ("transport_class", "\"UART\""),
        ("auth_scope", "\"root\""),
        ("x-mcpax-subtree-ids", "[]"),
        ("x-mcpax-subtree-ids", "[1]"),
        ("aggregator_id", "\"\""),
        ("authority_proof", "\"a b\""),
        ("capabilities", "[]"),
        ("backup", "1"),
    ];
    for (member, value) in others {
        assert_eq!(with(member, value), "params_invalid", "{member}: {value}");
    }
    assert_eq!(refused("mcpax/register", &DRAFT.replacen('{', r#"{"segment":"x","#, 1)), "params_invalid");
    assert_eq!(refused("mcpax/confirm", "{}"), "method_unknown");
    assert_eq!(refused("mcpax/heartbeat", "{}"), "params_invalid");
    assert_eq!(refused("mcpax/subtree", r#"{"session_id":"a","version":1}"#), "params_invalid");
}

#[test]
fn ax_20_members_that_are_not_known_are_left_alone() {
    let more = DRAFT.replacen('{', r#"{"_meta":{"progressToken":1},"x-unknown":[{}],"#, 1);
    assert_eq!(Request::decode("mcpax/register", more.as_bytes()), Request::decode("mcpax/register", DRAFT.as_bytes()));
}

#[test]
fn a_proof_does_not_print_itself() {
    let mut register = Register::plain(NodeId::new(1), Segment::nearest("a"));
    register.authority_proof = Proof::new("eyJhbGciOi.secret");
    assert!(!format!("{register:?}").contains("secret"));
    assert!(Request::Register(Box::new(register)).encode().1.contains("secret"));
}

fn node() -> impl Strategy<Value = NodeId> {
    any::<u128>().prop_map(NodeId::new)
}

fn session() -> impl Strategy<Value = SessionId> {
    "[!-~]{1,128}".prop_map(|text| SessionId::parse(&text).unwrap())
}

fn segment() -> impl Strategy<Value = Segment> {
    "[a-z0-9_-]{1,63}".prop_map(|text| Segment::new(&text).unwrap())
}

fn register() -> impl Strategy<Value = Register> {
    let who =
        (node(), segment(), option::of(Just(Authority::parse("dns:a.example").unwrap())), option::of(Just(Proof::new("a.b.c").unwrap())));
    let what = (any::<[bool; 3]>(), prop_oneof![Just(0), 100..=3_600_000u64], select(vec!["native", "can_cbor", "x_1"]), any::<bool>());
    let tree =
        (option::of(select(AuthScope::ALL.to_vec())), option::of(node()), option::of(btree_set(node(), 1..5)), option::of(".{0,40}"));
    (who, what, tree).prop_map(
        |((subserver_id, segment, authority, authority_proof), (has, ms, transport, backup), (scope, own, below, url))| Register {
            subserver_id,
            segment,
            authority,
            authority_proof,
            capabilities: Capabilities { tools: has[0], resources: has[1], notifications: has[2] },
            heartbeat_interval: Duration::from_millis(ms),
            transport: Transport::parse(transport).unwrap(),
            auth_scope: scope,
            aggregator_id: own,
            subtree: if below.is_none() && own.is_none() { None } else { Some(below.into_iter().flatten().chain(own).collect()) },
            url,
            backup,
        },
    )
}

fn request() -> impl Strategy<Value = Request> {
    let ids = || btree_set(node(), 0..5);
    let change =
        prop_oneof![ids().prop_map(SubtreeChange::All), (ids(), ids()).prop_map(|(joined, left)| SubtreeChange::Step { joined, left }),];
    prop_oneof![
        register().prop_map(|register| Request::Register(Box::new(register))),
        session().prop_map(|session| Request::Heartbeat(Heartbeat { session })),
        session().prop_map(|session| Request::Deregister(Deregister { session })),
        (session(), any::<u64>(), change).prop_map(|(session, version, change)| Request::Subtree(Subtree { session, version, change })),
        (node(), node()).prop_map(|(aggregator_id, subserver_id)| Request::Parent(AskParent { aggregator_id, subserver_id })),
    ]
}

fn above() -> impl Strategy<Value = Ancestry> {
    (vec(node(), 0..10), 0..256usize).prop_map(|(ancestors, prefix_length)| Ancestry { ancestors, prefix_length })
}

proptest! {
    #[test]
    fn a_request_is_read_as_it_was_written(request in request()) {
        let (method, params) = request.encode();
        prop_assert_eq!(Request::decode(method.as_str(), params.as_bytes()), Ok(request));
    }

    #[test]
    fn ax_21_the_answer_to_a_registration_survives_the_wire(
        segment in segment(), session in session(), ms in any::<u32>(), limits in any::<[Option<u64>; 3]>(), id in option::of(node()), above in above(),
    ) {
        let budget = Budget {
            calls_per_minute: limits[0], mutable_calls_per_session: limits[1], cost_units_per_session: limits[2],
        };
        let deadline = Duration::from_millis(u64::from(ms));
        let result = RegistrationResult { segment, session, deadline, budget, aggregator_id: id, above };
        let text = result.encode();
        prop_assert_eq!(RegistrationResult::decode(text.as_bytes()), Ok(result));
        let object: serde_json::Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(object["status"].as_str(), Some("registered"));
    }

    #[test]
    fn other_answers_are_read_as_they_were_written(above in above(), withheld in any::<u64>(), parent in option::of(node())) {
        let alive = HeartbeatAnswer { above, withheld };
        prop_assert_eq!(HeartbeatAnswer::decode(alive.encode().as_bytes()), Ok(alive));
        let parent = ParentAnswer { parent_id: parent };
        prop_assert_eq!(ParentAnswer::decode(parent.encode().as_bytes()), Ok(parent));
    }

    #[test]
    fn ax_27_whatever_comes_is_understood_or_refused(text in "\\PC{0,60}", method in select(vec!["mcpax/register", "mcpax/subtree", "mcpax/parent", "x"])) {
        if let Err(refusal) = Request::decode(method, text.as_bytes()) {
            let expected = matches!(refusal, Refusal::ParamsInvalid { .. } | Refusal::MethodUnknown);
            prop_assert!(expected, "{refusal:?}");
        }
    }
}
