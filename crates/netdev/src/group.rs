//! A group of devices as an MCP server: its tools read from all devices of the group, or from some, and answer for each. Every device has its own
//! rules. A group changes nothing.

use std::sync::Arc;

use equipment::GroupSettings;
use mcp_server::{About, Arguments, Keeping, Refusal, Request, Server};
use net_proto::fault::{Code, Fault};
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::device::{tools, yang};
use crate::served::ServedDevices;

/// Devices that one call asks at a time.
const AT_ONCE: usize = 32;
/// Bytes of the answers of all devices together.
const ANSWERS: usize = 16 << 20;
const READS: [&str; 3] = ["network.cli.exec", "network.yang.get", "network.file.pull"];

/// Server of a group.
pub(crate) struct DeviceGroup {
    group: GroupSettings,
    served: ServedDevices,
}

impl DeviceGroup {
    pub(crate) fn new(group: GroupSettings, served: ServedDevices) -> Self {
        Self { group, served }
    }

    /// Devices of a call: those that it names, or all of the group.
    fn asked(&self, arguments: &Arguments) -> Result<Vec<String>, Refusal> {
        let Some(named) = arguments.get("devices") else { return Ok(self.group.devices.clone()) };
        let named = named.as_array().filter(|named| !named.is_empty());
        let named = named.ok_or_else(|| Refusal::invalid("`devices` is a list of names; without it all are asked"))?;
        let is_member = |name: &&Value| name.as_str().is_some_and(|name| self.group.devices.iter().any(|member| member == name));
        if let Some(stranger) = named.iter().find(|name| !is_member(name)) {
            return Err(Refusal::invalid(format!("{stranger} is no device of the group `{}`", self.group.name)));
        }
        let mut named: Vec<String> = named.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        named.sort();
        named.dedup();
        Ok(named)
    }

    /// Asks each device; the answer or the fault of each, by name.
    async fn ask(&self, names: Vec<String>, tool: &str, arguments: &Arguments) -> Map<String, Value> {
        let (room, mut asking) = (Arc::new(Semaphore::new(AT_ONCE)), JoinSet::new());
        for name in names {
            let (room, served, tool, arguments) = (Arc::clone(&room), self.served.clone(), tool.to_owned(), arguments.clone());
            asking.spawn(async move {
                let _turn = room.acquire().await;
                let answer = ask_one(&served, &name, &tool, &arguments).await;
                (name, answer)
            });
        }
        let (mut answers, mut size) = (Map::new(), 0);
        while let Some(asked) = asking.join_next().await {
            let Ok((name, answer)) = asked else { continue };
            size += answer.to_string().len();
            let too_long =
                || failure(&Fault::new(Code::ConfigIncompatible, "the answers of the group are too long together: name fewer `devices`"));
            answers.insert(name, if size > ANSWERS { too_long() } else { answer });
        }
        answers
    }
}

async fn ask_one(served: &ServedDevices, name: &str, tool: &str, arguments: &Arguments) -> Value {
    let Some(site) = served.find(name) else {
        return failure(&Fault::new(Code::Unreachable, "the gate does not serve this device at present").retryable());
    };
    match tools::call(&site, tool, arguments).await {
        Ok(mut result) => json!({ "ok": result["structuredContent"].take() }),
        Err(fault) => failure(&fault.cleaned(|text| site.redactor.text(text))),
    }
}

fn failure(fault: &Fault) -> Value {
    json!({ "error": { "code": fault.code.number(), "message": fault.code.message(), "detail": fault.detail, "path": fault.path, "retryPossible": fault.may_retry } })
}

impl Server for DeviceGroup {
    fn about(&self) -> About {
        let GroupSettings { name, description, devices } = &self.group;
        let about = description.as_ref().map(|about| format!("{about}. ")).unwrap_or_default();
        About {
            name: name.clone().into(),
            title: format!("Devices of {name}").into(),
            version: env!("CARGO_PKG_VERSION").into(),
            instructions: format!(
                "{about}Reads from {} devices at once, and answers for each. Changes are made on each device.",
                devices.len()
            )
            .into(),
        }
    }

    fn keeping(&self) -> Keeping {
        Keeping { milliseconds: 0, scope: "private" }
    }

    fn tools(&self) -> Vec<Value> {
        let text = |about: &str| json!({ "type": "string", "description": about });
        let mut pull = json!({ "type": "object", "properties": { "filename": text("running-config, candidate-config or startup-config") }, "required": ["filename"], "additionalProperties": false });
        let mut exec = json!({ "type": "object", "properties": { "cmd": text("The command, such as: show ip route") }, "required": ["cmd"], "additionalProperties": false });
        let mut get = yang::get_schema();
        let devices = json!({ "type": "array", "items": { "type": "string" }, "minItems": 1, "description": "Names of devices of the group. Default: all" });
        let abouts = [
            "Runs one show command on each device",
            "Retrieves a YANG data node of each device",
            "Gives a configuration of each device as text",
        ];
        let named = READS.iter().zip(abouts).zip([&mut exec, &mut get, &mut pull]);
        let tools = named.map(|((name, about), schema)| {
            schema["properties"]["devices"] = devices.clone();
            json!({ "name": name, "description": format!("{about}, without secrets. A device that fails says so, and the others answer"), "inputSchema": schema,
                "annotations": { "readOnlyHint": true, "openWorldHint": false } })
        });
        tools.collect()
    }

    async fn call(&self, _request: &Request, tool: &str, arguments: &Arguments) -> Result<Value, Refusal> {
        if !READS.contains(&tool) {
            return Err(Refusal::invalid(format!("a group only reads, and has no {tool}: call it at each device")));
        }
        let (names, mut arguments) = (self.asked(arguments)?, arguments.clone());
        arguments.remove("devices");
        let count = names.len();
        let answers = self.ask(names, tool, &arguments).await;
        let failed: Vec<String> =
            answers.iter().filter_map(|(name, answer)| Some(format!("{name}: {}", answer.get("error")?["detail"].as_str()?))).collect();
        let mut text = format!("{} of {count} devices answered.", count - failed.len());
        failed.iter().for_each(|line| text.push_str(&format!("\n{line}")));
        let all = Value::Object(answers);
        text.push_str(&format!("\n{all}"));
        let structure = json!({ "devices": all, "answered": count - failed.len(), "failed": failed.len() });
        let mut result = mcp_server::structured(text, structure);
        if failed.len() == count {
            result["isError"] = true.into();
        }
        Ok(result)
    }
}
