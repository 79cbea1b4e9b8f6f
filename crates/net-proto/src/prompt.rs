//! The three prompts of the draft (section 6): descriptions, arguments, and steps that go on with each answer. A step names tool calls and
//! makes none. The state of a prompt is a handle that its client carries, so that nothing is kept here between two steps.

mod answer;
mod arguments;
mod audit;
mod change;
mod handle;
mod ping;
mod vlan;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::dialect::Dialect;
use crate::fault::{Code, Fault};

pub use answer::CallAnswer;
pub use arguments::check_names;
pub use ping::PingState;
pub use vlan::VlanState;

const PING: &str = "network.troubleshoot.ping-fail";
const VLAN: &str = "network.config.add-vlan";
const AUDIT: &str = "network.security.audit";

/// Member of a follow-up with the handle of the step before (section 6.2); the draft does not name the member with the answers.
pub const CONTEXT: &str = "previousContextId";
pub const RESULTS: &str = "results";

/// Words by which a client knows that no step follows (section 6.2).
pub const OVER: &str = "Diagnosis complete";

/// Characters of a failure that are shown.
const SHOWN_OF_FAILURE: usize = 600;

/// Device in the view of a prompt.
#[derive(Clone, Copy, Debug)]
pub struct PromptDevice<'a> {
    pub dialect: &'a Dialect,
    /// Seconds of a confirmed commit; `None` where the device rolls nothing back.
    pub confirmed: Option<u64>,
    /// Running configuration with its secrets, where the step needs one: [`PromptStep`] shows none of it.
    pub running: Option<&'a str>,
}

/// A prompt under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PromptState {
    Ping(PingState),
    Vlan(VlanState),
    Audit { is_detailed: bool },
}

/// A tool call that a step asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    pub tool: &'static str,
    pub arguments: Value,
    /// A person has to agree first (section 6.4).
    pub needs_approval: bool,
}

/// Answer of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptStep {
    pub title: String,
    /// Text for the user, in Markdown.
    pub markdown: String,
    pub calls: Vec<ToolCall>,
    /// State for the follow-up; `None` after the last step.
    pub next: Option<PromptState>,
}

impl PromptState {
    /// Begins a prompt.
    ///
    /// # Errors
    /// -32602 for a missing or malformed argument, -32084 for one beyond what the device has (section 7.2).
    pub fn begin(name: &str, given: &Map<String, Value>) -> Result<Self, Fault> {
        arguments::read(name, given)
    }

    /// First step of the prompt.
    ///
    /// # Errors
    /// -32084 where the device lacks what the prompt is about.
    pub fn first(self, device: PromptDevice<'_>) -> Result<PromptStep, Fault> {
        match self {
            Self::Ping(state) => Ok(state.ask(device)),
            Self::Vlan(state) => state.ask(device),
            Self::Audit { is_detailed } => audit::report(is_detailed, device),
        }
    }

    /// Step after this one, with the answer to its tool calls.
    ///
    /// # Errors
    /// As for [`PromptState::first`].
    pub fn follow(self, answer: &CallAnswer, device: PromptDevice<'_>) -> Result<PromptStep, Fault> {
        if answer.is_failed {
            return Ok(self.broken_off(&answer.text));
        }
        match self {
            Self::Ping(state) => Ok(state.follow(&answer.text, device)),
            Self::Vlan(state) => Ok(state.follow(&answer.text, device)),
            Self::Audit { is_detailed } => audit::report(is_detailed, device),
        }
    }

    /// Name of the prompt.
    pub fn prompt_name(&self) -> &'static str {
        match self {
            Self::Ping(_) => PING,
            Self::Vlan(_) => VLAN,
            Self::Audit { .. } => AUDIT,
        }
    }

    /// Checks that the next step looks at the running configuration.
    pub fn needs_running(&self) -> bool {
        matches!(self, Self::Audit { .. })
    }

    /// Last step, after a call that failed.
    fn broken_off(&self, why: &str) -> PromptStep {
        let title = match self {
            Self::Ping(state) => state.title(),
            Self::Vlan(state) => state.title(),
            Self::Audit { .. } => "Security audit".to_owned(),
        };
        let shown: String = why.chars().take(SHOWN_OF_FAILURE).collect();
        PromptStep::over(title.clone(), &format!("## {title}\n\n**The call failed, and nothing further is tried:** {shown}"))
    }
}

impl ToolCall {
    fn exec(command: &str) -> Self {
        Self { tool: "network.cli.exec", arguments: json!({ "cmd": command }), needs_approval: false }
    }

    fn written(&self) -> String {
        format!("`{} {}`", self.tool, self.arguments)
    }
}

impl PromptStep {
    /// Checks that a person has to agree to a call of this step.
    pub fn asks_person(&self) -> bool {
        self.calls.iter().any(|call| call.needs_approval)
    }

    /// Last step instead of this one, where the person did not agree.
    pub fn declined(&self) -> Self {
        let text = "**Nobody agreed, so nothing further is done.** What was applied already is rolled back at its deadline.";
        Self::over(self.title.clone(), &format!("## {}\n\n{text}", self.title))
    }

    /// `_meta` of the result, with the handle `context` of the follow-up.
    pub fn meta(&self, context: Option<&str>) -> Value {
        let calls: Vec<Value> = self
            .calls
            .iter()
            .map(|call| {
                let mut call_value = json!({ "tool": call.tool, "arguments": call.arguments });
                if call.needs_approval {
                    call_value["needsApproval"] = true.into();
                }
                call_value
            })
            .collect();
        let mut meta = json!({ "toolCalls": calls, "complete": self.next.is_none() });
        if let Some(context) = context {
            meta["contextId"] = context.into();
        }
        meta
    }

    /// Last step of a prompt.
    fn over(title: String, markdown: &str) -> Self {
        Self { title, markdown: format!("{markdown}\n\n{OVER}."), calls: Vec::new(), next: None }
    }

    /// A step that asks for one call.
    fn asking(title: String, markdown: &str, call: ToolCall, next: PromptState) -> Self {
        Self { title, markdown: format!("{markdown}\n   {}", call.written()), calls: vec![call], next: Some(next) }
    }
}

/// Descriptions for `prompts/list`, in the form of MCP and of the draft (section 6.3) at once. A prompt that the dialect has no commands for
/// is listed with `available: false`, as tools are.
pub fn descriptors(dialect: &Dialect) -> Vec<Value> {
    let argument = |name: &str, about: &str, is_required: bool, form: Value| {
        let mut argument = json!({ "name": name, "description": about, "required": is_required });
        if let (Some(argument), Value::Object(form)) = (argument.as_object_mut(), form) {
            argument.extend(form);
        }
        argument
    };
    let prompt = |name: &str, about: &str, mut arguments: Vec<Value>, required: &[&str]| {
        let text = || json!({ "type": "string" });
        arguments.push(argument(CONTEXT, "For a follow-up: `contextId` from `_meta` of the step before", false, text()));
        arguments.push(argument(RESULTS, "For a follow-up: what the calls of that step answered", false, text()));
        let meta = json!({ "required": required, "stream": true, "mimeType": "text/markdown" });
        json!({ "name": name, "description": about, "arguments": arguments, "required": required, "stream": true, "_meta": meta })
    };
    let address = || json!({ "type": "string" });
    let vrf = json!({ "type": "string", "pattern": "^[A-Za-z0-9._-]{1,32}$" });
    let mut all = vec![prompt(
        PING,
        "Step-by-step ping failure diagnosis",
        vec![
            argument("src", "Address of this device that the ping leaves from", true, address()),
            argument("dst", "Address that does not answer", true, address()),
            argument("vrf", "VRF of both", false, vrf),
        ],
        &["src", "dst"],
    )];
    let id = json!({ "type": "integer", "minimum": 1, "maximum": 4094 });
    let mut vlan = prompt(
        VLAN,
        "Interactive VLAN creation wizard",
        vec![
            argument("vlan_id", "IEEE 802.1Q VLAN ID", true, id),
            argument("name", "VLAN name (no spaces)", true, json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]{1,32}$" })),
            argument("ports", "Interfaces to add to the VLAN", false, json!({ "type": "array", "items": { "type": "string" } })),
        ],
        &["vlan_id", "name"],
    );
    if dialect.vlan_lines(1, "x", &[]).is_empty() {
        vlan["available"] = false.into();
        vlan["_meta"]["available"] = false.into();
    }
    all.push(vlan);
    let profile = json!({ "type": "string", "enum": ["basic", "detailed"] });
    all.push(prompt(
        AUDIT,
        "Security compliance checks of the running configuration",
        vec![argument("profile", "basic or detailed", true, profile)],
        &["profile"],
    ));
    all
}

/// Values for an argument that begin with `typed`, from the names of the device's interfaces, addresses and VRFs.
pub fn completions(argument: &str, typed: &str, interfaces: &[&str], addresses: &[&str], vrfs: &[&str]) -> Vec<String> {
    // The last of several ports is being typed.
    let (before, word) = if argument == "ports" { typed.rfind(',').map_or(("", typed), |at| typed.split_at(at + 1)) } else { ("", typed) };
    let values: &[&str] = match argument {
        "ports" => interfaces,
        "src" => addresses,
        "vrf" => vrfs,
        "profile" => &["basic", "detailed"],
        _ => &[],
    };
    let word = word.trim_start().to_lowercase();
    values.iter().filter(|value| value.to_lowercase().starts_with(&word)).map(|value| format!("{before}{value}")).collect()
}

fn incompatible(why: String) -> Fault {
    Fault::new(Code::ConfigIncompatible, why)
}

#[cfg(test)]
mod tests;
