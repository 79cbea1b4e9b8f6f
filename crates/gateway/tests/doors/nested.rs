//! Gates below gates by plain configuration: names, everything else that crosses, and gates that lead to each other.

use std::time::Duration;

use gateway::admin::shapes::TraceRequest;
use serde_json::{Value, json};

use crate::asked::{rounds, said, text};
use crate::world::{Client, Era, Recorder, World, bounded, eventually, fixture, fixture_with};

/// Writes a table that mounts another gate.
fn below(name: &str, gate: &World, more: &str) -> String {
    format!("[mount.{name}]\nurl = \"http://{}/mcp\"\ngate = true\n{more}\n", gate.addr)
}

fn era_of(era: Era) -> &'static str {
    if era == Era::Initialize { "era = \"initialize\"" } else { "era = \"stateless\"" }
}

/// Starts three gates, each below the other, and a fixture below the last; the links share an era. The topmost comes first.
async fn three(link: Era, leaf: Era) -> [World; 3] {
    let gateway = World::start(&fixture("fx", leaf)).await;
    let edge = World::start(&below("stm", &gateway, era_of(link))).await;
    let root = World::start(&below("edge", &edge, era_of(link))).await;
    [root, edge, gateway]
}

#[tokio::test]
async fn ax_02_names_below_gates_are_callable_paths() {
    bounded(async {
        for link in [Era::Initialize, Era::Stateless] {
            let [root, _edge, _gateway] = three(link, Era::Initialize).await;
            for era in [Era::Initialize, Era::Stateless] {
                let safe = Client::ready(&root, era).await;
                let tools = safe.tools().await;
                assert!(tools.contains(&"edge__stm__fx__fx_echo".to_owned()), "{tools:?}");
                assert!(tools.iter().all(|name| name.len() <= 64 && !name.contains('.')), "{tools:?}");
                assert_eq!(text(&safe.tool("edge__stm__fx__fx_echo", json!({"text": "deep"})).await), "deep");
                let dotted = Client::new(&root, era).at("/mcp?names=dotted").open().await;
                assert_eq!(text(&dotted.tool("edge.stm.fx.fx_echo", json!({"text": "dots"})).await), "dots");
                let bare = Client::new(&root, era).at("/mcp/edge").open().await;
                assert_eq!(text(&bare.tool("stm__fx__fx_echo", json!({"text": "bare"})).await), "bare");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn ax_02_naming_for_clients_does_not_change_names_between_gates() {
    bounded(async {
        let profile = "names = \"safe\"\n[profile.all]\nclients = [\"*\"]\nnames = \"safe\"\nsearch = \"always\"\nrename = { \"fx.fx_echo\" = \"say\" }\n";
        let long = "a".repeat(60);
        let lower = World::start(&format!("{profile}{}", fixture(&long, Era::Stateless))).await;
        let root = World::start(&below("low", &lower, "")).await;
        let client = Client::new(&root, Era::Stateless).at("/mcp?names=dotted").open().await;
        let name = format!("low.{long}.fx_echo");
        assert!(client.tools().await.contains(&name));
        assert_eq!(text(&client.tool(&name, json!({"text": "whole"})).await), "whole");
    })
    .await;
}

#[tokio::test]
async fn ax_06_questions_and_news_cross_three_gates() {
    bounded(async {
        for (down, leaf) in Era::PAIRS {
            for link in [Era::Initialize, Era::Stateless] {
                let [root, _edge, _gateway] = three(link, leaf).await;
                let client = Client::ready(&root, down).await;
                let (tool, arguments) = ("edge__stm__fx__test_sampling", json!({"prompt": "p"}));
                let told = match down {
                    Era::Initialize => client.dialogue(tool, arguments, |q| said(&q["method"])).await.1,
                    Era::Stateless => rounds(&client, tool, arguments).await.1,
                };
                assert_eq!(text(&told), "LLM response: Paris", "{down:?} {link:?} {leaf:?}");
                let params =
                    json!({"name": "edge__stm__fx__fx_sleep", "arguments": {"ms": 40, "steps": 2}, "_meta": {"progressToken": "mine"}});
                let (before, _) = client.whole("tools/call", params).await;
                let steps = before.iter().filter(|m| m["params"]["progressToken"] == "mine").count();
                assert_eq!(steps, 2, "{down:?} {link:?} {leaf:?}: {before:?}");
                let prompt = json!({"name": "edge__stm__fx__test_prompt_with_arguments", "arguments": {"arg1": "x", "arg2": "y"}});
                assert!(client.call("prompts/get", prompt).await["result"]["messages"].is_array());
                let read = client.call("resources/read", json!({"uri": "test://static-text"})).await;
                assert!(read["result"]["contents"].is_array(), "{read}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn ax_03_a_change_at_the_bottom_reaches_the_top() {
    bounded(async {
        let [root, _edge, gateway] = three(Era::Stateless, Era::Initialize).await;
        let client = Client::ready(&root, Era::Initialize).await;
        let mut standing = client.listen(None).await;
        gateway.apply(&fixture("fy", Era::Initialize));
        loop {
            standing.next_of("notifications/tools/list_changed").await;
            let tools = client.tools().await;
            if tools.iter().any(|t| t == "edge__stm__fy__fx_echo") && !tools.iter().any(|t| t == "edge__stm__fx__fx_echo") {
                return;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn failed_servers_below_gates_are_known_above() {
    bounded(async {
        for link in [Era::Initialize, Era::Stateless] {
            let bad = "[mount.kafka]\nurl = \"http://127.0.0.1:9/mcp\"\n";
            let good = fixture("fx", Era::Stateless);
            let [root, edge, gateway] = three(link, Era::Stateless).await;
            let seen = async |wanted: &[&str]| {
                root.until("edge", |edge| edge.failed_below == wanted).await;
            };
            gateway.apply(&format!("{good}{bad}"));
            seen(&["stm.kafka"]).await;
            assert_eq!(edge.mount("stm").unwrap().failed_below, ["kafka"]);
            gateway.apply(&good);
            seen(&[]).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_gate_with_rules_tells_nobody_of_failed_servers() {
    bounded(async {
        let state = tempfile::tempdir().unwrap();
        let rules = state.path().join("policy.cedar");
        std::fs::write(&rules, "permit (principal, action, resource);").unwrap();
        let bad = "[mount.kafka]\nurl = \"http://127.0.0.1:9/mcp\"\n";
        let lower = World::start(&format!("[policy]\nfile = {rules:?}\n{bad}{}", fixture("fx", Era::Stateless))).await;
        lower.until("kafka", |kafka| kafka.state == "failed").await;
        let root = World::start(&below("low", &lower, "")).await;
        let low = root.until("low", |low| low.state == "ready").await;
        assert!(low.failed_below.is_empty() && low.tools > 0, "{low:?}");
    })
    .await;
}

#[tokio::test]
async fn ax_02_every_page_of_a_gate_is_fetched() {
    bounded(async {
        let lower = World::start(&fixture_with("fx", Era::Stateless, &["--extra-tools", "20100"])).await;
        let root = World::start(&below("low", &lower, "")).await;
        let status = root.mount("low").unwrap();
        assert_eq!(Some(status.tools), lower.mount("fx").map(|m| m.tools));
        assert!(status.tools > 20_100 && status.notes.is_empty(), "{status:?}");
    })
    .await;
}

#[tokio::test]
async fn ax_04_plain_callers_hear_of_an_unknown_tool_across_gates() {
    bounded(async {
        let state = tempfile::tempdir().unwrap();
        let file = state.path().join("policy.cedar");
        let rules = r#"
            @id("all") permit (principal, action, resource);
            @id("no-x") forbid (principal, action == Action::"call", resource == Tool::"fx.fx_echo")
                when { context.arguments has text && context.arguments.text == "x" };
        "#;
        std::fs::write(&file, rules).unwrap();
        let edge = World::start_in(state, &format!("[policy]\nfile = {file:?}\n{}", fixture("fx", Era::Stateless))).await;
        let root = World::start(&below("edge", &edge, "")).await;
        for era in [Era::Initialize, Era::Stateless] {
            let client = Client::ready(&root, era).await;
            let told = client.tool("edge__fx__fx_echo", json!({"text": "x"})).await;
            assert_eq!((&told["error"]["code"], &told["error"]["data"]["reason"]), (&json!(-32602), &json!("unknown_tool")), "{told}");
            assert_eq!(text(&client.tool("edge__fx__fx_echo", json!({"text": "y"})).await), "y");
        }
    })
    .await;
}

#[tokio::test]
async fn ax_24_mounted_circles_of_gates_are_found_and_refused() {
    bounded(async {
        let (one, two) = (World::start("").await, World::start("").await);
        let third = World::start(&format!("{}{}", below("one", &one, ""), fixture("fx", Era::Stateless))).await;
        two.apply(&below("three", &third, ""));
        two.until("three", |m| m.state == "ready").await;
        // The circle is closed: each gate leads to the next.
        one.apply(&below("two", &two, ""));
        let refused = async || {
            let all = [("two", &one), ("three", &two), ("one", &third)];
            all.iter()
                .find_map(|(name, gate)| gate.mount(name).filter(|m| m.error.as_deref().is_some_and(|e| e.contains("this very gate"))))
        };
        let status = eventually(refused).await;
        assert_eq!((status.state.as_str(), status.tools), ("failed", 0), "{status:?}");
        tokio::time::sleep(Duration::from_secs(2)).await;
        let names = Client::ready(&one, Era::Stateless).await.tools().await;
        assert!(names.iter().all(|name| name.matches("__").count() <= 3) && names.len() < 200, "{names:?}");
    })
    .await;
}

#[tokio::test]
async fn ax_24_a_gate_does_not_take_itself_for_a_server() {
    bounded(async {
        let gate = World::start("").await;
        gate.apply(&below("me", &gate, ""));
        let status = gate.until("me", |m| m.state == "failed").await;
        assert!(status.error.as_deref().is_some_and(|e| e.contains("this very gate")), "{status:?}");
    })
    .await;
}

#[tokio::test]
async fn ax_32_a_plain_server_sees_nothing_of_gates() {
    bounded(async {
        for leaf in [Era::Initialize, Era::Stateless] {
            let [root, _edge, _gateway] = three(Era::Stateless, leaf).await;
            let client = Client::ready(&root, Era::Stateless).await;
            let meta: Value = json!({"x-mcpax-route": ["forged"], "x-mcpax-cursor": 7, "x-mcpax-anything": 1, "kept": true});
            let params = json!({"name": "edge__stm__fx__fx_caps", "arguments": {}, "_meta": meta});
            let told = client.call("tools/call", params).await;
            let seen = &told["result"]["structuredContent"]["meta"];
            assert_eq!(seen["kept"], true, "{told}");
            assert!(seen.as_object().unwrap().keys().all(|key| !key.starts_with("x-mcpax")), "{seen}");
        }
    })
    .await;
}

#[tokio::test]
async fn ax_30_each_gate_advances_the_cursor_and_keeps_the_route() {
    bounded(async {
        for link in [Era::Initialize, Era::Stateless] {
            let leaf = Recorder::gate(link).await;
            let edge = World::start(&format!("[mount.pump]\nurl = \"http://{}/mcp\"\n", leaf.addr)).await;
            let root = World::start(&below("edge", &edge, era_of(link))).await;
            let client = Client::ready(&root, Era::Stateless).await;
            let forged = json!({"x-mcpax-route": ["x"], "x-mcpax-cursor": 0, "x-mcpax-other": 1});
            for params in [json!({}), json!({"_meta": forged})] {
                let mut params = params;
                params["name"] = json!("edge__pump__stm__record");
                let told = client.call("tools/call", params).await;
                assert!(told["result"]["content"].is_array(), "{told}");
                let (_, body) = leaf.seen().pop().unwrap();
                let sent: Value = serde_json::from_str(&body).unwrap();
                let meta = &sent["params"]["_meta"];
                assert_eq!(sent["params"]["name"], "stm.record");
                assert_eq!(meta["x-mcpax-route"], json!(["edge", "pump", "stm", "record"]), "{sent}");
                assert_eq!((&meta["x-mcpax-cursor"], meta.get("x-mcpax-other")), (&json!(2), None), "{sent}");
            }
            // At the endpoint of one mount, the way is the same.
            let bare = Client::new(&root, Era::Initialize).at("/mcp/edge").open().await;
            bare.tool("pump__stm__record", json!({})).await;
            assert!(leaf.seen().pop().unwrap().1.contains(r#"["edge","pump","stm","record"]"#));
        }
    })
    .await;
}

#[tokio::test]
async fn ax_30_a_route_says_which_tool_is_called() {
    bounded(async {
        let world = World::start(&format!("[registry]\n{}", fixture("fx", Era::Stateless))).await;
        for era in [Era::Initialize, Era::Stateless] {
            let mut gate = Client::new(&world, era);
            let group = if era == Era::Initialize { "experimental" } else { "extensions" };
            gate.capabilities = json!({group: {"io.banyan/mcpax": {"aggregator_id": "another"}}});
            let gate = gate.open().await;
            let call = async |name: &str, route: Value, cursor: Value| {
                let meta = json!({"x-mcpax-route": route, "x-mcpax-cursor": cursor});
                gate.call("tools/call", json!({"name": name, "arguments": {"text": "x"}, "_meta": meta})).await
            };
            // Gates above may pass the name of their own client on, or the name of another tool.
            for name in ["fx.fx_echo", "up.fx.fx_echo", "up__fx__fx_echo", "fx.fx_big", "notifications_dropped", "nothing"] {
                assert_eq!(text(&call(name, json!(["up", "fx", "fx_echo"]), json!(1)).await), "x", "{name}");
            }
            let own = call("fx.fx_echo", json!(["up", "notifications_dropped"]), json!(1)).await;
            assert_eq!(own["result"]["structuredContent"]["notifications_dropped"], 0, "{own}");
            let reason = async |route: Value, cursor: Value| {
                call("fx.fx_echo", route, cursor).await["error"]["data"]["reason"].as_str().unwrap().to_owned()
            };
            for (route, cursor) in [(json!(["up", "fx", "fx_echo"]), 0), (json!(["up", "fx", "fx_echo"]), 2), (json!(["fx"]), 0)] {
                assert_eq!(reason(route, json!(cursor)).await, "unknown_tool");
            }
            for (route, cursor) in [(json!(["fx", "fx_echo"]), json!(2)), (json!("fx"), json!(0)), (json!(["fx", "fx_echo"]), json!("0"))] {
                assert_eq!(reason(route, cursor).await, "route_invalid");
            }
        }
        // A client says what it means by the name.
        let client = Client::ready(&world, Era::Stateless).await;
        let meta = json!({"x-mcpax-route": ["fx", "fx_big"], "x-mcpax-cursor": 0});
        let told = client.call("tools/call", json!({"name": "fx__fx_echo", "arguments": {"text": "x"}, "_meta": meta})).await;
        assert_eq!(text(&told), "x");
    })
    .await;
}

#[tokio::test]
async fn ax_33_annotations_are_shown_unless_a_profile_hides_them() {
    bounded(async {
        let config = "[mount.fx.tools.\"fx_*\"]\ncost_class = \"expensive\"\n[mount.fx.tools.fx_echo]\nmutable = false\ntrust = true\n";
        let lower = World::start(&format!("{}{config}", fixture("fx", Era::Stateless))).await;
        let root = World::start(&below("low", &lower, "")).await;
        let profile = "[profile.bare]\nclients = [\"doors\"]\nannotations = false\n";
        let bare = World::start(&below("low", &lower, profile)).await;
        let known = |tool: &Value| {
            let known = tool["_meta"].as_object().map(|meta| meta.keys().filter(|key| key.starts_with("x-mcpax-")).count());
            known.unwrap_or_default()
        };
        for era in [Era::Initialize, Era::Stateless] {
            let listed = async |world: &World, extension: Option<Value>| {
                let mut client = Client::new(world, era);
                if let Some(own) = extension {
                    client.capabilities = json!({"extensions": {"io.banyan/mcpax": own}, "experimental": {"io.banyan/mcpax": own}});
                }
                let listed = client.open().await.call("tools/list", json!({})).await;
                let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}")).clone();
                let find = |end: &str| tools.iter().find(|t| t["name"].as_str().unwrap().ends_with(end)).cloned().unwrap();
                (find("fx_echo"), find("test_simple_text"), tools.len())
            };
            for asks in [None, Some(json!({}))] {
                let (echo, simple, _) = listed(&root, asks).await;
                assert_eq!((&echo["name"], &echo["_meta"]["x-mcpax-hops"]), (&json!("low__fx__fx_echo"), &json!(2)), "{echo}");
                assert_eq!((&echo["_meta"]["x-mcpax-cost-class"], &echo["_meta"]["x-mcpax-mutable"]), (&json!("expensive"), &json!(false)));
                assert_eq!(
                    (&simple["_meta"]["x-mcpax-mutable"], &simple["_meta"]["x-mcpax-latency-class"], &simple["_meta"]["x-mcpax-safety"]),
                    (&json!(true), &json!("batch"), &json!("irreversible_mutable"))
                );
            }
            assert_eq!(listed(&lower, None).await.0["_meta"]["x-mcpax-hops"], 1);
            // Below such a profile a client gets the definition as its server wrote it, and another gate still learns the risks.
            for asks in [None, Some(json!({}))] {
                let mut hidden = listed(&bare, asks).await;
                assert_eq!(known(&hidden.0) + known(&hidden.1), 0, "{hidden:?}");
                let mut shown = listed(&lower, None).await.0;
                shown["_meta"].as_object_mut().unwrap().retain(|key, _| !key.starts_with("x-mcpax-"));
                shown.as_object_mut().unwrap().retain(|key, member| key != "_meta" || *member != json!({}));
                (hidden.0["name"], shown["name"]) = (json!("fx_echo"), json!("fx_echo"));
                assert_eq!(hidden.0.to_string(), shown.to_string());
            }
            assert!(known(&listed(&bare, Some(json!({"aggregator_id": "another"}))).await.0) > 8);
        }
    })
    .await;
}

#[tokio::test]
async fn ax_31_latency_class_or_mount_ends_a_call() {
    bounded(async {
        let class = |class: &str| format!("[mount.fx.tools.fx_sleep]\nlatency_class = \"{class}\"\ntrust = true\n");
        let cases = [
            ("", "realtime", true),
            ("timeout = \"1m\"\n", "realtime", true),
            ("timeout = \"300ms\"\n", "batch", true),
            ("timeout = \"300ms\"\n", "slow", true),
            ("timeout = \"1m\"\n", "batch", false),
        ];
        for (more, named, ends) in cases {
            let lower = World::start(&format!("{}{more}{}", fixture("fx", Era::Stateless), class(named))).await;
            let root = World::start(&below("low", &lower, "")).await;
            let client = Client::ready(&root, Era::Stateless).await;
            let told = client.tool("low__fx__fx_sleep", json!({"ms": 1500, "steps": 1})).await;
            assert_eq!(told["error"]["data"]["reason"] == "upstream_timeout", ends, "{told}");
            assert_eq!(told["result"]["content"][0]["text"] == "slept", !ends, "{told}");
            if ends {
                let stats = eventually(async || {
                    let told = client.tool("low__fx__fx_stats", json!({})).await;
                    (told["result"]["structuredContent"]["cancelled"] == 1).then_some(told)
                });
                stats.await;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn ax_30_a_trace_shows_every_step_and_the_failing_one() {
    bounded(async {
        for link in [Era::Initialize, Era::Stateless] {
            let [root, _edge, gateway] = three(link, Era::Initialize).await;
            let ask = async |tool: &str| root.gateway.trace(&TraceRequest { tool: tool.into() }).await;
            for name in ["edge.stm.fx.fx_echo", "edge__stm__fx__fx_echo"] {
                let traced = ask(name).await.unwrap();
                assert_eq!(traced.tool, "edge.stm.fx.fx_echo");
                let steps: Vec<_> =
                    traced.hops.iter().map(|h| (h.mount.as_str(), h.gate, h.transport.as_str(), h.error.as_deref())).collect();
                assert_eq!(steps, [("edge", true, "http", None), ("stm", true, "http", None), ("fx", false, "stdio", None)]);
                assert!(traced.hops.is_sorted_by(|a, b| a.ms >= b.ms) && traced.hops[2].ms > 0.0, "{traced:?}");
            }
            assert!(ask("edge.nothing").await.is_err());
            // No tool was called, and only a gate is told.
            let client = Client::ready(&root, Era::Stateless).await;
            assert_eq!(client.tool("edge__stm__fx__fx_stats", json!({})).await["result"]["structuredContent"]["calls"], 0);
            assert_eq!(client.call("mcpax/trace", json!({"name": "edge__stm__fx__fx_echo"})).await["error"]["code"], -32601);
            // The way ends where a gate is gone.
            gateway.shut();
            let traced = eventually(async || ask("edge.stm.fx.fx_echo").await.ok().filter(|t| t.hops.len() < 3)).await;
            assert!(traced.hops.len() == 2 && traced.hops[0].error.is_none() && traced.hops[1].error.is_some(), "{traced:?}");
        }
    })
    .await;
}
