//! The prompts of a device: their steps, with the person asked before a change is applied or kept, and completion from the interfaces of the
//! device. Decides nothing about steps and keeps no context: `net-proto` does both.

use std::collections::BTreeSet;

use mcp_server::{Question, Refusal, Request, arguments};
use net_proto::fault::{Code, Fault};
use net_proto::prompt::{CONTEXT, CallAnswer, PromptDevice, PromptState, PromptStep, RESULTS, check_names, completions};
use serde_json::{Map, Value, json};

use super::reads::parsed;
use crate::site::Site;

/// Key of the question before a commit.
const APPROVAL: &str = "approval";
/// Parts of a text that are streamed as progress.
const MOST_PARTS: usize = 64;
/// Template whose `name` is an interface.
const INTERFACE: &str = "network:///interface/{+name}";

/// A prompt under way, for one request.
pub(crate) struct PromptErrand<'a> {
    pub(crate) site: &'a Site,
    pub(crate) request: &'a Request,
    pub(crate) is_draft: bool,
}

impl PromptErrand<'_> {
    /// The next step of the prompt `name`.
    pub(crate) async fn step(&self, name: &str, params: &Map<String, Value>) -> Result<PromptStep, Fault> {
        if params.get("arguments").is_some_and(|given| !given.is_object() && !given.is_null()) {
            return Err(invalid("`arguments` is an object with an argument a member".to_owned()));
        }
        let given = arguments(params);
        let member = |name: &str| params.get(name).or_else(|| given.get(name)).or_else(|| self.request.meta.get(name));
        let Some(context) = member(CONTEXT).filter(|context| !matches!(context.as_str(), Some(""))) else {
            let state = PromptState::begin(name, &given)?;
            let running = self.running(&state).await?;
            return state.first(self.device(running.as_deref()));
        };
        check_names(name, &given)?;
        let state = PromptState::from_handle(context.as_str().unwrap_or_default())?;
        if state.prompt_name() != name {
            return Err(invalid(format!("`{CONTEXT}` is of the prompt {}", state.prompt_name())));
        }
        let answer = member(RESULTS).ok_or_else(|| invalid(format!("`{RESULTS}` is missing: what the calls of the last step answered")))?;
        let running = self.running(&state).await?;
        state.follow(&CallAnswer::read(answer), self.device(running.as_deref()))
    }

    /// Makes the result of a step. Where the step has a change applied or kept, the person behind the client is asked first; a client that
    /// can't ask has the question in the text.
    pub(crate) async fn result(&self, step: PromptStep) -> Result<Value, Refusal> {
        let mut step = step;
        let mut approval = None;
        if step.asks_person() {
            let is_asked = self.request.can_ask();
            if is_asked && !self.is_agreed(&step).await? {
                step = step.declined();
            }
            approval = Some(if is_asked { "given" } else { "required" }).filter(|_| step.asks_person());
        }
        let markdown = self.site.redactor.text(&step.markdown);
        self.stream(&markdown).await;
        let handle = step.next.as_ref().map(PromptState::to_handle);
        let mut meta = step.meta(handle.as_deref());
        meta["mimeType"] = "text/markdown".into();
        if let Some(approval) = approval {
            meta["approval"] = approval.into();
        }
        let message = if self.is_draft {
            json!({ "role": "assistant", "content": markdown })
        } else {
            json!({ "role": "user", "content": { "type": "text", "text": markdown } })
        };
        Ok(json!({ "description": step.title, "messages": [message], "_meta": meta }))
    }

    /// Makes the same result with a handle, after its parts have gone out under the handle (section 6.4 of the draft). The last part has the calls.
    pub(crate) async fn streamed(&self, step: PromptStep) -> Result<Value, Refusal> {
        let mut result = self.result(step).await?;
        let handle = runtime::random::token();
        let content = &result["messages"][0]["content"];
        let markdown = content.as_str().or_else(|| content["text"].as_str()).unwrap_or_default().to_owned();
        let method = if self.is_draft { "prompts/stream" } else { "notifications/prompts/stream" };
        let parts: Vec<&str> = markdown.splitn(MOST_PARTS, "\n\n").collect();
        for (number, part) in (1..).zip(&parts) {
            let mut params = json!({ "handle": handle, "part": number, "parts": parts.len(), "markdown": part });
            if number == parts.len() {
                params["_meta"] = result["_meta"].clone();
            }
            self.request.connection.notify(method, params).await;
        }
        result["handle"] = handle.into();
        Ok(result)
    }

    async fn is_agreed(&self, step: &PromptStep) -> Result<bool, Refusal> {
        let reply = self
            .request
            .ask(Question {
                key: APPROVAL,
                message: format!("{}\n\n{}", self.site.settings.name, self.site.redactor.text(&step.markdown)),
                schema: json!({
                    "type": "object",
                    "properties": { "approve": { "type": "boolean", "title": "Go on with this change", "default": false } },
                    "required": ["approve"],
                }),
                state: APPROVAL.to_owned(),
            })
            .await?;
        Ok(reply.action == "accept" && reply.content.get("approve").and_then(Value::as_bool) == Some(true))
    }

    /// Sends the text part by part to a client that asked for progress.
    async fn stream(&self, markdown: &str) {
        let parts: Vec<&str> = markdown.split("\n\n").collect();
        let total = parts.len().min(MOST_PARTS);
        for (number, part) in parts.into_iter().take(total).enumerate() {
            self.request.progress((number + 1) as f64, total as f64, part).await;
        }
    }

    fn device<'b>(&'b self, running: Option<&'b str>) -> PromptDevice<'b> {
        let settings = &self.site.settings;
        let can_change = self.site.changes.check_lines().is_ok() && !settings.read_only;
        PromptDevice { dialect: &self.site.dialect, confirmed: can_change.then_some(settings.confirm_within), running }
    }

    async fn running(&self, state: &PromptState) -> Result<Option<String>, Fault> {
        if !state.needs_running() {
            return Ok(None);
        }
        self.site.may_read_whole()?;
        self.site.backend.running().await.map(Some)
    }
}

/// Values for an argument of a prompt or of a template. A device that does not answer has none.
pub(crate) async fn complete(site: &Site, reference: &str, argument: &str, typed: &str) -> Vec<String> {
    let is_of_device = matches!(argument, "src" | "vrf" | "ports") || reference == INTERFACE;
    let is_shown = || site.backend.has_command_line() && site.may_show("show interface json").is_ok();
    let facts = if is_of_device && site.dialect.is_frr() && is_shown() {
        let shown = site.backend.exec("show interface json").await.and_then(|text| parsed(&text));
        shown.unwrap_or_default()
    } else {
        Value::Null
    };
    let ports: Vec<String> = match site.backend.ovs().filter(|_| is_of_device) {
        Some(ovs) => ovs.rows().await.map_or_else(|_| Vec::new(), |rows| rows.interfaces().into_iter().map(|one| one.name).collect()),
        None => Vec::new(),
    };
    let all = || facts.as_object().into_iter().flatten();
    let names: Vec<&str> = all().map(|(name, _)| name.as_str()).chain(ports.iter().map(String::as_str)).collect();
    if reference == INTERFACE {
        return names.into_iter().map(str::to_owned).collect();
    }
    let listed = |facts: &'_ Value| facts["ipAddresses"].as_array().cloned().unwrap_or_default();
    let addresses: BTreeSet<String> =
        all().flat_map(|(_, facts)| listed(facts)).filter_map(|one| Some(one["address"].as_str()?.split('/').next()?.to_owned())).collect();
    let vrfs: BTreeSet<&str> = all().filter_map(|(_, facts)| facts["vrfName"].as_str()).collect();
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let vrfs: Vec<&str> = vrfs.into_iter().collect();
    completions(argument, typed, &names, &addresses, &vrfs)
}

fn invalid(why: String) -> Fault {
    Fault::new(Code::InvalidParams, why)
}
