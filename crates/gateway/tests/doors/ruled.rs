//! Rules at the door: refusals, their looks, and lists without forbidden tools.

use serde_json::{Value, json};

use crate::asked::text;
use crate::world::{Client, Era, World, bounded, eventually, fixture, token};

/// Starts a gate with rules, and the holders of two tokens.
async fn ruled(rules: &str, more: &str) -> World {
    let state = tempfile::tempdir().unwrap();
    let toml = configured(&state, rules, more);
    World::start_in(state, &toml).await
}

fn configured(state: &tempfile::TempDir, rules: &str, more: &str) -> String {
    let file = state.path().join("policy.cedar");
    std::fs::write(&file, rules).unwrap();
    let group = "[group.ops]\nmembers = [\"an*\"]\n";
    format!("{}{}[policy]\nfile = {file:?}\n{group}{more}{}", token("ann"), token("bob"), fixture("fx", Era::Stateless))
}

async fn client(world: &World, era: Era, name: &str) -> Client {
    Client::new(world, era).with("authorization", &format!("Bearer secret-of-{name}")).open().await
}

/// Reads an error without the ids that every answer has anew.
fn said(answer: &Value, shown: &str) -> (Value, String) {
    let mut error = answer["error"].clone();
    let id = error["data"]["decision"].take();
    error["message"] = error["message"].as_str().unwrap_or_else(|| panic!("{answer}")).replace(shown, "NAME").into();
    (error, id.as_str().unwrap().to_owned())
}

#[tokio::test]
async fn refused_tools_look_absent_to_all_but_the_owner() {
    bounded(async {
        let rules = r#"
            @id("all") permit (principal, action, resource);
            @id("no-echo") @remedy("use another") forbid (principal == Principal::"bob", action, resource == Tool::"fx.fx_echo");
        "#;
        let world = ruled(rules, "").await;
        for era in [Era::Initialize, Era::Stateless] {
            let (ann, bob) = (client(&world, era, "ann").await, client(&world, era, "bob").await);
            assert_eq!(text(&ann.tool("fx__fx_echo", json!({"text": "in"})).await), "in");
            let (refused, id) = said(&bob.tool("fx__fx_echo", json!({"text": "x"})).await, "fx__fx_echo");
            let (unknown, other) = said(&bob.tool("fx__fx_nope", json!({"text": "x"})).await, "fx__fx_nope");
            assert_eq!(refused, unknown);
            let one = &world.gateway.decisions(Some(&id))[0];
            assert_eq!((one.cause.as_str(), one.principal.as_str(), one.resource.as_str()), ("forbidden", "bob", "fx.fx_echo"));
            assert_eq!((one.rules[0].id.as_str(), one.rules[0].remedy.as_deref()), ("no-echo", Some("use another")));
            assert_eq!((one.inputs["arguments"].as_str(), one.inputs["irreversible"].as_str()), (r#"{"text":"string:1"}"#, "true"));
            assert_eq!(world.gateway.decisions(Some(&other))[0].cause, "unknown");
            let (hers, his) = (ann.tools().await, bob.tools().await);
            assert!(hers.contains(&"fx__fx_echo".into()) && !his.contains(&"fx__fx_echo".into()));
            assert_eq!(hers.len(), his.len() + 1);
        }
    })
    .await;
}

#[tokio::test]
async fn rules_read_arguments_and_groups_and_fail_closed() {
    bounded(async {
        let rules = r#"
            @id("ops") permit (principal in Group::"ops", action, resource in Mount::"fx");
            @id("secret") forbid (principal, action, resource)
            when { context.arguments has text && context.arguments.text like "*secret*" };
        "#;
        let world = ruled(rules, "").await;
        let (ann, bob) = (client(&world, Era::Stateless, "ann").await, client(&world, Era::Stateless, "bob").await);
        assert_eq!(text(&ann.tool("fx__fx_echo", json!({"text": "open"})).await), "open");
        let refused = ann.tool("fx__fx_echo", json!({"text": "a secret"})).await;
        assert_eq!(refused["error"]["data"]["reason"], "unknown_tool", "{refused}");
        let failed = ann.tool("fx__fx_echo", json!({"text": ["a secret"]})).await;
        assert_eq!(failed["error"]["data"]["reason"], "policy_error", "{failed}");
        assert!(ann.tools().await.contains(&"fx__fx_echo".into()), "what depends on arguments is listed");
        assert_eq!(bob.tools().await, Vec::<String>::new());
        let id = failed["error"]["data"]["decision"].as_str().unwrap();
        assert_eq!(world.gateway.decisions(Some(id))[0].cause, "policy_error");
    })
    .await;
}

#[tokio::test]
async fn a_gated_call_does_not_go_out_by_itself() {
    bounded(async {
        let rules = r#"
            permit (principal, action, resource);
            @id("ask") @effect("gate") forbid (principal, action, resource == Tool::"fx.fx_echo");
        "#;
        let world = ruled(rules, "").await;
        let ann = client(&world, Era::Stateless, "ann").await;
        let held = ann.tool("fx__fx_echo", json!({"text": "x"})).await;
        assert!(held.get("result").is_none_or(|result| text(&json!({"result": result})) != "x"), "{held}");
        assert!(ann.tools().await.contains(&"fx__fx_echo".into()));
    })
    .await;
}

#[tokio::test]
async fn changed_rules_hold_at_once_and_callers_are_told() {
    bounded(async {
        let all = r#"permit (principal, action, resource);"#;
        let world = ruled(all, "").await;
        let ann = client(&world, Era::Initialize, "ann").await;
        let mut standing = ann.listen(None).await;
        assert!(!ann.tools().await.is_empty());
        let changes = world.apply(&configured(&world.state, r#"permit (principal == Principal::"bob", action, resource);"#, ""));
        assert_eq!(changes, ["~ policy"]);
        standing.next_of("notifications/tools/list_changed").await;
        assert!(ann.tools().await.is_empty());
        let refused = ann.tool("fx__fx_echo", json!({"text": "x"})).await;
        assert_eq!(refused["error"]["data"]["reason"], "unknown_tool");
    })
    .await;
}

#[tokio::test]
async fn ax_51_rules_decide_who_reads_the_count_of_drops() {
    bounded(async {
        let rules = r#"
            permit (principal == Principal::"ann", action, resource);
            @id("echo") permit (principal == Principal::"bob", action, resource == Tool::"fx.fx_echo");
        "#;
        let world = ruled(rules, "[registry]\nprincipals = [\"*\"]\n").await;
        for era in [Era::Initialize, Era::Stateless] {
            let (ann, bob) = (client(&world, era, "ann").await, client(&world, era, "bob").await);
            let told = ann.tool("notifications_dropped", json!({})).await;
            assert_eq!(told["result"]["structuredContent"]["notifications_dropped"], 0, "{told}");
            let (refused, id) = said(&bob.tool("notifications_dropped", json!({})).await, "notifications_dropped");
            let (unknown, _) = said(&bob.tool("nothing", json!({})).await, "nothing");
            assert_eq!(refused, unknown);
            let one = &world.gateway.decisions(Some(&id))[0];
            assert_eq!((one.cause.as_str(), one.resource.as_str()), ("not_permitted", "notifications_dropped"));
            let ids = json!({"io.banyan/mcpax": {"aggregator_id": "g"}});
            for (name, lists) in [("ann", true), ("bob", false)] {
                let mut gate = Client::new(&world, era).with("authorization", &format!("Bearer secret-of-{name}"));
                gate.capabilities = json!({"extensions": ids, "experimental": ids});
                assert_eq!(gate.open().await.tools().await.contains(&"notifications_dropped".to_owned()), lists, "{name}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn ax_48_over_budget_is_told_and_unsent_calls_are_free() {
    bounded(async {
        let budget = "[budget.few]\nprincipals = [\"ann\"]\nmax_calls_per_minute = 2\n[mount.down]\ncommand = \"/nonexistent\"\n";
        let world = ruled("permit (principal, action, resource);", budget).await;
        let (ann, bob) = (client(&world, Era::Stateless, "ann").await, client(&world, Era::Initialize, "bob").await);
        for _ in 0..5 {
            let unavailable = ann.tool("down__x", json!({})).await;
            assert!(unavailable.get("error").is_some());
        }
        for _ in 0..2 {
            assert_eq!(text(&ann.tool("fx__fx_echo", json!({"text": "x"})).await), "x");
        }
        let over = ann.tool("fx__fx_echo", json!({"text": "x"})).await;
        let (error, data) = (&over["error"], &over["error"]["data"]);
        assert_eq!(
            (&error["code"], &data["reason"], &data["limit"]),
            (&json!(-32003), &json!("budget_exceeded"), &json!("max_calls_per_minute"))
        );
        let after = data["retry_after_ms"].as_u64().unwrap();
        assert!((50_000..=60_000).contains(&after), "{after}");
        for _ in 0..4 {
            assert_eq!(text(&bob.tool("fx__fx_echo", json!({"text": "x"})).await), "x");
        }
        let spent = world.gateway.budgets();
        assert_eq!((spent.len(), spent[0].calls_in_minute, spent[0].principal.as_str()), (1, 2, "ann"));
    })
    .await;
}

#[tokio::test]
async fn ax_48_a_budget_is_exact_under_parallel_calls() {
    bounded(async {
        let budget = "[budget.few]\nper = \"session\"\nmax_mutable_calls_per_session = 25\n";
        let world = ruled("permit (principal, action, resource);", budget).await;
        let ann = client(&world, Era::Initialize, "ann").await;
        let calls = (0..60).map(|_| async { ann.tool("fx__fx_echo", json!({"text": "x"})).await.get("result").is_some() });
        let done = futures_util::future::join_all(calls).await;
        let made = eventually(async || world.gateway.budgets().first().cloned()).await;
        assert_eq!(done.iter().filter(|done| **done).count() as u64, made.mutable_calls);
        assert_eq!(made.mutable_calls, 25);
        let again = client(&world, Era::Initialize, "ann").await;
        assert!(again.tool("fx__fx_echo", json!({"text": "x"})).await.get("result").is_some(), "another session has a budget of its own");
    })
    .await;
}

#[tokio::test]
async fn ax_44_irreversible_tools_are_flagged_and_visible_to_rules() {
    bounded(async {
        let rules = r#"
            permit (principal, action, resource);
            @id("nothing-for-good") forbid (principal == Principal::"bob", action == Action::"call", resource) when { resource.irreversible };
        "#;
        let state = tempfile::tempdir().unwrap();
        let harmless = "[mount.fx.tools.fx_stats]\ntrust = true\nmutable = false\n";
        let toml = format!("{}{harmless}", configured(&state, rules, ""));
        let world = World::start_in(state, &toml).await;
        let mut ann = client(&world, Era::Stateless, "ann").await;
        ann.capabilities = json!({"extensions": {"io.banyan/mcpax": {}}});
        let listed = ann.call("tools/list", json!({})).await;
        let safety = |name: &str| {
            let tool = listed["result"]["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap();
            tool["_meta"]["x-mcpax-safety"].clone()
        };
        assert_eq!((safety("fx__fx_echo"), safety("fx__fx_stats")), (json!("irreversible_mutable"), Value::Null));
        assert_eq!(client(&world, Era::Stateless, "bob").await.tools().await, ["fx__fx_stats"]);
    })
    .await;
}
