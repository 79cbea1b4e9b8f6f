//! A gate with a parent played by hand, which takes the link and answers.

use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use config::secret::SystemSources;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::Empty;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use mcp_proto::envelope::Answer;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use std::sync::Arc;

use crate::Gateway;
use mesh::link::{self, Link, LinkMessage};

const BEAT: Duration = Duration::from_millis(300);
const PARENT: &str = "11111111-1111-4111-8111-111111111111";
const SESSION: &str = "0123456789abcdef";

/// A parent's end of a link.
struct ByHand {
    link: Arc<Link>,
    said: mpsc::Receiver<LinkMessage>,
}

impl ByHand {
    /// Accepts the next link.
    async fn accept(listener: &TcpListener) -> Self {
        let (stream, _) = listener.accept().await.unwrap();
        let (taken, mut links) = mpsc::channel(1);
        let service = service_fn(move |mut request: http::Request<hyper::body::Incoming>| {
            let (upgrade, taken) = (hyper::upgrade::on(&mut request), taken.clone());
            assert_eq!((request.uri().path(), request.headers()["mcpax-heartbeat-ms"].to_str().unwrap()), ("/link", "300"));
            tokio::spawn(async move {
                let link = link::accept(upgrade.await.unwrap(), BEAT).await.unwrap();
                taken.send(link).await.unwrap();
            });
            let mut response = Response::new(Empty::<Bytes>::new());
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            response.headers_mut().insert("connection", HeaderValue::from_static("upgrade"));
            response.headers_mut().insert("upgrade", HeaderValue::from_static(link::PROTOCOL));
            async move { Ok::<_, Infallible>(response) }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service).with_upgrades());
        let (link, said) = links.recv().await.unwrap();
        Self { link, said }
    }

    /// Waits for the next request of this method.
    async fn asked(&mut self, wanted: &str) -> (Bytes, Value) {
        loop {
            match self.said.recv().await.unwrap() {
                LinkMessage::Request { id, method, params } if method == wanted => return (id, serde_json::from_slice(&params).unwrap()),
                LinkMessage::Request { .. } | LinkMessage::Notification { .. } => {}
            }
        }
    }

    fn answer(&self, id: &[u8], result: &Value) {
        self.link.control().answer(id, &Answer::Result(Bytes::from(result.to_string()).into()));
    }

    /// Asks the child for its parent.
    async fn ask(&self, of: &Value) -> Value {
        let params = json!({"aggregator_id": PARENT, "subserver_id": of}).to_string();
        let Answer::Result(result) = self.link.control().ask("mcpax/parent", params.as_bytes()).await.unwrap() else {
            panic!("it was refused")
        };
        serde_json::from_slice(result.text()).unwrap()
    }
}

fn registered() -> Value {
    json!({"status": "registered", "assigned_segment": "edge", "session_id": SESSION, "heartbeat_deadline_ms": 900, "aggregator_id": PARENT})
}

fn gate(parents: &[&TcpListener]) -> (Gateway, tempfile::TempDir) {
    let urls: String = parents.iter().map(|p| format!("[[parent]]\nurl = \"http://{}\"\n", p.local_addr().unwrap())).collect();
    let text = format!("[node]\nsegment = \"edge\"\nheartbeat = \"{}ms\"\n{urls}", BEAT.as_millis());
    let state = tempfile::tempdir().unwrap();
    let config = config::parse(&text, Path::new("banyan.toml"), &SystemSources).unwrap();
    (Gateway::start_at(config, state.path().to_owned(), Path::new("banyan.toml")), state)
}

async fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

#[tokio::test]
async fn ax_22_a_gate_registers_and_then_sends_heartbeats() {
    let listener = listener().await;
    let (gate, _state) = gate(&[&listener]);
    let mut parent = ByHand::accept(&listener).await;
    let (id, asked) = parent.asked("mcpax/register").await;
    let own = json!(&*gate.0.gate.node.id);
    assert_eq!((&asked["segment"], &asked["subserver_id"], &asked["aggregator_id"]), (&json!("edge"), &own, &own));
    assert_eq!((&asked["heartbeat_interval_ms"], &asked["x-mcpax-subtree-ids"]), (&json!(300), &json!([own])));
    assert_eq!(gate.joined().unwrap().parents[0].state, "trying");
    parent.answer(&id, &registered());
    for _ in 0..3 {
        let (id, beat) = parent.asked("mcpax/heartbeat").await;
        assert_eq!(beat["session_id"], SESSION);
        parent.answer(&id, &json!({"status": "alive"}));
    }
    let joined = gate.joined().unwrap();
    assert_eq!(joined.registered().and_then(|parent| parent.parent_id.as_deref()), Some(PARENT));
}

#[tokio::test]
async fn ax_25_a_gate_names_its_parent_over_the_link() {
    let listener = listener().await;
    let (gate, _state) = gate(&[&listener]);
    let mut parent = ByHand::accept(&listener).await;
    let (id, asked) = parent.asked("mcpax/register").await;
    let own = &asked["subserver_id"];
    assert_eq!(parent.ask(own).await, json!({"parent_id": null}));
    parent.answer(&id, &registered());
    parent.asked("mcpax/heartbeat").await;
    assert_eq!(parent.ask(own).await, json!({"parent_id": PARENT}));
    let params = json!({"aggregator_id": PARENT, "subserver_id": own}).to_string();
    assert_eq!(gate.0.mesh.membership.ask("mcpax/parent", params.as_bytes()).await.unwrap(), json!({"parent_id": PARENT}).to_string());
}

#[tokio::test]
async fn ax_23_a_gate_that_ends_says_so_and_hangs_up() {
    let listener = listener().await;
    let (gate, _state) = gate(&[&listener]);
    let mut parent = ByHand::accept(&listener).await;
    let (id, _) = parent.asked("mcpax/register").await;
    parent.answer(&id, &registered());
    parent.asked("mcpax/heartbeat").await;
    let leaving = async {
        let (id, left) = parent.asked("mcpax/deregister").await;
        assert_eq!(left["session_id"], SESSION);
        parent.answer(&id, &json!({"status": "deregistered"}));
        parent.link.gone().await;
    };
    tokio::join!(gate.shutdown(), leaving);
}

#[tokio::test]
async fn ax_62_a_silent_parent_is_left_for_the_next() {
    let (first, second) = (listener().await, listener().await);
    let (gate, _state) = gate(&[&first, &second]);
    let mut parent = ByHand::accept(&first).await;
    let (id, _) = parent.asked("mcpax/register").await;
    parent.answer(&id, &registered());
    parent.asked("mcpax/heartbeat").await;
    // The link stands, but no heartbeat is answered.
    let mut backup = ByHand::accept(&second).await;
    let (id, asked) = backup.asked("mcpax/register").await;
    assert_eq!(asked["backup"], true);
    backup.answer(&id, &registered());
    let unanswered = std::iter::from_fn(|| parent.said.try_recv().ok()).count();
    // A heartbeat goes out each half of an interval at the soonest. Whoever oversleeps the two intervals of silence waits for a third.
    assert!(unanswered <= 5, "{unanswered} more heartbeats were waited for");
    backup.asked("mcpax/heartbeat").await;
    let joined = gate.joined().unwrap();
    assert_eq!(joined.parents.iter().map(|p| p.state.as_str()).collect::<Vec<_>>(), ["lost", "registered"]);
    assert!(joined.parents[0].error.as_ref().unwrap().contains("heartbeats"));
}
