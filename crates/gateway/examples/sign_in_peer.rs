//! A bare MCP client over HTTP that signs in with [`gateway::OAuthClient`], for the official conformance suite's `auth/*` scenarios:
//! `conformance client --command sign_in_peer --scenario auth/basic-cimd`, with `BROWSER="curl -sLo /dev/null"`.
//!
//! Does not go through the gate, to show the sign-in by itself.

use std::path::PathBuf;

use anyhow::{Context, bail};
use config::resolved::{Grant, OAuth};
use config::secret::SecretRef;
use gateway::OAuthClient;
use serde_json::{Value, json};

const STATELESS: &str = "2026-07-28";
const META: &str = "io.modelcontextprotocol/";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let url: url::Url = std::env::args().next_back().context("give the server's URL")?.parse()?;
    let context: Value = serde_json::from_str(&std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_else(|_| "{}".into()))?;
    let version = std::env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").unwrap_or_else(|_| "2025-11-25".into());
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();

    let text = |name: &str| context[name].as_str().map(ToOwned::to_owned);
    let config = OAuth {
        client_id: text("client_id"),
        client_secret: text("client_secret").map(SecretRef::plain),
        client_metadata_url: Some("https://conformance-test.local/client-metadata.json".into()),
        grant: if scenario.contains("client-credentials") { Grant::ClientCredentials } else { Grant::AuthorizationCode },
        ..OAuth::default()
    };
    let state_dir: PathBuf = std::env::temp_dir().join(format!("sign-in-peer-{}", std::process::id()));
    let peer = Peer { http: reqwest::Client::new(), oauth: OAuthClient::new("peer", url.clone(), config, &state_dir), url, version };
    let done = peer.run().await;
    peer.oauth.sign_out().await?;
    if state_dir.exists() {
        std::fs::remove_dir_all(&state_dir)?;
    }
    done
}

struct Peer {
    http: reqwest::Client,
    oauth: OAuthClient,
    url: url::Url,
    version: String,
}

impl Peer {
    async fn run(&self) -> anyhow::Result<()> {
        if self.version != STATELESS {
            let hello = json!({ "protocolVersion": self.version, "capabilities": {}, "clientInfo": { "name": "peer", "version": "1" } });
            self.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello })).await?;
            self.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await?;
        }
        self.request(2, "tools/list", json!({})).await?;
        self.request(3, "tools/call", json!({ "name": "test-tool", "arguments": {} })).await?;
        self.request(4, "tools/call", json!({ "name": "test-tool", "arguments": {} })).await
    }

    async fn request(&self, id: u64, method: &str, mut params: Value) -> anyhow::Result<()> {
        if self.version == STATELESS {
            params["_meta"] = json!({
                format!("{META}protocolVersion"): STATELESS,
                format!("{META}clientCapabilities"): {},
                format!("{META}clientInfo"): { "name": "peer", "version": "1" },
            });
        }
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await
    }

    /// Posts a message, and does as 401 and 403 ask, twice at most.
    async fn send(&self, message: Value) -> anyhow::Result<()> {
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        for _ in 0..3 {
            let mut request = self.http.post(self.url.clone()).json(&message);
            request = request.header("accept", "application/json, text/event-stream").header("mcp-protocol-version", &self.version);
            request = request.header("mcp-method", &method);
            if let Some(name) = message["params"]["name"].as_str() {
                request = request.header("mcp-name", name);
            }
            let token = self.oauth.token().await?.map(|token| format!("Bearer {}", token.expose()));
            if let Some(token) = &token {
                request = request.header("authorization", token);
            }
            let answer = request.send().await?;
            let status = answer.status().as_u16();
            if status != 401 && status != 403 {
                let body = answer.text().await?;
                if status >= 400 {
                    bail!("{method}: {status} {body}");
                }
                return Ok(());
            }
            let header = answer.headers().get("www-authenticate").and_then(|value| value.to_str().ok()).map(ToOwned::to_owned);
            self.oauth.challenged(status, header.as_deref(), token.as_deref()).await?;
        }
        bail!("{method}: still refused after two sign-ins")
    }
}
