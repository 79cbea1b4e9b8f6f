//! Streams and requests whose credential ends meanwhile: a gate without sockets, and a clock set by hand.

use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use config::{self, secret::SystemSources};
use http::{Response, StatusCode};
use http_body_util::BodyExt;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use mcp_proto::catalog;
use mcp_proto::http1::Fields;
use rcgen::{KeyPair, PKCS_ED25519};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::Gateway;
use door::known::KnownClient;
use door::reply::Payload;
use mcp::downstream::endpoint::{self, RequestHead};
use runtime::wall::held;

const RESOURCE: &str = "https://gate.example.com/mcp";
const ISSUER: &str = "https://login.example.com";
/// Beginning of the test, in Unix time.
const BEGAN: u64 = 1_800_000_000;
/// End of a token that is good to the 90th second: clocks may be half a minute apart.
const SHORT: u64 = BEGAN + 60;
const CI: &str = "secret-of-ci";

/// Sets the clock to so many seconds after the beginning.
fn at(second: u64) {
    held::set(UNIX_EPOCH + Duration::from_secs(BEGAN + second));
}

struct Gate {
    gateway: Gateway,
    key: KeyPair,
    issuer: String,
    _state: tempfile::TempDir,
}

/// A stream of events.
struct Stream(Payload);

impl Stream {
    async fn next(&mut self) -> Option<String> {
        let frame = tokio::time::timeout(Duration::from_secs(60), self.0.frame()).await.expect("the stream stands still")?;
        Some(String::from_utf8(frame.unwrap().into_data().unwrap().to_vec()).unwrap())
    }

    async fn heard_of_a_change(&mut self) -> String {
        let heard = self.next().await.unwrap();
        assert!(heard.contains("notifications/tools/list_changed"), "{heard}");
        heard
    }
}

/// Reads the JSON of an event.
fn data(event: &str) -> Value {
    let line = event.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    serde_json::from_str(line).unwrap()
}

impl Gate {
    fn start() -> Self {
        at(0);
        let (state, key) = (tempfile::tempdir().unwrap(), KeyPair::generate_for(&PKCS_ED25519).unwrap());
        let keys = state.path().join("keys.pem");
        std::fs::write(&keys, key.public_key_pem()).unwrap();
        let issuer = format!("resource = \"{RESOURCE}\"\n[issuer.login]\nissuer = \"{ISSUER}\"\nkeys = {keys:?}\n");
        let gateway = Gateway::start(parse(&format!("{issuer}{}", ci())), state.path().to_owned());
        Self { gateway, key, issuer, _state: state }
    }

    /// Makes a token for Ann, good until `until`.
    fn token(&self, until: u64) -> String {
        let claims = json!({"iss": ISSUER, "aud": RESOURCE, "sub": "ann", "exp": until});
        encode(&Header::new(Algorithm::EdDSA), &claims, &EncodingKey::from_ed_der(self.key.serialized_der())).unwrap()
    }

    /// Causes news for every listener.
    fn change(&self) {
        self.gateway.0.gate.hub.lists_changed(None, &[catalog::Kind::Tools]);
    }

    async fn post(&self, fields: &Fields, message: &Value) -> Response<Payload> {
        self.post_late(fields, message, || {}).await
    }

    /// Posts a message; `meanwhile` runs between the head of the request and the body.
    async fn post_late(&self, fields: &Fields, message: &Value, meanwhile: impl FnOnce()) -> Response<Payload> {
        let (asked, mut known) = (RequestHead { path: "/mcp", query: None, fields }, KnownClient::default());
        let admitted = match endpoint::admit(&self.gateway.0.server, asked, &mut known) {
            Ok(admitted) => admitted,
            Err(refused) => return refused.into_http(),
        };
        meanwhile();
        let body = Bytes::from(message.to_string());
        endpoint::post(&self.gateway.0.server, &admitted, asked, &body, &mut known).await.into_http()
    }

    fn get(&self, fields: &Fields) -> Response<Payload> {
        let asked = RequestHead { path: "/mcp", query: None, fields };
        let admitted = endpoint::admit(&self.gateway.0.server, asked, &mut KnownClient::default());
        admitted.map_or_else(|refused| refused, |admitted| endpoint::get(&self.gateway.0.server, &admitted, asked)).into_http()
    }

    async fn listen(&self, token: &str) -> Stream {
        let opened = self.post(&stateless(token), &listening()).await;
        assert_eq!(opened.status(), StatusCode::OK);
        let mut stream = Stream(opened.into_body());
        assert!(stream.next().await.unwrap().contains("acknowledged"));
        stream
    }
}

fn parse(toml: &str) -> config::resolved::Config {
    config::parse(toml, Path::new("banyan.toml"), &SystemSources).unwrap()
}

/// Configures a token without an end.
fn ci() -> String {
    let digest: String = Sha256::digest(CI).iter().map(|b| format!("{b:02x}")).collect();
    format!("[[token]]\nname = \"ci\"\nsha256 = \"{digest}\"\n")
}

fn fields(token: &str, more: &[(&str, &str)]) -> Fields {
    let bearer = format!("Bearer {token}");
    let own = [("host", "localhost"), ("authorization", &bearer), ("accept", "application/json, text/event-stream")];
    Fields::new(own.iter().chain(more).map(|(name, value)| (*name, value.as_bytes())))
}

fn stateless(token: &str) -> Fields {
    fields(token, &[("mcp-protocol-version", "2026-07-28"), ("mcp-method", "subscriptions/listen")])
}

fn of_session(token: &str, session: &str, last: Option<&str>) -> Fields {
    let more = [("mcp-protocol-version", "2025-11-25"), ("mcp-session-id", session)];
    let last: Vec<(&str, &str)> = last.map(|id| ("last-event-id", id)).into_iter().collect();
    fields(token, &[&more[..], &last].concat())
}

fn listening() -> Value {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    json!({"jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen", "params": {"_meta": meta, "notifications": {"toolsListChanged": true}}})
}

fn greeting() -> Value {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

#[tokio::test]
async fn ax_40_streams_end_with_a_token_and_resume_with_another() {
    let gate = Gate::start();
    let (first, second) = (gate.token(SHORT), gate.token(SHORT + 600));
    let opened = gate.post(&fields(&first, &[]), &greeting()).await;
    let session = opened.headers()["mcp-session-id"].to_str().unwrap();
    let mut standing = Stream(gate.get(&of_session(&first, session, None)).into_body());
    let (mut listening, mut ci) = (gate.listen(&first).await, gate.listen(CI).await);

    // To its last moment, in which it would let a request in as well.
    at(89);
    gate.change();
    let heard = standing.heard_of_a_change().await;
    let last = heard.lines().find_map(|line| line.strip_prefix("id: ")).unwrap();
    listening.heard_of_a_change().await;
    ci.heard_of_a_change().await;

    at(90);
    let end = listening.next().await.unwrap();
    let result = json!({"resultType": "complete", "_meta": {"io.modelcontextprotocol/subscriptionId": 7}});
    assert_eq!((data(&end)["id"].clone(), data(&end)["result"].clone()), (json!(7), result));
    gate.change();
    assert_eq!(listening.next().await, None);
    assert!(standing.next().await.unwrap().starts_with(": the token that opened this stream has expired"));
    assert_eq!(standing.next().await, None);
    ci.heard_of_a_change().await;

    let refused = gate.get(&of_session(&first, session, Some(last)));
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    assert!(refused.headers()["www-authenticate"].to_str().unwrap().contains("error=\"invalid_token\""));
    let mut resumed = Stream(gate.get(&of_session(&second, session, Some(last))).into_body());
    assert_ne!(resumed.heard_of_a_change().await, heard, "what came since, and nothing twice");
    let mut anew = gate.listen(&second).await;
    gate.change();
    resumed.heard_of_a_change().await;
    anew.heard_of_a_change().await;
}

#[tokio::test]
async fn ax_40_a_late_body_is_judged_by_credentials_at_arrival() {
    let gate = Gate::start();
    let token = gate.token(SHORT);
    for (head, body) in [(stateless(&token), listening()), (fields(&token, &[]), greeting())] {
        at(0);
        assert_eq!(gate.post(&head, &body).await.status(), StatusCode::OK);
        let late = gate.post_late(&head, &body, || at(90)).await;
        assert_eq!(late.status(), StatusCode::UNAUTHORIZED, "{body}");
        let told = String::from_utf8(late.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap();
        assert!(told.contains("`exp`"), "{told}");
    }
    for (head, body) in [(stateless(CI), listening()), (fields(CI, &[]), greeting())] {
        gate.gateway.apply(parse(&format!("{}{}", gate.issuer, ci()))).unwrap();
        let late = gate.post_late(&head, &body, || drop(gate.gateway.apply(parse(&gate.issuer)).unwrap())).await;
        assert_eq!(late.status(), StatusCode::UNAUTHORIZED, "{body}");
    }
    assert_eq!(gate.gateway.0.gate.hub.sessions(), 1, "that of ann, who was in time");
}
