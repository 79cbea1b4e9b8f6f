//! Rules asked about recorded calls, and decisions that outlive their gate: both from the record.

use gateway::admin::shapes::{Decisions, ReplayReport};
use serde_json::{Value, json};

use crate::held::Person;
use crate::world::{Client, Era, World, bounded, eventually, fixture, token};

const ALL: &str = "@id(\"all\") permit (principal, action, resource);";

/// Starts a gate with these rules, whose record lies in the state directory.
async fn ruled(state: tempfile::TempDir, rules: &str, more: &str) -> World {
    let (file, record) = (state.path().join("policy.cedar"), state.path().join("record"));
    std::fs::write(&file, rules).unwrap();
    let toml = format!(
        "{}{}[policy]\nfile = {file:?}\n[group.ops]\nmembers = [\"an*\"]\n[audit]\npath = {record:?}\n{more}{}",
        token("ann"),
        token("bob"),
        fixture("fx", Era::Stateless)
    );
    World::kept(state, &toml).await
}

async fn client(world: &World, name: &str) -> Client {
    Client::new(world, Era::Stateless).with("authorization", &format!("Bearer secret-of-{name}")).open().await
}

async fn replay(person: &Person, rules: &str) -> ReplayReport {
    let answer = person.admin.post("/-/policy/replay", &json!({"since": 0, "rules": rules})).await.unwrap();
    serde_json::from_slice(&answer).unwrap()
}

/// Sums up the rows of a report: caller, both outcomes, rules, and count.
fn rows(told: &ReplayReport) -> Vec<(String, u64)> {
    let row =
        |r: &gateway::admin::shapes::ReplayedRow| format!("{} {} {} -> {} {}", r.principal, r.resource, r.was, r.now, r.rules.join(","));
    told.rows.iter().map(|r| (row(r), r.calls)).collect()
}

#[tokio::test]
async fn rules_are_replayed_over_recorded_calls() {
    bounded(async {
        let world = ruled(tempfile::tempdir().unwrap(), ALL, "").await;
        let person = Person::at(&world, 1, "carl").await;
        let (ann, bob) = (client(&world, "ann").await, client(&world, "bob").await);
        for (client, times) in [(&ann, 2), (&bob, 1)] {
            for _ in 0..times {
                client.tool("fx__fx_echo", json!({"text": "x"})).await;
            }
            client.tool("fx__fx_stats", json!({})).await;
        }
        let same = eventually(async || Some(replay(&person, ALL).await).filter(|told| told.calls == 5)).await;
        assert_eq!((same.other, same.untold, same.rows.len()), (0, 0, 0));
        let by_name = format!("{ALL} @id(\"no-bob\") @remedy(\"ask ann\") forbid (principal == Principal::\"bob\", action, resource == Tool::\"fx.fx_echo\");");
        let told = replay(&person, &by_name).await;
        assert_eq!(rows(&told), [("bob fx.fx_echo allow -> deny no-bob".into(), 1)]);
        assert_eq!((told.other, told.rows[0].remedy.as_deref()), (1, Some("ask ann")));
        let by_group = format!("{ALL} @id(\"ask\") @effect(\"gate\") forbid (principal in Group::\"ops\", action, resource == Tool::\"fx.fx_echo\");");
        assert_eq!(rows(&replay(&person, &by_group).await), [("ann fx.fx_echo allow -> gate ask".into(), 2)]);
        let by_argument = format!(
            "{ALL} @id(\"no-x\") forbid (principal, action == Action::\"call\", resource == Tool::\"fx.fx_echo\") when {{ context.arguments has text && \
             context.arguments.text == \"x\" && principal.client == \"y\" }};"
        );
        let told = replay(&person, &by_argument).await;
        let untold = [("ann fx.fx_echo allow -> untold ".into(), 2), ("bob fx.fx_echo allow -> untold ".into(), 1)];
        assert_eq!((rows(&told), told.untold, told.arguments.clone()), (untold.to_vec(), 3, vec!["text".to_owned()]));
        let anywhere = by_argument.replace("resource == Tool::\"fx.fx_echo\"", "resource");
        assert_eq!(replay(&person, &anywhere).await.untold, 3, "of calls without it the shape says that it was not there");
        assert_eq!((told.guessed[0].rule.as_str(), told.guessed[0].without.as_str()), ("no-x", "what programs call themselves"));
        assert!(person.admin.post("/-/policy/replay", &json!({"rules": "permit"})).await.is_err());
    })
    .await;
}

#[tokio::test]
async fn rules_are_replayed_over_recorded_arguments() {
    bounded(async {
        let world = ruled(tempfile::tempdir().unwrap(), ALL, "arguments = \"full\"\n").await;
        let person = Person::at(&world, 1, "carl").await;
        let ann = client(&world, "ann").await;
        ann.tool("fx__fx_echo", json!({"text": "x"})).await;
        ann.tool("fx__fx_echo", json!({"text": "y"})).await;
        eventually(async || Some(replay(&person, ALL).await).filter(|told| told.calls == 2)).await;
        let rule = format!(
            "{ALL} @id(\"no-x\") forbid (principal, action == Action::\"call\", resource) when {{ context.arguments has text && \
             context.arguments.text == \"x\" }};"
        );
        assert_eq!(rows(&replay(&person, &rule).await), [("ann fx.fx_echo allow -> deny no-x".into(), 1)]);
    })
    .await;
}

#[tokio::test]
async fn a_decision_is_explained_from_the_record_after_restart() {
    bounded(async {
        let rules = format!("{ALL}\n@id(\"no-bob\") @remedy(\"ask ann\") forbid (principal == Principal::\"bob\", action, resource == Tool::\"fx.fx_echo\");");
        let world = ruled(tempfile::tempdir().unwrap(), &rules, "").await;
        let refused = client(&world, "bob").await.tool("fx__fx_echo", json!({"text": "x"})).await;
        let id = refused["error"]["data"]["decision"].as_str().unwrap_or_else(|| panic!("{refused}")).to_owned();
        let kept = world.end_keeping().await;
        // Its record has moved with it.
        let world = ruled(kept, &rules, "").await;
        let person = Person::at(&world, 1, "carl").await;
        assert!(world.gateway.decisions(Some(&id)).is_empty(), "it is not remembered any more");
        let found: Decisions = person.admin.get("/-/decisions", &[("id", &id)]).await.unwrap();
        let one = &found.decisions[0];
        assert_eq!((one.effect.as_str(), one.cause.as_str(), one.resource.as_str(), one.recorded), ("deny", "forbidden", "fx.fx_echo", true));
        assert_eq!((one.rules[0].id.as_str(), one.rules[0].remedy.as_deref(), one.rules[0].line), ("no-bob", Some("ask ann"), 2));
        let told = replay(&person, ALL).await;
        assert_eq!(rows(&told), [("bob fx.fx_echo deny -> allow all".into(), 1)], "what was refused is asked about as well");
        let none: Decisions = person.admin.get("/-/decisions", &[("id", "d-0000000000000000")]).await.unwrap();
        assert!(none.decisions.is_empty());
    })
    .await;
}

#[tokio::test]
async fn templates_are_hidden_from_callers_without_read() {
    bounded(async {
        let rules = format!("@id(\"calls\") permit (principal, action == Action::\"call\", resource); @id(\"ann\") {}", &ALL[11..]);
        let rules = rules.replace("(principal, action, resource)", "(principal == Principal::\"ann\", action, resource)");
        let world = ruled(tempfile::tempdir().unwrap(), &rules, "").await;
        let listed = async |name: &str| -> Vec<Value> {
            let told = client(&world, name).await.call("resources/templates/list", json!({})).await;
            told["result"]["resourceTemplates"].as_array().unwrap().clone()
        };
        assert!(!listed("ann").await.is_empty());
        assert!(listed("bob").await.is_empty());
    })
    .await;
}
