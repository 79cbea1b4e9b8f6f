//! Checks of judged texts: definitions as servers send them, rules as people write them, and the arguments read by rules. Makes up no
//! input.

use std::sync::LazyLock;

use mcp_proto::hidden;
use policy::decide::{Action, Arguments, Asked, Foresight, Moment, Policies, Subject, Target, Traits};
use policy::pin::{Concern, Definition, Kind, Other, concerns, differences};

/// Rules that read arguments of every type, at some depth.
const READING: &str = r#"
    permit (principal, action, resource);
    forbid (principal, action, resource) when { context.arguments has path && context.arguments.path like "/etc/*" };
    forbid (principal, action, resource) when { context.arguments has n && context.arguments.n < 3 };
    forbid (principal, action, resource) when { context.arguments has all && context.arguments.all.contains("x") };
    @effect("gate") forbid (principal, action, resource) when { context.arguments has a && context.arguments.a has b && context.arguments.a.b };
"#;

/// No arguments of a call break a rule, and the same call is decided in the same way.
pub(super) fn arguments(data: &[u8]) {
    static RULES: LazyLock<Option<Policies>> = LazyLock::new(|| Policies::parse(READING).ok());
    let Some(rules) = &*RULES else { panic!("the rules of this check can't be read") };
    let Ok(arguments) = rules.arguments(data) else { return };
    // A number may be one that no double holds: its text is what rules read, and what goes on.
    assert!(serde_json::from_slice::<&serde_json::value::RawValue>(data).is_ok(), "it was no JSON");
    let (one, again) = (decided(rules, &arguments), decided(rules, &arguments));
    assert_eq!((one.effect, one.cause.as_str()), (again.effect, again.cause.as_str()));
}

fn decided(rules: &Policies, arguments: &Arguments) -> policy::decide::Verdict {
    asked(|asked| rules.decide(asked, arguments, Moment::default()))
}

fn asked<T>(ask: impl Fn(&Asked<'_>) -> T) -> T {
    let subject = Subject { name: "ann".into(), ..Subject::default() };
    let target = Target { action: Action::Call, mounts: vec!["files"], name: "wipe", traits: Traits::default() };
    ask(&Asked { subject: &subject, target: &target, profile: "" })
}

/// Readable rules can be asked, and a foreseen decision is the later decision.
pub(super) fn rules(data: &[u8]) {
    let Ok(rules) = Policies::parse(&String::from_utf8_lossy(data)) else { return };
    assert!(rules.rules().all(|rule| !rule.id.is_empty() && rule.line > 0));
    let verdict = decided(&rules, &Arguments::none());
    match asked(|asked| rules.foresee(asked)) {
        Foresight::Settled(foreseen) => assert_eq!(foreseen.effect, verdict.effect),
        Foresight::Open { hopeless } => assert!(!hopeless || verdict.effect == policy::Effect::Deny),
    }
}

/// A definition equals the definition of its own text and differs in nothing from itself, and invisible characters are removed at once and
/// for good.
pub(super) fn definition(data: &[u8]) {
    for kind in Kind::ALL {
        let one = Definition::of(kind, data, &["x-mcpax-mutable"]);
        assert_eq!(Definition::of_text(one.text().to_owned()).hash(), one.hash());
        assert_eq!(differences(&one, &one), []);
        differences(&one, &Definition::of_text(r#"{"description":"Adds."}"#.to_owned()));
        let others = [Other { mount: "mail", tool: "send_email" }].into_iter().collect();
        let found = concerns("chat", Some("send"), &one, &others, hidden::is_hidden);
        let shows = one.text().chars().any(hidden::is_hidden) || one.text().contains("\\u");
        assert!(!found.contains(&Concern::Hidden) || shows, "{found:?}");
    }
    let is_json = |raw: &[u8]| serde_json::from_slice::<serde_json::Value>(raw).is_ok();
    if is_json(data)
        && let Some(cleaned) = hidden::cleaned(data)
    {
        assert!(is_json(&cleaned), "{}", String::from_utf8_lossy(&cleaned));
        assert_eq!(hidden::cleaned(&cleaned).unwrap_or_else(|| cleaned.clone()), cleaned);
    }
}
