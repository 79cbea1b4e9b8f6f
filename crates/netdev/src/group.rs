//! A group of devices as an MCP server: its tools read from all devices of the group, or from some, and answer for each. Every device has its own
//! rules. A group changes nothing.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use equipment::GroupSettings;
use mcp_server::{About, Arguments, Keeping, Refusal, Request, Server, subject};
use net_proto::fault::{Code, Fault};
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::caller::{self, CallerIdentity};
use crate::device::{shape, tools, yang};
use crate::served::{ServedDevices, device_subject};
use crate::share;

/// Devices that one call asks at a time.
const AT_ONCE: usize = 32;
/// Bytes of the answer of a device, and of the answers of all together.
const ANSWER: usize = 2 << 20;
const ANSWERS: usize = 8 << 20;
/// Most bytes from all devices asked at a time, before secrets are hidden and forms changed.
const READING: usize = 128 << 20;
/// Longest time of a call: less than the silence after which a gate gives a call up.
const PATIENCE: Duration = Duration::from_secs(240);
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

    /// Devices named by a call, or all of the group. A device hidden from the caller is none of the group.
    fn asked(&self, arguments: &Arguments, hidden: &BTreeSet<String>) -> Result<Vec<String>, Refusal> {
        if self.group.devices.is_empty() {
            return Err(Refusal::invalid(format!("the group `{}` has no devices: name it in `groups` of some", self.group.name)));
        }
        let members: Vec<&String> = self.group.devices.iter().filter(|member| !hidden.contains(*member)).collect();
        if members.is_empty() {
            return Err(Refusal::invalid(format!("the group `{}` has no devices that this caller sees", self.group.name)));
        }
        let Some(named) = arguments.get("devices") else { return Ok(members.into_iter().cloned().collect()) };
        let named = named.as_array().filter(|named| !named.is_empty());
        let named = named.ok_or_else(|| Refusal::invalid("`devices` is a list of names; without it all are asked"))?;
        let is_member = |name: &&Value| name.as_str().is_some_and(|name| members.iter().any(|member| *member == name));
        if let Some(stranger) = named.iter().find(|name| !is_member(name)) {
            return Err(Refusal::invalid(format!("{stranger} is no device of the group `{}`", self.group.name)));
        }
        let mut named: Vec<String> = named.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        named.sort();
        named.dedup();
        Ok(named)
    }

    /// Asks each device, and tells how far that is; the answer or the fault of each, by name.
    async fn ask(&self, request: &Request, names: Vec<String>, tool: &str, arguments: &Arguments) -> Map<String, Value> {
        let mut answers: Map<String, Value> = names.into_iter().map(|name| (name, Value::Null)).collect();
        for (name, refused) in caller::refused_devices(&request.meta) {
            answers.entry(name).and_modify(|answer| *answer = failure(&refused));
        }
        let (room, mut asking, answered) = (Arc::new(Semaphore::new(AT_ONCE)), JoinSet::new(), Arc::new(Mutex::new(AnswerRoom::default())));
        let share = share_of(answers.values().filter(|answer| answer.is_null()).count());
        for (name, _) in answers.iter().filter(|(_, answer)| answer.is_null()) {
            let (room, answered, served, name) = (Arc::clone(&room), Arc::clone(&answered), self.served.clone(), name.clone());
            let (tool, arguments, caller) = (tool.to_owned(), arguments.clone(), CallerIdentity::from_gate(&request.meta));
            let about = device_subject(&name);
            asking.spawn(subject::within(&about, async move {
                let _turn = room.acquire().await;
                let answer = share::within_share(share, share::within_call(ask_one(&served, (&name, caller), &tool, &arguments))).await;
                // Before the next one has its turn: nothing that is too long waits for whoever hears of the progress.
                let answer = answered.lock().unwrap_or_else(PoisonError::into_inner).taken(answer);
                (name, answer)
            }));
        }
        let (total, mut done) = (asking.len() as f64, 0.0);
        let all = tokio::time::timeout(PATIENCE, async {
            while let Some(asked) = asking.join_next().await {
                let Ok((name, answer)) = asked else { continue };
                done += 1.0;
                request.progress(done, total, &name).await;
                answers.insert(name, answer);
            }
        });
        let left = match all.await {
            Ok(()) => Fault::new(Code::HardwareFailure, "the work for this device broke off").retryable(),
            Err(_) => Fault::new(Code::Timeout, format!("no answer within {} s: name fewer `devices`", PATIENCE.as_secs())).retryable(),
        };
        answers.values_mut().filter(|answer| answer.is_null()).for_each(|answer| *answer = failure(&left));
        answers
    }
}

/// Most bytes from each of so many devices.
fn share_of(devices: usize) -> usize {
    READING / devices.clamp(1, AT_ONCE)
}

/// Bytes of the answers so far.
#[derive(Default)]
struct AnswerRoom(usize);

impl AnswerRoom {
    /// The answer, or a failure in the place of one that is too long.
    fn taken(&mut self, answer: Value) -> Value {
        let length = answer.to_string().len();
        let advice = if length > ANSWER {
            "the answer of this device is too long for a call of a group: call the device itself"
        } else if self.0 + length > ANSWERS {
            "the answers of the group are too long together: name fewer `devices`"
        } else {
            self.0 += length;
            return answer;
        };
        failure(&Fault::new(Code::ConfigIncompatible, advice))
    }
}

async fn ask_one(served: &ServedDevices, (name, caller): (&str, Option<CallerIdentity>), tool: &str, arguments: &Arguments) -> Value {
    let Some(site) = served.find(name) else {
        return failure(&Fault::new(Code::Unreachable, "the gate does not serve this device at present").retryable());
    };
    let site = site.of_caller(caller);
    match tools::call(&site, tool, arguments).await {
        Ok(mut result) => json!({ "ok": result["structuredContent"].take() }),
        Err(fault) if fault.is_too_long() => {
            let advice =
                format!("{}; in a call of a group a device may say less: name fewer `devices`, or call the device itself", fault.detail);
            failure(&Fault { detail: advice, ..fault }.cleaned(|text| site.redactor.text(text)))
        }
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
                "{about}Reads from {} devices at once, and answers for each. Changes nothing: call network.cli.configure, network.yang.edit and network.commit at each device by its own name.",
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

    async fn call(&self, request: &Request, tool: &str, arguments: &Arguments) -> Result<Value, Refusal> {
        if !READS.contains(&tool) {
            return Err(Refusal::invalid(format!("a group only reads, and has no {tool}: call it at each device")));
        }
        let tools = self.tools();
        let schema = tools.iter().find(|one| one["name"] == tool).map(|one| &one["inputSchema"]).unwrap_or(&Value::Null);
        shape::check(tool, schema, arguments).map_err(|fault| Refusal::invalid(fault.detail))?;
        let (names, mut arguments) = (self.asked(arguments, &caller::hidden_devices(&request.meta))?, arguments.clone());
        arguments.remove("devices");
        let count = names.len();
        let answers = self.ask(request, names, tool, &arguments).await;
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

#[cfg(test)]
mod tests {
    use equipment::{DeviceSecrets, DeviceSettings};

    use super::*;

    #[tokio::test]
    async fn what_devices_say_to_a_group_is_bounded() {
        let (dir, served) = (tempfile::tempdir().unwrap(), ServedDevices::default());
        let program = dir.path().join("vtysh");
        std::fs::write(&program, "#!/bin/sh\nyes | head -c 6000000\n").unwrap();
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        let settings = DeviceSettings { bindir: Some(dir.path().display().to_string()), ..DeviceSettings::new("r1") };
        let _r1 = served.enter(settings, DeviceSecrets::default(), dir.path()).unwrap();
        let arguments = json!({ "cmd": "show version" }).as_object().cloned().unwrap();
        let asked = |devices| share::within_share(share_of(devices), ask_one(&served, ("r1", None), "network.cli.exec", &arguments));
        assert!(asked(1).await["ok"]["stdout"].as_str().is_some_and(|text| text.len() > 4 << 20));
        let refused = asked(1_000).await.to_string();
        assert!(refused.contains("within 4194304 bytes") && refused.contains("name fewer `devices`"), "{refused}");
        assert!(share_of(1_000) * AT_ONCE <= READING && share_of(2) * 2 <= READING);
    }

    #[test]
    fn answers_of_a_group_are_bounded() {
        let (mut room, of) = (AnswerRoom::default(), |size: usize| json!({ "ok": { "stdout": "x".repeat(size) } }));
        assert!(room.taken(of(ANSWER)).to_string().contains("call the device itself"));
        let kept = (0..16).filter(|_| room.taken(of(ANSWER / 2)).get("ok").is_some()).count();
        assert_eq!(kept, 7);
        assert!(room.taken(of(ANSWER / 2)).to_string().contains("name fewer"));
        assert!(room.taken(of(10)).get("ok").is_some());
    }
}
