//! Sessions and requests on the wire: endings, resumed streams, cancellation in each era, and bytes that stay.

use serde_json::{Value, json};

use crate::pinned::mount;
use crate::world::registrant::Registrant;
use crate::world::{Client, Era, World, bounded, eventually, fixture, token};

const BOTH: [Era; 2] = [Era::Initialize, Era::Stateless];
const SLOW: &str = "fx__fx_sleep";

async fn cancelled(client: &Client) -> u64 {
    let stats = client.tool("fx__fx_stats", json!({})).await;
    stats["result"]["structuredContent"]["cancelled"].as_u64().unwrap_or_else(|| panic!("{stats}"))
}

/// Begins a call of a minute with reports of progress, and gives the stream behind the first report.
async fn slow(client: &Client, id: &Value) -> crate::world::Reply {
    let params = json!({"name": SLOW, "arguments": {"ms": 60_000, "steps": 600}, "_meta": {"progressToken": "p"}});
    let mut reply = client.begin_as(id.clone(), "tools/call", params).await;
    assert_eq!(reply.next_of("notifications/progress").await["params"]["progressToken"], "p");
    reply
}

#[tokio::test]
async fn a_deleted_session_is_not_found() {
    bounded(async {
        let world = World::start("").await;
        let client = Client::ready(&world, Era::Initialize).await;
        let mut standing = client.listen(None).await;
        assert_eq!(client.delete().await.status, 204);
        assert!(standing.next().await.is_none(), "its stream ends with it");
        assert_eq!(client.begin("ping", json!({})).await.status, 404);
        assert_eq!(client.listen(None).await.status, 404);
        assert_eq!(client.delete().await.status, 404);
        let nobody = Client::new(&world, Era::Initialize);
        assert_eq!(nobody.begin("ping", json!({})).await.status, 400, "no id at all");
    })
    .await;
}

#[tokio::test]
async fn the_stateless_era_has_neither_get_nor_delete() {
    bounded(async {
        let world = World::start("").await;
        let client = Client::ready(&world, Era::Stateless).await;
        for reply in [client.listen(None).await, client.delete().await] {
            assert_eq!((reply.status.as_u16(), reply.header("allow")), (405, "POST"));
        }
    })
    .await;
}

#[tokio::test]
async fn an_answer_waits_for_a_lost_client_to_return() {
    bounded(async {
        let world = World::start(&fixture("fx", Era::Initialize)).await;
        let client = Client::ready(&world, Era::Initialize).await;
        let params = json!({"name": SLOW, "arguments": {"ms": 400, "steps": 4}, "_meta": {"progressToken": 7}});
        let mut reply = client.begin("tools/call", params).await;
        let primed = reply.next().await.unwrap();
        assert!(primed.value.is_null() && primed.id.is_some(), "{primed:?}");
        let first = reply.next().await.unwrap();
        assert_eq!(first.value["params"]["progress"], 1);
        drop(reply);

        let mut again = client.listen(first.id.as_deref()).await;
        let (before, response) = again.finish().await;
        let steps: Vec<_> = before.iter().map(|m| m["params"]["progress"].as_u64().unwrap()).collect();
        assert_eq!(steps, [2, 3, 4], "each event once");
        assert_eq!(response.value["result"]["content"][0]["text"], "slept");
        assert_eq!(cancelled(&client).await, 0);
        // The answer can be had once more: the second connection may have been lost as well.
        let (_, second) = client.listen(first.id.as_deref()).await.finish().await;
        assert_eq!(second.raw, response.raw);
    })
    .await;
}

#[tokio::test]
async fn a_stateless_call_is_cancelled_by_closing_its_stream() {
    bounded(async {
        for up in BOTH {
            let world = World::start(&fixture("fx", up)).await;
            let client = Client::ready(&world, Era::Stateless).await;
            drop(slow(&client, &json!("a")).await);
            eventually(async || (cancelled(&client).await == 1).then_some(())).await;
            world.until("fx", |m| m.in_flight == 0).await;
        }
    })
    .await;
}

#[tokio::test]
async fn ax_06_a_call_of_a_session_is_cancelled_by_notification() {
    bounded(async {
        for up in BOTH {
            let world = World::start(&fixture("fx", up)).await;
            let client = Client::ready(&world, Era::Initialize).await;
            let (one, other) = (slow(&client, &json!("one")).await, slow(&client, &json!("other")).await);
            client.notify("notifications/cancelled", json!({"requestId": "one", "reason": "enough"})).await;
            eventually(async || (cancelled(&client).await == 1).then_some(())).await;
            world.until("fx", |m| m.in_flight == 1).await;
            client.notify("notifications/cancelled", json!({"requestId": "other"})).await;
            eventually(async || (cancelled(&client).await == 2).then_some(())).await;
            drop((one, other));
        }
    })
    .await;
}

#[tokio::test]
async fn duplicate_keys_and_batches_are_refused() {
    bounded(async {
        let world = World::start(&fixture("fx", Era::Stateless)).await;
        for era in BOTH {
            let client = Client::ready(&world, era).await;
            let keys: String = (0..100).map(|n| format!(r#""k{n}":1,"#)).collect();
            let many = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"x","arguments":{{{keys}"k7":2}}}}}}"#);
            let doubled = [
                r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}"#,
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fx__fx_echo","arguments":{"text":"a","text":"b"}}}"#,
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":[[{"b":1,"\u0062":2}]]}}}"#,
                &many,
            ];
            for body in doubled {
                let mut reply = client.post(body, &[]).await;
                let told = reply.next().await.unwrap().value;
                assert_eq!((reply.status.as_u16(), &told["error"]["code"]), (400, &json!(-32700)), "{body}: {told}");
            }
            let mut reply = client.post(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, &[]).await;
            let told = reply.next().await.unwrap().value;
            assert_eq!((reply.status.as_u16(), &told["error"]["code"]), (400, &json!(-32600)), "{told}");
        }
    })
    .await;
}

#[tokio::test]
async fn ax_05_a_result_comes_through_byte_for_byte() {
    // As the fixture spells it: order, numbers, escapes and members nobody knows.
    let sent = concat!(
        r#"{"zeta":1,"content":[{"type":"text","text":"caf\u00e9 \/ \ud83d\ude00","x-vendor":{"b":1,"a":2}}],"#,
        r#""structuredContent":{"z":1.0,"a":12345678901234567890123,"e":1e5,"f":0.10,"n":null},"#,
        r#""isError":false,"vendorField":{"k":[1,2.50,3]},"_meta":{"com.example/t":"v"}"#
    );
    bounded(async {
        for (down, up) in Era::PAIRS {
            let world = World::start(&fixture("fx", up)).await;
            let client = Client::ready(&world, down).await;
            let (_, response) = client.whole("tools/call", json!({"name": "fx__fx_fidelity", "arguments": {}})).await;
            let start = response.raw.find("\"result\":").unwrap() + 9;
            let result = response.raw[start..].strip_suffix('}').unwrap();
            // A stateless server says `resultType` itself; for another the gate must add it.
            let more = if (down, up) == (Era::Initialize, Era::Initialize) { "}" } else { ",\"resultType\":\"complete\"}" };
            assert_eq!(result, format!("{sent}{more}"), "{down:?} {up:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn numbers_in_arguments_and_ids_keep_their_spelling() {
    bounded(async {
        let world = World::start(&fixture("fx", Era::Initialize)).await;
        let client = Client::ready(&world, Era::Initialize).await;
        for id in ["9007199254740993", "\"1e3\"", "-1"] {
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"fixture/echo","params":{{"big":12345678901234567890123,"one":1.0,"z":0,"a":0}}}}"#
            );
            let raw = client.post(&body, &[]).await.finish().await.1.raw;
            assert!(raw.contains(&format!("\"id\":{id}")), "{raw}");
            assert!(
                raw.contains(r#""zeta":1,"echo":{"big": 12345678901234567890123, "one": 1.0, "z": 0, "a": 0},"tools":[],"alpha":2.50"#),
                "{raw}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn ax_40_a_session_is_there_for_its_own_principal_only() {
    bounded(async {
        let world = World::start(&format!("{}{}", token("ann"), token("bob"))).await;
        let of = |who: &str| Client::new(&world, Era::Initialize).with("authorization", &format!("Bearer secret-of-{who}"));
        let ann = of("ann").open().await;
        let mut standing = ann.listen(None).await;
        let mut bob = of("bob");
        bob.session.clone_from(&ann.session);
        assert_eq!(bob.begin("tools/list", json!({})).await.status, 404);
        assert_eq!(bob.listen(None).await.status, 404);
        assert_eq!(bob.listen(Some("s:0")).await.status, 404);
        assert_eq!(bob.delete().await.status, 404);
        assert_eq!(ann.call("ping", json!({})).await["result"], json!({}), "and is as it was");
        assert_eq!(ann.delete().await.status, 204);
        assert!(standing.next().await.is_none());
    })
    .await;
}

#[tokio::test]
async fn sessions_are_bounded_and_leaving_makes_room() {
    bounded(async {
        let world = World::start("[limits]\nsessions = 2\n").await;
        let [first, _second] = [Client::ready(&world, Era::Initialize).await, Client::ready(&world, Era::Initialize).await];
        let third = Client::new(&world, Era::Initialize);
        let mut refused = third.greet().await;
        let told = refused.next().await.unwrap().raw;
        assert!(refused.status == 503 && told.contains("limits.sessions"), "{told}");
        first.delete().await;
        assert_eq!(third.greet().await.status, 200);
    })
    .await;
}

#[tokio::test]
async fn headers_contradicting_the_body_are_refused() {
    bounded(async {
        let world = World::start(&fixture("fx", Era::Stateless)).await;
        let client = Client::ready(&world, Era::Stateless).await;
        let calls = json!({"name": "fx__fx_echo", "arguments": {"text": "x"}});
        for name in [Some("fx__fx_stats"), None] {
            let mut reply = client.misnamed("tools/call", calls.clone(), name).await;
            let told = reply.finish().await.1.value;
            assert_eq!((reply.status.as_u16(), &told["error"]["code"]), (400, &json!(-32020)), "{name:?}: {told}");
        }
        // Another one than the body has, none at all, and the same twice.
        let others = [
            ("mcp-method", "tools/list"),
            ("mcp-method", ""),
            ("Mcp-Method", "tools/call"),
            ("mcp-protocol-version", "2027-01-01"),
            ("mcp-protocol-version", ""),
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Name", "fx__fx_echo"),
        ];
        for (header, other) in others {
            let meant = Client::new(&world, Era::Stateless).with(header, other);
            let (body, headers) = meant.written(&json!(1), "tools/call", calls.clone());
            let headers: Vec<(&str, String)> = headers.into_iter().filter(|(name, _)| *name != header).collect();
            let mut reply = meant.post(&body, &headers).await;
            let told = reply.finish().await.1.value;
            assert_eq!((reply.status.as_u16(), &told["error"]["code"]), (400, &json!(-32020)), "{header} {other}: {told}");
        }
        for (method, params) in [("resources/read", json!({"uri": "test://a"})), ("tasks/get", json!({"taskId": "t"}))] {
            let mut reply = client.misnamed(method, params, Some("another")).await;
            let told = reply.finish().await.1.value;
            assert_eq!((reply.status.as_u16(), &told["error"]["code"]), (400, &json!(-32020)), "{method}: {told}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_header_argument_must_match_the_body() {
    bounded(async {
        let region = json!({"region": {"type": "string", "x-mcp-header": "Region"}});
        let tool = json!({"name": "look", "inputSchema": {"type": "object", "properties": region}, "annotations": {"readOnlyHint": true}});
        let server = Registrant::start(Era::Stateless, vec![tool]).await;
        let world = World::start(&format!("[pins]\nmode = \"trust\"\n{}", mount("srv", &server))).await;
        world.until("srv", |mount| mount.state == "ready").await;
        for (header, arguments, is_taken) in [
            ("eu", json!({"region": "eu"}), true),
            ("us", json!({"region": "eu"}), false),
            ("", json!({"region": "eu"}), false),
            ("us", json!({}), false),
        ] {
            let client = Client::new(&world, Era::Stateless).with("mcp-param-region", header);
            let told = client.tool("srv__look", arguments).await;
            assert_eq!(told.get("result").is_some(), is_taken, "{header}: {told}");
            assert!(is_taken || told["error"]["code"] == -32020, "{header}: {told}");
        }
    })
    .await;
}
