//! Gates and clients with certificates: TLS on the listener, joining, renewing, revoking. Does not try tokens: see `tokens`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gateway::trust::ca::{Ca, JoinToken, Ledger};
use gateway::trust::join::{Enrolment, JoinError, enrol};
use http::Request;
use http_body_util::Full;
use rcgen::{CertificateParams, KeyPair};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, version};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::asked::text;
use crate::linked::{listed, registered, stands, taking};
use crate::world::cable::Cable;
use crate::world::{Client, Era, World, bounded, eventually, fixture, protect, send, token};

const HOUR: Duration = Duration::from_secs(3600);

/// Starts a gate with an authority of its own, whose certificates it takes.
pub(crate) async fn certified(more: &str) -> (World, Ca) {
    let state = tempfile::tempdir().unwrap();
    let ca = Ca::init(&Ca::dir(state.path()), &["localhost".into()]).unwrap();
    let world = World::start_in(state, &format!("{more}\n{}", tls(&ca, ""))).await;
    (world, ca)
}

pub(crate) fn tls(ca: &Ca, more: &str) -> String {
    format!("[tls]\ncertificate = {:?}\nkey = {:?}\nclient_ca = {:?}\n{more}\n", ca.gate_file(), ca.gate_key_file(), ca.authority_file())
}

/// Makes a client that trusts `ca` and shows `own`.
fn client(ca: &Path, own: Option<(&Path, &Path)>, versions: &[&'static rustls::SupportedProtocolVersion]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider())).with_protocol_versions(versions).unwrap();
    let builder = builder.with_root_certificates(roots);
    Arc::new(match own {
        None => builder.with_no_client_auth(),
        Some((own, key)) => {
            let chain = CertificateDer::pem_file_iter(own).unwrap().map(Result::unwrap).collect();
            builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_file(key).unwrap()).unwrap()
        }
    })
}

fn nobody(ca: &Ca) -> Arc<ClientConfig> {
    client(&ca.authority_file(), None, &[&version::TLS13])
}

pub(crate) fn holder(of: &Enrolment) -> Arc<ClientConfig> {
    client(&of.ca, Some((&of.certificate, &of.key)), &[&version::TLS13])
}

pub(crate) async fn join(world: &World, own: &Path, token: &JoinToken, name: &str) -> Result<Enrolment, JoinError> {
    // Reached by an address that stands in no certificate: the token is enough.
    let url = format!("https://127.0.0.1:{}", world.addr.port()).parse().unwrap();
    enrol(own, &url, token, Some(name)).await
}

/// Makes a request, and gives status and JSON body.
async fn ask(world: &World, tls: &Arc<ClientConfig>, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let body = Full::new(Bytes::from(body.to_string()));
    let request = Request::builder().method(method).uri(path).header("host", "localhost").body(body).unwrap();
    let mut reply = send(world.addr, Some(tls), request).await;
    let status = reply.status.as_u16();
    (status, reply.next().await.map_or(Value::Null, |event| event.value))
}

#[tokio::test]
async fn ax_42_a_tls_listener_takes_only_tls_1_3() {
    bounded(async {
        let (world, ca) = certified(&fixture("fx", Era::Stateless)).await;
        let old = client(&ca.authority_file(), None, &[&version::TLS12]);
        let refused = protect(TcpStream::connect(world.addr).await.unwrap(), &old).await.unwrap_err();
        assert!(refused.to_string().contains("ProtocolVersion"), "{refused}");

        let mut plain = TcpStream::connect(world.addr).await.unwrap();
        plain.write_all(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        drop(plain.read_to_end(&mut answer).await);
        assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    })
    .await;
}

#[tokio::test]
async fn ax_13_only_joined_gates_are_known_by_certificate() {
    bounded(async {
        let (world, ca) = certified(&fixture("fx", Era::Stateless)).await;
        let own = tempfile::tempdir().unwrap();
        let joined = join(&world, own.path(), &ca.invite(None, HOUR).unwrap(), "edge.example.com").await.unwrap();
        assert_eq!(joined.name, "edge.example.com");
        for era in [Era::Initialize, Era::Stateless] {
            let known = Client::new(&world, era).over(&holder(&joined)).open().await;
            assert_eq!(text(&known.tool("fx__fx_echo", json!({"text": "known"})).await), "known");
            let stranger = Client::new(&world, era).over(&nobody(&ca));
            assert_eq!(stranger.begin("tools/list", json!({})).await.status, 401);
        }
        assert_eq!(ask(&world, &holder(&joined), "GET", "/-/status", &json!({})).await.0, 200);
        assert_eq!(ask(&world, &nobody(&ca), "GET", "/-/status", &json!({})).await.0, 401);
        // Who makes his own authority is nobody here.
        let other = tempfile::tempdir().unwrap();
        let others = Ca::init(other.path(), &["localhost".into()]).unwrap();
        let forged = client(&ca.authority_file(), Some((&others.gate_file(), &others.gate_key_file())), &[&version::TLS13]);
        let mut stream = protect(TcpStream::connect(world.addr).await.unwrap(), &forged).await.unwrap();
        assert!(stream.read(&mut [0]).await.is_err(), "the handshake ends with the server's refusal");
    })
    .await;
}

#[tokio::test]
async fn rules_may_speak_of_whoever_shows_a_certificate() {
    bounded(async {
        let (rules, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = rules.path().join("policy.cedar");
        let text = r#"permit (principal == Principal::"dns:edge.example.com", action, resource) when { principal.kind == "certificate" };"#;
        std::fs::write(&file, text).unwrap();
        let (world, ca) = certified(&format!("[policy]\nfile = {file:?}\n{}", fixture("fx", Era::Stateless))).await;
        for (name, may) in [("edge.example.com", true), ("other.example.com", false)] {
            let joined = join(&world, &own.path().join(name), &ca.invite(None, HOUR).unwrap(), name).await.unwrap();
            for era in [Era::Initialize, Era::Stateless] {
                let client = Client::new(&world, era).over(&holder(&joined)).open().await;
                assert_eq!(client.tools().await.is_empty(), !may, "{name}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn long_answers_and_events_come_through_tls() {
    bounded(async {
        let (world, ca) = certified(&format!("{}{}", token("ann"), fixture("fx", Era::Stateless))).await;
        for era in [Era::Initialize, Era::Stateless] {
            let client = Client::new(&world, era).with("authorization", "Bearer secret-of-ann").over(&nobody(&ca)).open().await;
            let long = "long ".repeat(200_000);
            assert_eq!(text(&client.tool("fx__fx_echo", json!({"text": long})).await), long);
            let told = client.tool("fx__fx_sleep", json!({"ms": 50, "steps": 5})).await;
            assert!(told.get("result").is_some(), "{told}");
        }
    })
    .await;
}

#[tokio::test]
async fn an_invitation_admits_one_at_its_own_gate() {
    bounded(async {
        let ((world, ca), (other, _)) = (certified("").await, certified("").await);
        let own = tempfile::tempdir().unwrap();
        let token = ca.invite(None, HOUR).unwrap();
        let elsewhere = join(&other, own.path(), &token, "edge").await.unwrap_err();
        assert!(matches!(elsewhere, JoinError::Stranger { .. }), "{elsewhere}");
        join(&world, own.path(), &token, "edge").await.unwrap();
        let again = join(&world, own.path(), &token, "other").await.unwrap_err();
        assert!(again.to_string().contains("banyan ca token"), "{again}");

        let late = join(&world, own.path(), &ca.invite(None, Duration::ZERO).unwrap(), "late").await.unwrap_err();
        assert_eq!(late.to_string(), again.to_string(), "which of them it is, is nobody's business");
        let taken = join(&world, own.path(), &ca.invite(None, HOUR).unwrap(), "edge").await.unwrap_err();
        assert!(taken.to_string().contains("is taken"), "{taken}");
    })
    .await;
}

#[tokio::test]
async fn a_child_is_not_taken_for_its_authoritys_gate() {
    bounded(async {
        let (world, ca) = certified("").await;
        let own = tempfile::tempdir().unwrap();
        let joined = join(&world, own.path(), &ca.invite(None, HOUR).unwrap(), "edge").await.unwrap();
        let chain = std::fs::read_to_string(&joined.certificate).unwrap() + ca.pem();
        std::fs::write(own.path().join("chain.pem"), chain).unwrap();
        let toml = format!("[tls]\ncertificate = {:?}\nkey = {:?}\n", own.path().join("chain.pem"), joined.key);
        let child = World::start(&toml).await;
        let lured = join(&child, own.path(), &ca.invite(None, HOUR).unwrap(), "lured").await.unwrap_err();
        assert!(matches!(lured, JoinError::Stranger { .. }), "{lured}");
    })
    .await;
}

#[tokio::test]
async fn a_certificate_is_renewed_until_revoked() {
    bounded(async {
        let (world, ca) = certified("").await;
        let own = tempfile::tempdir().unwrap();
        let joined = join(&world, own.path(), &ca.invite(None, HOUR).unwrap(), "edge").await.unwrap();
        let key = KeyPair::from_pem(&std::fs::read_to_string(&joined.key).unwrap()).unwrap();
        let csr = CertificateParams::default().serialize_request(&key).unwrap().pem().unwrap();
        let renew = async |tls: &Arc<ClientConfig>| ask(&world, tls, "POST", "/-/renew", &json!({"csr": csr})).await;
        let (status, given) = renew(&holder(&joined)).await;
        assert_eq!((status, given["name"].as_str()), (200, Some("edge")), "{given}");
        assert_ne!(renew(&nobody(&ca)).await.0, 200);

        // A connection that stands open ends with the certificate.
        let mut open = protect(TcpStream::connect(world.addr).await.unwrap(), &holder(&joined)).await.unwrap();
        open.write_all(b"GET /-/status HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        assert!(open.read(&mut [0; 4096]).await.unwrap() > 0);
        let dir = Ca::dir(world.state.path());
        assert_eq!(Ledger::revoke(&dir, "edge").unwrap().len(), 2);
        let mut rest = Vec::new();
        drop(open.read_to_end(&mut rest).await);
        eventually(async || {
            let mut late = protect(TcpStream::connect(world.addr).await.unwrap(), &holder(&joined)).await.ok()?;
            late.write_all(b"GET /-/status HTTP/1.1\r\nhost: localhost\r\n\r\n").await.ok()?;
            matches!(late.read(&mut [0; 16]).await, Ok(0) | Err(_)).then_some(())
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn new_tls_files_hold_and_bad_ones_change_nothing() {
    bounded(async {
        let (world, ca) = certified("").await;
        let old = nobody(&ca);
        assert_eq!(ask(&world, &old, "GET", "/-/status", &json!({})).await.0, 401);
        let other = tempfile::tempdir().unwrap();
        let others = Ca::init(other.path(), &["localhost".into()]).unwrap();

        std::fs::write(ca.gate_file(), "no certificate").unwrap();
        tokio::time::sleep(Duration::from_millis(600)).await;
        assert_eq!(ask(&world, &old, "GET", "/-/status", &json!({})).await.0, 401);

        std::fs::copy(others.gate_key_file(), ca.gate_key_file()).unwrap();
        std::fs::copy(others.gate_file(), ca.gate_file()).unwrap();
        let new = nobody(&others);
        eventually(async || protect(TcpStream::connect(world.addr).await.unwrap(), &new).await.ok()).await;
        assert!(protect(TcpStream::connect(world.addr).await.unwrap(), &old).await.is_err());
    })
    .await;
}

#[tokio::test]
async fn only_joining_needs_no_certificate_where_required() {
    bounded(async {
        let state = tempfile::tempdir().unwrap();
        let ca = Ca::init(&Ca::dir(state.path()), &["localhost".into()]).unwrap();
        let world = World::start_in(state, &format!("{}{}", token("ann"), tls(&ca, "clients = \"required\""))).await;
        let ann = |tls: &Arc<ClientConfig>| Client::new(&world, Era::Stateless).with("authorization", "Bearer secret-of-ann").over(tls);
        let mut refused = ann(&nobody(&ca)).begin("tools/list", json!({})).await;
        assert_eq!(refused.status, 401);
        assert!(refused.next().await.unwrap().raw.contains("client certificate"));
        let own = tempfile::tempdir().unwrap();
        let joined = join(&world, own.path(), &ca.invite(None, HOUR).unwrap(), "edge").await.unwrap();
        assert_eq!(ann(&holder(&joined)).begin("tools/list", json!({})).await.status, 200);
    })
    .await;
}

#[tokio::test]
async fn ax_42_a_gate_is_reached_over_mutual_tls() {
    bounded(async {
        let (below, ca) = certified(&fixture("fx", Era::Stateless)).await;
        let own = tempfile::tempdir().unwrap();
        let joined = join(&below, own.path(), &ca.invite(None, HOUR).unwrap(), "top").await.unwrap();
        let mount = |tls: &str| format!("[mount.low]\nurl = \"https://127.0.0.1:{}/mcp\"\n{tls}\n", below.addr.port());
        let with = format!("tls = {{ certificate = {:?}, key = {:?}, ca = {:?} }}", joined.certificate, joined.key, joined.ca);
        let top = World::start(&mount(&with)).await;
        let client = Client::ready(&top, Era::Stateless).await;
        assert_eq!(text(&client.tool("low__fx__fx_echo", json!({"text": "mutual"})).await), "mutual");

        let unknown = World::start(&mount(&format!("oauth = false\ntls = {{ ca = {:?} }}", joined.ca))).await;
        let why = unknown.mount("low").unwrap().error.unwrap();
        assert!(why.contains("401"), "{why}");
        let distrusted = World::start(&mount("oauth = false")).await;
        let why = distrusted.mount("low").unwrap().error.unwrap();
        assert!(why.contains("not trusted"), "{why}");
    })
    .await;
}

#[tokio::test]
async fn ax_42_plain_text_to_a_gate_must_be_configured() {
    bounded(async {
        let below = World::start(&format!("allowed_hosts = [\"[::ffff:7f00:1]\"]\n{}", fixture("fx", Era::Stateless))).await;
        // This machine, under an address that does not look like it.
        let mount = |more: &str| format!("[mount.low]\nurl = \"http://[::ffff:7f00:1]:{}/mcp\"\n{more}", below.addr.port());
        let top = World::start(&mount("")).await;
        let why = top.mount("low").unwrap().error.unwrap();
        assert!(why.contains("insecure = true") && why.contains("https://"), "{why}");
        let told = top.apply(&mount("insecure = true"));
        assert_eq!(told, ["~ mount low: insecure"]);
        top.until("low", |mount| mount.state == "ready").await;
    })
    .await;
}

#[tokio::test]
async fn ax_42_a_gates_credentials_are_not_sent_in_plain_probes() {
    bounded(async {
        let open = World::start("allowed_hosts = [\"[::ffff:7f00:1]\"]\n").await;
        let closed = World::start(&token("ann")).await;
        for below in [&open, &closed] {
            let cable = Cable::to(below.addr).await;
            let mount = |more: &str| {
                let (port, key) = (cable.addr.port(), "headers = { Authorization = \"Bearer secret-of-ann\" }");
                format!("[mount.low]\nurl = \"http://[::ffff:7f00:1]:{port}/mcp\"\n{key}\n{more}")
            };
            let top = World::start(&mount("")).await;
            let why = top.mount("low").unwrap().error.unwrap();
            assert!(why.contains("insecure = true"), "{why}");
            assert!(cable.carried().contains("server/discover") && !cable.carried().contains("secret-of-ann"), "{}", cable.carried());
            top.apply(&mount("insecure = true"));
            top.until("low", |mount| mount.state == "ready").await;
            assert!(cable.carried().contains("secret-of-ann"));
        }
    })
    .await;
}

/// Configures a child with a certificate, and a parent.
fn joining_by(world: &World, more: &str) -> String {
    let beat = "[node]\nsegment = \"leaf\"\nheartbeat = \"400ms\"\n";
    let url = format!("https://127.0.0.1:{}", world.addr.port());
    format!("{}{beat}[[parent]]\nurl = \"{url}\"\n{more}\n", fixture("fx", Era::Stateless))
}

/// Runs `what` during a call, and gives the call's answer.
async fn meanwhile(client: &Client, what: impl Future<Output = ()>) -> (Value, Duration) {
    let call = async {
        let steps = json!({"ms": 20_000, "steps": 1});
        let told = client.tool("leaf__fx__fx_sleep", steps).await;
        (told, Instant::now())
    };
    let ((told, ended), happened) = tokio::join!(call, async {
        what.await;
        Instant::now()
    });
    (told, ended.saturating_duration_since(happened))
}

#[tokio::test]
async fn ax_13_a_link_ends_with_the_certificate_that_opened_it() {
    bounded(async {
        let (world, ca) = certified(&format!("{}{}", taking(), token("ann"))).await;
        let own = tempfile::tempdir().unwrap();
        let joined = join(&world, own.path(), &ca.invite(None, HOUR).unwrap(), "edge").await.unwrap();
        let with = format!("tls = {{ certificate = {:?}, key = {:?}, ca = {:?} }}", joined.certificate, joined.key, joined.ca);
        let leaf = World::member(&joining_by(&world, &with)).await;
        let client = Client::new(&world, Era::Stateless).with("authorization", "Bearer secret-of-ann").over(&nobody(&ca)).open().await;
        registered(&leaf, 0).await;
        listed(&client, "leaf__fx__fx_echo").await;
        let (told, took) = meanwhile(&client, async {
            eventually(async || world.mount("leaf").filter(|mount| mount.in_flight == 1).map(drop)).await;
            assert_eq!(Ledger::revoke(&Ca::dir(world.state.path()), "edge").unwrap().len(), 1);
        })
        .await;
        assert!(told.get("error").is_some() && took < Duration::from_secs(5), "{told} after {took:?}");
        world.until("leaf", |mount| mount.state == "degraded").await;
        assert_ne!(stands(&leaf, 0), "registered");
    })
    .await;
}

#[tokio::test]
async fn a_link_ends_with_its_removed_token() {
    bounded(async {
        let world = World::start(&format!("{}{}{}", taking(), token("ann"), token("edge"))).await;
        let parent = format!("[node]\nsegment = \"leaf\"\nheartbeat = \"400ms\"\n[[parent]]\nurl = \"http://{}\"\n", world.addr);
        let leaf = World::member(&format!("{}{parent}token = \"secret-of-edge\"\n", fixture("fx", Era::Stateless))).await;
        registered(&leaf, 0).await;
        // Another change lets it be.
        world.apply(&format!("{}{}{}{}", taking(), token("ann"), token("edge"), token("bob")));
        world.apply(&format!("{}{}", taking(), token("ann")));
        eventually(async || (stands(&leaf, 0) != "registered").then_some(())).await;
        world.until("leaf", |mount| mount.state == "degraded").await;
        world.apply(&format!("{}{}{}", taking(), token("ann"), token("edge")));
        registered(&leaf, 0).await;
        world.until("leaf", |mount| mount.state == "ready").await;
    })
    .await;
}
