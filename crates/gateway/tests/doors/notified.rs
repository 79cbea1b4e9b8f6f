//! Notifications of self-registered servers, and their bounds. Does not try registration: see `registered.rs`.

use serde_json::json;

use crate::registered::{SELDOM, above, open};
use crate::world::Client;
use crate::world::Era;
use crate::world::bounded;
use crate::world::eventually;
use crate::world::registrant::Registrant;
use crate::world::registrant::reads;

#[tokio::test]
async fn ax_50_notifications_come_in_order_with_their_source() {
    bounded(async {
        let (world, gate) = open(Era::Stateless).await;
        let client = Client::ready(&world, Era::Initialize).await;
        let mut standing = client.listen(None).await;
        let server = Registrant::start(Era::Initialize, vec![reads("ping")]).await;
        server.join(&world, &gate, "edge", SELDOM, json!({})).await;
        eventually(async || (server.streams() > 0).then_some(())).await;
        for number in 0..20 {
            let meta = json!({"x-mcpax-event-id": format!("e-{number}"), "x-mcpax-causal-parent": null});
            server.say("notifications/alarm", &json!({"number": number, "_meta": meta}));
        }
        for number in 0..20 {
            let told = standing.next_of("notifications/alarm").await;
            let meta = json!({"x-mcpax-event-id": format!("e-{number}"), "x-mcpax-causal-parent": null, "x-mcpax-source": "edge"});
            assert_eq!((&told["params"]["number"], &told["params"]["_meta"]), (&json!(number), &meta));
        }
    })
    .await;
}

#[tokio::test]
async fn ax_51_a_flood_is_bounded_and_dropped_news_counted() {
    bounded(async {
        let (world, gate) = open(Era::Stateless).await;
        let above = above(&world).await;
        let mut standing = above.listen(None).await;
        let server = Registrant::start(Era::Initialize, vec![reads("ping")]).await;
        server.join(&world, &gate, "edge", SELDOM, json!({})).await;
        eventually(async || (server.streams() > 0).then_some(())).await;
        (0..3000).for_each(|number| server.say("notifications/alarm", &json!({"number": number})));
        let told = standing.next_of("notifications/x-mcpax/notification_overflow").await;
        assert_eq!(told["params"]["_meta"]["x-mcpax-source"], "edge");
        let dropped = eventually(async || {
            let counted = gate.tool("notifications_dropped", json!({})).await["result"]["structuredContent"].clone();
            (counted["notifications_dropped"].as_u64()? > 1000).then_some(counted)
        })
        .await;
        assert_eq!(dropped["notifications_dropped"], dropped["by_segment"]["edge"], "{dropped}");
    })
    .await;
}
