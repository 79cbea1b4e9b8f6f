//! Safe by default: admission, bounds on requests, and credentials that never leave on the other side. Does not try rules.

use serde_json::json;

use crate::world::{Client, Era, Recorder, World, bounded, fixture, token};

const BOTH: [Era; 2] = [Era::Initialize, Era::Stateless];

fn bearer(client: Client, name: &str) -> Client {
    client.with("authorization", &format!("Bearer secret-of-{name}"))
}

#[tokio::test]
async fn only_loopback_hosts_and_origins_come_in() {
    bounded(async {
        let world = World::start("").await;
        let status = async |name, value: &str| Client::new(&world, Era::Initialize).with(name, value).greet().await.status.as_u16();
        for host in ["localhost", "127.0.0.1:1", "[::1]:7411"] {
            assert_eq!(status("host", host).await, 200, "{host}");
        }
        for host in ["evil.example", "localhost.evil.example:80", "10.0.0.1"] {
            assert_eq!(status("host", host).await, 403, "{host}");
        }
        for origin in ["http://localhost:5173", "https://127.0.0.1"] {
            assert_eq!(status("origin", origin).await, 200, "{origin}");
        }
        for origin in ["https://evil.example", "null", "http://localhost.evil.example"] {
            assert_eq!(status("origin", origin).await, 403, "{origin}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_host_that_is_configured_comes_in() {
    bounded(async {
        let world = World::start("allowed_hosts = [\"gate.example\"]").await;
        let client = Client::new(&world, Era::Stateless).with("host", "gate.example:7411").with("origin", "https://gate.example");
        assert_eq!(client.begin("tools/list", json!({})).await.status, 200);
    })
    .await;
}

#[tokio::test]
async fn without_the_right_token_nobody_comes_in() {
    bounded(async {
        let world = World::start(&token("ann")).await;
        for era in BOTH {
            let status = async |client: Client| client.begin("server/discover", json!({})).await.status.as_u16();
            let mut none = Client::new(&world, era).greet().await;
            assert_eq!((none.status.as_u16(), none.header("www-authenticate").starts_with("Bearer")), (401, true));
            let told = none.next().await.unwrap().value;
            assert!(told["error"]["message"].as_str().unwrap().contains("banyan token add"), "{told}");
            assert_eq!(status(bearer(Client::new(&world, era), "bob")).await, 401);
            assert_eq!(status(Client::new(&world, era).with("authorization", "Basic YTpi")).await, 401);
            let right = bearer(Client::new(&world, era), "ann").open().await;
            assert_eq!(right.tools().await, Vec::<String>::new());
        }
    })
    .await;
}

#[tokio::test]
async fn a_session_is_bound_to_principal_and_endpoint() {
    bounded(async {
        let toml = token("ann") + &token("bob") + &fixture("a", Era::Initialize) + &fixture("b", Era::Initialize);
        let world = World::start(&toml).await;
        let anns = bearer(Client::new(&world, Era::Initialize), "ann").at("/mcp/a").open().await;
        assert_eq!(anns.begin("ping", json!({})).await.status, 200);

        let with_anns = |name: &str, path: &str| {
            let mut client = bearer(Client::new(&world, Era::Initialize), name).at(path);
            client.session.clone_from(&anns.session);
            client
        };
        for (name, path) in [("bob", "/mcp/a"), ("ann", "/mcp/b"), ("ann", "/mcp")] {
            let other = with_anns(name, path);
            assert_eq!(other.begin("ping", json!({})).await.status, 404, "{name} at {path}");
            assert_eq!(other.listen(None).await.status, 404, "{name} at {path}");
            assert_eq!(other.delete().await.status, 404, "{name} at {path}");
        }
        assert_eq!(with_anns("ann", "/mcp/a").begin("ping", json!({})).await.status, 200);
    })
    .await;
}

#[tokio::test]
async fn a_body_that_is_too_long_is_refused() {
    bounded(async {
        let world = World::start("[limits]\nrequest_size = \"10 KiB\"\n").await;
        for era in BOTH {
            let client = Client::ready(&world, era).await;
            let mut reply = client.begin("ping", json!({"pad": "x".repeat(11 << 10)})).await;
            assert_eq!(reply.status, 413);
            let told = reply.next().await.unwrap().value;
            assert!(told["error"]["message"].as_str().unwrap().contains("limits.request_size"), "{told}");
            assert_eq!(client.begin("tools/list", json!({"pad": "x".repeat(9 << 10)})).await.status, 200);
        }
    })
    .await;
}

#[tokio::test]
async fn an_excess_call_is_told_when_to_retry() {
    bounded(async {
        for limit in ["calls", "calls_per_mount"] {
            let world = World::start(&format!("[limits]\n{limit} = 1\n{}", fixture("fx", Era::Stateless))).await;
            for era in BOTH {
                let client = Client::ready(&world, era).await;
                let params = json!({"name": "fx__fx_sleep", "arguments": {"ms": 60_000, "steps": 2}});
                let held = async { client.begin("tools/call", params).await.finish().await };
                tokio::pin!(held);
                tokio::select! {
                    (_, early) = &mut held => panic!("{early:?}"),
                    _ = world.until("fx", |m| m.in_flight == 1) => {}
                }
                let refused = client.tool("fx__fx_echo", json!({"text": "x"})).await;
                assert_eq!(refused["error"]["data"]["reason"], "overloaded", "{refused}");
                assert_eq!(refused["error"]["data"]["retry_after_ms"], 1000);
                client.notify("notifications/cancelled", json!({"requestId": 1})).await;
                if era == Era::Initialize {
                    assert_eq!(held.await.1.value["error"]["data"]["reason"], "cancelled");
                }
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_session_too_many_is_refused_until_one_ends() {
    bounded(async {
        let world = World::start("[limits]\nsessions = 1\n").await;
        let first = Client::ready(&world, Era::Initialize).await;
        let mut second = Client::new(&world, Era::Initialize).greet().await;
        assert_eq!(second.status, 503);
        let told = second.next().await.unwrap().value;
        assert!(told["error"]["message"].as_str().unwrap().contains("limits.sessions"), "{told}");
        assert_eq!(first.delete().await.status, 204);
        Client::ready(&world, Era::Initialize).await;
    })
    .await;
}

#[tokio::test]
async fn ax_40_incoming_credentials_go_out_on_no_other_hop() {
    bounded(async {
        for (down, up) in Era::PAIRS {
            let recorder = Recorder::start(up).await;
            let toml = format!(
                "{}[mount.r]\nurl = \"http://{}/mcp\"\n[mount.r.headers]\nX-Api-Key = \"key-of-the-mount\"\n",
                token("ann"),
                recorder.addr
            );
            let world = World::start(&toml).await;
            let client = bearer(Client::new(&world, down), "ann");
            let client = client.with("cookie", "session=secret-cookie").with("x-api-key", "secret-key-of-the-caller").open().await;
            let told = client.tool("r__record", json!({})).await;
            assert!(told.get("result").is_some(), "{down:?} {up:?}: {told}");

            let seen = recorder.seen();
            assert!(seen.iter().any(|(_, body)| body.contains("tools/call")), "{seen:?}");
            for (headers, body) in &seen {
                assert_eq!(headers.get("x-api-key").unwrap(), "key-of-the-mount");
                assert!(headers.get("authorization").is_none() && headers.get("cookie").is_none(), "{headers:?}");
                assert!(!format!("{headers:?}{body}").contains("secret"), "{headers:?} {body}");
            }
        }
    })
    .await;
}
