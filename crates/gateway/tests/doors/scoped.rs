//! Scopes missing in a token: named by a rule, told to the client as OAuth does, and taken from the next token at once, also in a session.

use rcgen::{KeyPair, PKCS_ED25519};
use serde_json::{Value, json};

use crate::asked::text;
use crate::tokens::{jwk, now, signed};
use crate::world::{Client, Era, World, bounded, fixture, token};

const RESOURCE: &str = "https://gate.example.com/mcp";
const ISSUER: &str = "https://login.example.com";
const RULES: &str = r#"
    @id("all") permit (principal, action, resource);
    @id("writers") @scope("write") forbid (principal, action, resource == Tool::"fx.fx_echo") unless { principal.scopes.contains("write") };
"#;

async fn ruled(key: &KeyPair) -> World {
    let state = tempfile::tempdir().unwrap();
    let toml = format!("{}{}{}", issuer(&state, key, RULES), token("ci"), fixture("fx", Era::Stateless));
    World::start_in(state, &toml).await
}

/// Writes the beginning of a configuration: an authorization server with this key, and rules.
pub(crate) fn issuer(state: &tempfile::TempDir, key: &KeyPair, rules: &str) -> String {
    let (keys, file) = (state.path().join("keys.json"), state.path().join("policy.cedar"));
    std::fs::write(&keys, json!({"keys": [jwk(key, "1")]}).to_string()).unwrap();
    std::fs::write(&file, rules).unwrap();
    let issuer = format!("[issuer.login]\nissuer = \"{ISSUER}\"\nkeys = {keys:?}\nscopes = [\"tools\"]\n[policy]\nfile = {file:?}\n");
    format!("resource = \"{RESOURCE}\"\n{issuer}")
}

pub(crate) fn bearer(world: &World, era: Era, key: &KeyPair, scope: &str) -> Client {
    told_of(world, era, key, &json!({"scope": scope}))
}

/// Makes a client whose token has these claims.
fn told_of(world: &World, era: Era, key: &KeyPair, more: &Value) -> Client {
    let mut claims = json!({"iss": ISSUER, "aud": RESOURCE, "sub": "ann", "exp": now() + 600, "scope": "tools"});
    claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Client::new(world, era).with("authorization", &format!("Bearer {}", signed(key, "1", &claims)))
}

async fn echo(client: &Client) -> (u16, Option<String>, Value) {
    let mut reply = client.begin("tools/call", json!({"name": "fx__fx_echo", "arguments": {"text": "x"}})).await;
    let challenge = reply.headers.get("www-authenticate").map(|value| value.to_str().unwrap().to_owned());
    (reply.status.as_u16(), challenge, reply.finish().await.1.value)
}

#[tokio::test]
async fn a_missing_scope_is_named_and_then_passes() {
    bounded(async {
        let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        let world = ruled(&key).await;
        for era in [Era::Initialize, Era::Stateless] {
            let client = bearer(&world, era, &key, "tools").open().await;
            let (status, challenge, told) = echo(&client).await;
            let challenge = challenge.unwrap_or_else(|| panic!("{told}"));
            assert_eq!((status, told["error"]["data"]["reason"].as_str()), (403, Some("insufficient_scope")), "{told}");
            assert!(challenge.contains("error=\"insufficient_scope\"") && challenge.contains("scope=\"write\""), "{challenge}");
            let metadata = "resource_metadata=\"https://gate.example.com/.well-known/oauth-protected-resource/mcp\"";
            assert!(challenge.starts_with("Bearer ") && challenge.contains(metadata), "{challenge}");
            // The same session with another token.
            let mut more = bearer(&world, era, &key, "tools write");
            more.session.clone_from(&client.session);
            assert_eq!(text(&more.tool("fx__fx_echo", json!({"text": "x"})).await), "x", "{era:?}");
            assert_eq!(echo(&client).await.0, 403, "and the first one is no better for it");
        }
    })
    .await;
}

#[tokio::test]
async fn without_any_scopes_a_tool_looks_unknown() {
    bounded(async {
        let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        let world = ruled(&key).await;
        let client = Client::new(&world, Era::Initialize).with("authorization", "Bearer secret-of-ci").open().await;
        let (status, challenge, told) = echo(&client).await;
        assert_eq!((status, challenge, told["error"]["code"].as_i64()), (200, None, Some(-32602)), "{told}");
    })
    .await;
}

#[tokio::test]
async fn rules_see_groups_and_roles_under_their_issuer() {
    const RULES: &str = r#"
        permit (principal in Group::"ops@login", action, resource);
        permit (principal in Role::"reader@login", action, resource == Tool::"fx.fx_echo");
        permit (principal == Principal::"eve@login", action, resource == Tool::"fx.fx_echo");
        forbid (principal in Group::"ops", action, resource);
    "#;
    bounded(async {
        let (key, state) = (KeyPair::generate_for(&PKCS_ED25519).unwrap(), tempfile::tempdir().unwrap());
        let toml = format!("{}{}", issuer(&state, &key, RULES), fixture("fx", Era::Stateless));
        let world = World::start_in(state, &toml).await;
        for era in [Era::Initialize, Era::Stateless] {
            let tools = async |said: Value| told_of(&world, era, &key, &said).open().await.tools().await;
            assert!(tools(json!({"groups": ["staff", "ops"]})).await.len() > 10);
            assert_eq!(tools(json!({"roles": "reader"})).await, ["fx__fx_echo"]);
            assert_eq!(tools(json!({"sub": "eve"})).await, ["fx__fx_echo"]);
            // Nobody says that it is in another's group, or in one of ours, and what is no list says nothing.
            for said in
                [json!({"groups": ["ops@login", "ops@other"]}), json!({"groups": {"ops": true}}), json!({"sub": "eve@login"}), json!({})]
            {
                assert_eq!(tools(said.clone()).await, Vec::<String>::new(), "{said}");
            }
        }
    })
    .await;
}
