//! Gates that register with each other over links, under the same id, or again after a restart (AX-24 to AX-26), and gates dialled at a
//! registered address. Does not try calls over broken links: see `linked`.

use std::net::SocketAddr;
use std::time::Duration;

use gateway::trust::ca::Ca;
use gateway::trust::join::enrol;
use serde_json::json;
use tokio::net::TcpListener;

use crate::asked::text;
use crate::linked::{joining, listed, registered, stands, taking, unlisted};
use crate::world::{Client, Era, World, bounded, eventually, fixture};

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    (listener, addr)
}

/// Starts a gate that takes registrations, and registers with the parent at `above`.
async fn between(segment: &str, listener: TcpListener, above: SocketAddr, more: &str) -> World {
    World::member_in(tempfile::tempdir().unwrap(), &format!("{}grace = \"0s\"\n{more}{}", taking(), joining(segment, &[above])), listener)
        .await
}

/// Gives the reason why a gate's first parent refused.
fn refused(gate: &World) -> Option<String> {
    let joined = gate.gateway.joined()?;
    joined.parents[0].error.clone().filter(|_| joined.parents[0].state == "refused")
}

#[tokio::test]
async fn ax_24_gates_registering_with_each_other_get_a_refusal() {
    bounded(async {
        let ((here, one), (there, two)) = (listener().await, listener().await);
        let own = fixture("fx", Era::Stateless);
        let (a, b) = tokio::join!(between("a", here, two, &own), between("b", there, one, &own));
        let why = eventually(async || refused(&a).or(refused(&b))).await;
        assert!(why.contains("registration_cycle"), "{why}");
        // Whoever was refused is a root, and the other one stands below it and nowhere else.
        let (root, leaf, below) = eventually(async || match (stands(&a, 0).as_str(), stands(&b, 0).as_str()) {
            ("refused", "registered") => Some((&a, &b, "b__fx__fx_echo")),
            ("registered", "refused") => Some((&b, &a, "a__fx__fx_echo")),
            _ => None,
        })
        .await;
        let (up, down) = (Client::ready(root, Era::Stateless).await, Client::ready(leaf, Era::Stateless).await);
        listed(&up, below).await;
        assert_eq!(text(&up.tool(below, json!({"text": "one way"})).await), "one way");
        eventually(async || down.tools().await.iter().all(|name| !name.contains("__fx__")).then_some(())).await;
        eventually(async || up.tools().await.iter().all(|name| name.matches("__").count() <= 2).then_some(())).await;
    })
    .await;
}

#[tokio::test]
async fn ax_24_a_later_circle_of_links_is_refused() {
    bounded(async {
        let top = World::member(&taking()).await;
        let (here, middle) = listener().await;
        let mid = between("mid", here, top.addr, "").await;
        let (here, lowest) = listener().await;
        let low = between("low", here, middle, &fixture("fx", Era::Stateless)).await;
        let client = Client::ready(&top, Era::Stateless).await;
        listed(&client, "mid__low__fx__fx_echo").await;
        // The topmost one is told to register below its own grandchild.
        top.apply(&format!("{}{}", taking(), joining("top", &[lowest])));
        let why = eventually(async || refused(&top)).await;
        assert!(why.contains("registration_cycle"), "{why}");
        for gate in [&mid, &low] {
            assert_eq!(stands(gate, 0), "registered");
        }
        assert!(low.mount("top").is_none());
        assert_eq!(text(&client.tool("mid__low__fx__fx_echo", json!({"text": "still"})).await), "still");
    })
    .await;
}

#[tokio::test]
async fn ax_24_a_circle_is_refused_before_the_lowest_gate_knows() {
    bounded(async {
        let top = World::member(&taking()).await;
        let (here, middle) = listener().await;
        let mid = World::member_in(tempfile::tempdir().unwrap(), &taking(), here).await;
        let (here, lowest) = listener().await;
        let low = between("low", here, middle, &fixture("fx", Era::Stateless)).await;
        registered(&low, 0).await;
        mid.apply(&format!("{}{}", taking(), joining("mid", &[top.addr])));
        let client = Client::ready(&top, Era::Stateless).await;
        listed(&client, "mid__low__fx__fx_echo").await;
        top.apply(&format!("{}{}", taking(), joining("top", &[lowest])));
        let why = eventually(async || refused(&top)).await;
        assert!(why.contains("registration_cycle"), "{why}");
        for _ in 0..20 {
            assert_eq!(text(&client.tool("mid__low__fx__fx_echo", json!({"text": "still"})).await), "still");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert!(low.mount("top").is_none());
    })
    .await;
}

#[tokio::test]
async fn ax_25_a_second_gate_of_an_id_is_refused() {
    bounded(async {
        let root = World::start("[registry]\nprincipals = [\"*\"]\ntrust_gates = true\nproof = \"never\"\ngrace = \"0s\"\n").await;
        let config = |segment: &str| format!("{}{}", fixture("fx", Era::Stateless), joining(segment, &[root.addr]));
        let first = World::member(&config("first")).await;
        registered(&first, 0).await;
        let (here, _) = listener().await;
        let second = World::member_in(first.twin(), &config("second"), here).await;
        let why = eventually(async || refused(&second)).await;
        assert!(why.contains("duplicate_subserver"), "{why}");
        let client = Client::ready(&root, Era::Stateless).await;
        listed(&client, "first__fx__fx_echo").await;
        assert!(!client.tools().await.iter().any(|name| name.starts_with("second__")));
        first.end().await;
        registered(&second, 0).await;
        listed(&client, "second__fx__fx_echo").await;
        unlisted(&client, "first__fx__fx_echo").await;
    })
    .await;
}

#[tokio::test]
async fn ax_26_a_new_link_carries_no_call_of_the_last() {
    bounded(async {
        let root = World::start(&taking()).await;
        let config = |name: &str| format!("{}{}", fixture(name, Era::Stateless), joining("leaf", &[root.addr]));
        let before = World::member(&config("fx")).await;
        let client = Client::ready(&root, Era::Stateless).await;
        listed(&client, "leaf__fx__fx_echo").await;
        let state = before.twin();
        before.end().await;
        let (here, _) = listener().await;
        let after = World::member_in(state, &config("fy"), here).await;
        registered(&after, 0).await;
        listed(&client, "leaf__fy__fx_echo").await;
        assert!(!client.tools().await.contains(&"leaf__fx__fx_echo".to_owned()));
        let told = client.tool("leaf__fx__fx_echo", json!({"text": "old"})).await;
        assert_eq!(told["error"]["data"]["reason"], "unknown_tool", "{told}");
    })
    .await;
}

#[tokio::test]
async fn ax_42_a_registered_https_address_is_dialled_with_its_certificate() {
    bounded(async {
        let state = tempfile::tempdir().unwrap();
        let ca = Ca::init(&Ca::dir(state.path()), &["localhost".into()]).unwrap();
        let ((here, own), (spare, above)) = (listener().await, listener().await);
        drop(spare);
        let reached = format!("public_url = \"https://{own}/mcp\"\n[[parent]]");
        let tls =
            format!("[tls]\ncertificate = {:?}\nkey = {:?}\nclient_ca = {:?}\n", ca.gate_file(), ca.gate_key_file(), ca.authority_file());
        let config = format!("{}{tls}{}", fixture("fx", Era::Stateless), joining("leaf", &[above]).replacen("[[parent]]", &reached, 1));
        let leaf = World::member_in(state, &config, here).await;
        let papers = tempfile::tempdir().unwrap();
        let token = ca.invite(Some("root.example.com"), Duration::from_secs(60)).unwrap();
        let joined = enrol(papers.path(), &format!("https://{own}").parse().unwrap(), &token, Some("root.example.com")).await.unwrap();

        for (with, wanted) in [(String::new(), "not trusted"), (format!("tls = {{ ca = {:?} }}\n", joined.ca), "401")] {
            let root = World::start_on(&format!("{}{with}", taking()), above).await;
            let mount = root.until("leaf", |mount| mount.error.is_some()).await;
            assert!(mount.error.as_ref().is_some_and(|why| why.contains(wanted)), "{wanted}: {mount:?}");
            root.end().await;
        }
        let with = format!("tls = {{ certificate = {:?}, key = {:?}, ca = {:?} }}\n", joined.certificate, joined.key, joined.ca);
        let root = World::start_on(&format!("{}{with}", taking()), above).await;
        registered(&leaf, 0).await;
        let client = Client::ready(&root, Era::Stateless).await;
        listed(&client, "leaf__fx__fx_echo").await;
        assert_eq!(text(&client.tool("leaf__fx__fx_echo", json!({"text": "dialled"})).await), "dialled");
        let mount = root.mount("leaf").unwrap();
        assert_eq!((mount.transport.as_str(), mount.gate), ("http", true));
    })
    .await;
}
