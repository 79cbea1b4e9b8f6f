//! What the client does through Banyan, in front of the fixture; one printed line a check. Does not connect.

use std::future::ready;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResponse, CallToolResult, ClientRequest, GetPromptRequestParams, LoggingLevel,
    ProtocolVersion, ReadResourceRequestParams, RequestMetaObject, ServerNotification, SetLevelRequestParams, SubscribeRequestParams,
    SubscriptionFilter, UnsubscribeRequestParams,
};
use rmcp::service::{PeerRequestOptions, RunningService};
use serde_json::{Value, json};

use crate::client::{Event, Visitor};

const STATIC: &str = "test://static-text";
const WATCHED: &str = "test://watched-resource";
const LIMIT: Duration = Duration::from_secs(12);

/// A connected client, and how tools are called here.
struct Tour {
    service: RunningService<RoleClient, Visitor>,
    visitor: Visitor,
    prefix: String,
}

/// All checks; one that fails does not stop the others.
pub(crate) async fn run(service: RunningService<RoleClient, Visitor>, visitor: Visitor, prefix: &str) -> anyhow::Result<()> {
    let tour = Tour { service, visitor, prefix: prefix.to_owned() };
    // The session's GET stream opens beside the first requests.
    tokio::time::sleep(Duration::from_millis(200)).await;
    tour.step("connect", ready(tour.connected())).await;
    tour.everyday().await;
    tour.asked_back().await;
    tour.notified().await;
    tour.service.cancel().await?;
    Ok(())
}

impl Tour {
    async fn everyday(&self) {
        self.step("list tools", self.list()).await;
        self.step("call", self.says("fx_echo", json!({"text": "café ✓"}), "café ✓")).await;
        self.step("tool error", self.failing()).await;
        self.step("resources", self.resources()).await;
        self.step("unknown resource", self.unknown_resource()).await;
        self.step("prompts", self.prompts()).await;
        self.step("completion", self.completion()).await;
        self.step("sixteen at once", self.burst()).await;
    }

    async fn asked_back(&self) {
        let form = r#"Elicitation completed: action=accept, content={"response": "answered: Say"}"#;
        self.step("sampling", self.says("test_sampling", json!({"prompt": "2+2"}), "LLM response: sampled: 2+2")).await;
        self.step("elicitation form", self.says("test_elicitation", json!({"message": "Say"}), form)).await;
        self.step("elicitation url", self.says("fx_elicit_url", json!({}), "url elicitation: accept")).await;
        self.step("roots", self.says("fx_roots", json!({}), "roots: file:///peer/root")).await;
    }

    async fn notified(&self) {
        self.step("progress", self.progress()).await;
        self.step("cancellation", self.cancellation()).await;
        self.step("logging", self.logging()).await;
        self.step("list_changed", self.list_changed()).await;
        self.step("subscription", self.subscription()).await;
    }

    #[expect(clippy::print_stdout, reason = "standard output is this tool's interface")]
    async fn step(&self, name: &str, work: impl Future<Output = anyhow::Result<()>>) {
        match tokio::time::timeout(LIMIT, work).await {
            Ok(Ok(())) => println!("ok {name}"),
            Ok(Err(error)) => println!("FAIL {name} {}", format!("{error:#}").replace('\n', " ")),
            Err(_) => println!("FAIL {name} no answer within {LIMIT:?}"),
        }
    }

    fn modern(&self) -> bool {
        self.service.peer_info().is_none() || self.version().as_deref() == Some("2026-07-28")
    }

    fn version(&self) -> Option<String> {
        self.service.peer_info().map(|info| info.protocol_version.to_string())
    }

    fn params(&self, tool: &str, arguments: &Value) -> CallToolRequestParams {
        let params = CallToolRequestParams::new(format!("{}{tool}", self.prefix));
        params.with_arguments(arguments.as_object().cloned().unwrap_or_default())
    }

    async fn call(&self, tool: &str, arguments: Value) -> anyhow::Result<CallToolResult> {
        Ok(self.service.call_tool(self.params(tool, &arguments)).await?)
    }

    async fn text(&self, tool: &str, arguments: Value) -> anyhow::Result<String> {
        text(&self.call(tool, arguments).await?)
    }

    async fn says(&self, tool: &str, arguments: Value, wanted: &str) -> anyhow::Result<()> {
        same(self.text(tool, arguments).await?.as_str(), wanted)
    }

    fn connected(&self) -> anyhow::Result<()> {
        ensure!(!self.service.is_closed(), "closed");
        ensure!(self.modern() || self.version() == Some(ProtocolVersion::V_2025_11_25.to_string()), "speaks {:?}", self.version());
        Ok(())
    }

    async fn names(&self) -> anyhow::Result<Vec<String>> {
        Ok(self.service.list_all_tools().await?.into_iter().map(|tool| tool.name.into_owned()).collect())
    }

    async fn list(&self) -> anyhow::Result<()> {
        let names = self.names().await?;
        let wanted = format!("{}fx_echo", self.prefix);
        ensure!(names.contains(&wanted), "{wanted} is not in {names:?}");
        Ok(())
    }

    async fn failing(&self) -> anyhow::Result<()> {
        let result = self.call("test_error_handling", json!({})).await?;
        ensure!(result.is_error == Some(true), "{result:?}");
        same(text(&result)?.as_str(), "This tool intentionally returns an error for testing")
    }

    async fn read(&self, uri: &str) -> anyhow::Result<String> {
        let result = self.service.read_resource(ReadResourceRequestParams::new(uri)).await?;
        Ok(serde_json::to_value(&result)?["contents"][0]["text"].as_str().unwrap_or_default().to_owned())
    }

    async fn resources(&self) -> anyhow::Result<()> {
        let listed = self.service.list_all_resources().await?;
        ensure!(listed.iter().any(|r| r.uri == STATIC), "{listed:?}");
        ensure!(self.read(STATIC).await?.starts_with("This is the content"));
        ensure!(self.read("test://template/7/data").await?.contains("\"7\""));
        Ok(())
    }

    async fn unknown_resource(&self) -> anyhow::Result<()> {
        let found = self.service.read_resource(ReadResourceRequestParams::new("test://there-is-no-such-thing")).await;
        ensure!(found.is_err(), "{found:?}");
        Ok(())
    }

    async fn prompts(&self) -> anyhow::Result<()> {
        let listed = self.service.list_all_prompts().await?;
        let name = format!("{}test_prompt_with_arguments", self.prefix);
        ensure!(listed.iter().any(|p| p.name == name), "{listed:?}");
        let arguments = json!({"arg1": "one", "arg2": "two"}).as_object().cloned().unwrap_or_default();
        let result = self.service.get_prompt(GetPromptRequestParams::new(name).with_arguments(arguments)).await?;
        let got = serde_json::to_value(&result)?["messages"][0]["content"]["text"].clone();
        same(got.as_str().unwrap_or_default(), "Prompt with arguments: arg1='one', arg2='two'")
    }

    async fn completion(&self) -> anyhow::Result<()> {
        let name = format!("{}test_prompt_with_arguments", self.prefix);
        let found = self.service.complete_prompt_argument(name, "arg1", "par", None).await?;
        ensure!(found.values == ["paris", "park", "party"], "{found:?}");
        Ok(())
    }

    async fn progress(&self) -> anyhow::Result<()> {
        self.visitor.clear();
        self.call("test_tool_with_progress", json!({})).await?;
        let wanted = [0.0, 50.0, 100.0].map(|done| Event::Progress(done, Some(100.0)));
        self.visitor.wait(|event| *event == wanted[2]).await;
        let seen = self.visitor.seen();
        ensure!(seen == wanted, "{seen:?}");
        Ok(())
    }

    async fn stats(&self) -> anyhow::Result<Value> {
        Ok(serde_json::from_str(&self.text("fx_stats", json!({})).await?)?)
    }

    async fn cancellation(&self) -> anyhow::Result<()> {
        let before = self.stats().await?;
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(self.params("fx_sleep", &json!({"ms": 6000, "steps": 60}))));
        let handle = self.service.send_cancellable_request(request, PeerRequestOptions::no_options()).await?;
        tokio::time::sleep(Duration::from_millis(300)).await;
        handle.cancel(Some("peer test".to_owned())).await?;
        loop {
            let after = self.stats().await?;
            if after["cancelled"].as_u64() > before["cancelled"].as_u64() {
                ensure!(after["finished"] == before["finished"], "{after}");
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn logging(&self) -> anyhow::Result<()> {
        self.visitor.clear();
        let mut params = self.params("test_tool_with_logging", &json!({}));
        if self.modern() {
            let mut meta = RequestMetaObject::default();
            meta.set_log_level(LoggingLevel::Info);
            params.meta = Some(meta);
        } else {
            self.service.set_level(SetLevelRequestParams::new(LoggingLevel::Info)).await?;
        }
        self.service.call_tool(params).await?;
        let wanted = ["Tool execution started", "Tool processing data", "Tool execution completed"].map(|words| Event::Log(json!(words)));
        self.visitor.wait(|event| *event == wanted[2]).await;
        let seen: Vec<Event> = self.visitor.seen().into_iter().filter(|event| matches!(event, Event::Log(_))).collect();
        ensure!(seen == wanted, "{seen:?}");
        Ok(())
    }

    /// Toggles the dynamic tool and waits for the notification; gives how long it took and whether the tool is there.
    async fn toggled(&self) -> anyhow::Result<(Duration, bool)> {
        let began = Instant::now();
        if self.modern() {
            let mut stream = self.service.listen(SubscriptionFilter::builder().tools_list_changed().build()).await?;
            self.call("test_trigger_tool_change", json!({})).await?;
            let note = stream.next().await?.context("the stream ended")?;
            ensure!(matches!(note, ServerNotification::ToolListChangedNotification(_)), "{note:?}");
            stream.cancel().await?;
        } else {
            self.visitor.clear();
            self.call("test_trigger_tool_change", json!({})).await?;
            self.visitor.wait(|event| *event == Event::Tools).await;
        }
        Ok((began.elapsed(), self.names().await?.contains(&format!("{}test_dynamic_tool", self.prefix))))
    }

    async fn list_changed(&self) -> anyhow::Result<()> {
        let (first, second) = (self.toggled().await?, self.toggled().await?);
        ensure!(first.0.as_secs() == 0 && second.0.as_secs() == 0 && first.1 != second.1, "{first:?} {second:?}");
        Ok(())
    }

    async fn subscription(&self) -> anyhow::Result<()> {
        let touched = async || {
            self.call("fx_touch", json!({"uri": STATIC})).await?;
            self.call("fx_touch", json!({"uri": WATCHED})).await
        };
        if self.modern() {
            let filter: SubscriptionFilter = serde_json::from_value(json!({"resourceSubscriptions": [WATCHED]}))?;
            let mut stream = self.service.listen(filter).await?;
            touched().await?;
            let note = stream.next().await?.context("the stream ended")?;
            ensure!(serde_json::to_value(&note)?["params"]["uri"] == WATCHED, "{note:?}");
            stream.cancel().await?;
            return Ok(());
        }
        self.visitor.clear();
        self.service.subscribe(SubscribeRequestParams::new(WATCHED)).await?;
        touched().await?;
        let got = self.visitor.wait(|event| matches!(event, Event::Updated(_))).await;
        ensure!(got == Event::Updated(WATCHED.to_owned()), "{got:?}");
        self.service.unsubscribe(UnsubscribeRequestParams::new(WATCHED)).await?;
        Ok(())
    }

    async fn burst(&self) -> anyhow::Result<()> {
        let mut calls = tokio::task::JoinSet::new();
        for number in 0..16 {
            let (peer, params) = (self.service.peer().clone(), self.params("fx_echo", &json!({"text": number.to_string()})));
            calls.spawn(async move { (number.to_string(), peer.call_tool_once(params).await) });
        }
        while let Some(done) = calls.join_next().await {
            let (wanted, reply) = done?;
            let CallToolResponse::Complete(result) = reply? else {
                bail!("{wanted} was not answered");
            };
            same(&text(&result)?, &wanted)?;
        }
        Ok(())
    }
}

fn text(result: &CallToolResult) -> anyhow::Result<String> {
    let value = serde_json::to_value(result)?;
    Ok(value["content"][0]["text"].as_str().context("no text")?.to_owned())
}

fn same(got: &str, wanted: &str) -> anyhow::Result<()> {
    ensure!(got == wanted, "got {got:?}, wanted {wanted:?}");
    Ok(())
}
