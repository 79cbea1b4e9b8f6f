//! Two gates with one state directory: taking back at one counts at both.

use serde_json::{Value, json};

use crate::asked::text;
use crate::held::{GATED, Key, Person, plain, reason};
use crate::pinned::{mount, pins};
use crate::world::registrant::{Registrant, reads};
use crate::world::{Client, Era, World, bounded, eventually, fixture};

/// Starts two gates beside each other, with a person each: `anna` at the first, `bert` at the other.
async fn two() -> (World, World, Person, Person) {
    let toml = format!("{GATED}{}", fixture("fx", Era::Stateless));
    let one = World::start(&toml).await;
    let other = one.beside(&toml).await;
    let (anna, bert) = (Person::at(&one, 1, "anna").await, Person::at(&other, 2, "bert").await);
    (one, other, anna, bert)
}

async fn echo(client: &Client, said: &str) -> Value {
    client.tool("fx__fx_echo", json!({"text": said})).await
}

/// Lists the valid keys at a gate, with their owners.
async fn operators(person: &Person) -> Vec<(String, String)> {
    let all: Value = person.admin.get("/-/operators", &[]).await.unwrap();
    let all = all["operators"].as_array().unwrap().clone();
    let mut all: Vec<_> = all.iter().map(|o| (o["name"].as_str().unwrap().to_owned(), o["id"].as_str().unwrap().to_owned())).collect();
    all.sort();
    all
}

async fn take_away(at: &Person, id: &str) {
    at.admin.post("/-/operators/remove", &json!({ "id": id })).await.unwrap();
}

#[tokio::test]
async fn ax_46_a_key_removed_at_one_gate_counts_nowhere_beside() {
    bounded(async {
        let (_one, other, anna, bert) = two().await;
        let client = plain(&other, Era::Stateless).await;
        let both = operators(&anna).await;
        assert_eq!(both, operators(&bert).await, "a key that is enrolled at one counts at the other");
        for said in ["agreed", "open"] {
            assert_eq!(echo(&client, said).await["result"]["isError"], true);
        }
        let waiting = other.gateway.approvals(false).await.unwrap().approvals;
        let of = |said: &str| waiting.iter().find(|approval| approval.arguments.contains(said)).unwrap().clone();
        let confirm = async |said: &str| {
            let approval = of(said);
            let params = json!({"id": approval.id, "proof": Key::of(1).proof(&approval.challenge)});
            client.call("mcpax/confirm", params).await
        };
        assert_eq!(confirm("agreed").await["result"]["standing"], "released");
        take_away(&anna, &both[0].1).await;
        assert_eq!(reason(&confirm("open").await), "unknown_key");
        let told = echo(&client, "agreed").await;
        assert_eq!(reason(&told), "approval_void", "what the key agreed to has not gone out");
        assert!(told["error"]["data"]["why"].as_str().unwrap().contains("anna"), "{told}");
        assert_eq!(operators(&bert).await, both[1..]);
        bert.approve(&of("open")).await;
        assert_eq!(text(&echo(&client, "open").await), "open");
        assert_eq!(operators(&anna).await, both[1..], "nor is it written back");
    })
    .await;
}

#[tokio::test]
async fn ax_46_a_removed_keys_grant_is_void_at_other_gates() {
    bounded(async {
        let (_one, other, anna, bert) = two().await;
        let client = plain(&other, Era::Stateless).await;
        let both = operators(&anna).await;
        let expires = other.gateway.approvals(false).await.unwrap().now + 60;
        let terms = json!({"tool": "fx.*", "caller": "*", "any_other": true, "expires": expires});
        let asked = bert.admin.post("/-/grants/statement", &json!({ "terms": terms })).await.unwrap();
        let asked: Value = serde_json::from_slice(&asked).unwrap();
        let proof = Key::of(1).proof(asked["text"].as_str().unwrap());
        let given = json!({"id": asked["id"], "terms": terms, "proofs": [proof]});
        bert.admin.post("/-/grants", &given).await.unwrap();
        assert_eq!(text(&echo(&client, "a").await), "a");
        take_away(&anna, &both[0].1).await;
        assert_eq!(echo(&client, "b").await["result"]["isError"], true, "it waits");
        let now = async || other.gateway.approvals(false).await.unwrap().now;
        let taken = now().await;
        eventually(async || (now().await > taken).then_some(())).await;
        anna.enroll("anna", &[]).await;
        assert_eq!(echo(&client, "c").await["result"]["isError"], true, "a key that comes back brings back nothing");
    })
    .await;
}

#[tokio::test]
async fn a_look_at_a_definition_counts_at_gates_beside() {
    bounded(async {
        let server = Registrant::start(Era::Stateless, vec![reads("add"), reads("look")]).await;
        let one = World::start(&mount("srv", &server)).await;
        let other = one.beside(&mount("srv", &server)).await;
        let (anna, client) = (Person::at(&one, 1, "anna").await, Client::ready(&other, Era::Stateless).await);
        let lists = async |wanted: &[&str]| {
            eventually(async || {
                let mut tools = client.tools().await;
                tools.sort();
                (tools == wanted).then_some(())
            })
            .await;
        };
        lists(&["srv__add", "srv__look"]).await;
        let mut changed = reads("add");
        changed["description"] = json!("Adds otherwise.");
        server.list(vec![changed, reads("look")]);
        lists(&["srv__look"]).await;
        eventually(async || (!pins(&anna).await.pins.is_empty()).then_some(())).await;
        let look = async |how: &str| {
            anna.admin.post(&format!("/-/pins/{how}"), &json!({"mount": "srv", "tool": "add"})).await.unwrap();
        };
        look("refuse").await;
        let standing = async || client.tool("srv__add", json!({})).await["error"]["data"]["standing"].clone();
        eventually(async || (standing().await == "refused").then_some(())).await;
        look("accept").await;
        lists(&["srv__add", "srv__look"]).await;
    })
    .await;
}
