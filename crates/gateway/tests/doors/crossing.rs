//! Messages besides calls, across eras: log lines, subscriptions, completion, resources of two servers with the same URIs, tasks.

use serde_json::{Value, json};

use crate::world::{Client, Era, Recorder, World, bounded, fixture};

const WATCHED: &str = "test://watched-resource";

#[tokio::test]
async fn ax_06_log_lines_respect_the_callers_level() {
    bounded(async {
        for up in [Era::Initialize, Era::Stateless] {
            let world = World::start(&fixture("fx", up)).await;
            let (loud, quiet) = (Client::ready(&world, Era::Initialize).await, Client::ready(&world, Era::Initialize).await);
            assert!(loud.call("logging/setLevel", json!({"level": "info"})).await.get("result").is_some());
            assert!(quiet.call("logging/setLevel", json!({"level": "error"})).await.get("result").is_some());
            let lines = async |client: &Client, meta: Value| {
                let params = json!({"name": "fx__test_tool_with_logging", "arguments": {}, "_meta": meta});
                let (before, response) = client.whole("tools/call", params).await;
                assert!(response.value.get("result").is_some(), "{}", response.raw);
                before.iter().filter(|m| m["method"] == "notifications/message").count()
            };
            assert_eq!(lines(&loud, json!({})).await, 3, "{up:?}");
            assert_eq!(lines(&quiet, json!({})).await, 0, "{up:?}");
            let stateless = Client::ready(&world, Era::Stateless).await;
            assert_eq!(lines(&stateless, json!({})).await, 0, "none unless asked for, {up:?}");
            assert_eq!(lines(&stateless, json!({"io.modelcontextprotocol/logLevel": "info"})).await, 3, "{up:?}");
            assert_eq!(lines(&stateless, json!({"io.modelcontextprotocol/logLevel": "error"})).await, 0, "{up:?}");
            let bad = loud.call("logging/setLevel", json!({"level": "chatty"})).await;
            assert_eq!(bad["error"]["code"], -32602, "{bad}");
        }
    })
    .await;
}

#[tokio::test]
async fn ax_06_an_update_reaches_subscribers_and_nobody_else() {
    bounded(async {
        for up in [Era::Initialize, Era::Stateless] {
            let world = World::start(&fixture("fx", up)).await;
            let (one, other) = (Client::ready(&world, Era::Initialize).await, Client::ready(&world, Era::Initialize).await);
            let (mut hears, mut deaf) = (one.listen(None).await, other.listen(None).await);
            let stateless = Client::ready(&world, Era::Stateless).await;
            let filter = |uri: &str| json!({"notifications": {"resourceSubscriptions": [uri]}});
            let mut listens = stateless.begin_as(json!(5), "subscriptions/listen", filter(WATCHED)).await;
            let acknowledged = listens.next_of("notifications/subscriptions/acknowledged").await;
            assert_eq!(acknowledged["params"]["notifications"]["resourceSubscriptions"], json!([WATCHED]));

            assert!(one.call("resources/subscribe", json!({"uri": WATCHED})).await.get("result").is_some());
            let updated = async |stream: &mut crate::world::Reply| stream.next_of("notifications/resources/updated").await;
            one.tool("fx__fx_touch", json!({"uri": WATCHED})).await;
            assert_eq!(updated(&mut hears).await["params"]["uri"], WATCHED);
            let tagged = updated(&mut listens).await;
            assert_eq!(tagged["params"]["uri"], WATCHED);
            assert_eq!(tagged["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 5);

            assert!(one.call("resources/unsubscribe", json!({"uri": WATCHED})).await.get("result").is_some());
            one.tool("fx__fx_touch", json!({"uri": WATCHED})).await;
            // What comes next on every session's stream is this, so that nothing else came before it.
            let mark = async |stream: &mut crate::world::Reply, past: &str| {
                let mut updates = 0;
                loop {
                    let event = stream.next().await.expect("the stream stays open").value;
                    updates += usize::from(event["method"] == "notifications/resources/updated");
                    if event["method"] == past {
                        return updates;
                    }
                }
            };
            // Updates from before may still be on their way; those are read up to here.
            one.tool("fx__test_trigger_prompt_change", json!({})).await;
            mark(&mut hears, "notifications/prompts/list_changed").await;
            one.tool("fx__fx_touch", json!({"uri": WATCHED})).await;
            one.tool("fx__test_trigger_tool_change", json!({})).await;
            assert_eq!(mark(&mut hears, "notifications/tools/list_changed").await, 0, "{up:?}: it has unsubscribed");
            assert_eq!(mark(&mut deaf, "notifications/tools/list_changed").await, 0, "{up:?}: it never subscribed");
        }
    })
    .await;
}

#[tokio::test]
async fn ax_06_completion_finds_its_prompt_and_template() {
    bounded(async {
        for (down, up) in Era::PAIRS {
            let world = World::start(&format!("{}{}", fixture("a", up), fixture("b", up))).await;
            let client = Client::ready(&world, down).await;
            let argument = json!({"name": "arg1", "value": "par"});
            for reference in [
                json!({"type": "ref/prompt", "name": "b__test_prompt_with_arguments"}),
                json!({"type": "ref/resource", "uri": "test://template/{id}/data"}),
            ] {
                let told = client.call("completion/complete", json!({"ref": reference, "argument": argument})).await;
                assert_eq!(told["result"]["completion"]["values"], json!(["paris", "park", "party"]), "{down:?} {up:?}: {told}");
            }
            let unknown = json!({"type": "ref/prompt", "name": "b__nothing"});
            let told = client.call("completion/complete", json!({"ref": unknown, "argument": argument})).await;
            assert_eq!(told["error"]["data"]["reason"], "unknown_prompt", "{told}");
        }
    })
    .await;
}

#[tokio::test]
async fn ax_06_two_servers_with_one_uri_are_both_read() {
    bounded(async {
        let world = World::start(&format!("{}{}", fixture("one", Era::Initialize), fixture("two", Era::Stateless))).await;
        for era in [Era::Initialize, Era::Stateless] {
            let client = Client::ready(&world, era).await;
            let listed = client.call("resources/list", json!({})).await;
            let uris: Vec<&str> = listed["result"]["resources"].as_array().unwrap().iter().map(|r| r["uri"].as_str().unwrap()).collect();
            assert_eq!(uris.len(), 6, "{uris:?}");
            for uri in ["test://static-text", "two+test://static-text"] {
                assert!(uris.contains(&uri), "{uris:?}");
                let read = client.call("resources/read", json!({"uri": uri})).await;
                let text = read["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{read}"));
                assert!(text.contains("static text resource"), "{text}");
            }
            let read = client.call("resources/read", json!({"uri": "test://template/7/data"})).await;
            assert!(read["result"]["contents"][0]["text"].as_str().unwrap().contains("Data for ID: 7"), "{read}");
            let gone = client.call("resources/read", json!({"uri": "nobody://has/this"})).await;
            let code = if era == Era::Initialize { -32002 } else { -32602 };
            assert_eq!((&gone["error"]["code"], &gone["error"]["data"]["uri"]), (&json!(code), &json!("nobody://has/this")), "{gone}");
        }
    })
    .await;
}

#[tokio::test]
async fn ax_06_a_task_is_asked_for_at_its_server() {
    bounded(async {
        for era in [Era::Initialize, Era::Stateless] {
            let (a, b) = (Recorder::start(era).await, Recorder::start(era).await);
            let mount = |name: &str, r: &Recorder| format!("[mount.{name}]\nurl = \"http://{}/mcp\"\n", r.addr);
            let world = World::start(&format!("{}{}", mount("a", &a), mount("b", &b))).await;
            let client = Client::ready(&world, era).await;
            let made = client.call("tools/call", json!({"name": "b__record", "arguments": {}, "task": {"ttl": 60_000}})).await;
            let id = made["result"].get("taskId").or_else(|| made["result"]["task"].get("taskId")).unwrap_or_else(|| panic!("{made}"));
            let told = client.call("tasks/get", json!({"taskId": id})).await;
            assert_eq!((&told["result"]["taskId"], &told["result"]["status"]), (id, &json!("working")), "{told}");
            let asked = |r: &Recorder| r.seen().iter().filter(|(_, body)| body.contains("\"tasks/get\"")).count();
            assert_eq!((asked(&a), asked(&b)), (0, 1));
            let unknown = client.call("tasks/get", json!({"taskId": "of-nobody"})).await;
            assert_eq!(unknown["error"]["data"]["reason"], "unknown_task", "{unknown}");
        }
    })
    .await;
}
