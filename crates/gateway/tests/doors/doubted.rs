//! Servers asked for their era once more, because a call came back with an error. A caller whose call fails takes the server from nobody.

use serde_json::{Value, json};

use crate::world::{Client, Era, Recorder, World, bounded};

/// Counts the requests of a method to a server.
fn count(server: &Recorder, method: &str) -> usize {
    let is_one = |body: &String| serde_json::from_str::<Value>(body).is_ok_and(|body| body["method"] == method);
    server.seen().iter().filter(|(_, body)| is_one(body)).count()
}

#[tokio::test]
async fn e3_a_failing_call_takes_the_server_from_nobody() {
    bounded(async {
        for (era, code) in [(Era::Initialize, -32022), (Era::Stateless, -32601)] {
            let server = Recorder::start(era).await;
            let world = World::start(&format!("[mount.up]\nurl = \"http://{}/\"\n", server.addr)).await;
            let client = Client::ready(&world, Era::Stateless).await;
            let (greeted, asked) = (count(&server, "initialize"), count(&server, "server/discover"));
            for _ in 0..20 {
                let failed = client.tool("up__record", json!({"error": {"code": code, "message": "no"}})).await;
                assert_eq!(failed["error"]["code"], code, "{failed}");
                let other = client.tool("up__record", json!({})).await;
                assert!(other["result"].is_object(), "{other}");
            }
            assert_eq!(count(&server, "initialize"), greeted, "it was connected to anew");
            assert!(count(&server, "server/discover") <= asked + 1, "it was asked once at most");
        }
    })
    .await;
}
