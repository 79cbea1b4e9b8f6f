//! Subscriptions at slow servers: the answer comes when all servers and gates on the way will tell, so that no later change is missed.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::asked::text;
use crate::registered::open;
use crate::world::registrant::{Registrant, reads};
use crate::world::{Client, Era, Reply, World, bounded, eventually};

/// A server of either era. Takes a subscription when the tool `agree` is called, and not before; `refusing` takes none, `silent` agrees
/// without saying to what, `untagged` without saying for which stream, `choosy` agrees to nothing asked for. `touch` changes a resource and
/// tells subscribers only; `waiting` counts waiting subscriptions; `streams` counts open streams; `end` ends all streams.
const SLOW: &str = r#"
import json, sys
era, how = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
waiting, streams, taken = [], {}, set()
URIS = ["test://one", "test://two"]
def say(m):
    print(json.dumps({"jsonrpc": "2.0", **m}), flush=True)
def answer(id, **result):
    say({"id": id, "result": {"resultType": "complete", "ttlMs": 3600000, "cacheScope": "private", **result}})
def tag(id):
    return {"_meta": {"io.modelcontextprotocol/subscriptionId": id}}
def agree(m):
    if m["method"] == "resources/subscribe":
        taken.add(m["params"]["uri"])
        return answer(m["id"])
    streams[m["id"]] = m["params"]["notifications"].get("resourceSubscriptions", [])
    said = {"silent": {}, "choosy": {"notifications": {}}}.get(how, {"notifications": m["params"]["notifications"]})
    say({"method": "notifications/subscriptions/acknowledged", "params": said if how == "untagged" else {**said, **tag(m["id"])}})
def agree_all(_):
    while waiting:
        agree(waiting.pop(0))
def touch(uri):
    if uri in taken:
        say({"method": "notifications/resources/updated", "params": {"uri": uri}})
    for id in [id for id, uris in streams.items() if uri in uris]:
        say({"method": "notifications/resources/updated", "params": {"uri": uri, **tag(id)}})
def end(_):
    for id in list(streams):
        streams.pop(id)
        answer(id, **tag(id))
def subscribe(m):
    uris = m["params"].get("notifications", m["params"]).get("resourceSubscriptions", [m["params"].get("uri")])
    if how == "refusing" and any(uris):
        say({"id": m["id"], "error": {"code": -32602, "message": "no subscriptions here"}})
    elif any(uris) and not how:
        waiting.append(m)
    else:
        agree(m)
TOOLS = {"agree": agree_all, "touch": touch, "waiting": lambda _: len(waiting), "streams": lambda _: len(streams), "end": end}
for line in sys.stdin:
    m = json.loads(line)
    p = m.get("params", {})
    capabilities = {"tools": {"listChanged": True}, "resources": {"subscribe": True, "listChanged": True}}
    if m["method"] == "server/discover" and era == "stateless":
        about = {"io.modelcontextprotocol/serverInfo": {"name": "slow", "version": "1"}}
        answer(m["id"], supportedVersions=["2026-07-28"], capabilities=capabilities, _meta=about)
    elif m["method"] == "initialize" and era == "initialize":
        answer(m["id"], protocolVersion="2025-11-25", capabilities=capabilities, serverInfo={"name": "slow", "version": "1"})
    elif m["method"] == "tools/list":
        answer(m["id"], tools=[{"name": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}} for name in TOOLS])
    elif m["method"] == "resources/list":
        answer(m["id"], resources=[{"name": uri, "uri": uri} for uri in URIS])
    elif m["method"] == "tools/call":
        told = TOOLS[p["name"]](p["arguments"].get("uri"))
        answer(m["id"], content=[{"type": "text", "text": str(told)}])
    elif m["method"] in ("subscriptions/listen", "resources/subscribe"):
        subscribe(m)
    elif m["method"] == "resources/unsubscribe":
        taken.discard(p["uri"])
        answer(m["id"])
    elif m["method"] == "notifications/cancelled":
        streams.pop(p["requestId"], None)
        waiting[:] = [one for one in waiting if one["id"] != p["requestId"]]
    elif "id" in m:
        say({"id": m["id"], "error": {"code": -32601, "message": "no"}})
"#;
const ONE: &str = "test://one";
const TWO: &str = "test://two";

/// Gates stacked over a slow server of an era, the topmost last, and the prefix of the server's tools at the top.
struct Chain {
    gates: Vec<World>,
    prefix: String,
    /// Configuration of the lowest gate.
    lowest: String,
}

impl Chain {
    async fn of(gates: usize, era: Era, more: &[&str]) -> Self {
        let mut args = vec!["-c", SLOW, if era == Era::Stateless { "stateless" } else { "initialize" }];
        args.extend(more);
        let trust = "[pins]\nmode = \"trust\"\n";
        let lowest = format!("{trust}[mount.srv]\ncommand = \"python3\"\nargs = {}\n", json!(args));
        let mut all = vec![World::start(&lowest).await];
        let mut prefix = "srv__".to_owned();
        for _ in 1..gates {
            all.push(World::start(&format!("{trust}[mount.low]\nurl = \"http://{}/mcp\"\n", all.last().unwrap().addr)).await);
            prefix.insert_str(0, "low__");
        }
        Self { gates: all, prefix, lowest }
    }

    fn top(&self) -> &World {
        self.gates.last().unwrap()
    }

    async fn tool(&self, client: &Client, name: &str, uri: &str) -> String {
        text(&client.tool(&format!("{}{name}", self.prefix), json!({"uri": uri})).await).to_owned()
    }

    /// Waits until so many subscriptions wait at the server.
    async fn asked(&self, client: &Client, many: usize) {
        eventually(async || (self.tool(client, "waiting", "").await == many.to_string()).then_some(())).await;
    }
}

/// Subscribes in the manner of the era. Gives the answer, and the stream of updates.
async fn subscribe(client: &Client, uri: &str) -> (Value, Reply) {
    match client.era {
        Era::Initialize => {
            let hears = client.listen(None).await;
            (client.call("resources/subscribe", json!({"uri": uri})).await, hears)
        }
        Era::Stateless => {
            let filter = json!({"notifications": {"resourceSubscriptions": [uri]}});
            let mut hears = client.begin("subscriptions/listen", filter).await;
            (hears.next_of("notifications/subscriptions/acknowledged").await, hears)
        }
    }
}

async fn updated(hears: &mut Reply) -> Value {
    hears.next_of("notifications/resources/updated").await["params"]["uri"].clone()
}

#[tokio::test]
async fn ax_06_a_subscription_is_answered_when_all_below_will_tell() {
    for (down, up) in Era::PAIRS {
        for gates in [1, 3] {
            bounded(async {
                let chain = Chain::of(gates, up, &[]).await;
                let [first, second] = [Client::ready(chain.top(), down).await, Client::ready(chain.top(), down).await];
                let other = Client::ready(chain.top(), Era::Stateless).await;
                let answered = AtomicUsize::new(0);
                let subscribed = async |client| {
                    let (_, mut hears) = subscribe(client, ONE).await;
                    answered.fetch_add(1, Ordering::SeqCst);
                    chain.tool(client, "touch", ONE).await;
                    assert_eq!(updated(&mut hears).await, ONE, "{down:?} {up:?} over {gates}");
                    hears
                };
                let agreeing = async {
                    chain.asked(&other, 1).await;
                    // Time enough for an answer that came too soon.
                    for _ in 0..20 {
                        other.call("tools/list", json!({})).await;
                    }
                    assert_eq!(answered.load(Ordering::SeqCst), 0, "{down:?} {up:?} over {gates}");
                    chain.tool(&other, "agree", "").await;
                };
                tokio::join!(subscribed(&first), subscribed(&second), agreeing);
            })
            .await;
        }
    }
}

#[tokio::test]
async fn ax_06_who_subscribed_before_hears_on_while_another_subscription_waits() {
    bounded(async {
        let chain = Chain::of(2, Era::Stateless, &[]).await;
        let [first, second] = [Client::ready(chain.top(), Era::Initialize).await, Client::ready(chain.top(), Era::Stateless).await];
        let other = Client::ready(chain.top(), Era::Stateless).await;
        let agreeing = async || {
            chain.asked(&other, 1).await;
            chain.tool(&other, "agree", "").await;
        };
        let ((_, mut hears), ()) = tokio::join!(subscribe(&first, ONE), agreeing());
        let meanwhile = async {
            chain.asked(&other, 1).await;
            for _ in 0..3 {
                chain.tool(&other, "touch", ONE).await;
                assert_eq!(updated(&mut hears).await, ONE);
            }
            chain.tool(&other, "agree", "").await;
        };
        let ((_, mut also), ()) = tokio::join!(subscribe(&second, TWO), meanwhile);
        chain.tool(&other, "touch", TWO).await;
        assert_eq!(updated(&mut also).await, TWO);
        // The stream that was there before is taken back, so that nothing is told twice.
        eventually(async || (chain.tool(&other, "streams", "").await == "1").then_some(())).await;
    })
    .await;
}

#[tokio::test]
async fn ax_06_possible_changes_during_a_broken_stream_are_told() {
    bounded(async {
        let chain = Chain::of(2, Era::Stateless, &[]).await;
        let (client, other) = (Client::ready(chain.top(), Era::Initialize).await, Client::ready(chain.top(), Era::Stateless).await);
        let agreeing = async || {
            chain.asked(&other, 1).await;
            chain.tool(&other, "agree", "").await;
        };
        let ((_, mut hears), ()) = tokio::join!(subscribe(&client, ONE), agreeing());
        chain.tool(&other, "end", "").await;
        // Nobody tells of this.
        chain.tool(&other, "touch", ONE).await;
        agreeing().await;
        assert_eq!(updated(&mut hears).await, ONE);
    })
    .await;
}

#[tokio::test]
async fn ax_06_a_subscription_outlives_another_configuration_of_its_server() {
    for (down, up) in Era::PAIRS {
        bounded(async {
            let chain = Chain::of(1, up, &[]).await;
            let (client, other) = (Client::ready(chain.top(), down).await, Client::ready(chain.top(), Era::Stateless).await);
            let agreeing = async || {
                chain.asked(&other, 1).await;
                chain.tool(&other, "agree", "").await;
            };
            let ((_, mut hears), ()) = tokio::join!(subscribe(&client, ONE), agreeing());
            chain.top().apply(&format!("{}env = {{ ANOTHER = \"1\" }}\n", chain.lowest));
            agreeing().await;
            // It may have changed while nobody told of it; and then it does.
            assert_eq!(updated(&mut hears).await, ONE, "{down:?} {up:?}");
            chain.tool(&other, "touch", ONE).await;
            assert_eq!(updated(&mut hears).await, ONE, "{down:?} {up:?}");
            drop(hears);
        })
        .await;
    }
}

#[tokio::test]
async fn ax_06_a_subscription_survives_a_servers_registering_again() {
    for (down, up) in Era::PAIRS {
        bounded(async {
            let (world, gate) = open(up).await;
            let server = Registrant::offering(up, json!({"tools": [reads("ping")], "resources": [{"name": ONE, "uri": ONE}]})).await;
            let session = server.join(&world, &gate, "edge", 0, json!({})).await;
            let (client, leaver) = (Client::ready(&world, down).await, Client::ready(&world, Era::Initialize).await);
            let (_, mut hears) = subscribe(&client, ONE).await;
            subscribe(&leaver, ONE).await;
            gate.call("mcpax/deregister", json!({"session_id": session})).await;
            eventually(async || world.mount("edge").is_none().then_some(())).await;
            // Whoever ends it meanwhile has ended it, whoever does not has it.
            let ended = leaver.call("resources/unsubscribe", json!({"uri": ONE})).await;
            assert!(ended["result"].is_object(), "{ended}");
            server.join(&world, &gate, "edge", 0, json!({})).await;
            // It may have changed while nobody told of it; and then it does.
            assert_eq!(updated(&mut hears).await, ONE, "{down:?} {up:?}");
            server.touch(ONE);
            assert_eq!(updated(&mut hears).await, ONE, "{down:?} {up:?}");
        })
        .await;
    }
}

#[tokio::test]
async fn ax_06_same_uri_of_two_servers_has_separate_subscribers() {
    for (down, up) in Era::PAIRS {
        bounded(async {
            let (world, gate) = open(up).await;
            let lists = || json!({"tools": [reads("ping")], "resources": [{"name": ONE, "uri": ONE}]});
            let [first, second] = [Registrant::offering(up, lists()).await, Registrant::offering(up, lists()).await];
            first.join(&world, &gate, "first", 0, json!({})).await;
            second.join(&world, &gate, "second", 0, json!({})).await;
            let other = format!("second+{ONE}");
            let [of_first, of_second] = [Client::ready(&world, down).await, Client::ready(&world, down).await];
            let (_, mut hears_first) = subscribe(&of_first, ONE).await;
            let (agreed, mut hears_second) = subscribe(&of_second, &other).await;
            if down == Era::Stateless {
                assert_eq!(agreed["params"]["notifications"]["resourceSubscriptions"], json!([other]));
            }
            second.touch(ONE);
            assert_eq!(updated(&mut hears_second).await, other, "{down:?} {up:?}");
            first.touch(ONE);
            assert_eq!(updated(&mut hears_first).await, ONE, "{down:?} {up:?}");
            // The first one's was told to nobody else: what comes next is the second one's own.
            second.touch(ONE);
            assert_eq!(updated(&mut hears_second).await, other, "{down:?} {up:?}");
            if down == Era::Initialize {
                // To end the one leaves the other.
                of_first.call("resources/subscribe", json!({"uri": other})).await;
                of_first.call("resources/unsubscribe", json!({"uri": ONE})).await;
                first.touch(ONE);
                second.touch(ONE);
                assert_eq!(updated(&mut hears_first).await, other, "{up:?}");
            }
        })
        .await;
    }
}

#[tokio::test]
async fn ax_06_a_server_that_tells_nobody_is_not_subscribed_to() {
    bounded(async {
        for (up, how) in
            [(Era::Initialize, "refusing"), (Era::Stateless, "refusing"), (Era::Stateless, "choosy"), (Era::Stateless, "silent")]
        {
            for gates in [1, 2] {
                let chain = Chain::of(gates, up, &[how]).await;
                let client = Client::ready(chain.top(), Era::Stateless).await;
                let (acknowledged, _) = subscribe(&client, ONE).await;
                assert_eq!(acknowledged["params"]["notifications"], json!({}), "{up:?} {how} below {gates}");
            }
            let chain = Chain::of(1, up, &[how]).await;
            let client = Client::ready(chain.top(), Era::Initialize).await;
            let (refused, _) = subscribe(&client, ONE).await;
            let (error, data) = (&refused["error"], &refused["error"]["data"]);
            assert!(error["message"].as_str().is_some_and(|text| text.contains("does not tell when this changes")), "{refused}");
            assert_eq!((&data["reason"], &data["server"]), (&json!("changes_untold"), &json!("srv")), "{refused}");
            assert!(data["hint"].as_str().is_some_and(|hint| hint.starts_with("read it again")), "{refused}");
        }
    })
    .await;
}

#[tokio::test]
async fn ax_06_an_acknowledgement_without_filter_promises_nothing() {
    bounded(async {
        let chain = Chain::of(1, Era::Stateless, &["silent"]).await;
        let client = Client::ready(chain.top(), Era::Initialize).await;
        let (refused, _) = subscribe(&client, ONE).await;
        assert_eq!(refused["error"]["data"]["reason"], "changes_untold", "{refused}");
    })
    .await;
}

#[tokio::test]
async fn ax_06_an_acknowledgement_without_stream_id_is_accepted() {
    for down in [Era::Initialize, Era::Stateless] {
        bounded(async {
            let chain = Chain::of(1, Era::Stateless, &["untagged"]).await;
            let client = Client::ready(chain.top(), down).await;
            let (_, mut hears) = subscribe(&client, ONE).await;
            chain.tool(&client, "touch", ONE).await;
            assert_eq!(updated(&mut hears).await, ONE, "{down:?}");
        })
        .await;
    }
}
