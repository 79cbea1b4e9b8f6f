//! Texts and definitions of servers that are long, or that are made to be read for long. Which characters are hidden is not tried here.

use serde_json::json;

use crate::pinned::mount;
use crate::world::registrant::{Registrant, reads};
use crate::world::{Client, Era, World, bounded};

/// Introducers of terminal sequences that never end.
fn introducers() -> String {
    ["\u{9d}", "\u{90}", "\u{98}", "\u{9e}", "\u{9f}", "\u{1b}]"].iter().cycle().take(80_000).copied().collect()
}

#[tokio::test]
async fn h5_a_text_of_introducers_without_end_is_cleaned_at_once() {
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
async fn m17_what_is_too_long_to_be_listed_is_left_out_and_people_are_told() {
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
