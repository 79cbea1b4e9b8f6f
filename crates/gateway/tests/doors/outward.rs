//! Addresses that the gate never visits: addresses merely named by a server, in an answer or in a schema.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::world::registrant::Registrant;
use crate::world::{Client, Era, World, bounded};

/// A listener inside the network, to be reached by nobody.
struct Inside(TcpListener);

impl Inside {
    async fn listen() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    fn url(&self) -> String {
        format!("http://{}/inside", self.0.local_addr().unwrap())
    }

    /// Checks for any visit.
    async fn was_reached(&self) -> bool {
        std::future::poll_fn(|cx| std::task::Poll::Ready(self.0.poll_accept(cx).is_ready())).await
    }
}

/// Starts a server that redirects every request, and counts the visits.
async fn sends_on(to: String, status: &'static str) -> (std::net::SocketAddr, tokio::sync::watch::Receiver<u32>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (addr, (came, told)) = (listener.local_addr().unwrap(), tokio::sync::watch::channel(0));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut read = [0; 64 << 10];
            drop(stream.read(&mut read).await);
            let head = format!("HTTP/1.1 {status}\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            drop(stream.write_all(head.as_bytes()).await);
            came.send_modify(|count| *count += 1);
        }
    });
    (addr, told)
}

#[tokio::test]
async fn a_redirect_by_a_server_is_not_followed() {
    bounded(async {
        for status in ["301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
            let inside = Inside::listen().await;
            let (addr, mut came) = sends_on(inside.url(), status).await;
            let world = World::start(&format!("[mount.srv]\nurl = \"http://{addr}/mcp\"\n")).await;
            came.wait_for(|count| *count > 0).await.unwrap();
            let told = world.until("srv", |mount| mount.error.is_some()).await.error.unwrap();
            assert!(told.contains(&status[..3]), "{told}");
            assert!(!inside.was_reached().await, "{status}");
        }
    })
    .await;
}

#[tokio::test]
async fn addresses_in_schemas_and_links_are_not_fetched() {
    bounded(async {
        let inside = Inside::listen().await;
        let schema = json!({"type": "object", "$schema": inside.url(), "properties": {"a": {"$ref": inside.url()}}});
        let tool = json!({"name": "look", "inputSchema": schema, "outputSchema": schema, "icons": [{"src": inside.url()}],
            "annotations": {"readOnlyHint": true}});
        let server = Registrant::start(Era::Stateless, vec![tool]).await;
        let world = World::start(&format!("[mount.srv]\nurl = \"{}\"\n", server.url())).await;
        for era in [Era::Initialize, Era::Stateless] {
            let client = Client::ready(&world, era).await;
            assert_eq!(client.tools().await, ["srv__look"]);
            let told = client.tool("srv__look", json!({"a": inside.url()})).await;
            assert!(told.get("result").is_some(), "{told}");
        }
        assert!(!inside.was_reached().await);
    })
    .await;
}
