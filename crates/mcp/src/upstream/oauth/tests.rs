//! Sign-ins at an authorization server of our own on loopback. The official suite's scenarios are not repeated here.

use std::collections::HashMap;
use std::sync::Mutex as StdMutex;

use bytes::Bytes;
use config::resolved::{Grant, OAuth};
use config::secret::SecretRef;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::upstream::oauth::*;

#[tokio::test]
async fn without_a_browser_the_error_has_the_address() {
    let server = Server::start(Settings::default()).await;
    let (client, _dir) = server.client(OAuth::default());
    assert!(client.token().await.unwrap().is_none());

    let error = client.challenged(401, Some(&server.challenge("")), None).await.unwrap_err();
    let text = error.to_string();
    let AuthError::SignIn { url, .. } = error else { panic!("{text}") };
    assert!(text.contains("banyan auth peer") && text.contains(&url), "{text}");

    let again = client.challenged(401, Some(&server.challenge("")), None).await.unwrap_err();
    assert!(matches!(again, AuthError::SignIn { url: same, .. } if same == url), "a second call opens no second sign-in");

    let mut renewed = client.renewed();
    browse(&url).await;
    renewed.changed().await.unwrap();
    assert_eq!(client.token().await.unwrap().unwrap().expose(), "token-1");
    assert_eq!(server.count("register"), 1);
}

#[tokio::test]
async fn with_a_browser_the_request_waits_for_the_person() {
    let server = Server::start(Settings::default()).await;
    let (client, _dir) = server.client_with(OAuth::default(), open_in_background);
    let calls = (0..10).map(|_| client.challenged(401, None, None));
    for done in futures_util::future::join_all(calls).await {
        done.unwrap();
    }
    assert_eq!((server.count("authorize"), server.count("authorization_code")), (1, 1));
    assert_eq!(client.token().await.unwrap().unwrap().expose(), "token-1");
}

#[tokio::test]
async fn an_ended_token_is_refreshed_once_for_all() {
    let server = Server::start(Settings { expires_in: 1, ..Settings::default() }).await;
    let (client, _dir) = server.client_with(OAuth::default(), open_in_background);
    client.challenged(401, None, None).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let tokens = futures_util::future::join_all((0..20).map(|_| client.token())).await;
    for token in tokens {
        assert_eq!(token.unwrap().unwrap().expose(), "token-2");
    }
    assert_eq!(server.count("refresh_token"), 1);
}

#[tokio::test]
async fn m1_an_endless_token_lasts_a_year() {
    for expires_in in [u64::MAX, i64::MAX.cast_unsigned(), 1 << 62] {
        let server = Server::start(Settings { expires_in, ..Settings::default() }).await;
        let (client, _dir) = server.client_with(OAuth::default(), open_in_background);
        client.challenged(401, None, None).await.unwrap();
        assert_eq!(client.token().await.unwrap().unwrap().expose(), "token-1");
    }
}

#[tokio::test]
async fn a_rejected_refresh_leads_back_to_the_person() {
    let server = Server::start(Settings::default()).await;
    let (client, _dir) = server.client_with(OAuth::default(), open_in_background);
    client.challenged(401, None, None).await.unwrap();
    client.challenged(401, None, Some("Bearer token-1")).await.unwrap();
    assert_eq!(client.token().await.unwrap().unwrap().expose(), "token-2");
    // A refusal of another request came late, after a newer token.
    client.challenged(401, None, Some("Bearer token-1")).await.unwrap();
    assert_eq!(server.count("refresh_token"), 1);

    server.set(|settings| settings.refuse_refresh = true);
    let error = client.challenged(401, None, Some("Bearer token-2")).await.unwrap_err();
    assert!(error.to_string().contains("only just given"), "{error}");
}

#[tokio::test]
async fn a_token_outlives_the_process_in_a_private_file() {
    let server = Server::start(Settings::default()).await;
    let (client, dir) = server.client_with(OAuth::default(), open_in_background);
    client.challenged(401, None, None).await.unwrap();

    let after = client_in(&dir, &server.url(), OAuth::default(), no_browser);
    assert_eq!(after.token().await.unwrap().unwrap().expose(), "token-1");
    after.challenged(401, None, Some("Bearer token-1")).await.unwrap();
    assert_eq!(after.token().await.unwrap().unwrap().expose(), "token-2", "refreshed with the secret that was registered");

    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &str| std::fs::metadata(dir.path().join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("oauth"), mode("oauth/peer.json")), (0o700, 0o600));
    }
    let elsewhere = client_in(&dir, &"http://127.0.0.1:9/mcp".parse().unwrap(), OAuth::default(), no_browser);
    assert!(elsewhere.token().await.unwrap().is_none(), "a token is never used for another address");
    after.sign_out().await.unwrap();
    assert!(client_in(&dir, &server.url(), OAuth::default(), no_browser).token().await.unwrap().is_none());
}

#[tokio::test]
async fn a_sign_in_of_another_process_is_seen() {
    let server = Server::start(Settings::default()).await;
    let (gate, dir) = server.client(OAuth::default());
    assert!(gate.token().await.unwrap().is_none());
    let command = client_in(&dir, &server.url(), OAuth::default(), open_in_background);
    let mut announced = String::new();
    command.sign_in(|url| announced = url.into()).await.unwrap();
    assert!(announced.contains("/authorize?"), "{announced}");
    gate.challenged(401, None, None).await.unwrap();
    assert_eq!(gate.token().await.unwrap().unwrap().expose(), "token-1");
}

#[tokio::test]
async fn a_missing_scope_is_asked_for_once() {
    let server = Server::start(Settings::default()).await;
    let (client, _dir) = server.client_with(OAuth::default(), open_in_background);
    client.challenged(401, Some(&server.challenge("scope=\"read\"")), None).await.unwrap();
    let more = server.challenge("error=\"insufficient_scope\", scope=\"write\"");
    client.challenged(403, Some(&more), Some("Bearer token-1")).await.unwrap();
    assert_eq!(server.last("scope"), "write read");
    let error = client.challenged(403, Some(&more), Some("Bearer token-2")).await.unwrap_err();
    assert!(matches!(&error, AuthError::Scope { scope, .. } if scope == "write"), "{error}");
    let error = client.challenged(403, None, Some("Bearer token-2")).await.unwrap_err();
    assert!(matches!(error, AuthError::Denied { .. }), "{error}");
    assert_eq!(server.count("authorize"), 2);
}

#[tokio::test]
async fn a_refusing_person_is_not_asked_again_at_once() {
    let server = Server::start(Settings { deny: true, ..Settings::default() }).await;
    let (client, _dir) = server.client_with(OAuth::default(), open_in_background);
    let error = client.challenged(401, None, None).await.unwrap_err();
    assert!(matches!(&error, AuthError::Denied { why, .. } if why.contains("access_denied")), "{error}");
    let error = client.challenged(401, None, None).await.unwrap_err();
    assert!(matches!(error, AuthError::SignIn { .. }), "{error}");
    assert_eq!(server.count("authorize"), 1);
}

#[tokio::test]
async fn a_server_without_sign_in_wants_a_configured_token() {
    let server = Server::start(Settings { no_oauth: true, ..Settings::default() }).await;
    let (client, _dir) = server.client(OAuth::default());
    let error = client.challenged(401, None, None).await.unwrap_err();
    assert!(matches!(error, AuthError::NotOffered { .. }), "{error}");
    assert!(error.to_string().contains("Authorization = \"Bearer ${env:TOKEN}\""), "{error}");
}

#[tokio::test]
async fn a_configured_client_needs_no_registration_and_no_person() {
    let server = Server::start(Settings::default()).await;
    let configured = OAuth { client_id: Some("me".into()), client_secret: Some(SecretRef::plain("hush")), ..OAuth::default() };
    let (person, _dir) = server.client_with(configured.clone(), open_in_background);
    person.challenged(401, None, None).await.unwrap();
    let (machine, _other) = server.client(OAuth { grant: Grant::ClientCredentials, ..configured });
    machine.challenged(401, None, None).await.unwrap();
    assert_eq!(machine.token().await.unwrap().unwrap().expose(), "token-2");
    assert_eq!((server.count("register"), server.count("client_credentials")), (0, 1));
    assert_eq!(server.last("resource"), server.url().as_str());
}

#[tokio::test]
async fn a_redirect_port_that_is_taken_is_named() {
    let server = Server::start(Settings::default()).await;
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = taken.local_addr().unwrap().port();
    let (client, _dir) = server.client(OAuth { redirect_port: Some(port), ..OAuth::default() });
    let error = client.challenged(401, None, None).await.unwrap_err();
    assert!(error.to_string().contains(&format!("port {port}")) && error.to_string().contains("redirect_port"), "{error}");
}

fn no_browser(_: &str) -> bool {
    false
}

fn open_in_background(url: &str) -> bool {
    let url = url.to_owned();
    tokio::spawn(async move { browse(&url).await });
    true
}

/// Acts as a browser: follows redirects to the last.
async fn browse(url: &str) {
    reqwest::get(url).await.unwrap().error_for_status().unwrap();
}

fn client_in(dir: &TempDir, url: &Url, config: OAuth, open: fn(&str) -> bool) -> OAuthClient {
    let made = OAuthClient::new("peer", url.clone(), config, dir.path());
    let Ok(client) = Arc::try_unwrap(made.0) else { panic!("nobody else has it yet") };
    OAuthClient(Arc::new(Client { store: client.store.in_file(), open, ..client }))
}

/// A protected server and its authorization server in one.
struct Server {
    base: String,
    state: Arc<StdMutex<Seen>>,
}

#[derive(Clone, Default)]
struct Settings {
    expires_in: u64,
    refuse_refresh: bool,
    deny: bool,
    no_oauth: bool,
}

#[derive(Default)]
struct Seen {
    settings: Settings,
    counts: HashMap<String, u32>,
    last: HashMap<String, String>,
    tokens: u32,
}

impl Server {
    async fn start(settings: Settings) -> Self {
        runtime::tls::install_crypto();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(StdMutex::new(Seen { settings, ..Seen::default() }));
        let server = Self { base: base.clone(), state: state.clone() };
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (state, base) = (state.clone(), base.clone());
                let service = service_fn(move |request| answer(state.clone(), base.clone(), request));
                tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        server
    }

    fn url(&self) -> Url {
        format!("{}/mcp", self.base).parse().unwrap()
    }

    fn challenge(&self, more: &str) -> String {
        let comma = if more.is_empty() { "" } else { ", " };
        format!("Bearer resource_metadata=\"{}/.well-known/oauth-protected-resource/mcp\"{comma}{more}", self.base)
    }

    fn client(&self, config: OAuth) -> (OAuthClient, TempDir) {
        self.client_with(config, no_browser)
    }

    fn client_with(&self, config: OAuth, open: fn(&str) -> bool) -> (OAuthClient, TempDir) {
        let dir = tempfile::tempdir().unwrap();
        (client_in(&dir, &self.url(), config, open), dir)
    }

    fn set(&self, change: impl FnOnce(&mut Settings)) {
        change(&mut self.state.lock().unwrap().settings);
    }

    fn count(&self, what: &str) -> u32 {
        self.state.lock().unwrap().counts.get(what).copied().unwrap_or_default()
    }

    fn last(&self, parameter: &str) -> String {
        self.state.lock().unwrap().last.get(parameter).cloned().unwrap_or_default()
    }
}

async fn answer(state: Arc<StdMutex<Seen>>, base: String, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let mut seen = state.lock().unwrap();
    let json = |value: serde_json::Value| {
        Response::builder().header("content-type", "application/json").body(Full::from(value.to_string())).unwrap()
    };
    let plain = |status: StatusCode| Response::builder().status(status).body(Full::default()).unwrap();
    let known = !seen.settings.no_oauth;
    Ok(match head.uri.path() {
        "/.well-known/oauth-protected-resource/mcp" if known => {
            json(json!({ "resource": format!("{base}/mcp"), "authorization_servers": [base] }))
        }
        "/.well-known/oauth-authorization-server" if known => json(json!({
            "issuer": base, "authorization_endpoint": format!("{base}/authorize"), "token_endpoint": format!("{base}/token"),
            "registration_endpoint": format!("{base}/register"), "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
        })),
        "/register" if known => {
            seen.note("register");
            json(json!({ "client_id": "registered", "client_secret": "given", "redirect_uris": [] }))
        }
        "/authorize" if known => {
            seen.note("authorize");
            let asked = seen.read(head.uri.query().unwrap_or_default().as_bytes());
            let outcome = if seen.settings.deny { "error=access_denied" } else { "code=c" };
            let to = format!("{}?{outcome}&state={}&iss={base}", asked["redirect_uri"], asked["state"]);
            Response::builder().status(StatusCode::FOUND).header("location", to).body(Full::default()).unwrap()
        }
        "/token" if known => {
            let asked = seen.read(&body);
            let grant = asked["grant_type"].clone();
            let identified = head.headers.get("authorization").is_some_and(|value| value.to_str().unwrap().starts_with("Basic "));
            seen.note(&grant);
            if !identified || (grant == "refresh_token" && seen.settings.refuse_refresh) {
                let refused = json(json!({ "error": "invalid_grant" }));
                let (mut parts, body) = refused.into_parts();
                parts.status = StatusCode::BAD_REQUEST;
                return Ok(Response::from_parts(parts, body));
            }
            seen.tokens += 1;
            let lasts = if seen.settings.expires_in == 0 { 3600 } else { seen.settings.expires_in };
            // Only the first token is short-lived.
            seen.settings.expires_in = 0;
            json(
                json!({ "access_token": format!("token-{}", seen.tokens), "token_type": "Bearer", "expires_in": lasts, "refresh_token": "r" }),
            )
        }
        _ => plain(StatusCode::NOT_FOUND),
    })
}

impl Seen {
    fn note(&mut self, what: &str) {
        *self.counts.entry(what.into()).or_default() += 1;
    }

    fn read(&mut self, form: &[u8]) -> HashMap<String, String> {
        let url = Url::parse(&format!("http://x/?{}", String::from_utf8_lossy(form))).unwrap();
        let parameters: HashMap<String, String> = url.query_pairs().map(|(key, value)| (key.into_owned(), value.into_owned())).collect();
        self.last.extend(parameters.clone());
        parameters
    }
}
