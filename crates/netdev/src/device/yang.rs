//! The YANG tools of a device: definitions, and actions over NETCONF. Does not know the wire.

use mcp_server::Arguments;
use net_proto::fault::{Code, Fault};
use serde_json::{Value, json};

use super::tools::{answer, text};
use crate::clock::{now, written};
use crate::site::Site;

/// Schema of the arguments of `network.yang.get`: the one of the draft's appendix A, closed.
pub(crate) fn get_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": { "type": "string", "description": "The node, such as /ietf-interfaces:interfaces/interface[name='eth0'], or / for all" },
            "datastore": { "enum": ["running", "operational"], "description": "Default: running. operational holds the state of the device too" },
        },
        "required": ["path"],
        "additionalProperties": false,
    })
}

/// Reads a node.
pub(crate) async fn get(site: &Site, arguments: &Arguments) -> Result<Value, Fault> {
    site.backend.netconf()?;
    let path = text(arguments, "path")?;
    let with_state = match arguments.get("datastore").map(Value::as_str) {
        None | Some(Some("running")) => false,
        Some(Some("operational")) => true,
        Some(_) => return Err(Fault::new(Code::InvalidParams, "`datastore` is running or operational")),
    };
    let (tree, device) = site.data(path, with_state).await?;
    let mut data = tree.json(&device);
    site.redactor.value(&mut data);
    let shown = site.redactor.text(&tree.text());
    let shown = if tree.is_empty() { "The device holds no data there.".to_owned() } else { shown };
    let datastore = if with_state { "operational" } else { "running" };
    Ok(answer(&shown, json!({ "path": site.redactor.path(path), "datastore": datastore, "data": data, "readAt": written(now().wall) })))
}
