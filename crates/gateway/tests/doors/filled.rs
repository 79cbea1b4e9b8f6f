//! Shares of a principal: of the record, and of questions to people. A full share leaves others their calls. Does not try refusals.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::asked::text;
use crate::held::{GATED, Person, reason};
use crate::recorded::{entries_in, facts};
use crate::world::{Client, Era, World, bounded, eventually, fixture, token};

const ECHO: &str = "fx__fx_echo";
/// A record of a megabyte that keeps everything for an hour.
const SMALL: &str = "arguments = \"full\"\nkeep_size = \"1MiB\"\nfull_size = \"1MiB\"\nkeep_at_least = \"1h\"\n";

/// Starts a gate for two, with these settings of the record.
async fn recording(state: tempfile::TempDir, audit: &str, more: &str) -> World {
    let (people, path) = (["ann", "bob"].map(token).concat(), state.path().join("record"));
    let toml = format!("{more}{people}[audit]\npath = {path:?}\n{audit}{}", fixture("fx", Era::Initialize));
    World::kept(state, &toml).await
}

async fn client(world: &World, name: &str) -> Client {
    let mut client = Client::new(world, Era::Initialize).with("authorization", &format!("Bearer secret-of-{name}"));
    client.capabilities = json!({"elicitation": {"url": {}}});
    client.open().await
}

/// Calls until refused, and gives the refusal.
async fn fill(client: &Client) -> Value {
    let long = "l".repeat(30_000);
    eventually(async || {
        let told = client.tool(ECHO, json!({"text": long})).await;
        told["error"].is_object().then_some(told)
    })
    .await
}

#[tokio::test]
async fn h6_a_filled_share_of_the_record_refuses_its_principal() {
    bounded(async {
        let world = recording(tempfile::tempdir().unwrap(), SMALL, "").await;
        let (ann, bob) = (client(&world, "ann").await, client(&world, "bob").await);
        let refused = fill(&ann).await;
        let data = &refused["error"]["data"];
        assert_eq!((reason(&refused), &refused["error"]["code"]), ("record_share", &json!(-32013)));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        assert!((now + 3000..now + 3700).contains(&data["until"].as_u64().unwrap()), "{data}");
        assert!(["full_size", "keep_at_least", "`share` in [limits]"].iter().all(|said| data["hint"].as_str().unwrap().contains(said)));
        let told = world.gateway.audit().unwrap();
        assert_eq!((told.full, told.over_share.len(), told.over_share[0].principal.as_str()), (false, 1, "ann"));
        assert!((400_000..700_000).contains(&told.over_share[0].bytes), "half of it: {}", told.over_share[0].bytes);
        assert!(world.gateway.metrics().contains("banyan_audit_over_share{principal=\"ann\"} 1"));
        for _ in 0..5 {
            assert_eq!(text(&bob.tool(ECHO, json!({"text": "his"})).await), "his");
            assert_eq!(reason(&ann.tool(ECHO, json!({"text": "hers"})).await), "record_share");
        }
        assert_eq!(reason(&fill(&bob).await), "record_share", "the other has a share, too");
        assert!(!world.gateway.audit().unwrap().full, "somebody else could call still");
    })
    .await;
}

#[tokio::test]
async fn h6_a_share_survives_restarts_and_ends_with_its_entries() {
    bounded(async {
        let world = recording(tempfile::tempdir().unwrap(), SMALL, "").await;
        assert_eq!(reason(&fill(&client(&world, "ann").await).await), "record_share");
        let world = recording(world.end_keeping().await, SMALL, "").await;
        let (ann, bob) = (client(&world, "ann").await, client(&world, "bob").await);
        // The files are read beside the first calls: here those of another, so that hers of before alone can fill her share.
        eventually(async || {
            bob.tool(ECHO, json!({"text": "x"})).await;
            (!world.gateway.audit().unwrap().over_share.is_empty()).then_some(())
        })
        .await;
        assert_eq!(reason(&ann.tool(ECHO, json!({"text": "x"})).await), "record_share");
        assert_eq!(text(&bob.tool(ECHO, json!({"text": "his"})).await), "his");
        let world = recording(world.end_keeping().await, &SMALL.replace("1h", "1ms"), "").await;
        let ann = client(&world, "ann").await;
        eventually(async || ann.tool(ECHO, json!({"text": "x"})).await["result"].is_object().then_some(())).await;
        assert!(world.gateway.audit().unwrap().over_share.is_empty());
    })
    .await;
}

#[tokio::test]
async fn h6_endless_withdrawing_makes_only_that_caller_wait() {
    bounded(async {
        let world = recording(tempfile::tempdir().unwrap(), "", GATED).await;
        let _person = Person::at(&world, 1, "anna").await;
        let (ann, bob) = (client(&world, "ann").await, client(&world, "bob").await);
        let decline = async |client: &Client| client.dialogue(ECHO, json!({"text": "x"}), |_| json!({"action": "decline"})).await.1;
        let mut told = Vec::new();
        while told.last().is_none_or(|last| reason(last) == "approval_withdrawn") {
            told.push(decline(&ann).await);
        }
        let refused = told.pop().unwrap();
        assert_eq!((reason(&refused), &refused["error"]["code"]), ("withdrawn_too_often", &json!(-32009)));
        assert!(refused["error"]["data"]["retry_after_ms"].as_u64().is_some_and(|ms| ms <= 2000), "{refused}");
        assert!((30..100).contains(&told.len()), "{}", told.len());
        assert_eq!(reason(&decline(&bob).await), "approval_withdrawn", "another one asks on");
        let state = world.end_keeping().await;
        let entries = entries_in(&state.path().join("record"));
        let asked = entries.iter().filter(|entry| entry.event == "approval_asked").count();
        assert_eq!(asked, told.len() + 1, "nobody is asked about what is refused");
        let refusals = entries.iter().filter(|entry| entry.event == "refused").map(facts);
        assert_eq!(refusals.filter(|facts| facts["reason"] == "withdrawn_too_often").count(), 1);
    })
    .await;
}
