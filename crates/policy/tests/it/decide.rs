//! Decisions of rules, as their authors expect them.

use std::collections::BTreeSet;

use banyan_model::PrincipalKind;
use policy::Effect;
use policy::decide::{Action, Arguments, Asked, Cause, Foresight, Moment, Policies, Subject, Target, Traits, Verdict};

fn subject(name: &str, groups: &[&str]) -> Subject {
    let groups: BTreeSet<String> = groups.iter().map(ToString::to_string).collect();
    Subject { name: name.into(), kind: PrincipalKind::Token, groups, client: "test".into(), ..Subject::default() }
}

fn tool<'a>(mounts: &[&'a str], name: &'a str, traits: Traits<'a>) -> Target<'a> {
    Target { action: Action::Call, mounts: mounts.to_vec(), name, traits }
}

const READ: Traits<'static> = Traits { mutable: false, reversible: true, idempotent: true, scope: "read", cost: "free", latency: "fast" };

fn rules(text: &str) -> Policies {
    Policies::parse(text).unwrap_or_else(|flaws| panic!("{flaws:#?}"))
}

fn decide(policies: &Policies, who: &Subject, what: &Target<'_>, arguments: &str) -> Verdict {
    let arguments = policies.arguments(arguments.as_bytes()).unwrap_or_else(|bad| panic!("{bad}"));
    policies.decide(&Asked { subject: who, target: what, profile: "" }, &arguments, Moment { hour: 12, weekday: 3, ..Moment::default() })
}

fn effect(text: &str, who: &Subject, what: &Target<'_>, arguments: &str) -> Effect {
    decide(&rules(text), who, what, arguments).effect
}

fn ids(verdict: &Verdict) -> Vec<&str> {
    verdict.rules.iter().map(|rule| &*rule.id).collect()
}

#[test]
fn what_no_rule_permits_is_denied_and_a_rule_that_forbids_wins() {
    let text = r#"
        @id("ops") permit (principal in Group::"ops", action == Action::"call", resource in Mount::"infra");
        @id("no-wipe") @remedy("ask the owner") forbid (principal, action, resource == Tool::"infra.edge.wipe");
    "#;
    let (policies, ops) = (rules(text), subject("a", &["ops"]));
    let at = |mounts: &[&'static str], name| decide(&policies, &ops, &tool(mounts, name, Traits::default()), "{}");
    assert_eq!((at(&["infra"], "reboot").effect, at(&["infra", "edge", "deep"], "reboot").effect), (Effect::Allow, Effect::Allow));
    let wiped = at(&["infra", "edge"], "wipe");
    assert_eq!((wiped.effect, &wiped.cause, ids(&wiped)), (Effect::Deny, &Cause::Forbidden, vec!["no-wipe"]));
    assert_eq!(wiped.rules[0].remedy.as_deref(), Some("ask the owner"));
    let elsewhere = at(&["infra2"], "reboot");
    assert_eq!((elsewhere.effect, &elsewhere.cause, ids(&elsewhere)), (Effect::Deny, &Cause::NotPermitted, vec![]));
    let nobody = decide(&policies, &subject("b", &[]), &tool(&["infra"], "reboot", READ), "{}");
    assert_eq!(nobody.cause, Cause::NotPermitted);
}

#[test]
fn a_gate_wants_somebody_to_agree_where_it_is_permitted_at_all() {
    let text = r#"
        permit (principal == Principal::"a", action, resource);
        @id("ask") @effect("gate") forbid (principal, action == Action::"call", resource) when { resource.irreversible };
        @id("ask-b") @effect("gate") permit (principal == Principal::"b", action, resource);
    "#;
    let policies = rules(text);
    let of = |who, traits| {
        let verdict = decide(&policies, &subject(who, &[]), &tool(&["m"], "t", traits), "{}");
        (verdict.effect, ids(&verdict).join(" "))
    };
    assert_eq!(of("a", READ).0, Effect::Allow);
    assert_eq!(of("a", Traits::default()), (Effect::Gate, "ask".into()));
    assert_eq!(of("b", READ), (Effect::Gate, "ask-b".into()));
    assert_eq!(of("c", Traits::default()), (Effect::Deny, String::new()), "a gate permits nothing that nobody else does");
}

#[test]
fn e1_an_argument_in_another_case_than_a_rule_reads_fails_the_rule() {
    let policies =
        rules(r#"permit (principal, action, resource) when { context.arguments has a.path && context.arguments.a.path like "/srv/*" };"#);
    for odd in [r#"{"a":{"path":"/srv/x","Path":"/etc/passwd"}}"#, r#"{"A":{}}"#, r#"{"a":{"path":"/srv/x"},"\u0041":{}}"#] {
        assert!(policies.arguments(odd.as_bytes()).is_err(), "{odd}");
    }
    assert!(policies.arguments(br#"{"a":{"path":"/srv/x","b":{"Path":1}},"Path":1}"#).is_ok(), "no rule reads these");
}

#[test]
fn arguments_are_read_by_name_and_have_the_type_that_they_are_compared_with() {
    let text = r#"
        permit (principal, action, resource);
        @id("path") forbid (principal, action, resource)
        when { context.arguments has path && context.arguments.path like "/etc/*" };
        @id("amount") forbid (principal, action, resource)
        when { context.arguments has transfer.amount && context.arguments.transfer.amount > 100 };
        @id("flag") forbid (principal, action, resource) when { context.arguments has force && context.arguments.force };
        @id("tags") forbid (principal, action, resource)
        when { context.arguments has tags && context.arguments.tags.contains("secret") };
        @id("mode") forbid (principal, action, resource)
        when { context.arguments has mode && ["w", "a"].contains(context.arguments.mode) };
    "#;
    let policies = rules(text);
    assert_eq!(policies.wanted(), ["force", "mode", "path", "tags", "transfer.amount"]);
    let of = |arguments: &str| {
        let verdict = decide(&policies, &subject("a", &[]), &tool(&["m"], "t", READ), arguments);
        (verdict.effect, verdict.cause, verdict.rules.iter().map(|rule| rule.id.to_string()).collect::<Vec<_>>())
    };
    for (arguments, rule) in [
        (r#"{"path":"/etc/passwd"}"#, "path"),
        (r#"{"p\u0061th":"/e\u0074c/passwd"}"#, "path"),
        (r#"{"transfer":{"to":"x","amount":101}}"#, "amount"),
        (r#"{"transfer":{"amount":1.01e2}}"#, "amount"),
        (r#"{"force":true}"#, "flag"),
        (r#"{"tags":["open","secret"]}"#, "tags"),
        (r#"{"mode":"w"}"#, "mode"),
    ] {
        assert_eq!(of(arguments), (Effect::Deny, Cause::Forbidden, vec![rule.to_owned()]), "{arguments}");
    }
    for fine in [r#"{"path":"/srv/x"}"#, r#"{"transfer":{"amount":100}}"#, r#"{"force":null,"other":[{}]}"#, r#"{"transfer":{}}"#] {
        assert_eq!(of(fine).0, Effect::Allow, "{fine}");
    }
    for wrong in [r#"{"path":7}"#, r#"{"transfer":{"amount":100.5}}"#, r#"{"transfer":7}"#, r#"{"force":"yes"}"#, r#"{"tags":"secret"}"#] {
        assert!(matches!(of(wrong).1, Cause::Error(_)), "what can't be compared is denied: {wrong}");
    }
    for unreadable in [r#"{"path":"a","path":"/etc/passwd"}"#, &format!(r#"{{"path":"{}"}}"#, "x".repeat(70_000))] {
        assert!(policies.arguments(unreadable.as_bytes()).is_err());
    }
}

#[test]
fn a_rule_in_shadow_mode_is_told_and_does_nothing() {
    let text = r#"
        @id("all") permit (principal, action, resource);
        @id("trial") @mode("shadow") forbid (principal, action, resource in Mount::"m");
    "#;
    let policies = rules(text);
    let shadowed = decide(&policies, &subject("a", &[]), &tool(&["m"], "t", READ), "{}");
    assert_eq!((shadowed.effect, ids(&shadowed)), (Effect::Allow, vec!["all"]));
    let shadow = shadowed.shadow.unwrap();
    assert_eq!((shadow.effect, &*shadow.rules[0].id), (Effect::Deny, "trial"));
    assert_eq!(decide(&policies, &subject("a", &[]), &tool(&["n"], "t", READ), "{}").shadow, None);
}

#[test]
fn a_rule_that_can_not_be_evaluated_denies() {
    let text = r#"
        permit (principal, action, resource);
        @id("sum") forbid (principal, action, resource)
        when { context.arguments has n && context.arguments.n + 1 > 9223372036854775806 };
    "#;
    let policies = rules(text);
    let over = decide(&policies, &subject("a", &[]), &tool(&["m"], "t", READ), r#"{"n":9223372036854775807}"#);
    assert!(matches!(over.cause, Cause::Error(_)), "{over:?}");
    assert_eq!((over.effect, ids(&over)), (Effect::Deny, vec!["sum"]));
}

#[test]
fn time_and_scopes_and_what_a_caller_is_known_by_are_at_hand() {
    let text = r#"permit (principal, action, resource) when {
        context.time.hour >= 9 && context.time.weekday <= 5 && principal.kind == "issuer" && principal.scopes.contains("tools")
    };"#;
    let mut who = subject("a@corp", &[]);
    who.kind = PrincipalKind::Issuer;
    assert_eq!(effect(text, &who, &tool(&["m"], "t", READ), "{}"), Effect::Deny);
    who.scopes.insert("tools".into());
    assert_eq!(effect(text, &who, &tool(&["m"], "t", READ), "{}"), Effect::Allow);
    who.kind = PrincipalKind::Token;
    assert_eq!(effect(text, &who, &tool(&["m"], "t", READ), "{}"), Effect::Deny);
}

#[test]
fn prompts_resources_and_unknown_methods_have_actions_of_their_own() {
    let text = r#"
        permit (principal, action == Action::"read", resource in Mount::"files") when { resource.name like "file:///srv/*" };
        permit (principal, action == Action::"prompt", resource == Prompt::"files.ask");
    "#;
    let of = |action, name| effect(text, &subject("a", &[]), &Target { action, mounts: vec!["files"], name, traits: READ }, "{}");
    assert_eq!(of(Action::Read, "file:///srv/a"), Effect::Allow);
    assert_eq!(of(Action::Read, "file:///etc/a"), Effect::Deny);
    assert_eq!(of(Action::Prompt, "ask"), Effect::Allow);
    assert_eq!(of(Action::Send, "ask"), Effect::Deny);
    assert_eq!(of(Action::Call, "ask"), Effect::Deny);
}

#[test]
fn what_is_foreseen_is_what_is_decided() {
    let text = r#"
        permit (principal in Group::"ops", action, resource);
        permit (principal, action, resource in Mount::"files") when { context.arguments has path };
        forbid (principal, action, resource == Tool::"files.wipe");
        forbid (principal, action, resource in Mount::"night") when { context.time.hour < 6 };
    "#;
    let policies = rules(text);
    let foresee = |who: &Subject, mount, name| policies.foresee(&Asked { subject: who, target: &tool(&[mount], name, READ), profile: "" });
    let (ops, other) = (subject("a", &["ops"]), subject("b", &[]));
    assert!(matches!(foresee(&ops, "m", "t"), Foresight::Settled(v) if v.effect == Effect::Allow));
    assert!(matches!(foresee(&other, "m", "t"), Foresight::Settled(v) if v.effect == Effect::Deny));
    assert_eq!(foresee(&other, "files", "read"), Foresight::Open { hopeless: false });
    assert_eq!(foresee(&other, "files", "wipe"), Foresight::Open { hopeless: true });
    assert_eq!(foresee(&ops, "night", "t"), Foresight::Open { hopeless: false });
    assert_eq!(foresee(&other, "night", "t"), Foresight::Open { hopeless: true });
}

#[test]
fn what_there_is_not_is_an_error_with_its_place() {
    for (text, place, message) in [
        ("permit (principal, action, resource) when { resource.read_onyl };", "resource.read_onyl", "read_onyl"),
        ("permit (principal, action == Action::\"cal\", resource);", "Action", "cal"),
        ("permit (principal, action, resource) when { principal in Grop::\"x\" };", "Grop", "Grop"),
        ("permit (principal, action, resource", "", "unexpected"),
        ("@mod(\"shadow\") permit (principal, action, resource);", "@mod", "@mod"),
        ("@mode(\"shade\") permit (principal, action, resource);", "@mode", "shade"),
        ("@effect(\"allow\") permit (principal, action, resource);", "@effect", "allow"),
        ("@id(\"\") permit (principal, action, resource);", "@id", "is empty"),
        ("@remedy(\" \") permit (principal, action, resource);", "@remedy", "is empty"),
        ("@scope permit (principal, action, resource);", "@scope", "is empty"),
        ("permit (principal == ?principal, action, resource);", "", "template"),
        ("permit (principal, action, resource) when { context.arguments.a == context.arguments.b };", "context.arguments.a", "type"),
        ("permit (principal, action, resource) when { context.arguments.a };", "context.arguments.a", "a"),
        ("permit (principal, action, resource) when { context.arguments == {} };", "context.arguments", "one by one"),
        (
            "@id(\"a\") permit (principal, action, resource);\n@id(\"a\") forbid (principal, action, resource);",
            "@id(\"a\") forbid",
            "two rules",
        ),
    ] {
        let flaws = Policies::parse(text).unwrap_err();
        let found = flaws.iter().any(|flaw| {
            let said = format!("{} {}", flaw.message, flaw.help.as_deref().unwrap_or_default());
            said.contains(message) && (place.is_empty() || text[flaw.span.start..].starts_with(place))
        });
        assert!(found, "{text}: {flaws:#?}");
    }
}

#[test]
fn no_rules_permit_nothing() {
    let verdict = decide(&rules("// nothing yet"), &subject("a", &[]), &tool(&["m"], "t", READ), "{}");
    assert_eq!((verdict.effect, verdict.cause), (Effect::Deny, Cause::NotPermitted));
    let asked = Asked { subject: &subject("a", &[]), target: &tool(&[], "t", READ), profile: "p" };
    assert_eq!(rules("").decide(&asked, &Arguments::none(), Moment::default()).effect, Effect::Deny);
}
