//! Signed tokens at the door: tokens issued for this gate are taken, and all others are refused with a reason.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::Request;
use http_body_util::Full;
use rcgen::{KeyPair, PKCS_ED25519, SigningKey};
use serde_json::{Value, json};

use crate::asked::text;
use crate::linked;
use crate::world::{Client, Era, Socket, World, bounded, eventually, fixture, send, token};

const RESOURCE: &str = "https://gate.example.com/mcp";
const ISSUER: &str = "https://login.example.com";

pub(crate) fn jwk(key: &KeyPair, id: &str) -> Value {
    json!({"kty": "OKP", "crv": "Ed25519", "use": "sig", "kid": id, "x": URL_SAFE_NO_PAD.encode(key.public_key_raw())})
}

pub(crate) fn signed(key: &KeyPair, id: &str, claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", part(&json!({"alg": "EdDSA", "typ": "JWT", "kid": id})), part(claims));
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(key.sign(text.as_bytes()).unwrap()))
}

pub(crate) fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

fn claims(changed: &Value) -> Value {
    let mut claims = json!({"iss": ISSUER, "aud": RESOURCE, "sub": "ann", "exp": now() + 600, "scope": "tools other"});
    for (name, value) in changed.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims
}

/// Starts a gate that takes tokens signed with `key`.
async fn taking(key: &KeyPair) -> World {
    taking_with(key, "").await
}

async fn taking_with(key: &KeyPair, more: &str) -> World {
    let state = tempfile::tempdir().unwrap();
    let keys = state.path().join("keys.json");
    std::fs::write(&keys, json!({"keys": [jwk(key, "1")]}).to_string()).unwrap();
    let issuer = format!("[issuer.login]\nissuer = \"{ISSUER}\"\nkeys = {keys:?}\nscopes = [\"tools\"]\n");
    let toml = format!("resource = \"{RESOURCE}\"\n{issuer}{more}{}{}{}", linked::taking(), token("ci"), fixture("fx", Era::Stateless));
    World::start_in(state, &toml).await
}

fn bearer(world: &World, era: Era, token: &str) -> Client {
    Client::new(world, era).with("authorization", &format!("Bearer {token}"))
}

#[tokio::test]
async fn issuers_tokens_and_own_tokens_are_let_in() {
    bounded(async {
        let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        let world = taking(&key).await;
        let good = signed(&key, "1", &claims(&json!({})));
        let several = signed(&key, "1", &claims(&json!({"aud": ["x", RESOURCE], "scope": null, "scp": ["tools"]})));
        for token in [&good, &several, "secret-of-ci"] {
            for era in [Era::Initialize, Era::Stateless] {
                let client = bearer(&world, era, token).open().await;
                assert_eq!(text(&client.tool("fx__fx_echo", json!({"text": "in"})).await), "in");
            }
        }
        // A session is good for its own principal only.
        let anns = bearer(&world, Era::Initialize, &good).open().await;
        let mut bobs = bearer(&world, Era::Initialize, &signed(&key, "1", &claims(&json!({"sub": "bob"}))));
        bobs.session.clone_from(&anns.session);
        assert_eq!(bobs.begin("ping", json!({})).await.status, 404);
    })
    .await;
}

#[tokio::test]
async fn ax_40_only_good_tokens_for_this_gate_are_taken() {
    bounded(async {
        let (key, other) = (KeyPair::generate_for(&PKCS_ED25519).unwrap(), KeyPair::generate_for(&PKCS_ED25519).unwrap());
        let world = taking(&key).await;
        let refused = async |token: String| {
            let mut reply = bearer(&world, Era::Stateless, &token).begin("tools/list", json!({})).await;
            let challenge = reply.header("www-authenticate").to_owned();
            let said = reply.next().await.unwrap().raw;
            assert!(!said.contains(&token) && !challenge.contains(&token), "{said}");
            (reply.status.as_u16(), challenge, said)
        };
        for (changed, status, check) in [
            (json!({"aud": "https://other.example.com/mcp"}), 401, "`aud`"),
            (json!({"aud": null}), 401, "`aud`"),
            (json!({"exp": now() - 60}), 401, "`exp`"),
            (json!({"exp": null}), 401, "`exp`"),
            (json!({"nbf": now() + 600}), 401, "`nbf`"),
            (json!({"iss": "https://evil.example.com"}), 401, "`iss`"),
            (json!({"scope": "other"}), 403, "scope"),
            (json!({"sub": null}), 401, "`sub`"),
        ] {
            let (code, challenge, said) = refused(signed(&key, "1", &claims(&changed))).await;
            assert_eq!(code, status, "{changed} {said}");
            assert!(said.contains(check), "{changed} {said}");
            assert!(
                challenge.contains("resource_metadata=\"https://gate.example.com/.well-known/oauth-protected-resource/mcp\""),
                "{challenge}"
            );
        }
        let forged = refused(signed(&other, "1", &claims(&json!({})))).await;
        assert!(forged.0 == 401 && forged.2.contains("no key"), "{forged:?}");
        let none = json!({"alg": "none"}).to_string();
        let unsigned = format!("{}.{}.", URL_SAFE_NO_PAD.encode(none), URL_SAFE_NO_PAD.encode(claims(&json!({})).to_string()));
        assert_eq!(refused(unsigned).await.0, 401);
        assert_eq!(refused("secret-of-nobody".into()).await.0, 401);
        let without = Client::new(&world, Era::Stateless).begin("tools/list", json!({})).await;
        assert!(without.status == 401 && without.header("www-authenticate").contains("scope=\"tools\""), "{:?}", without.headers);
    })
    .await;
}

#[tokio::test]
async fn clients_find_out_where_to_sign_in() {
    bounded(async {
        let world = taking(&KeyPair::generate_for(&PKCS_ED25519).unwrap()).await;
        for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"] {
            let request = Request::get(path).header("host", "localhost").body(Full::default()).unwrap();
            let told = send(world.addr, None, request).await.next().await.unwrap().value;
            assert_eq!(told["resource"], RESOURCE);
            assert_eq!(told["authorization_servers"], json!([ISSUER]));
            assert_eq!(told["scopes_supported"], json!(["tools"]));
        }
    })
    .await;
}

#[tokio::test]
async fn keys_that_change_in_their_file_are_read_again() {
    bounded(async {
        let (key, next) = (KeyPair::generate_for(&PKCS_ED25519).unwrap(), KeyPair::generate_for(&PKCS_ED25519).unwrap());
        let world = taking(&key).await;
        let status = async |key: &KeyPair, id: &str| {
            bearer(&world, Era::Stateless, &signed(key, id, &claims(&json!({})))).begin("tools/list", json!({})).await.status.as_u16()
        };
        assert_eq!((status(&key, "1").await, status(&next, "2").await), (200, 401));
        std::fs::write(world.state.path().join("keys.json"), next.public_key_pem()).unwrap();
        eventually(async || (status(&next, "2").await == 200).then_some(())).await;
        assert_eq!(status(&key, "1").await, 401);
    })
    .await;
}

#[tokio::test]
async fn ax_40_a_link_ends_with_the_token_that_opened_it() {
    bounded(async {
        let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        let world = taking(&key).await;
        let short = signed(&key, "1", &claims(&json!({"exp": now() - 20})));
        let leaf = World::member(&format!("{}token = \"{short}\"\n", linked::joining("leaf", &[world.addr]))).await;
        linked::registered(&leaf, 0).await;
        world.until("leaf", |mount| mount.state == "degraded").await;
        eventually(async || (linked::stands(&leaf, 0) != "registered").then_some(())).await;
    })
    .await;
}

#[tokio::test]
async fn ax_40_expiry_ends_seat_and_view_but_no_call() {
    bounded(async {
        let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        let world = taking_with(&key, "[rooms]\nopen = true\n").await;
        let short = signed(&key, "1", &claims(&json!({"exp": now() - 24})));
        let client = bearer(&world, Era::Initialize, &short).open().await;
        let mut call = client.begin("tools/call", json!({"name": "fx__test_elicitation", "arguments": {"message": "m"}})).await;
        let question = call.next_of("elicitation/create").await;
        let (mut seat, _) = Socket::join(&world, "topic=ops", &short).await;
        let asks = Request::get("/-/events").header("host", "localhost").header("authorization", format!("Bearer {short}"));
        let mut view = send(world.addr, None, asks.body(Full::default()).unwrap()).await;
        assert_eq!(view.status, 200);

        let (code, why) = seat.closed().await;
        assert!(code == Some(1008) && why.contains("expired"), "{code:?} {why}");
        while view.next_or_break().await.is_some() {}
        assert_eq!(client.begin("ping", json!({})).await.status, 401);

        let mut next = bearer(&world, Era::Initialize, &signed(&key, "1", &claims(&json!({}))));
        next.session.clone_from(&client.session);
        let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}});
        assert_eq!(next.post(&answer.to_string(), &[]).await.status, 202);
        assert!(text(&call.finish().await.1.value).contains("action=decline"));
    })
    .await;
}

#[tokio::test]
async fn ax_40_a_watchers_events_end_with_its_token() {
    bounded(async {
        let (ann, ci) = (token("ann"), token("ci"));
        let world = World::start(&format!("{ann}{ci}")).await;
        let asks = Request::get("/-/events").header("host", "localhost").header("authorization", "Bearer secret-of-ann");
        let mut view = send(world.addr, None, asks.body(Full::default()).unwrap()).await;
        assert!(view.next_or_break().await.is_some());
        world.apply(&ci);
        while view.next_or_break().await.is_some() {}
    })
    .await;
}
