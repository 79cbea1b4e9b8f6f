//! Two principals: the greedy takes all it can of places, sessions, parked calls, bodies, kept answers and listeners, and gets a share; the
//! other gets enough. Does not try strangers.

use serde_json::{Value, json};

use crate::asked::{parked, text};
use crate::world::raw::{Raw, request};
use crate::world::{Client, Era, Reply, World, bounded, eventually, fixture, token};

/// Starts a gate for two, with these bounds.
async fn world(limits: &str) -> World {
    World::start(&format!("[limits]\n{limits}{}{}{}", token("ann"), token("bob"), fixture("fx", Era::Initialize))).await
}

fn client(world: &World, who: &str, era: Era) -> Client {
    Client::new(world, era).with("authorization", &format!("Bearer secret-of-{who}"))
}

fn is_crowded(told: &Value) -> bool {
    told["error"]["code"] == -32009
}

/// Begins a call of a minute; ready when the call runs or was refused.
async fn slow(client: &Client) -> (Reply, bool) {
    let params = json!({"name": "fx__fx_sleep", "arguments": {"ms": 60_000, "steps": 600}, "_meta": {"progressToken": "p"}});
    let mut reply = client.begin("tools/call", params).await;
    let is_crowded = loop {
        let told = reply.next().await.unwrap().value;
        if !told.is_null() {
            break is_crowded(&told);
        }
    };
    (reply, is_crowded)
}

#[tokio::test]
async fn m6_filled_places_of_a_server_leave_others_some() {
    bounded(async {
        for limits in ["calls_per_mount = 4\n", "calls = 4\n"] {
            let world = world(limits).await;
            let (ann, bob) = (client(&world, "ann", Era::Stateless), client(&world, "bob", Era::Stateless));
            let [first, second, third] = [slow(&ann).await, slow(&ann).await, slow(&ann).await];
            assert_eq!([first.1, second.1, third.1], [false, false, true], "{limits}");
            assert_eq!(text(&bob.tool("fx__fx_echo", json!({"text": "x"})).await), "x", "{limits}");
            assert!(is_crowded(&ann.tool("fx__fx_echo", json!({"text": "x"})).await), "{limits}");
            drop(first);
            eventually(async || (!is_crowded(&ann.tool("fx__fx_echo", json!({"text": "x"})).await)).then_some(())).await;
        }
    })
    .await;
}

#[tokio::test]
async fn where_one_principal_comes_alone_it_has_all_places() {
    bounded(async {
        let toml = format!("[limits]\ncalls_per_mount = 4\n{}{}", token("ann"), fixture("fx", Era::Initialize));
        let world = World::start(&toml).await;
        let ann = client(&world, "ann", Era::Stateless);
        let mut taken = Vec::new();
        for _ in 0..5 {
            taken.push(slow(&ann).await);
        }
        assert_eq!(taken.iter().map(|(_, is_crowded)| *is_crowded).collect::<Vec<_>>(), [false, false, false, false, true]);
    })
    .await;
}

#[tokio::test]
async fn m6_who_opens_sessions_without_end_leaves_some_to_others() {
    bounded(async {
        let world = world("sessions = 4\n").await;
        let ann = client(&world, "ann", Era::Initialize);
        let opened = [ann.greet().await.status, ann.greet().await.status];
        let mut third = ann.greet().await;
        assert_eq!((opened, third.status.as_u16()), ([http::StatusCode::OK; 2], 503));
        let told = third.next().await.unwrap().raw;
        assert!(told.contains("2 sessions") && told.contains("limits.sessions"), "{told}");
        client(&world, "bob", Era::Initialize).open().await.delete().await;
        assert_eq!(ann.greet().await.status, 503);
    })
    .await;
}

#[tokio::test]
async fn m6_parking_without_end_loses_ones_own_oldest_calls() {
    bounded(async {
        let world = world("parked = 4\n").await;
        let (ann, bob) = (client(&world, "ann", Era::Stateless), client(&world, "bob", Era::Stateless));
        let of_bob = parked(&bob, "fx__test_elicitation").await;
        let mut of_ann = Vec::new();
        for _ in 0..4 {
            of_ann.push(parked(&ann, "fx__test_elicitation").await);
        }
        let told = ann.call("tools/call", of_ann.swap_remove(0)).await;
        assert_eq!(told["error"]["data"]["reason"], "state_unknown", "{told}");
        assert!(text(&ann.call("tools/call", of_ann.swap_remove(0)).await).contains("action=accept"), "the newest is there");
        assert!(text(&bob.call("tools/call", of_bob).await).contains("action=accept"));
    })
    .await;
}

/// Writes a call that echoes so many bytes.
fn echo(client: &Client, bytes: usize) -> Vec<u8> {
    let params = json!({"name": "fx__fx_echo", "arguments": {"text": "x".repeat(bytes)}});
    let (body, more) = client.written(&json!(1), "tools/call", params);
    let mut fields = vec![("content-type", "application/json"), ("accept", "application/json"), ("mcp-protocol-version", "2026-07-28")];
    fields.extend(client.headers.iter().chain(&more).map(|(name, value)| (*name, value.as_str())));
    request("POST", "/mcp", &fields, &body)
}

#[tokio::test]
async fn m6_bodies_without_end_leave_others_room() {
    bounded(async {
        let world = world("bodies = \"512KiB\"\n").await;
        let (ann, bob) = (client(&world, "ann", Era::Stateless), client(&world, "bob", Era::Stateless));
        let (whole, mut begun) = (echo(&ann, 200 << 10), Raw::connect(&world).await);
        begun.send(&whole[..1000]).await;
        let mut other = Raw::connect(&world).await;
        other.send(&whole[..1000]).await;
        let (status, closes, told) = other.reply().await;
        assert!(status == 503 && closes && told.contains("limits.bodies"), "{status} {told}");
        let mut of_bob = Raw::connect(&world).await;
        of_bob.send(&echo(&bob, 100 << 10)).await;
        assert_eq!(of_bob.reply().await.0, 200);
        begun.send(&whole[1000..]).await;
        assert_eq!(begun.reply().await.0, 200);
        let mut again = Raw::connect(&world).await;
        again.send(&whole).await;
        assert_eq!(again.reply().await.0, 200, "it is given back with the answer");
    })
    .await;
}

/// Calls for so many bytes and reads the answer off a stream. Gives the id of an event before the answer.
async fn answered(client: &Client, bytes: usize) -> String {
    let mut reply = client.begin("tools/call", json!({"name": "fx__fx_big", "arguments": {"n": bytes}})).await;
    assert!(reply.is_stream());
    let primed = reply.next().await.unwrap().id.unwrap();
    assert_eq!(text(&reply.finish().await.1.value).len(), bytes);
    primed
}

async fn session(world: &World, who: &str) -> Client {
    client(world, who, Era::Initialize).with("accept", "text/event-stream, application/json").open().await
}

#[tokio::test]
async fn m5_a_session_keeps_bounded_bytes_of_read_answers() {
    bounded(async {
        let world = world("").await;
        let ann = session(&world, "ann").await;
        let mut ids = Vec::new();
        for _ in 0..4 {
            ids.push(answered(&ann, 3 << 20).await);
        }
        let mut kept = Vec::new();
        for id in &ids {
            kept.push(ann.listen(Some(id)).await.status.as_u16());
        }
        assert_eq!(kept, [400, 400, 200, 200]);
    })
    .await;
}

#[tokio::test]
async fn m5_kept_answers_of_two_principals_stay_apart() {
    bounded(async {
        let world = world("streams = \"8MiB\"\n").await;
        let bob = session(&world, "bob").await;
        let of_bob = answered(&bob, 1 << 20).await;
        let (first, second) = (session(&world, "ann").await, session(&world, "ann").await);
        let (of_first, of_second) = (answered(&first, 3 << 20).await, answered(&second, 3 << 20).await);
        assert_eq!(first.listen(Some(&of_first)).await.status, 400, "it made room for the other of its principal");
        assert_eq!(text(&second.listen(Some(&of_second)).await.finish().await.1.value).len(), 3 << 20);
        assert_eq!(text(&bob.listen(Some(&of_bob)).await.finish().await.1.value).len(), 1 << 20);
    })
    .await;
}

/// Opens a listener to so many resources, and gives the first message.
async fn listener(client: &Client, resources: usize) -> (Reply, Value) {
    let uris: Vec<String> = (0..resources).map(|n| format!("test://{n}")).collect();
    let params = json!({"notifications": {"toolsListChanged": true, "resourceSubscriptions": uris}});
    let mut reply = client.begin("subscriptions/listen", params).await;
    let told = reply.next().await.unwrap().value;
    (reply, told)
}

#[tokio::test]
async fn m15_who_listens_without_end_leaves_room_for_others() {
    bounded(async {
        let world = world("listeners = 4\n").await;
        let (ann, bob) = (client(&world, "ann", Era::Stateless), client(&world, "bob", Era::Stateless));
        let [first, second, third] = [listener(&ann, 0).await, listener(&ann, 0).await, listener(&ann, 0).await];
        assert!(!is_crowded(&first.1) && !is_crowded(&second.1) && is_crowded(&third.1), "{}", third.1);
        assert!(!is_crowded(&listener(&bob, 0).await.1));
        drop(first);
        eventually(async || (!is_crowded(&listener(&ann, 0).await.1)).then_some(())).await;
    })
    .await;
}

#[tokio::test]
async fn m15_a_listener_has_bounded_resources_and_tasks() {
    bounded(async {
        let world = world("").await;
        let (_, told) = listener(&client(&world, "ann", Era::Stateless), 10_001).await;
        assert!(told["error"]["message"].as_str().unwrap().contains("10000 resources"), "{told}");
        let follow = async |tasks: usize| {
            let mut ann = client(&world, "ann", Era::Stateless);
            ann.capabilities = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
            let filter = json!({"notifications": {"taskIds": vec!["of-nobody"; tasks]}});
            ann.begin("subscriptions/listen", filter).await.next().await.unwrap().value
        };
        let told = follow(10_001).await;
        assert!(told["error"]["message"].as_str().unwrap().contains("10000 tasks"), "{told}");
        assert_eq!(follow(10_000).await["params"]["notifications"], json!({}));
    })
    .await;
}

#[tokio::test]
async fn m6_an_unanswered_question_ends_after_its_time() {
    bounded(async {
        let world = world("question = \"300ms\"\n").await;
        let ann = client(&world, "ann", Era::Initialize).open().await;
        let mut reply = ann.begin("tools/call", json!({"name": "fx__test_elicitation", "arguments": {"message": "m"}})).await;
        let (before, told) = reply.finish().await;
        assert_eq!(before.iter().filter(|m| m["method"] == "elicitation/create").count(), 1);
        assert!(told.raw.contains("took too long to answer"), "{}", told.raw);
    })
    .await;
}

#[tokio::test]
async fn l4_a_reused_id_leaves_the_first_request_cancellable() {
    bounded(async {
        let world = world("").await;
        let ann = client(&world, "ann", Era::Initialize).open().await;
        let params = json!({"name": "fx__fx_sleep", "arguments": {"ms": 60_000, "steps": 600}, "_meta": {"progressToken": "p"}});
        let mut first = ann.begin_as(json!("one"), "tools/call", params.clone()).await;
        first.next_of("notifications/progress").await;
        assert_eq!(ann.begin_as(json!("one"), "tools/call", params).await.status, 400);
        ann.notify("notifications/cancelled", json!({"requestId": "one"})).await;
        world.until("fx", |mount| mount.in_flight == 0).await;
    })
    .await;
}
