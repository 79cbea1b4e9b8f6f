//! Receivers of news about waiting calls: a silent receiver keeps no other waiting.

use serde_json::json;
use tokio::net::TcpListener;

use crate::held::{Person, plain};
use crate::world::{Era, World, bounded, eventually, fixture};

#[tokio::test]
async fn a_silent_webhook_delays_no_other_receiver() {
    bounded(async {
        // What connects to it is taken by the system and heard by nobody.
        let deaf = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let told = tempfile::tempdir().unwrap();
        let command = format!("touch \"{}/$BANYAN_EVENT\"", told.path().display());
        let toml = format!(
            "[gate]\nmode = \"irreversible\"\nexpires = \"3s\"\n[[gate.webhook]]\nurl = \"http://{}/hook\"\nsecret = \"s\"\n\
             [[gate.command]]\ncommand = \"sh\"\nargs = [\"-c\", {command:?}]\n{}",
            deaf.local_addr().unwrap(),
            fixture("fx", Era::Stateless)
        );
        let world = World::start(&toml).await;
        let _anna = Person::at(&world, 1, "anna").await;
        let held = plain(&world, Era::Stateless).await.tool("fx__fx_echo", json!({"text": "x"})).await;
        assert_eq!(held["result"]["isError"], true);
        for event in ["requested", "expiring", "expired"] {
            eventually(async || told.path().join(event).exists().then_some(())).await;
        }
        drop(deaf);
    })
    .await;
}
