//! Long texts and definitions of servers, and texts made to be slow to read. Does not try single hidden characters.

use serde_json::json;

use crate::pinned::mount;
use crate::world::registrant::{Registrant, reads};
use crate::world::{Client, Era, World, bounded};

/// Makes introducers of terminal sequences that never end.
fn introducers() -> String {
    ["\u{9d}", "\u{90}", "\u{98}", "\u{9e}", "\u{9f}", "\u{1b}]"].iter().cycle().take(80_000).copied().collect()
}

#[tokio::test]
async fn h5_endless_introducers_are_cleaned_from_texts() {
    bounded(async {
        let mut tool = reads("add");
        tool["description"] = json!(format!("Adds.{}", introducers()));
        let instructions = format!("Add first.{}", "\u{9d}".repeat(30_000));
        let server = Registrant::offering(Era::Stateless, json!({"tools": [tool], "instructions": instructions})).await;
        let world = World::start(&mount("srv", &server)).await;
        let client = Client::ready(&world, Era::Stateless).await;
        let listed = client.call("tools/list", json!({})).await;
        let description = listed["result"]["tools"][0]["description"].as_str().unwrap();
        assert!(description.starts_with("Adds.") && !description.contains(char::is_control), "{} bytes", description.len());
        let discovered = client.call("server/discover", json!({})).await;
        assert_eq!(discovered["result"]["instructions"], "Add first.");
    })
    .await;
}

#[tokio::test]
async fn m17_overlong_definitions_are_left_out_with_a_note() {
    bounded(async {
        let mut long = reads("long");
        long["description"] = json!("x".repeat(300 << 10));
        let lists = json!({"tools": [long, reads("short")], "instructions": "y".repeat(100 << 10)});
        let server = Registrant::offering(Era::Stateless, lists).await;
        let world = World::start(&mount("srv", &server)).await;
        let client = Client::ready(&world, Era::Stateless).await;
        assert_eq!(client.tools().await, ["srv__short"]);
        let discovered = client.call("server/discover", json!({})).await;
        assert_eq!(discovered["result"]["instructions"].as_str().unwrap().len(), 64 << 10);
        let notes = world.mount("srv").unwrap().notes;
        for told in ["1 entries of tools/list are longer than 256 KiB and are left out, `long` among them", "its instructions are longer"] {
            assert!(notes.iter().any(|note| note.contains(told)), "{notes:?}");
        }
    })
    .await;
}
