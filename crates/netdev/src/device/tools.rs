//! The tools of a device: definitions and actions. Not the form of a fault, which depends on the era.

use mcp_server::Arguments;
use net_proto::change::{DeviceChange, Edits};
use net_proto::fault::{Code, Fault};
use serde_json::{Value, json};

use super::{preview, reads, shape, yang};
use crate::bulk::Bulk;
use crate::clock::{now, written};
use crate::site::{Preview, Settler, Site};
use crate::way::DeviceWay;

/// Names of all tools of the draft.
const NAMES: [&str; 8] = [
    "network.cli.exec",
    "network.cli.configure",
    "network.yang.get",
    "network.yang.edit",
    "network.commit",
    "network.rollback",
    "network.file.pull",
    "network.file.push",
];

/// Definitions of the tools.
pub(crate) fn definitions(site: &Site) -> Vec<Value> {
    let text = |about: &str| json!({ "type": "string", "description": about });
    let reads = json!({ "readOnlyHint": true, "openWorldHint": false });
    let writes =
        |destroys: bool| json!({ "readOnlyHint": false, "destructiveHint": destroys, "idempotentHint": false, "openWorldHint": false });
    let tool = |name: &str, about: &str, properties: Value, required: Value, annotations: &Value| {
        let schema = json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false });
        json!({ "name": name, "description": about, "inputSchema": schema, "annotations": annotations })
    };
    let commands = json!({ "type": "array", "items": { "type": "string" }, "minItems": 1, "description": "Commands of the configuration mode, one a line" });
    let file = text("running-config, candidate-config or startup-config");
    let mut all = vec![
        tool(
            NAMES[0],
            "Runs one show command and gives its output, without secrets",
            json!({ "cmd": text("The command, such as: show ip route") }),
            json!(["cmd"]),
            &reads,
        ),
        tool(
            NAMES[1],
            "Adds commands to the candidate and shows the diff that a commit would apply. Changes nothing on the device",
            json!({ "commands": commands, "chunked": chunked() }),
            json!(["commands"]),
            &writes(false),
        ),
        json!({ "name": NAMES[2], "description": "Retrieves a YANG data node, without secrets", "inputSchema": yang::get_schema(), "annotations": reads }),
        json!({ "name": NAMES[3], "description": "Edits the candidate by YANG paths and shows the diff that a commit would apply. Changes nothing that runs",
            "inputSchema": yang::edit_schema(), "annotations": writes(false) }),
        tool(
            NAMES[4],
            "Applies the candidate for some seconds, or confirms what was applied. What nobody confirms is rolled back by itself",
            json!({
                "confirmed": { "type": "integer", "minimum": 1, "description": "Seconds until it is rolled back" },
                "confirm": { "type": "boolean", "description": "true: keeps what was applied" },
                "hash": text("The hash that the diff was shown with; another candidate, or another change to keep, is refused"),
            }),
            json!([]),
            &writes(true),
        ),
        tool(
            NAMES[5],
            "Brings the old configuration back before its time, or lets go of the candidate. With confirmed: true, makes the configuration \
                from before the last confirmed change the candidate, and shows the diff that a commit would apply",
            json!({ "confirmed": { "type": "boolean", "description": "true: undoes the last confirmed change, by a new one" } }),
            json!([]),
            &writes(true),
        ),
        tool(NAMES[6], "Gives a configuration as text, without secrets", json!({ "filename": file }), json!(["filename"]), &reads),
        tool(
            NAMES[7],
            "Makes a whole configuration the candidate and shows the diff. Changes nothing on the device",
            json!({ "filename": file, "content": text("The configuration") }),
            json!(["filename", "content"]),
            &writes(false),
        ),
    ];
    let absent: &[usize] = match &site.changes {
        DeviceWay::Frr(frr) if frr.check_undo().is_err() => &[1, 2, 3, 4, 5, 7],
        DeviceWay::Hosted(frr) if frr.check_undo().is_err() => &[1, 2, 3, 4, 5, 7],
        DeviceWay::Frr(_) | DeviceWay::Hosted(_) | DeviceWay::Ovs(_) => &[2, 3],
        DeviceWay::Ssh(ssh) if ssh.check_undo().is_err() => &[1, 2, 3, 4, 5, 7],
        DeviceWay::Ssh(ssh) if ssh.has_candidate() => &[2, 3, 7],
        DeviceWay::Ssh(_) => &[2, 3],
        DeviceWay::Bird(_) => &[1, 2, 3],
        DeviceWay::Netconf(_) => &[0, 1, 7],
        DeviceWay::Snmp(snmp) if snmp.accepts_no_rollback => &[0, 1, 7],
        DeviceWay::Snmp(_) => &[0, 1, 3, 4, 5, 7],
    };
    for number in absent {
        all[*number]["available"] = false.into();
        all[*number]["_meta"] = json!({ "available": false });
    }
    if site.changes.check_undo().is_ok() {
        preview::offer(&mut all);
    }
    all
}

/// Checks for a tool that changes nothing, so that nothing is lost where its caller is gone.
pub(crate) fn is_read(tool: &str) -> bool {
    matches!(tool, "network.cli.exec" | "network.yang.get" | "network.file.pull") || preview::is_preview(tool)
}

/// Refuses arguments beyond the schema of the tool: rules judge by the schema, and a reader of the call would take the rest for something done.
fn known(site: &Site, tool: &str, arguments: &Arguments) -> Result<(), Fault> {
    let all = definitions(site);
    let definition = all.iter().find(|definition| definition["name"] == tool);
    definition.map_or(Ok(()), |definition| shape::check(tool, &definition["inputSchema"], arguments))
}

/// Calls a tool.
pub(crate) async fn call(site: &Site, tool: &str, arguments: &Arguments) -> Result<Value, Fault> {
    known(site, tool, arguments)?;
    if !is_read(tool) && site.changes.check_undo().is_err() {
        // What was missing may be there by now.
        site.look().await;
    }
    if preview::is_preview(tool) { preview::call(site, tool, arguments).await } else { act(site, tool, arguments).await }
}

async fn act(site: &Site, tool: &str, arguments: &Arguments) -> Result<Value, Fault> {
    match tool {
        "network.cli.exec" => exec(site, arguments).await,
        "network.cli.configure" => {
            let commands = commands(arguments)?;
            Ok(shown(site, &site.edit(&site.caller, Edits::Commands(commands), bulk(arguments)?).await?))
        }
        "network.commit" if is_confirmation(arguments)? => {
            let is_saved = site.confirm(Settler::Caller(&site.caller), hash(arguments), false).await?;
            let text = if is_saved { "Confirmed, and saved." } else { "Confirmed, but not saved: it is gone when the device restarts." };
            Ok(answer(text, json!({ "status": "confirmed", "saved": is_saved })))
        }
        "network.commit" => commit(site, arguments).await,
        "network.rollback" if is_undo(arguments)? => Ok(shown(site, &site.undo(&site.caller).await?)),
        "network.rollback" => {
            site.roll_back(Settler::Caller(&site.caller)).await?;
            Ok(answer("The old configuration runs.", json!({ "status": "rolled-back" })))
        }
        "network.file.pull" => {
            let name = text(arguments, "filename")?;
            let content = reads::file(site, name).await?;
            Ok(answer(&content, json!({ "filename": name, "content": content })))
        }
        "network.file.push" => push(site, text(arguments, "filename")?, text(arguments, "content")?).await,
        "network.yang.get" => yang::get(site, arguments).await,
        "network.yang.edit" => Ok(shown(site, &yang::edit(site, &site.caller, arguments).await?)),
        _ => Err(Fault::new(Code::InvalidParams, "there is no such tool").at(tool)),
    }
}

/// Makes a whole configuration the candidate. None is written past the candidate: a commit applies it for some time, and its confirmation
/// writes what the device starts with.
async fn push(site: &Site, name: &str, whole: &str) -> Result<Value, Fault> {
    if !matches!(name, "candidate-config" | "running-config" | "startup-config") {
        return Err(invalid("`filename` is candidate-config, running-config or startup-config"));
    }
    Ok(shown(site, &site.edit(&site.caller, Edits::Whole(whole.to_owned()), Bulk::Single).await?))
}

/// Schema of the parameters of `resources/write`, for which MCP has none.
pub(super) fn write_schema() -> Value {
    let (text, meta) = (json!({ "type": "string" }), json!({ "description": "Of MCP: names no configuration" }));
    let members = json!({ "uri": text, "mimeType": text, "text": text, "_meta": meta });
    let item = json!({ "type": "object", "properties": members, "required": ["text"], "additionalProperties": false });
    let contents = json!({ "type": "array", "items": item, "minItems": 1, "maxItems": 1 });
    let params = json!({ "uri": text, "contents": contents, "_meta": meta });
    json!({ "type": "object", "properties": params, "required": ["uri", "contents"], "additionalProperties": false })
}

/// Writes a resource: the same as pushing a file of its name.
pub(crate) async fn write(site: &Site, params: &Arguments) -> Result<Value, Fault> {
    shape::check("resources/write", &write_schema(), params)?;
    let uri = text(params, "uri")?;
    let name = uri.strip_prefix("network:///file/").filter(|name| matches!(*name, "candidate-config" | "startup-config"));
    let name = name.ok_or_else(|| invalid("network:///file/candidate-config and network:///file/startup-config can be written"))?;
    let item = params.get("contents").and_then(|contents| contents.get(0)).unwrap_or(&Value::Null);
    if item.get("uri").is_some_and(|other| other != uri) {
        return Err(invalid("`contents` names another `uri` than the one that is written"));
    }
    let whole = item["text"].as_str().ok_or_else(|| invalid("`contents` holds one item with the configuration as `text`"))?;
    push(site, name, whole).await
}

async fn exec(site: &Site, arguments: &Arguments) -> Result<Value, Fault> {
    let command = text(arguments, "cmd")?;
    let output = site.redactor.text(&site.show(command).await?);
    Ok(answer(&output, json!({ "stdout": output })))
}

async fn commit(site: &Site, arguments: &Arguments) -> Result<Value, Fault> {
    let seconds = match arguments.get("confirmed") {
        None => None,
        Some(seconds) => Some(seconds.as_u64().ok_or_else(|| invalid("`confirmed` is a whole number of seconds"))?),
    };
    let record = site.commit(&site.caller, seconds, hash(arguments)).await?;
    let change = record.change.as_ref().ok_or_else(|| Fault::new(Code::RollbackFailed, "the change is gone"))?;
    let (left, until) = window(change);
    let how = format!("It is rolled back at {until} unless network.commit is called with confirm: true.");
    let members = json!({ "status": "committed", "rollbackTimeout": left, "deadline": until, "commit-id": change.id });
    Ok(answer(&format!("Applied for {left} s. {how}"), members))
}

fn window(change: &DeviceChange) -> (u64, String) {
    let now = now();
    let left = change.deadline.as_ref().map_or(0, |deadline| deadline.left(&now));
    (left.div_ceil(1000), written(now.wall.saturating_add(left)))
}

pub(super) fn shown(site: &Site, shown: &Preview) -> Value {
    let Preview { change, diff } = shown;
    let advice = format!("network.commit with confirmed: {} and hash: \"{}\" applies it.", site.settings.confirm_within, change.hash);
    let members = json!({ "commit-id": change.id, "diff": diff, "hash": change.hash, "base": change.base });
    answer(&format!("{diff}\nNothing is applied yet. {advice}"), members)
}

/// Makes a result for MCP and for the draft: text, structure, and the draft's members at the top.
pub(super) fn answer(text: &str, members: Value) -> Value {
    let mut result = json!({ "content": [{ "type": "text", "text": text }], "structuredContent": members });
    if let (Some(result), Value::Object(members)) = (result.as_object_mut(), members) {
        result.extend(members);
    }
    result
}

pub(super) fn commands(arguments: &Arguments) -> Result<Vec<String>, Fault> {
    let lines = arguments
        .get("commands")
        .and_then(Value::as_array)
        .and_then(|lines| lines.iter().map(|line| line.as_str().map(str::to_owned)).collect());
    let lines: Vec<String> = lines.ok_or_else(|| invalid("`commands` is a list of commands"))?;
    if lines.iter().all(|line| line.trim().is_empty()) { Err(invalid("`commands` holds no command")) } else { Ok(lines) }
}

/// Schema of the argument for more edits than the device takes at once.
pub(super) fn chunked() -> Value {
    json!({ "type": "boolean", "description": "true: takes more edits than maxBulkEdit, and sends them in parts; all are one change" })
}

/// Way of the edits, as the caller wishes.
pub(super) fn bulk(arguments: &Arguments) -> Result<Bulk, Fault> {
    match arguments.get("chunked") {
        None | Some(Value::Bool(false)) => Ok(Bulk::Single),
        Some(Value::Bool(true)) => Ok(Bulk::Chunked),
        Some(_) => Err(invalid("`chunked` is true or false")),
    }
}

/// Is a commit the confirmation of the one before?
pub(super) fn is_confirmation(arguments: &Arguments) -> Result<bool, Fault> {
    let is_it = arguments.get("confirm").and_then(Value::as_bool) == Some(true);
    if is_it && arguments.contains_key("confirmed") {
        let detail = "`confirmed` applies the candidate for some seconds, and `confirm` keeps what was applied: leave one of them out";
        return Err(invalid(detail).at("confirmed"));
    }
    Ok(is_it)
}

/// Hash of the diff that the caller saw.
pub(super) fn hash(arguments: &Arguments) -> Option<&str> {
    arguments.get("hash").and_then(Value::as_str)
}

/// Is a rollback one of a confirmed change?
pub(super) fn is_undo(arguments: &Arguments) -> Result<bool, Fault> {
    match arguments.get("confirmed") {
        None => Ok(false),
        Some(confirmed) => confirmed.as_bool().ok_or_else(|| invalid("`confirmed` is true or false")),
    }
}

pub(super) fn text<'a>(arguments: &'a Arguments, name: &str) -> Result<&'a str, Fault> {
    arguments.get(name).and_then(Value::as_str).ok_or_else(|| invalid(&format!("`{name}` is missing")))
}

fn invalid(why: &str) -> Fault {
    Fault::new(Code::InvalidParams, why)
}
