//! Views of a client: profiles, names, endpoints of one mount, and three meta-tools in place of many.

use serde_json::json;

use crate::world::{Client, Era, World, bounded, fixture, fixture_with, token};

const BOTH: [Era; 2] = [Era::Initialize, Era::Stateless];

#[tokio::test]
async fn a_tokens_profile_precedes_the_clients() {
    let profiles = r#"
[profile.careful]
clients = ["care*"]
include = ["fx.fx_*"]
exclude = ["*.fx_s*"]
rename = { "fx.fx_echo" = "say" }
[profile.dotted]
names = "dotted"
include = ["fx.fx_echo"]
"#;
    bounded(async {
        let toml = format!("{}profile = \"dotted\"\n{}{profiles}{}", token("ann"), token("bob"), fixture("fx", Era::Stateless));
        let world = World::start(&toml).await;
        let client =
            |era, token: &str, name: &str| Client::new(&world, era).with("authorization", &format!("Bearer secret-of-{token}")).named(name);
        for era in BOTH {
            let careful = client(era, "bob", "careful").open().await;
            let tools = careful.tools().await;
            assert!(tools.contains(&"say".to_owned()) && tools.contains(&"fx__fx_big".to_owned()), "{tools:?}");
            assert!(!tools.iter().any(|t| t.contains("fx_s") || t.contains("test_")), "{tools:?}");
            assert_eq!(careful.tool("say", json!({"text": "x"})).await["result"]["content"][0]["text"], "x");
            for hidden in ["fx__fx_stats", "fx__test_simple_text", "fx__fx_echo", "fx.fx_stats"] {
                let told = careful.tool(hidden, json!({})).await;
                assert_eq!(told["error"]["data"]["reason"], "unknown_tool", "{hidden}: {told}");
            }
            assert!(client(era, "bob", "other").open().await.tools().await.len() > 20);
            let by_token = client(era, "ann", "careful").open().await;
            assert_eq!(by_token.tools().await, ["fx.fx_echo"]);
            assert_eq!(by_token.tool("fx.fx_echo", json!({"text": "y"})).await["result"]["content"][0]["text"], "y");
        }
    })
    .await;
}

#[tokio::test]
async fn a_changed_profile_is_told_to_whoever_sees_it() {
    bounded(async {
        let profile =
            |tool: &str| format!("[profile.p]\nclients = [\"doors\"]\ninclude = [\"fx.{tool}\"]\n{}", fixture("fx", Era::Stateless));
        let world = World::start(&profile("fx_echo")).await;
        let client = Client::ready(&world, Era::Initialize).await;
        let mut standing = client.listen(None).await;
        assert_eq!(client.tools().await, ["fx__fx_echo"]);
        world.apply(&profile("fx_big"));
        standing.next_of("notifications/tools/list_changed").await;
        assert_eq!(client.tools().await, ["fx__fx_big"]);
    })
    .await;
}

#[tokio::test]
async fn ax_01_names_are_safe_unless_somebody_takes_dots() {
    bounded(async {
        let world = World::start(&fixture("fx", Era::Initialize)).await;
        let first = async |client: Client| client.open().await.tools().await.remove(0);
        for era in BOTH {
            assert_eq!(first(Client::new(&world, era)).await, "fx__test_simple_text");
            assert_eq!(first(Client::new(&world, era).at("/mcp?names=dotted")).await, "fx.test_simple_text");
            assert_eq!(first(Client::new(&world, era).at("/mcp?names=safe")).await, "fx__test_simple_text");
            assert_eq!(first(Client::new(&world, era).at("/mcp/fx")).await, "test_simple_text");
            let dotted = Client::new(&world, era).at("/mcp?names=dotted").open().await;
            let told = dotted.tool("fx.fx_echo", json!({"text": "dots"})).await;
            assert_eq!(told["result"]["content"][0]["text"], "dots", "{told}");
            let bare = Client::new(&world, era).at("/mcp/fx").open().await;
            assert_eq!(bare.tool("fx_echo", json!({"text": "bare"})).await["result"]["content"][0]["text"], "bare");
        }
        let nowhere = Client::new(&world, Era::Stateless).at("/mcp/nope").begin("tools/list", json!({})).await;
        assert_eq!(nowhere.status, 404);
    })
    .await;
}

#[tokio::test]
async fn three_tools_stand_in_for_many() {
    bounded(async {
        let profile = "[profile.p]\nclients = [\"doors\"]\nsearch = \"always\"\n";
        let world = World::start(&format!("{profile}{}", fixture_with("fx", Era::Stateless, &["--extra-tools", "200"]))).await;
        for era in BOTH {
            let client = Client::ready(&world, era).await;
            assert_eq!(client.tools().await, ["search_tools", "describe_tool", "call_tool"]);

            let found = client.tool("search_tools", json!({"query": "sleep and report progress", "limit": 3})).await;
            assert!(found["result"]["content"][0]["text"].as_str().unwrap().contains("fx__fx_sleep"), "{found}");

            let described = client.tool("describe_tool", json!({"name": "fx__fx_sleep"})).await;
            let text = described["result"]["content"][0]["text"].as_str().unwrap_or_default();
            let definition: serde_json::Value = serde_json::from_str(text).unwrap_or_else(|_| panic!("{described}"));
            assert_eq!((&definition["name"], &definition["inputSchema"]["required"]), (&json!("fx__fx_sleep"), &json!(["ms"])));

            let arguments = json!({"name": "fx__fx_sleep", "arguments": {"ms": 40, "steps": 2}});
            let params = json!({"name": "call_tool", "arguments": arguments, "_meta": {"progressToken": "mine"}});
            let (before, response) = client.whole("tools/call", params).await;
            assert_eq!(response.value["result"]["content"][0]["text"], "slept", "{}", response.raw);
            let steps: Vec<_> = before.iter().filter(|m| m["params"]["progressToken"] == "mine").collect();
            assert_eq!(steps.len(), 2, "{before:?}");

            let direct = client.tool("fx__fx_echo", json!({"text": "still"})).await;
            assert_eq!(direct["result"]["content"][0]["text"], "still");
        }
    })
    .await;
}
