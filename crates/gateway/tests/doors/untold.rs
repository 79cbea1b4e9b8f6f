//! Servers of the initialize era that tell nobody of changed lists.

use serde_json::json;

use crate::registered::SELDOM;
use crate::world::registrant::{Registrant, reads};
use crate::world::{Client, Era, World, bounded, eventually};

#[tokio::test]
async fn ax_03_lists_without_announcements_are_fetched_again() {
    bounded(async {
        let silent = json!({"tools": [reads("ping")], "capabilities": {"tools": {}}});
        let (mounted, registered) =
            (Registrant::offering(Era::Initialize, silent.clone()).await, Registrant::offering(Era::Initialize, silent).await);
        let ttl = "list_ttl = \"200ms\"\n";
        let mount = format!("[mount.here]\nurl = \"{}\"\nera = \"initialize\"\n{ttl}", mounted.url());
        let world = World::start(&format!("[registry]\nprincipals = [\"*\"]\n{ttl}{mount}")).await;
        let client = Client::ready(&world, Era::Initialize).await;
        registered.join(&world, &client, "there", SELDOM, json!({})).await;
        for (server, segment) in [(&mounted, "here"), (&registered, "there")] {
            let mut standing = client.listen(None).await;
            server.list_silently(vec![reads("ping"), reads("pong")]);
            standing.next_of("notifications/tools/list_changed").await;
            let new = format!("{segment}__pong");
            eventually(async || client.tools().await.contains(&new).then_some(())).await;
        }
    })
    .await;
}
