//! The three servers, spoken to over a pipe in both eras. The official clients are not needed here; they try them elsewhere.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;

use super::*;

#[tokio::test]
async fn each_server_shakes_hands_and_lists_tools_that_are_legal() {
    for name in NAMES {
        let mut client = Client::of(name);
        let hello = client.initialize(json!({})).await;
        assert_eq!(hello["protocolVersion"], "2025-11-25");
        assert_eq!(hello["serverInfo"]["name"], name);
        let tools = client.call("tools/list", json!({})).await["tools"].clone();
        for tool in tools.as_array().unwrap() {
            assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
            assert!(tool["description"].as_str().is_some_and(|text| text.len() > 10), "{tool}");
        }
        assert!(tools.as_array().unwrap().len() >= 4);
    }
}

#[tokio::test]
async fn each_server_is_discovered_and_says_how_long_its_lists_keep() {
    for name in NAMES {
        let mut client = Client::of(name);
        let found = client.call("server/discover", stateless(json!({}), &json!({}))).await;
        assert_eq!((&found["supportedVersions"], &found["resultType"]), (&json!(["2026-07-28"]), &json!("complete")));
        let list = client.call("tools/list", stateless(json!({}), &json!({}))).await;
        assert!(list["ttlMs"].is_u64() && list["cacheScope"].is_string() && list["resultType"] == "complete");
        assert_eq!(list["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], name);
    }
}

#[tokio::test]
async fn the_stateless_era_is_strict_about_what_a_request_carries() {
    let mut client = Client::of("clock");
    let code = |answer: &Value| answer["error"]["code"].as_i64();
    let bare = client.ask("server/discover", json!({})).await;
    assert_eq!(code(&bare), Some(-32602));
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2099-01-01", "io.modelcontextprotocol/clientCapabilities": {} });
    let unknown = client.ask("tools/list", json!({ "_meta": meta })).await;
    assert_eq!((code(&unknown), &unknown["error"]["data"]["supported"]), (Some(-32022), &json!(["2026-07-28"])));
    for removed in ["ping", "logging/setLevel", "resources/subscribe", "no/such"] {
        let answer = client.ask(removed, stateless(json!({}), &json!({}))).await;
        assert_eq!(code(&answer), Some(-32601), "{removed}");
    }
    let early = client.ask("tools/list", json!({})).await;
    assert_eq!(code(&early), Some(-32602));
}

#[tokio::test]
async fn the_clock_tells_time_in_zones_and_explains_bad_ones() {
    let mut client = Client::of("clock");
    client.initialize(json!({})).await;
    let converted = client.tool("convert", json!({ "time": "2026-07-01T12:00", "from": "UTC", "to": "Asia/Tokyo" })).await;
    assert_eq!(converted["structuredContent"]["time"], "2026-07-01T21:00:00+09:00");
    let now = client.tool("now", json!({})).await;
    assert!(now["structuredContent"]["unix"].as_i64().unwrap() > 1_700_000_000);
    let bad = client.tool("now", json!({ "zone": "Mars/Olympus" })).await;
    assert_eq!(bad["isError"], true);
    assert!(bad["content"][0]["text"].as_str().unwrap().contains("`zones`"));
}

#[tokio::test]
async fn waiting_reports_progress_and_ends_when_it_is_cancelled() {
    let mut client = Client::of("clock");
    client.initialize(json!({})).await;
    let params = json!({ "name": "wait", "arguments": { "seconds": 0.05, "steps": 5 }, "_meta": { "progressToken": "p" } });
    let id = client.send("tools/call", params).await;
    let mut steps = Vec::new();
    let answer = loop {
        let message = client.next().await;
        if message["id"] == id {
            break message;
        }
        assert_eq!((&message["method"], &message["params"]["progressToken"]), (&json!("notifications/progress"), &json!("p")));
        steps.push(message["params"]["progress"].as_f64().unwrap());
    };
    assert_eq!(steps, [1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(answer["result"]["structuredContent"]["seconds"], 0.05);

    let long = client.send("tools/call", json!({ "name": "wait", "arguments": { "seconds": 500 } })).await;
    client.write(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": long } })).await;
    // Had the wait gone on, the end of the input would have to wait for it.
    assert_eq!(client.call("ping", json!({})).await, json!({}));
    client.end(Duration::from_millis(900)).await;
}

#[tokio::test]
async fn log_messages_come_to_those_who_set_a_level() {
    let mut client = Client::of("clock");
    client.initialize(json!({})).await;
    assert_eq!(client.tool("wait", json!({ "seconds": 0 })).await["isError"], Value::Null);
    client.call("logging/setLevel", json!({ "level": "info" })).await;
    client.send("tools/call", json!({ "name": "wait", "arguments": { "seconds": 0 } })).await;
    let message = client.next().await;
    assert_eq!((&message["method"], &message["params"]["level"]), (&json!("notifications/message"), &json!("info")));
}

#[tokio::test]
async fn a_note_is_a_resource_and_its_changes_are_told_to_those_who_subscribed() {
    let mut client = Client::of("notes");
    client.initialize(json!({})).await;
    let id = client.send("tools/call", json!({ "name": "add", "arguments": { "title": "T", "text": "body" } })).await;
    let (news, answer) = client.until(&id).await;
    assert_eq!(methods(&news), ["notifications/resources/list_changed"]);
    let uri = answer["structuredContent"]["uri"].as_str().unwrap().to_owned();

    client.call("resources/subscribe", json!({ "uri": uri })).await;
    let id = client.send("tools/call", json!({ "name": "update", "arguments": { "id": 3, "text": "new body" } })).await;
    let (news, _) = client.until(&id).await;
    assert_eq!(news[0]["params"]["uri"], uri.as_str());
    let read = client.call("resources/read", json!({ "uri": uri })).await;
    assert!(read["contents"][0]["text"].as_str().unwrap().contains("new body"));

    client.call("resources/unsubscribe", json!({ "uri": uri })).await;
    let id = client.send("tools/call", json!({ "name": "update", "arguments": { "id": 3, "text": "newer" } })).await;
    assert!(client.until(&id).await.0.is_empty());
    let gone = client.ask("resources/read", json!({ "uri": "note://99" })).await;
    assert_eq!((&gone["error"]["code"], &gone["error"]["data"]["uri"]), (&json!(-32002), &json!("note://99")));
}

#[tokio::test]
async fn listeners_of_the_stateless_era_hear_what_they_asked_for_under_their_own_tag() {
    let mut client = Client::of("notes");
    let wanted = json!({ "resourcesListChanged": true, "resourceSubscriptions": ["note://1"], "toolsListChanged": true });
    let listen = client.send("subscriptions/listen", stateless(json!({ "notifications": wanted }), &json!({}))).await;
    let ack = client.next().await;
    assert_eq!(ack["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(ack["params"]["notifications"], json!({ "resourcesListChanged": true, "resourceSubscriptions": ["note://1"] }));

    let change = |name: &str, arguments: Value| stateless(json!({ "name": name, "arguments": arguments }), &json!({}));
    for (call, heard) in [
        (change("update", json!({ "id": 1, "text": "x" })), vec!["notifications/resources/updated"]),
        (change("update", json!({ "id": 2, "text": "x" })), vec![]),
        (change("delete", json!({ "id": 2 })), vec!["notifications/resources/list_changed"]),
        (change("delete", json!({ "id": 1 })), vec!["notifications/resources/list_changed"]),
    ] {
        let id = client.send("tools/call", call).await;
        let (news, _) = client.until(&id).await;
        assert_eq!(methods(&news), heard);
        assert!(news.iter().all(|message| message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == listen));
    }
    client.write(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": listen } })).await;
    let id = client.send("tools/call", change("add", json!({ "title": "a", "text": "b" }))).await;
    assert!(client.until(&id).await.0.is_empty());
}

#[tokio::test]
async fn deleting_everything_asks_a_person_by_a_request_in_the_initialize_era() {
    let mut client = Client::of("notes");
    client.initialize(json!({ "elicitation": {} })).await;
    for (reply, left) in [
        (json!({ "action": "decline" }), 2),
        (json!({ "action": "accept", "content": { "confirm": false } }), 2),
        (json!({ "action": "accept", "content": { "confirm": true } }), 0),
    ] {
        let id = client.send("tools/call", json!({ "name": "delete_all", "arguments": {} })).await;
        let question = client.next().await;
        assert_eq!(question["method"], "elicitation/create");
        assert!(question["params"]["message"].as_str().unwrap().contains("all 2 notes"));
        client.write(json!({ "jsonrpc": "2.0", "id": question["id"], "result": reply })).await;
        client.until(&id).await;
        assert_eq!(client.tool("list", json!({})).await["structuredContent"]["matching"], left);
    }
}

#[tokio::test]
async fn deleting_everything_asks_a_person_by_an_input_request_in_the_stateless_era() {
    let mut client = Client::of("notes");
    let capabilities = json!({ "elicitation": {} });
    let call = |more: Value| {
        let mut params = json!({ "name": "delete_all", "arguments": {} });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        stateless(params, &capabilities)
    };
    let asked = client.call("tools/call", call(json!({}))).await;
    assert_eq!(
        (&asked["resultType"], &asked["inputRequests"]["confirm"]["method"]),
        (&json!("input_required"), &json!("elicitation/create"))
    );
    let yes = json!({ "confirm": { "action": "accept", "content": { "confirm": true } } });

    let old = client.call("tools/call", call(json!({ "inputResponses": yes, "requestState": "0" }))).await;
    assert_eq!((&old["isError"], &old["resultType"]), (&json!(true), &json!("complete")));
    let done = client.call("tools/call", call(json!({ "inputResponses": yes, "requestState": asked["requestState"] }))).await;
    assert_eq!(done["content"][0]["text"], "Deleted 2 notes.");
}

#[tokio::test]
async fn a_client_that_cannot_ask_is_told_what_is_missing() {
    let mut client = Client::of("notes");
    let params = json!({ "name": "delete_all", "arguments": {} });
    let refused = client.ask("tools/call", stateless(params.clone(), &json!({}))).await;
    assert_eq!(refused["error"]["code"], -32021);
    assert_eq!(refused["error"]["data"]["requiredCapabilities"], json!({ "elicitation": {} }));
    client.initialize(json!({})).await;
    assert_eq!(client.call("tools/call", params).await["isError"], true);
}

#[tokio::test]
async fn prompts_come_and_go_with_the_notes_and_complete_their_arguments() {
    let mut client = Client::of("notes");
    client.initialize(json!({})).await;
    let names =
        |list: &Value| list["prompts"].as_array().unwrap().iter().map(|p| p["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(names(&client.call("prompts/list", json!({})).await), ["summarize", "review"]);
    let argument = json!({ "ref": { "type": "ref/prompt", "name": "summarize" }, "argument": { "name": "tag", "value": "D" } });
    assert_eq!(client.call("completion/complete", argument).await["completion"]["values"], json!(["demo"]));
    let prompt = client.call("prompts/get", json!({ "name": "summarize", "arguments": { "tag": "home" } })).await;
    let text = prompt["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(text.contains("Shopping") && !text.contains("Welcome"));

    client.tool("delete", json!({ "id": 1 })).await;
    let id = client.send("tools/call", json!({ "name": "delete", "arguments": { "id": 2 } })).await;
    assert_eq!(methods(&client.until(&id).await.0), ["notifications/resources/list_changed", "notifications/prompts/list_changed"]);
    assert_eq!(names(&client.call("prompts/list", json!({})).await), ["summarize"]);
}

#[tokio::test]
async fn nonsense_is_answered_and_the_next_line_is_read() {
    let mut client = Client::of("clock");
    client.line("{nonsense").await;
    assert_eq!(client.next().await["error"]["code"], -32700);
    client.line("[1]").await;
    assert_eq!(client.next().await["error"]["code"], -32600);
    client.line("").await;
    assert_eq!(client.call("ping", json!({})).await, json!({}));
}

#[tokio::test]
async fn a_server_ends_with_its_input_after_the_last_answer() {
    let mut client = Client::of("system");
    client.initialize(json!({})).await;
    let id = client.send("tools/call", json!({ "name": "disks" })).await;
    client.write.shutdown().await.unwrap();
    client.until(&id).await;
    client.end(Duration::from_secs(3)).await;
    assert!(matches!(serve("tea", tokio::io::empty(), tokio::io::sink()).await, Err(DemoError::Unknown(_))));
}

fn stateless(mut params: Value, capabilities: &Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    params
}

fn methods(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(|message| message["method"].as_str().unwrap()).collect()
}

struct Client {
    write: WriteHalf<DuplexStream>,
    read: Lines<BufReader<ReadHalf<DuplexStream>>>,
    server: JoinHandle<Result<(), DemoError>>,
    ids: u64,
}

impl Client {
    fn of(name: &'static str) -> Self {
        let (near, far) = tokio::io::duplex(1 << 20);
        let (input, output) = tokio::io::split(far);
        let server = tokio::spawn(serve(name, input, output));
        let (read, write) = tokio::io::split(near);
        Self { write, read: BufReader::new(read).lines(), server, ids: 100 }
    }

    async fn initialize(&mut self, capabilities: Value) -> Value {
        let info = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info });
        let hello = self.call("initialize", params).await;
        self.write(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        hello
    }

    async fn tool(&mut self, name: &str, arguments: Value) -> Value {
        let id = self.send("tools/call", json!({ "name": name, "arguments": arguments })).await;
        self.until(&id).await.1
    }

    async fn call(&mut self, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params).await;
        assert!(answer.get("result").is_some(), "{method}: {answer}");
        answer["result"].clone()
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        let answer = self.next().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Reads the messages before the answer to `id`, and the result.
    async fn until(&mut self, id: &Value) -> (Vec<Value>, Value) {
        let mut before = Vec::new();
        loop {
            let message = self.next().await;
            if message["id"] == *id {
                return (before, message["result"].clone());
            }
            before.push(message);
        }
    }

    async fn send(&mut self, method: &str, params: Value) -> Value {
        self.ids += 1;
        self.write(json!({ "jsonrpc": "2.0", "id": self.ids, "method": method, "params": params })).await;
        self.ids.into()
    }

    async fn write(&mut self, message: Value) {
        self.line(&message.to_string()).await;
    }

    async fn line(&mut self, line: &str) {
        self.write.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(Duration::from_secs(5), self.read.next_line()).await.expect("no message in time");
        serde_json::from_str(&line.unwrap().expect("the server has ended")).unwrap()
    }

    async fn end(mut self, within: Duration) {
        self.write.shutdown().await.unwrap();
        tokio::time::timeout(within, self.server).await.expect("the server goes on").unwrap().unwrap();
    }
}
