//! Annotations on their way up.

#![expect(clippy::unwrap_used, reason = "a test whose ground is missing fails loudly")]

use std::time::Duration;

use mesh_proto::annotation::{Annotation, AuthScope, Availability, Consistency, LatencyClass, Transport, Wishes, key};
use proptest::prelude::*;
use proptest::sample::select;

fn of(definition: &str) -> Annotation {
    Annotation::of_tool(definition.as_bytes(), &Transport::default())
}

fn added(annotation: &Annotation, lost: bool) -> Vec<String> {
    annotation.additions(lost).into_iter().map(|(key, value)| format!("{key}={value}")).collect()
}

/// Lists a definition as an aggregator does, with the additions in its `_meta`.
fn listed(definition: &str, annotation: &Annotation) -> String {
    let mut value: serde_json::Value = serde_json::from_str(definition).unwrap();
    for (key, raw) in annotation.additions(false) {
        value["_meta"][key] = serde_json::from_str(&raw).unwrap();
    }
    value.to_string()
}

#[test]
fn ax_33_a_silent_tool_is_taken_for_the_riskiest() {
    let twice = r#"{"annotations":{"readOnlyHint":true,"readOnlyHint":true}}"#;
    let two = r#"{"_meta":{"x-mcpax-mutable":false},"_meta":{}}"#;
    for silent in ["{}", "[]", r#"[{"readOnlyHint":true},{}]"#, "nonsense", r#"{"annotations":7,"_meta":[]}"#, twice, two] {
        let a = of(silent);
        assert!(a.mutable && !a.reversible && !a.idempotent && a.is_irreversible_mutable(), "{silent}");
        assert_eq!((a.auth_scope, a.consistency, a.hops), (AuthScope::Write, Consistency::BestEffort, 1));
    }
}

#[test]
fn ax_31_a_silent_tool_is_listed_without_a_bound() {
    for silent in ["{}", r#"{"annotations":{"readOnlyHint":true}}"#, r#"{"_meta":{"x-mcpax-latency-class":"soon"}}"#] {
        assert_eq!(
            (of(silent).latency_class, of(silent).latency_class.timeout(), of(silent).names_class),
            (LatencyClass::Batch, None, false)
        );
    }
}

#[test]
fn ax_34_no_wish_lowers_a_class_that_a_tool_names() {
    let wished = |tool: &str, class| {
        let mut a = of(tool);
        Wishes { trust: true, latency_class: Some(class), ..Wishes::default() }.apply(&mut a);
        a.latency_class
    };
    let slow = r#"{"_meta":{"x-mcpax-latency-class":"slow"}}"#;
    assert_eq!((wished(slow, LatencyClass::Fast), wished(slow, LatencyClass::Batch)), (LatencyClass::Slow, LatencyClass::Batch));
    assert_eq!(wished("{}", LatencyClass::Fast), LatencyClass::Fast);
}

#[test]
fn ax_33_mcps_own_hints_are_understood() {
    let read = of(r#"{"annotations":{"readOnlyHint":true}}"#);
    assert!(!read.mutable && read.reversible && read.idempotent && read.auth_scope == AuthScope::Read);
    let additive =
        |open: bool| of(&format!(r#"{{"annotations":{{"destructiveHint":false,"openWorldHint":{open},"idempotentHint":true}}}}"#));
    assert!(additive(false).reversible && additive(false).consistency == Consistency::Eventual);
    assert!(!additive(true).reversible && additive(true).idempotent);
}

#[test]
fn ax_33_contradictions_are_read_the_careful_way() {
    let claims = r#"{"annotations":{"readOnlyHint":false},"_meta":{"x-mcpax-mutable":false,"x-mcpax-auth-scope":"read"}}"#;
    assert!(of(claims).mutable && of(claims).auth_scope == AuthScope::Write);
    let broken = of(r#"{"annotations":{"readOnlyHint":true},"_meta":{"x-mcpax-mutable":"no","x-mcpax-reversible":1}}"#);
    assert!(broken.is_irreversible_mutable());
    assert!(!of(r#"{"annotations":{"destructiveHint":true},"_meta":{"x-mcpax-reversible":true}}"#).reversible);
}

#[test]
fn ax_33_names_of_the_schema_are_read_too() {
    let schema = r#"{"latency_class":"fast","consistency":"strong","mutable":false,"reversible":true,"idempotent":true,
        "transport":"uart_cbor","auth_scope":"read","cost_class":"free","availability":"always","schema_version":"1.2.0"}"#;
    for place in ["_meta", "annotations"] {
        let tool = format!(r#"{{"{place}":{schema}}}"#);
        let a = of(&tool);
        assert_eq!((a.latency_class, a.consistency, a.availability), (LatencyClass::Fast, Consistency::Strong, Availability::Always));
        assert_eq!((a.mutable, a.auth_scope, a.schema_version.as_deref()), (false, AuthScope::Read, Some("1.2.0")), "{place}");
        // The next aggregator may know one spelling only.
        assert_eq!(added(&a, false).len(), 11, "{place}");
        assert_eq!(of(&listed(&tool, &a)).mutable, a.mutable);
    }
    for two in [
        r#"{"annotations":{"mutable":true},"_meta":{"x-mcpax-mutable":false}}"#,
        r#"{"annotations":{"mutable":false},"_meta":{"mutable":true}}"#,
        r#"{"annotations":{"readOnlyHint":false,"mutable":false}}"#,
    ] {
        assert!(of(two).mutable && added(&of(two), false).contains(&"x-mcpax-mutable=true".to_owned()), "{two}");
    }
}

#[test]
fn ax_44_irreversible_changes_keep_their_flag() {
    let tool = r#"{"_meta":{"x-mcpax-mutable":true,"x-mcpax-reversible":false}}"#;
    assert!(added(&of(tool), false).contains(&format!("{}=\"irreversible_mutable\"", key::SAFETY)));
    let flagged = r#"{"annotations":{"readOnlyHint":true},"_meta":{"x-mcpax-safety":"irreversible_mutable"}}"#;
    let mut a = of(flagged);
    Wishes { trust: true, mutable: Some(false), reversible: Some(true), ..Wishes::default() }.apply(&mut a);
    assert!(a.is_irreversible_mutable());
}

#[test]
fn ax_34_only_hops_and_raised_latency_are_overwritten() {
    let tool = r#"{"_meta":{"x-mcpax-latency-class":"fast","x-mcpax-mutable":false,"x-mcpax-reversible":true,"x-mcpax-idempotent":true,
        "x-mcpax-consistency":"strong","x-mcpax-transport":"uart_cbor","x-mcpax-auth-scope":"read","x-mcpax-cost-class":"free",
        "x-mcpax-availability":"always","x-mcpax-schema-version":"1.2.0","x-mcpax-hops":3,"x-mcpax-other":1}}"#;
    let mut a = of(tool);
    assert_eq!(added(&a, false), ["x-mcpax-hops=4"]);
    a.raise_latency(Duration::from_millis(20));
    assert_eq!((a.latency_class, added(&a, false).len()), (LatencyClass::Fast, 1));
    a.raise_latency(Duration::from_secs(7));
    assert_eq!(added(&a, false), ["x-mcpax-hops=4", "x-mcpax-latency-class=\"standard\""]);
    assert_eq!(added(&a, true)[0], "x-mcpax-availability=\"degraded\"");
}

fn definition() -> impl Strategy<Value = String> {
    let flag = || select(vec!["", "true", "false", "\"x\"", "null"]);
    let member =
        |key: &'static str| flag().prop_map(move |value| if value.is_empty() { String::new() } else { format!("\"{key}\":{value},") });
    let hints = (member("readOnlyHint"), member("destructiveHint"), member("idempotentHint"), member("openWorldHint"));
    let meta = (member(key::MUTABLE), member(key::REVERSIBLE), member(key::IDEMPOTENT));
    let scope =
        select(vec!["", "\"x-mcpax-auth-scope\":\"admin\",", "\"x-mcpax-latency-class\":\"slow\",", "\"x-mcpax-latency-class\":9,"]);
    (hints, meta, scope)
        .prop_map(|((a, b, c, d), (e, f, g), h)| format!("{{\"annotations\":{{{a}{b}{c}{d}\"z\":0}},\"_meta\":{{{e}{f}{g}{h}\"z\":0}}}}"))
}

fn riskier_or_equal(a: &Annotation, b: &Annotation) -> bool {
    a.mutable >= b.mutable
        && a.reversible <= b.reversible
        && a.idempotent <= b.idempotent
        && a.auth_scope >= b.auth_scope
        && a.latency_class >= b.latency_class
        && a.consistency >= b.consistency
        && a.availability >= b.availability
        && a.cost_class >= b.cost_class
}

proptest! {
    #[test]
    fn ax_34_an_annotation_survives_a_hop_except_the_count(definition in definition()) {
        let here = of(&definition);
        let above = of(&listed(&definition, &here));
        let same = (above.mutable, above.reversible, above.idempotent, above.auth_scope, above.consistency, above.latency_class);
        prop_assert_eq!(same, (here.mutable, here.reversible, here.idempotent, here.auth_scope, here.consistency, here.latency_class));
        prop_assert_eq!((above.availability, above.cost_class, above.hops), (here.availability, here.cost_class, here.hops + 1));
    }

    #[test]
    fn ax_33_configuration_only_raises_risk_unless_it_says_trust(
        definition in definition(),
        mutable in any::<Option<bool>>(),
        reversible in any::<Option<bool>>(),
        idempotent in any::<Option<bool>>(),
        scope in select(AuthScope::ALL.to_vec()),
        class in select(LatencyClass::ALL.to_vec()),
    ) {
        let mut wishes = Wishes {
            mutable, reversible, idempotent, auth_scope: Some(scope), latency_class: Some(class),
            availability: Some(Availability::Always), ..Wishes::default()
        };
        let before = of(&definition);
        let mut after = before.clone();
        wishes.apply(&mut after);
        let mut by_risk = after.clone();
        by_risk.latency_class = after.latency_class.max(before.latency_class);
        prop_assert!(riskier_or_equal(&by_risk, &before));
        prop_assert!(after.latency_class >= before.latency_class || !before.names_class);
        wishes.trust = true;
        let named = before.latency_class;
        let mut trusted = before;
        wishes.apply(&mut trusted);
        prop_assert_eq!(mutable.unwrap_or(trusted.mutable), trusted.mutable);
        let fastest = if trusted.names_class { named.max(class) } else { class };
        prop_assert_eq!(trusted.latency_class, fastest, "no operator makes a tool faster than it says");
        let above = of(&listed(&definition, &after));
        prop_assert!(riskier_or_equal(&above, &after), "what was raised here must be seen above");
    }
}
