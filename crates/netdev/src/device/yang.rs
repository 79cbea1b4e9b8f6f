//! The YANG tools of a device: definitions, and actions over NETCONF. Does not know the wire.

use mcp_server::Arguments;
use net_proto::fault::{Code, Fault};
use net_proto::netconf::EditOperation;
use serde_json::{Value, json};

use super::objects;
use super::tools::{answer, bulk, chunked, text};
use crate::clock::{now, written};
use crate::datastore::{NodeEdit, NodeEdits};
use crate::site::{Preview, Site};

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

/// Schema of the arguments of `network.yang.edit`, as the draft's example 8.4 calls it.
pub(crate) fn edit_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "target": { "enum": ["candidate"], "description": "Default: candidate" },
            "edit": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "properties": {
                        "path": { "type": "string", "description": "The node, such as /ietf-interfaces:interfaces/interface[name='eth0']" },
                        "value": { "description": "The new value, as JSON with the names of RFC 7951; none for delete and remove" },
                        "operation": { "enum": EditOperation::NAMES, "description": "Default: merge" },
                    },
                    "required": ["path"],
                    "additionalProperties": false,
                },
            },
            "chunked": chunked(),
        },
        "required": ["edit"],
        "additionalProperties": false,
    })
}

/// Adds to the candidate.
pub(crate) async fn edit(site: &Site, who: &str, arguments: &Arguments) -> Result<Preview, Fault> {
    has_data(site)?;
    site.edit_data(who, &edits(arguments)?).await
}

/// The diff that an edit would make.
pub(crate) async fn foresee(site: &Site, who: &str, arguments: &Arguments) -> Result<Preview, Fault> {
    has_data(site)?;
    site.foresee_data(who, &edits(arguments)?).await
}

fn has_data(site: &Site) -> Result<(), Fault> {
    if site.backend.snmp().is_some() { Ok(()) } else { site.backend.netconf().map(drop) }
}

fn edits(arguments: &Arguments) -> Result<NodeEdits, Fault> {
    if !matches!(arguments.get("target").map(Value::as_str), None | Some(Some("candidate"))) {
        return Err(invalid("`target` is candidate: a commit brings it to what runs"));
    }
    let edits = arguments.get("edit").and_then(Value::as_array).filter(|edits| !edits.is_empty());
    let all = edits.ok_or_else(|| invalid("`edit` is a list of edits"))?.iter().map(node_edit).collect::<Result<_, _>>()?;
    Ok(NodeEdits { all, bulk: bulk(arguments)? })
}

fn node_edit(edit: &Value) -> Result<NodeEdit, Fault> {
    let path = edit["path"].as_str().ok_or_else(|| invalid("each edit has a `path`"))?;
    let named = |name: &Value| name.as_str().and_then(EditOperation::named);
    let operation = edit.get("operation").map_or(Some(EditOperation::default()), named);
    let operation = operation.ok_or_else(|| invalid(&format!("`operation` is one of {}", EditOperation::NAMES.join(", "))).at(path))?;
    Ok(NodeEdit { path: path.to_owned(), operation, value: edit.get("value").cloned() })
}

fn invalid(why: &str) -> Fault {
    Fault::new(Code::InvalidParams, why)
}

/// Reads a node.
pub(crate) async fn get(site: &Site, arguments: &Arguments) -> Result<Value, Fault> {
    if let Some(snmp) = site.backend.snmp() {
        return objects::get(site, snmp, arguments).await;
    }
    site.backend.netconf()?;
    let path = text(arguments, "path")?;
    let with_state = match arguments.get("datastore").map(Value::as_str) {
        None | Some(Some("running")) => false,
        Some(Some("operational")) => true,
        Some(_) => return Err(invalid("`datastore` is running or operational")),
    };
    let (tree, device) = site.data(path, with_state).await?;
    let mut data = tree.json(&device);
    site.redactor.value(&mut data);
    let shown = site.redactor.text(&tree.text());
    let shown = if tree.is_empty() { "The device holds no data there.".to_owned() } else { shown };
    let datastore = if with_state { "operational" } else { "running" };
    Ok(answer(&shown, json!({ "path": site.redactor.path(path), "datastore": datastore, "data": data, "readAt": written(now().wall) })))
}
