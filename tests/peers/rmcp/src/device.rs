//! What the client does with a router through Banyan; one printed line a check. Does not connect.

use std::time::Duration;

use anyhow::{Context, ensure};
use rmcp::RoleClient;
use rmcp::model::{CallToolRequestParams, ReadResourceRequestParams, SubscribeRequestParams, SubscriptionFilter};
use rmcp::service::RunningService;
use serde_json::{Value, json};

use crate::client::{Event, Visitor};

const LAN: &str = "network:///interface/lan0";
const LIMIT: Duration = Duration::from_secs(20);

struct DeviceTour {
    service: RunningService<RoleClient, Visitor>,
    visitor: Visitor,
    description: String,
}

/// Reads, follows an interface, changes it for some time, confirms, and is told an error; the first failure ends the tour.
pub(crate) async fn run(service: RunningService<RoleClient, Visitor>, visitor: Visitor, description: &str) -> anyhow::Result<()> {
    let tour = DeviceTour { service, visitor, description: description.to_owned() };
    // The session's GET stream opens beside the first requests.
    tokio::time::sleep(Duration::from_millis(200)).await;
    tokio::time::timeout(LIMIT, tour.taken()).await.context("no answer in time")??;
    tour.service.cancel().await?;
    Ok(())
}

impl DeviceTour {
    async fn taken(&self) -> anyhow::Result<()> {
        let named = self.names().await?;
        ensure!(named.iter().any(|name| name.contains("commit")), "{named:?}");
        said("tools");
        ensure!(self.read("network:///file/running-config").await?.contains("router ospf"));
        said("read");
        let is_modern = self.service.peer_info().is_none_or(|info| info.protocol_version.to_string() == "2026-07-28");
        let filter: SubscriptionFilter = serde_json::from_value(json!({"resourceSubscriptions": [LAN]}))?;
        let mut stream = if is_modern {
            Some(self.service.listen(filter).await?)
        } else {
            self.service.subscribe(SubscribeRequestParams::new(LAN)).await?;
            None
        };
        let line = format!("description {}", self.description);
        let shown = self.call("network.cli.configure", json!({"commands": ["interface lan0", line]})).await?;
        ensure!(shown["diff"].as_str().is_some_and(|diff| diff.contains(&self.description)), "{shown}");
        said("diff");
        let done = self.call("network.commit", json!({"confirmed": 30, "hash": shown["hash"]})).await?;
        ensure!(done["status"] == "committed", "{done}");
        said("commit");
        match &mut stream {
            Some(stream) => {
                let note = stream.next().await?.context("the stream ended")?;
                ensure!(serde_json::to_value(&note)?["params"]["uri"] == LAN, "{note:?}");
            }
            None => drop(self.visitor.wait(|event| *event == Event::Updated(LAN.to_owned())).await),
        }
        ensure!(self.read(LAN).await?.contains(&self.description));
        said("subscribe");
        let kept = self.call("network.commit", json!({"confirm": true})).await?;
        ensure!(kept["status"] == "confirmed", "{kept}");
        said("confirm");
        let refused = self.call("network.cli.exec", json!({"cmd": "show nonsense"})).await;
        let told = refused.map_or_else(|error| format!("{error:#}"), |result| result.to_string());
        ensure!(told.contains("-32084"), "{told}");
        said("error");
        Ok(())
    }

    async fn names(&self) -> anyhow::Result<Vec<String>> {
        Ok(self.service.list_all_tools().await?.into_iter().map(|tool| tool.name.into_owned()).collect())
    }

    async fn read(&self, uri: &str) -> anyhow::Result<String> {
        let result = self.service.read_resource(ReadResourceRequestParams::new(uri)).await?;
        Ok(serde_json::to_value(&result)?["contents"][0]["text"].as_str().unwrap_or_default().to_owned())
    }

    async fn call(&self, tool: &str, arguments: Value) -> anyhow::Result<Value> {
        let plain = |name: &str| name.replace(['_', '.'], "");
        let name = self.names().await?.into_iter().find(|name| plain(name) == plain(tool)).context("no such tool")?;
        let params = CallToolRequestParams::new(name).with_arguments(arguments.as_object().cloned().unwrap_or_default());
        Ok(self.service.call_tool(params).await?.structured_content.unwrap_or_default())
    }
}

#[expect(clippy::print_stdout, reason = "standard output is this tool's interface")]
fn said(name: &str) {
    println!("ok {name}");
}
