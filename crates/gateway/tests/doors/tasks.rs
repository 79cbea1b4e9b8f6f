//! The tasks extension at the doors: statuses on a listener's stream, and the owner of a task.

use serde_json::{Value, json};

use crate::world::{Client, Era, Recorder, Reply, World, bounded, fixture, token};

/// Makes a client with the extension.
fn able(world: &World) -> Client {
    let mut client = Client::new(world, Era::Stateless);
    client.capabilities = json!({"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
    client
}

/// Begins a task that waits for an answer.
async fn begun(client: &Client, tool: &str) -> String {
    let made = client.tool(tool, json!({"filename": "f"})).await;
    made["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
}

/// Answers, so that the task goes on to the end.
async fn answered(client: &Client, id: &str) {
    let accepted = json!({"confirm": {"action": "accept", "content": {"confirm": true}}});
    loop {
        if client.call("tasks/get", json!({"taskId": id})).await["result"]["status"] == "input_required" {
            break;
        }
    }
    let told = client.call("tasks/update", json!({"taskId": id, "inputResponses": accepted})).await;
    assert_eq!(told["result"]["resultType"], "complete", "{told}");
}

/// Listens, and gives the honoured filter.
async fn listening(client: &Client, id: Value, filter: Value) -> (Reply, Value) {
    let mut stream = client.begin_as(id, "subscriptions/listen", json!({"notifications": filter})).await;
    let mut first = stream.next().await.unwrap().value;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
    (stream, first["params"]["notifications"].take())
}

#[tokio::test]
async fn ax_06_task_statuses_reach_the_listening_stream() {
    bounded(async {
        let world = World::start(&format!("{}{}", fixture("a", Era::Stateless), fixture("b", Era::Stateless))).await;
        let client = able(&world);
        let (id, other) = (begun(&client, "b__confirm_delete").await, begun(&client, "a__confirm_delete").await);
        let (mut hears, honoured) = listening(&client, json!("mine"), json!({"taskIds": [id, "of-nobody"]})).await;
        assert_eq!(honoured, json!({"taskIds": [id]}));
        let (mut both, honoured) = listening(&client, json!(7), json!({"taskIds": [other, id], "toolsListChanged": true})).await;
        assert_eq!(honoured, json!({"taskIds": [other, id], "toolsListChanged": true}));
        let (mut deaf, _) = listening(&client, json!(8), json!({"toolsListChanged": true})).await;

        answered(&client, &id).await;
        for (stream, tag) in [(&mut hears, json!("mine")), (&mut both, json!(7))] {
            let told = loop {
                let told = stream.next_of("notifications/tasks").await;
                assert_eq!(
                    (&told["params"]["taskId"], &told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"]),
                    (&json!(id), &tag)
                );
                if told["params"]["status"] == "completed" {
                    break told;
                }
            };
            assert_eq!(told["params"]["result"]["content"][0]["text"], "deleted", "{told}");
        }
        client.tool("a__test_trigger_tool_change", json!({})).await;
        assert_eq!(deaf.next().await.unwrap().value["method"], "notifications/tools/list_changed", "and nothing before it");
    })
    .await;
}

/// A server of the initialize era: `begin` begins the task `t-1`, and while `end` runs that task ends.
const OF_SESSIONS: &str = r#"
import json, sys
def put(**message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
task = {"taskId": "t-1", "createdAt": "2025-11-25T00:00:00Z", "lastUpdatedAt": "2025-11-25T00:00:00Z", "ttl": 60000}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked: continue
    name, result = asked["params"].get("name"), {"content": []}
    if asked["method"] == "initialize":
        result = {"protocolVersion": "2025-11-25", "serverInfo": {"name": "s", "version": "1"},
                  "capabilities": {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}}
    elif asked["method"] == "tools/list":
        result = {"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in ("begin", "end")]}
    elif name == "begin":
        result = {"task": {**task, "status": "working"}}
    elif name == "end":
        put(method="notifications/tasks/status", params={**task, "status": "completed"})
    elif asked["method"] != "tools/call":
        put(id=asked["id"], error={"code": -32601, "message": "not served"})
        continue
    put(id=asked["id"], result=result)
"#;

#[tokio::test]
async fn an_initialize_era_status_goes_to_the_tasks_owner() {
    bounded(async {
        let server = format!("[mount.s]\ncommand = \"python3\"\nargs = [\"-c\", '''{OF_SESSIONS}''']\n");
        let world = World::start(&format!("{}{}{server}", token("ann"), token("bob"))).await;
        let session = async |name| Client::new(&world, Era::Initialize).with("authorization", name).open().await;
        let (ann, bob) = (session("Bearer secret-of-ann").await, session("Bearer secret-of-bob").await);
        let mut hers = ann.listen(None).await;
        let made = ann.call("tools/call", json!({"name": "s__begin", "arguments": {}, "task": {}})).await;
        assert_eq!(made["result"]["task"]["taskId"], "t-1", "{made}");

        let (before, ended) = bob.whole("tools/call", json!({"name": "s__end", "arguments": {}})).await;
        assert!(ended.value.get("result").is_some(), "{}", ended.raw);
        assert!(before.is_empty(), "it is none of his: {before:?}");
        let told = hers.next_of("notifications/tasks/status").await;
        assert_eq!((&told["params"]["taskId"], &told["params"]["status"]), (&json!("t-1"), &json!("completed")));
    })
    .await;
}

#[tokio::test]
async fn statuses_are_refused_to_a_client_without_the_extension() {
    bounded(async {
        let world = World::start(&fixture("fx", Era::Stateless)).await;
        let client = Client::ready(&world, Era::Stateless).await;
        let mut reply = client.begin("subscriptions/listen", json!({"notifications": {"taskIds": ["t"]}})).await;
        let told = reply.finish().await.1.value;
        assert_eq!((reply.status.as_u16(), &told["error"]["code"]), (400, &json!(-32021)), "{told}");
        let needed = &told["error"]["data"]["requiredCapabilities"]["extensions"]["io.modelcontextprotocol/tasks"];
        assert_eq!(needed, &json!({}), "{told}");
    })
    .await;
}

#[tokio::test]
async fn a_task_is_nobodys_business_but_its_own_principals() {
    bounded(async {
        let world = World::start(&format!("{}{}{}", token("ann"), token("bob"), fixture("fx", Era::Stateless))).await;
        let (ann, bob) =
            (able(&world).with("authorization", "Bearer secret-of-ann"), able(&world).with("authorization", "Bearer secret-of-bob"));
        let id = begun(&ann, "fx__confirm_delete").await;
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let told = bob.call(method, json!({"taskId": id, "inputResponses": {}})).await;
            assert_eq!((&told["error"]["code"], &told["error"]["data"]["reason"]), (&json!(-32602), &json!("unknown_task")), "{told}");
        }
        let (_, honoured) = listening(&bob, json!(1), json!({"taskIds": [id]})).await;
        assert_eq!(honoured, json!({}));
        answered(&ann, &id).await;
    })
    .await;
}

#[tokio::test]
async fn a_task_request_needs_mcp_name_with_its_id() {
    bounded(async {
        let up = Recorder::start(Era::Stateless).await;
        let world = World::start(&format!("[mount.up]\nurl = \"http://{}/mcp\"\n", up.addr)).await;
        let client = Client::ready(&world, Era::Stateless).await;
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            for name in [Some("another"), None] {
                let mut reply = client.misnamed(method, json!({"taskId": "t-1", "inputResponses": {}}), name).await;
                let told = reply.finish().await.1.value;
                assert_eq!((reply.status.as_u16(), &told["error"]["code"]), (400, &json!(-32020)), "{method} {name:?}: {told}");
            }
        }
        assert!(up.seen().iter().all(|(_, body)| !body.contains("t-1")), "refused at the door");
        let told = client.misnamed("tasks/get", json!({"taskId": "t-1"}), Some("t-1")).await.finish().await.1.value;
        assert_eq!(told["result"]["taskId"], "t-1", "{told}");
    })
    .await;
}
