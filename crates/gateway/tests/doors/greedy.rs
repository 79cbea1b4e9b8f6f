//! Servers that ask without end, clients that want more than their share, and the bounds of a gate. Does not try two principals, but for
//! subscriptions.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::asked::text;
use crate::world::registrant::{Registrant, reads};
use crate::world::{Client, Era, World, bounded, eventually, token};

/// A server of either era. `ask` asks the caller `n` times at once and waits for ever; `refused` counts questions answered with an error;
/// `again` wants input, whatever the input. Subscriptions are taken at once, and `slow` subscriptions when `agree` is called; `waiting`
/// counts those waiting, with the maximum. A running process keeps a file of its own in the given directory.
const GREEDY: &str = r#"
import json, os, sys
era, how, place = sys.argv[1:4]
mark = os.path.join(place, str(os.getpid()))
open(mark, "w").close()
waiting, most, refused = [], 0, 0
def say(m):
    print(json.dumps({"jsonrpc": "2.0", **m}), flush=True)
def answer(id, **result):
    say({"id": id, "result": {"resultType": "complete", "ttlMs": 3600000, "cacheScope": "private", **result}})
def tell(id, what):
    answer(id, content=[{"type": "text", "text": json.dumps(what)}])
def ask(m, n=1, bytes=1):
    for at in range(n):
        form = {"message": "m" * bytes, "requestedSchema": {"type": "object", "properties": {}}}
        say({"id": f"{m['id']}-{at}", "method": "elicitation/create", "params": form})
def again(m):
    form = {"message": "m", "requestedSchema": {"type": "object", "properties": {}}}
    wanted = {"a": {"method": "elicitation/create", "params": form}}
    answer(m["id"], resultType="input_required", inputRequests=wanted, requestState="s")
def agree(m):
    while waiting:
        answer(waiting.pop(0))
    tell(m["id"], "agreed")
TOOLS = {"ask": ask, "again": again, "agree": agree,
    "refused": lambda m: tell(m["id"], refused), "waiting": lambda m: tell(m["id"], [len(waiting), most])}
for line in sys.stdin:
    m = json.loads(line)
    p = m.get("params", {})
    capabilities = {"tools": {}, "resources": {"subscribe": True}}
    if "method" not in m:
        refused += "error" in m
    elif m["method"] == "server/discover" and era == "stateless":
        about = {"io.modelcontextprotocol/serverInfo": {"name": "greedy", "version": "1"}}
        answer(m["id"], supportedVersions=["2026-07-28"], capabilities=capabilities, _meta=about)
    elif m["method"] == "initialize" and era == "initialize":
        answer(m["id"], protocolVersion="2025-11-25", capabilities=capabilities, serverInfo={"name": "greedy", "version": "1"})
    elif m["method"] == "tools/list":
        answer(m["id"], tools=[{"name": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}} for name in TOOLS])
    elif m["method"] == "resources/list":
        answer(m["id"], resources=[])
    elif m["method"] == "resources/templates/list":
        answer(m["id"], resourceTemplates=[{"name": "any", "uriTemplate": "test://{id}"}])
    elif m["method"] == "tools/call":
        TOOLS[p["name"]](m, **p.get("arguments", {}))
    elif m["method"] == "resources/subscribe" and how == "slow":
        waiting.append(m["id"])
        most = max(most, len(waiting))
    elif m["method"] in ("resources/subscribe", "resources/unsubscribe"):
        answer(m["id"])
    elif "id" in m:
        say({"id": m["id"], "error": {"code": -32601, "message": "no"}})
os.remove(mark)
"#;

/// Writes a mount of the server, whose processes leave their marks in a directory; `more` goes into the mount.
fn greedy(era: Era, how: &str, place: &tempfile::TempDir, more: &str) -> String {
    let era = if era == Era::Stateless { "stateless" } else { "initialize" };
    let args = json!(["-c", GREEDY, era, how, place.path()]);
    format!("[mount.srv]\ncommand = \"python3\"\nargs = {args}\n{more}")
}

/// Calls a tool as a client without capabilities, and gives the answer.
async fn said(world: &World, tool: &str) -> Value {
    let mut client = Client::new(world, Era::Stateless);
    client.capabilities = json!({});
    serde_json::from_str(text(&client.tool(&format!("srv__{tool}"), json!({})).await)).unwrap()
}

async fn until(world: &World, tool: &str, wanted: &Value) {
    eventually(async || (said(world, tool).await == *wanted).then_some(())).await;
}

#[tokio::test]
async fn questions_at_once_are_bounded_for_call_and_session() {
    bounded(async {
        for (era, asked, refused) in [
            (Era::Stateless, json!({"n": 100}), 36),
            (Era::Stateless, json!({"n": 20, "bytes": 1 << 20}), 5),
            (Era::Initialize, json!({"n": 300}), 44),
        ] {
            let place = tempfile::tempdir().unwrap();
            let world = World::start(&greedy(Era::Initialize, "", &place, "")).await;
            let client = Client::ready(&world, era).await;
            let (params, refused) = (json!({"name": "srv__ask", "arguments": asked}), json!(refused));
            tokio::select! {
                // A stateless caller is answered with the first questions, one of a session with none of them.
                _ = async {
                    let mut reply = client.begin("tools/call", params.clone()).await;
                    while reply.next().await.is_some() {}
                    std::future::pending::<()>().await;
                } => {}
                () = until(&world, "refused", &refused) => {}
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_gets_input_a_bounded_number_of_times() {
    bounded(async {
        let place = tempfile::tempdir().unwrap();
        let world = World::start(&greedy(Era::Stateless, "", &place, "")).await;
        let client = Client::ready(&world, Era::Initialize).await;
        let (questions, told) = client.dialogue("srv__again", json!({}), |_| json!({"action": "accept", "content": {}})).await;
        assert_eq!(questions.len(), 32);
        assert!(told["error"]["message"].as_str().unwrap().contains("32 times"), "{told}");
    })
    .await;
}

#[tokio::test]
async fn a_subscribed_address_has_a_longest_length() {
    bounded(async {
        let place = tempfile::tempdir().unwrap();
        let world = World::start(&greedy(Era::Initialize, "", &place, "")).await;
        let [fits, long] = [8192, 8193].map(|length| format!("test://{}", "x".repeat(length - "test://".len())));
        let session = Client::ready(&world, Era::Initialize).await;
        assert!(session.call("resources/subscribe", json!({"uri": fits})).await["result"].is_object());
        let told = session.call("resources/subscribe", json!({"uri": long})).await;
        assert!(told["error"]["message"].as_str().unwrap().contains("longer than 8192 bytes"), "{told}");
        let client = Client::ready(&world, Era::Stateless).await;
        let wanted = json!({"notifications": {"resourceSubscriptions": [long, fits]}});
        let mut listener = client.begin("subscriptions/listen", wanted).await;
        let agreed = listener.next_of("notifications/subscriptions/acknowledged").await;
        assert_eq!(agreed["params"]["notifications"]["resourceSubscriptions"], json!([fits]));
    })
    .await;
}

#[tokio::test]
async fn subscriptions_in_progress_at_a_server_are_bounded() {
    bounded(async {
        let place = tempfile::tempdir().unwrap();
        let world = World::start(&greedy(Era::Initialize, "slow", &place, "")).await;
        let client = Client::ready(&world, Era::Stateless).await;
        let uris: Vec<String> = (0..40).map(|n| format!("test://{n}")).collect();
        let listening = async {
            let mut listener = client.begin("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": uris}})).await;
            listener.next_of("notifications/subscriptions/acknowledged").await
        };
        let agreeing = async {
            for waiting in [16, 16, 8] {
                until(&world, "waiting", &json!([waiting, 16])).await;
                said(&world, "agree").await;
            }
        };
        let (agreed, ()) = tokio::join!(listening, agreeing);
        assert_eq!(agreed["params"]["notifications"]["resourceSubscriptions"].as_array().map(Vec::len), Some(40));
    })
    .await;
}

#[tokio::test]
async fn m15_who_subscribes_without_end_leaves_room_for_others() {
    bounded(async {
        let place = tempfile::tempdir().unwrap();
        let toml = format!("[limits]\nsubscriptions = 4\n{}{}{}", token("ann"), token("bob"), greedy(Era::Initialize, "", &place, ""));
        let world = World::start(&toml).await;
        let client = async |who: &str, era| Client::new(&world, era).with("authorization", &format!("Bearer secret-of-{who}")).open().await;
        let (ann, bob) = (client("ann", Era::Initialize).await, client("bob", Era::Initialize).await);
        let take = async |client: &Client, how: &str, uri: &str| {
            client.call(&format!("resources/{how}"), json!({"uri": format!("test://{uri}")})).await["error"]["code"].clone()
        };
        assert_eq!([take(&ann, "subscribe", "a").await, take(&ann, "subscribe", "b").await], [Value::Null, Value::Null]);
        assert_eq!(take(&ann, "subscribe", "c").await, -32009, "of four one alone has two");
        let other = client("ann", Era::Stateless).await;
        let wanted = json!({"notifications": {"resourceSubscriptions": ["test://d"]}});
        assert_eq!(other.call("subscriptions/listen", wanted.clone()).await["error"]["code"], -32009, "in whatever era");
        assert_eq!(take(&bob, "subscribe", "c").await, Value::Null);
        assert_eq!(take(&ann, "unsubscribe", "a").await, Value::Null);
        let mut listener = other.begin("subscriptions/listen", wanted).await;
        listener.next_of("notifications/subscriptions/acknowledged").await;
    })
    .await;
}

#[tokio::test]
async fn stateless_clients_have_bounded_own_connections_at_a_server() {
    bounded(async {
        let place = tempfile::tempdir().unwrap();
        let world = World::start(&greedy(Era::Initialize, "", &place, "sharing = \"never\"\n")).await;
        for number in 0..18 {
            let client = Client::new(&world, Era::Stateless).named(&format!("client-{number}"));
            assert_eq!(text(&client.tool("srv__refused", json!({})).await), "0");
        }
        // One more is the gate's own.
        eventually(async || (std::fs::read_dir(place.path()).unwrap().count() == 17).then_some(())).await;
    })
    .await;
}

/// Has a server tell `many` times of a changed resource, with so many bytes each, before a listener is acknowledged. Counts the news that
/// arrive.
async fn flooded(many: usize, bytes: usize) -> usize {
    let place = tempfile::tempdir().unwrap();
    let resources = json!([{"name": "r", "uri": "other://r"}, {"name": "last", "uri": "other://last"}]);
    let lists = json!({"tools": [reads("read")], "resources": resources, "capabilities": {"resources": {"subscribe": true}}});
    let server = Registrant::offering(Era::Stateless, lists).await;
    let world = World::start(&format!("{}[mount.other]\nurl = \"{}\"\n", greedy(Era::Initialize, "slow", &place, ""), server.url())).await;
    let (first, second) = (Client::ready(&world, Era::Stateless).await, Client::ready(&world, Era::Stateless).await);
    let listen = |uris: Value| json!({"notifications": {"resourceSubscriptions": uris}});
    let mut quick = first.begin("subscriptions/listen", listen(json!(["other://r"]))).await;
    quick.next_of("notifications/subscriptions/acknowledged").await;
    let slow = second.begin("subscriptions/listen", listen(json!(["other://r", "other://last", "test://slow"])));
    let flooding = async {
        until(&world, "waiting", &json!([1, 1])).await;
        for _ in 0..many {
            server.say("notifications/resources/updated", &json!({"uri": "other://r", "more": "x".repeat(bytes)}));
        }
        for _ in 0..many {
            quick.next_of("notifications/resources/updated").await;
        }
        said(&world, "agree").await;
    };
    let (mut slow, ()) = tokio::join!(slow, flooding);
    assert_eq!(slow.next().await.unwrap().value["method"], "notifications/subscriptions/acknowledged");
    server.touch("other://last");
    let mut reached = 0;
    while slow.next_of("notifications/resources/updated").await["params"]["uri"] != "other://last" {
        reached += 1;
    }
    reached
}

#[tokio::test]
async fn news_before_acknowledgement_waits_within_bounds() {
    bounded(async {
        assert_eq!(flooded(1500, 0).await, 1000);
        let long = flooded(300, 8 << 10).await;
        assert!((100..=128).contains(&long), "{long}");
    })
    .await;
}

#[tokio::test]
async fn requests_at_once_over_http_2_are_bounded() {
    bounded(async {
        let world = World::start("").await;
        let mut stream = TcpStream::connect(world.addr).await.unwrap();
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.unwrap();
        assert_eq!(head[3], 4, "the first frame says what may be done");
        let mut settings = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
        stream.read_exact(&mut settings).await.unwrap();
        assert!(settings.chunks(6).any(|setting| setting == [0, 3, 0, 0, 0, 100]), "{settings:?}");
    })
    .await;
}
