//! Request ids longer than an entry of the record: no such id makes a call vanish from the record, by any door.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio_util::sync::CancellationToken;

use crate::asked::text;
use crate::recorded::{intents, read, recording};
use crate::world::{Client, Era, World, bounded, fixture};

const ECHO: &str = "fx__fx_echo";

fn echo() -> Value {
    json!({"name": ECHO, "arguments": {"text": "x"}})
}

/// Makes refused ids: with as many characters as an entry has bytes, and with fewer whose escapes take more.
fn overlong() -> [String; 2] {
    ["a".repeat(70_000), "\u{1}".repeat(12_000)]
}

async fn answered(client: &Client, id: &str) -> Value {
    client.begin_as(json!(id), "tools/call", echo()).await.finish().await.1.value
}

#[tokio::test]
async fn h1_an_overlong_id_is_refused_in_both_eras() {
    bounded(async {
        let world = recording(tempfile::tempdir().unwrap(), &fixture("fx", Era::Stateless)).await;
        let (most, more) = ("m".repeat(254), "m".repeat(255));
        for era in [Era::Initialize, Era::Stateless] {
            let client = Client::ready(&world, era).await;
            for id in overlong().iter().chain([&more]) {
                let refused = answered(&client, id).await;
                assert_eq!((&refused["error"]["code"], &refused["id"]), (&json!(-32600), &Value::Null), "{era:?}");
            }
            assert_eq!(text(&answered(&client, &most).await), "x");
            assert_eq!(text(&answered(&client, "short").await), "x");
        }
        let entries = read(world).await;
        assert!(entries.iter().all(|entry| entry.event != "gap"), "{entries:?}");
        let calls = intents(&entries);
        let ids: Vec<&str> = calls.iter().map(|intent| intent["request"].as_str().unwrap()).collect();
        assert!(calls.len() == 4 && calls.iter().all(|intent| intent["principal"] == "local" && intent["mount"] == "fx"), "{calls:?}");
        assert_eq!(
            (ids.iter().filter(|id| id.starts_with("sha256:")).count(), ids.iter().filter(|id| **id == "\"short\"").count()),
            (2, 2),
            "{ids:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn h1_an_overlong_id_is_refused_on_stdio() {
    bounded(async {
        let world = World::start(&fixture("fx", Era::Stateless)).await;
        let (mut input, theirs) = tokio::io::duplex(1 << 20);
        let (ours, output) = tokio::io::duplex(1 << 20);
        let serving = world.gateway.serve_stdio(theirs, output, CancellationToken::new());
        let asking = async {
            let mut lines = BufReader::new(ours).lines();
            for id in overlong() {
                let (body, _) = Client::new(&world, Era::Stateless).written(&json!(id), "tools/call", echo());
                input.write_all(format!("{body}\n").as_bytes()).await.unwrap();
                let refused: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
                assert_eq!((&refused["error"]["code"], &refused["id"]), (&json!(-32600), &Value::Null));
            }
            drop(input);
        };
        tokio::join!(serving, asking);
    })
    .await;
}
