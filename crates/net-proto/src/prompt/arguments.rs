//! Arguments of prompts. MCP carries texts only: numbers and lists come as text, as JSON, or as themselves from clients of the draft. Does
//! not look at the device.

use std::net::IpAddr;

use serde_json::{Map, Value};

use super::{AUDIT, CONTEXT, PING, PingState, PromptState, RESULTS, VLAN, VlanState, incompatible};
use crate::fault::{Code, Fault};

/// Bytes of a name: of a VRF, of a VLAN.
const LONGEST_NAME: usize = 32;
/// Bytes of the name of an interface.
const LONGEST_PORT: usize = 64;
const MOST_PORTS: usize = 128;
/// Highest identifier of IEEE 802.1Q.
const HIGHEST_VLAN: i64 = 4094;

/// Characters of a name from a client that a fault repeats.
const SHOWN: usize = 64;

/// Refuses arguments beyond those of the prompt: a client would take such arguments for heard.
///
/// # Errors
/// -32602 with the argument and the arguments of the prompt.
pub fn check_names(prompt: &str, given: &Map<String, Value>) -> Result<(), Fault> {
    let own: &[&str] = match prompt {
        PING => &["src", "dst", "vrf"],
        VLAN => &["vlan_id", "name", "ports"],
        AUDIT => &["profile"],
        _ => return Ok(()),
    };
    let is_known = |name: &str| own.contains(&name) || [CONTEXT, RESULTS].contains(&name);
    let Some(other) = given.keys().find(|name| !is_known(name)) else { return Ok(()) };
    let shown: String = other.chars().take(SHOWN).collect();
    let detail = format!("`{shown}` is no argument of {prompt}, which takes {}, {CONTEXT} and {RESULTS}", own.join(", "));
    Err(invalid(detail).at(shown))
}

/// Reads the arguments of the prompt `name`.
pub(super) fn read(name: &str, given: &Map<String, Value>) -> Result<PromptState, Fault> {
    check_names(name, given)?;
    match name {
        PING => {
            let vrf = optional(given, "vrf")?.map(|name| named(name, "vrf", LONGEST_NAME, "._-")).transpose()?;
            Ok(PromptState::Ping(PingState::new(address(given, "src")?, address(given, "dst")?, vrf)))
        }
        VLAN => {
            let name = named(text(given, "name")?, "name", LONGEST_NAME, "_-")?;
            Ok(PromptState::Vlan(VlanState::new(vlan_id(given)?, name, ports(given)?)))
        }
        AUDIT => match text(given, "profile")? {
            "basic" => Ok(PromptState::Audit { is_detailed: false }),
            "detailed" => Ok(PromptState::Audit { is_detailed: true }),
            other => Err(invalid(format!("`profile` is `basic` or `detailed`, not `{other}`"))),
        },
        _ => Err(invalid(format!("there is no prompt `{name}`: {PING}, {VLAN} and {AUDIT} are"))),
    }
}

fn optional<'a>(given: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, Fault> {
    match given.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.trim()).filter(|text| !text.is_empty())),
        Some(_) => Err(invalid(format!("`{name}` is a text")).at(name)),
    }
}

fn text<'a>(given: &'a Map<String, Value>, name: &str) -> Result<&'a str, Fault> {
    optional(given, name)?.ok_or_else(|| invalid(format!("`{name}` is missing")))
}

fn address(given: &Map<String, Value>, name: &str) -> Result<IpAddr, Fault> {
    text(given, name)?.parse().map_err(|_| invalid(format!("`{name}` is an IPv4 or IPv6 address, such as 192.0.2.1")))
}

/// A name without a character that means something to a command line.
fn named(text: &str, argument: &str, longest: usize, others: &str) -> Result<String, Fault> {
    let is_plain = text.len() <= longest && text.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(c));
    if is_plain && text.starts_with(|first: char| first.is_ascii_alphanumeric()) {
        Ok(text.to_owned())
    } else {
        Err(invalid(format!("`{argument}` begins with a letter or digit, and has at most {longest} letters, digits and {others}")))
    }
}

fn vlan_id(given: &Map<String, Value>) -> Result<u16, Fault> {
    let id = match given.get("vlan_id") {
        Some(Value::Number(number)) => number.as_i64(),
        Some(Value::String(text)) => text.trim().parse().ok(),
        None => return Err(invalid("`vlan_id` is missing".to_owned())),
        Some(_) => None,
    };
    let id = id.ok_or_else(|| invalid("`vlan_id` is a whole number".to_owned()))?;
    // The example of the draft's section 7.2.
    let path = "/openconfig-vlan:vlans/vlan/config/vlan-id";
    if id > HIGHEST_VLAN {
        return Err(incompatible(format!("VLAN {id} > maximum {HIGHEST_VLAN}")).at(path));
    }
    u16::try_from(id).ok().filter(|id| *id > 0).ok_or_else(|| incompatible(format!("VLAN {id} < minimum 1")).at(path))
}

fn ports(given: &Map<String, Value>) -> Result<Vec<String>, Fault> {
    let listed = |list: &[Value]| list.iter().map(|port| port.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>();
    let texts = match given.get("ports") {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::Array(list)) => listed(list),
        Some(Value::String(text)) if text.trim_start().starts_with('[') => {
            serde_json::from_str::<Vec<Value>>(text).ok().and_then(|list| listed(&list))
        }
        Some(Value::String(text)) => Some(text.split(',').map(|port| port.trim().to_owned()).filter(|port| !port.is_empty()).collect()),
        Some(_) => None,
    };
    let texts =
        texts.ok_or_else(|| invalid("`ports` is a list of interface names, such as [\"eth1\", \"eth2\"] or eth1,eth2".to_owned()))?;
    if texts.len() > MOST_PORTS {
        return Err(invalid(format!("`ports` names at most {MOST_PORTS} interfaces")));
    }
    texts.iter().map(|port| named(port.trim(), "ports", LONGEST_PORT, "/._:-")).collect()
}

fn invalid(why: String) -> Fault {
    Fault::new(Code::InvalidParams, why)
}
