//! Confirmations by strangers with no more than a proof: a stranger costs nobody a turn, and keeps to the rules of the door.

use gateway::admin::shapes::ApprovalShown;
use http::StatusCode;
use serde_json::{Value, json};

use crate::held::{GATED, Person, plain};
use crate::recorded::{facts, read, recording};
use crate::world::{Client, Era, World, bounded, fixture};

fn path(id: &str) -> String {
    format!("/-/approvals/{id}/confirm")
}

/// Confirms without a token, and gives status and text.
async fn confirm(client: Client, proof: &Value) -> (StatusCode, String) {
    let mut reply = client.post(&json!({"proof": proof}).to_string(), &[]).await;
    let said = reply.next().await.map(|event| event.raw).unwrap_or_default();
    (reply.status, said)
}

fn stranger(world: &World, id: &str) -> Client {
    Client::new(world, Era::Stateless).at(&path(id))
}

/// Begins a call that waits for a person, and makes that person's proof of something else.
async fn waiting(world: &World) -> (Person, ApprovalShown, Value) {
    let person = Person::at(world, 1, "anna").await;
    plain(world, Era::Stateless).await.tool("fx__fx_echo", json!({"text": "x"})).await;
    let (approval, proof) = (person.waiting(world).await, person.proof("{}"));
    (person, approval, proof)
}

#[tokio::test]
async fn m14_a_made_up_id_costs_the_desk_no_turn() {
    bounded(async {
        let state = tempfile::tempdir().unwrap();
        let file = state.path().join("banyan.db");
        let world = World::kept(state, &format!("{GATED}{}", fixture("fx", Era::Stateless))).await;
        let (_person, ApprovalShown { id, .. }, proof) = waiting(&world).await;
        // From here on every turn fails, and whoever had one hears so.
        rusqlite::Connection::open(file).unwrap().execute_batch("DROP TABLE approvals").unwrap();
        let (status, said) = confirm(stranger(&world, "made-up"), &proof).await;
        assert!(status == StatusCode::NOT_FOUND && said.contains("unknown"), "{status} {said}");
        let (status, said) = confirm(stranger(&world, &id), &proof).await;
        assert!(status == StatusCode::BAD_GATEWAY && said.contains("could not be written down"), "{status} {said}");
    })
    .await;
}

#[tokio::test]
async fn m14_failed_confirmations_of_an_address_are_bounded_and_recorded() {
    bounded(async {
        let world = recording(tempfile::tempdir().unwrap(), &format!("{GATED}{}", fixture("fx", Era::Stateless))).await;
        let (person, approval, proof) = waiting(&world).await;
        let id = &approval.id;
        let mut told = Vec::new();
        for _ in 0..40 {
            told.push(confirm(stranger(&world, id), &proof).await.1);
        }
        assert_eq!(told.iter().filter(|said| said.contains("bad_signature")).count(), 30, "{told:?}");
        assert!(told[30..].iter().all(|said| said.contains("too many confirmations")), "{told:?}");
        let client = plain(&world, Era::Stateless).await;
        for _ in 0..20 {
            let refused = client.call("mcpax/confirm", json!({"id": id, "proof": proof})).await;
            assert_eq!(refused["error"]["data"]["reason"], "bad_signature");
        }
        person.approve(&approval).await;
        let refused = read(world).await.into_iter().filter(|entry| entry.event == "refused").map(|entry| facts(&entry));
        let refused: Vec<Value> = refused.filter(|facts| facts["reason"] == "bad_signature").collect();
        assert!(refused.len() <= 50 && refused.iter().all(|facts| facts["intent"]["approval"] == json!(id)), "{refused:?}");
        assert_eq!(refused.iter().filter(|facts| facts["intent"]["principal"] == "").count(), 30);
    })
    .await;
}

#[tokio::test]
async fn e4_made_up_ids_block_nobody_at_the_same_address() {
    bounded(async {
        let world = World::start(&format!("{GATED}{}", fixture("fx", Era::Stateless))).await;
        let (_person, ApprovalShown { id, .. }, proof) = waiting(&world).await;
        for number in 0..40 {
            let (status, _) = confirm(stranger(&world, &format!("made-up-{number}")), &proof).await;
            assert_eq!(status, StatusCode::NOT_FOUND);
        }
        let (_, said) = confirm(stranger(&world, &id), &proof).await;
        assert!(said.contains("bad_signature"), "the proof was looked at: {said}");
        for _ in 0..30 {
            confirm(stranger(&world, &id), &proof).await;
        }
        let (status, said) = confirm(stranger(&world, &id), &proof).await;
        assert!(status == StatusCode::TOO_MANY_REQUESTS && said.contains("too many confirmations"), "{status} {said}");
    })
    .await;
}

#[tokio::test]
async fn m14_a_page_of_another_site_confirms_nothing() {
    bounded(async {
        let world = World::start(&format!("{GATED}{}", fixture("fx", Era::Stateless))).await;
        let (_person, ApprovalShown { id, .. }, proof) = waiting(&world).await;
        let (status, said) = confirm(stranger(&world, &id).with("origin", "https://evil.example"), &proof).await;
        assert!(status == StatusCode::FORBIDDEN && said.contains("Origin"), "{status} {said}");
        let (_, said) = confirm(stranger(&world, &id).with("origin", "http://localhost:1"), &proof).await;
        assert!(said.contains("bad_signature"), "{said}");
    })
    .await;
}
