//! Names given by signed tokens for rooms: names of other participants are refused.

use serde_json::json;

use crate::rooms::shared;
use crate::world::{Socket, World, bounded};

/// Names with another owner at this gate, and names that read alike.
const OTHERS: [&str; 16] = [
    "*",
    "gate",
    "Gate",
    "local",
    "LOCAL",
    "alice@login",
    "dns:edge01.example",
    "DNS:edge01.example",
    "spiffe://example.com/ci",
    "room:ops",
    "parent root.example.com",
    " zoe",
    "zoe ",
    "zo\u{202e}e",
    "zo\u{200b}e",
    "\u{e0061}zoe",
];

#[tokio::test]
async fn m10_a_room_token_makes_nobody_another_principal() {
    bounded(async {
        let state = tempfile::tempdir().unwrap();
        let secret = state.path().join("secret");
        std::fs::write(&secret, "a secret of thirty-two bytes or more\n").unwrap();
        let toml = format!("[rooms]\nopen = true\nsecret = \"${{file:{}}}\"\n[room.ops]\n[room.dev]\nmount = true\n", secret.display());
        let world = World::start_in(state, &toml).await;
        let token = |name: &str| shared(&json!({"participantId": name, "topic": "*"}));
        for room in ["ops", "dev", "other"] {
            for name in OTHERS {
                let refused = Socket::open_with(&world, &format!("topic={room}"), &token(name), "").await.err().expect(name);
                let said = if name == "gate" && room == "dev" { "" } else { "other callers" };
                assert!(refused.status == 403 && refused.message.contains(said), "{name:?}: {refused:?}");
                assert!(refused.message.is_ascii(), "{refused:?}");
            }
            for name in ["zoe", "agent-1", "a:b", "Ömer Ğ", "room", "localhost", "dnsmasq"] {
                let (_, welcome) = Socket::join(&world, &format!("topic={room}"), &token(name)).await;
                assert_eq!(welcome["payload"]["you"]["id"], name);
            }
        }
    })
    .await;
}
