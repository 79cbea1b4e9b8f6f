//! A gate stays shut to strangers whatever happens to its configuration. The callers here come from an address other than the loopback, as
//! if from another machine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use gateway::ReloadOutcome;
use gateway::trust::ca::Ca;
use http::Request;
use http_body_util::Full;
use rcgen::{KeyPair, PKCS_ED25519};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::tokens::jwk;
use crate::trusted::{certified, holder, join, tls};
use crate::world::{Client, Era, Reply, World, bounded, parse, send, token};

const LOCALHOST: (&str, &str) = ("host", "localhost");

/// Makes a short call of each era, with `Host: localhost` and this token, if any, and gives the statuses.
async fn statuses(world: &World, secret: Option<&str>) -> [u16; 2] {
    let mut seen = [0; 2];
    for (at, era) in [Era::Initialize, Era::Stateless].into_iter().enumerate() {
        let client = Client::new(world, era).with(LOCALHOST.0, LOCALHOST.1);
        let client = match secret {
            Some(secret) => client.with("authorization", &format!("Bearer {secret}")),
            None => client,
        };
        let reply = if era == Era::Initialize { client.greet().await } else { client.begin("tools/list", json!({})).await };
        seen[at] = reply.status.as_u16();
    }
    seen
}

async fn get(world: &World, path: &str) -> Reply {
    let request = Request::get(path).header(LOCALHOST.0, LOCALHOST.1).body(Full::default()).unwrap();
    send(world.addr, None, request).await
}

/// Writes a configuration into a directory.
fn written(dir: &TempDir, text: &str) -> PathBuf {
    let path = dir.path().join("banyan.toml");
    std::fs::write(&path, text).unwrap();
    path
}

/// Starts a gate of that file on a network.
async fn serving(path: &Path) -> World {
    World::on_a_network(&std::fs::read_to_string(path).unwrap()).await
}

fn kept(reloaded: ReloadOutcome) -> (String, Vec<String>) {
    let ReloadOutcome::Kept { error, revoked } = reloaded else { panic!("{reloaded:?}") };
    (error, revoked.iter().map(ToString::to_string).collect())
}

#[tokio::test]
async fn h0_a_configuration_that_opens_a_network_listener_is_refused() {
    bounded(async {
        let world = World::on_a_network(&token("ann")).await;
        for open in ["", "listen = \"127.0.0.1:7411\"", "[mount.a]\ncommand = \"cat\""] {
            let refused = world.gateway.apply(parse(open)).unwrap_err();
            assert_eq!(refused.address(), world.addr, "{open}");
            assert!(refused.to_string().contains("banyan token add"), "{refused}");
            assert_eq!(statuses(&world, None).await, [401; 2], "{open}");
            assert_eq!(statuses(&world, Some("secret-of-ann")).await, [200; 2], "{open}: nothing is changed");
        }
        assert_eq!(world.apply(&token("bob")), ["- token ann", "+ token bob"]);
        assert_eq!(statuses(&world, Some("secret-of-bob")).await, [200; 2]);
    })
    .await;
}

#[tokio::test]
async fn h0_a_network_listener_hands_out_no_room_tokens() {
    bounded(async {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("secret"), "a secret of thirty-two bytes or more").unwrap();
        let secret = format!("secret = \"${{file:{}}}\"", dir.path().join("secret").display());
        let rooms = |more: &str| format!("listen = \"127.0.0.1:7411\"\n[rooms]\n{secret}\n{more}[room.ops]\n{}", token("ann"));
        let path = written(&dir, &rooms(""));
        let world = serving(&path).await;
        written(&dir, &rooms("dev_tokens = true\n"));
        let (error, revoked) = kept(world.gateway.reload(&path, None));
        assert!(
            error.contains(&world.addr.to_string()) && error.contains("dev_tokens") && error.contains("start the gate anew"),
            "{error}"
        );
        assert!(revoked.is_empty() && !world.gateway.config().rooms.dev_tokens, "{revoked:?}");
    })
    .await;
}

#[tokio::test]
async fn h0_removing_the_last_credential_source_opens_no_network_listener() {
    bounded(async {
        let dir = tempfile::tempdir().unwrap();
        let keys = dir.path().join("keys.json");
        let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        std::fs::write(&keys, json!({"keys": [jwk(&key, "1")]}).to_string()).unwrap();
        let issuer = format!("[issuer.login]\nissuer = \"https://login.example.com\"\nkeys = {keys:?}\n");
        let path = written(&dir, &format!("resource = \"https://gate.example.com/mcp\"\n{issuer}"));
        let world = serving(&path).await;
        assert_eq!(statuses(&world, None).await, [401; 2]);
        written(&dir, "resource = \"https://gate.example.com/mcp\"\n");
        assert_eq!(kept(world.gateway.reload(&path, None)).1, ["- issuer login"]);
        assert_eq!(statuses(&world, None).await, [401; 2]);

        let ca = Ca::init(&Ca::dir(dir.path()), &["localhost".into()]).unwrap();
        let certified = World::on_a_network(&tls(&ca, "")).await;
        let without = format!("[tls]\ncertificate = {:?}\nkey = {:?}\n", ca.gate_file(), ca.gate_key_file());
        assert_eq!(certified.gateway.apply(parse(&without)).unwrap_err().address(), certified.addr);
        assert!(certified.gateway.config().wants_credential());
    })
    .await;
}

#[tokio::test]
async fn h0_without_credentials_only_this_machine_is_let_in() {
    bounded(async {
        let elsewhere = World::on_a_network("[registry]\ninsecure = true\n").await;
        assert_eq!(statuses(&elsewhere, None).await, [403; 2]);
        for path in ["/-/status", "/-/tools", "/-/events", "/-/below", "/metrics"] {
            assert_eq!(get(&elsewhere, path).await.status, 403, "{path}");
        }
        let link = Request::get("/link").header(LOCALHOST.0, LOCALHOST.1).header("upgrade", "mcpax").header("connection", "upgrade");
        assert_eq!(send(elsewhere.addr, None, link.body(Full::default()).unwrap()).await.status, 403);
        assert_eq!(statuses(&World::start("").await, None).await, [200; 2], "from here");
    })
    .await;
}

#[tokio::test]
async fn h0_a_removed_token_is_void_despite_a_refused_file() {
    bounded(async {
        let dir = tempfile::tempdir().unwrap();
        let (ann, bob) = (token("ann"), token("bob"));
        let path = written(&dir, &format!("{ann}{bob}"));
        let world = serving(&path).await;
        let mut view = {
            let request = Request::get("/-/events").header(LOCALHOST.0, LOCALHOST.1).header("authorization", "Bearer secret-of-ann");
            send(world.addr, None, request.body(Full::default()).unwrap()).await
        };
        assert!(view.next_or_break().await.is_some());

        written(&dir, &format!("bogus = 1\n{bob}"));
        let (error, revoked) = kept(world.gateway.reload(&path, None));
        assert!(error.contains("bogus"), "{error}");
        assert_eq!(revoked, ["- token ann"]);
        assert_eq!((statuses(&world, Some("secret-of-ann")).await, statuses(&world, Some("secret-of-bob")).await), ([401; 2], [200; 2]));
        while view.next_or_break().await.is_some() {}
        assert!(world.gateway.not_in_force().unwrap().error.as_deref().unwrap().contains("bogus"));

        // The last one: from now on nobody comes in, and not everybody.
        written(&dir, "bogus = 1\n");
        assert_eq!(kept(world.gateway.reload(&path, None)).1, ["- token bob"]);
        assert_eq!((statuses(&world, Some("secret-of-bob")).await, statuses(&world, None).await), ([401; 2], [401; 2]));
        written(&dir, "# no token\n");
        assert!(kept(world.gateway.reload(&path, None)).0.contains("other machines"));
        assert_eq!(statuses(&world, None).await, [401; 2]);

        written(&dir, &ann);
        assert!(matches!(world.gateway.reload(&path, None), ReloadOutcome::Applied(_)));
        assert_eq!((statuses(&world, Some("secret-of-ann")).await, world.gateway.not_in_force()), ([200; 2], None));
    })
    .await;
}

#[tokio::test]
async fn e5_a_removed_token_is_void_though_unreadable() {
    bounded(async {
        let dir = tempfile::tempdir().unwrap();
        let (ann, bob) = (token("ann"), token("bob"));
        let path = written(&dir, &format!("{ann}{bob}"));
        let world = serving(&path).await;
        std::fs::write(&path, [b"# gr\xfc\xdfe\n".to_vec(), bob.into_bytes()].concat()).unwrap();
        assert_eq!(kept(world.gateway.reload(&path, None)).1, ["- token ann"]);
        assert_eq!((statuses(&world, Some("secret-of-ann")).await, statuses(&world, Some("secret-of-bob")).await), ([401; 2], [200; 2]));
    })
    .await;
}

#[tokio::test]
async fn h0_losing_the_last_token_lets_nobody_in() {
    bounded(async {
        let dir = tempfile::tempdir().unwrap();
        let path = written(&dir, &token("ann"));
        let world = World::start(&token("ann")).await;
        written(&dir, "bogus = 1\n");
        assert_eq!(kept(world.gateway.reload(&path, None)).1, ["- token ann"]);
        assert_eq!((statuses(&world, Some("secret-of-ann")).await, statuses(&world, None).await), ([401; 2], [401; 2]));
        written(&dir, "# no token is meant to be here\n");
        assert!(matches!(world.gateway.reload(&path, None), ReloadOutcome::Applied(_)));
        assert_eq!(statuses(&world, None).await, [200; 2]);
    })
    .await;
}

#[tokio::test]
async fn h0_a_removed_authority_voids_certificates_on_open_connections() {
    bounded(async {
        let (world, ca) = certified(&token("ci")).await;
        let own = tempfile::tempdir().unwrap();
        let joined = join(&world, own.path(), &ca.invite(None, Duration::from_secs(3600)).unwrap(), "edge.example.com").await.unwrap();
        let shown = holder(&joined);
        let watching = Request::get("/-/events").header(LOCALHOST.0, LOCALHOST.1).body(Full::default()).unwrap();
        let mut view = send(world.addr, Some(&shown), watching).await;
        assert!(view.status == 200 && view.next_or_break().await.is_some());
        let without = format!("[tls]\ncertificate = {:?}\nkey = {:?}\n", ca.gate_file(), ca.gate_key_file());
        world.apply(&format!("{}{without}", token("ci")));
        while view.next_or_break().await.is_some() {}
        assert_eq!(Client::new(&world, Era::Stateless).over(&shown).begin("tools/list", json!({})).await.status, 401);
        let with = Client::new(&world, Era::Stateless).over(&shown).with("authorization", "Bearer secret-of-ci");
        assert_ne!(with.call("tools/list", json!({})).await["result"], Value::Null);
    })
    .await;
}
