//! Previews of changes, for the people whose approval a gate asks for: the diff that a call would make, with nothing kept and nothing applied.
//! Not the changes themselves.

use mcp_server::Arguments;
use net_proto::change::{Edits, Phase, text::revision};
use net_proto::fault::{Code, Fault};
use serde_json::{Value, json};

use super::tools::{answer, commands, text};
use crate::site::{Preview, Site};

/// Preview of every change but of a rollback, whose arguments are those of a commit.
const CHANGE: &str = "network.preview";
const ROLLBACK: &str = "network.preview.rollback";
/// Member of a tool's `_meta` by which a gate finds the preview (docs/approvals.md).
const META: &str = "io.banyan/preview";

/// Adds the previews to the tools of a device, and names them at the changes that the device has.
pub(super) fn offer(tools: &mut Vec<Value>) {
    for tool in tools.iter_mut() {
        let preview = match tool["name"].as_str() {
            Some("network.cli.configure" | "network.commit" | "network.file.push") => CHANGE,
            Some("network.rollback") => ROLLBACK,
            _ => continue,
        };
        if tool["available"] == false {
            continue;
        }
        tool["_meta"] = json!({ META: { "tool": preview } });
    }
    let reads = json!({ "readOnlyHint": true, "openWorldHint": false });
    let text = json!({ "type": "string" });
    let properties = json!({
        "commands": { "type": "array", "items": text }, "filename": text, "content": text,
        "confirmed": { "type": "integer", "minimum": 1 }, "confirm": { "type": "boolean" }, "hash": text,
    });
    tools.push(json!({
        "name": CHANGE,
        "description": "Shows the diff that network.cli.configure, network.file.push or network.commit would make with the same arguments. Changes nothing, and keeps no candidate",
        "inputSchema": { "type": "object", "properties": properties, "additionalProperties": false },
        "annotations": reads,
    }));
    tools.push(json!({
        "name": ROLLBACK,
        "description": "Shows the diff that network.rollback would take back. Changes nothing",
        "inputSchema": { "type": "object", "properties": {}, "additionalProperties": false },
        "annotations": reads,
    }));
}

/// Checks for a preview.
pub(super) fn is_preview(tool: &str) -> bool {
    matches!(tool, CHANGE | ROLLBACK)
}

/// Previews a call.
pub(super) async fn call(site: &Site, tool: &str, arguments: &Arguments) -> Result<Value, Fault> {
    site.backend.check_undo()?;
    if tool == ROLLBACK {
        let (shown, _) = site.candidate_on().await?;
        let about = if shown.change.phase == Phase::Open {
            "Lets go of the candidate:"
        } else {
            "Brings the old configuration back, and takes away:"
        };
        return Ok(described(about, &shown));
    }
    if arguments.contains_key("commands") || arguments.contains_key("lines") {
        let shown = site.foresee(&site.caller, Edits::Commands(commands(arguments)?)).await?;
        return Ok(described("Makes this the candidate, which a commit would apply:", &shown));
    }
    if arguments.contains_key("content") {
        let shown = site.foresee(&site.caller, Edits::Whole(text(arguments, "content")?.to_owned())).await?;
        return Ok(described("Makes this the candidate, which a commit would apply:", &shown));
    }
    commit(site, arguments).await
}

async fn commit(site: &Site, arguments: &Arguments) -> Result<Value, Fault> {
    let (shown, running) = site.candidate_on().await?;
    if arguments.get("confirm").and_then(Value::as_bool) == Some(true) {
        return Ok(described("Keeps what was applied:", &shown));
    }
    if arguments.get("hash").and_then(Value::as_str).is_some_and(|hash| hash != shown.change.hash) {
        return Err(Fault::new(Code::ConfigIncompatible, "the candidate is not the one of the hash: look at its diff again"));
    }
    let seconds = arguments.get("confirmed").and_then(Value::as_u64).unwrap_or(site.settings.confirm_within);
    let base = revision(&running);
    let drift = if shown.change.phase == Phase::Open && base != shown.change.base {
        format!(" The running configuration is not the one of the candidate any more ({base}): the device refuses this commit.")
    } else {
        String::new()
    };
    Ok(described(&format!("Applies this for {seconds} s, and takes it back unless it is confirmed.{drift}"), &shown))
}

/// Result of a preview: the same text for the same candidate on the same running configuration, secrets included.
fn described(about: &str, shown: &Preview) -> Value {
    let Preview { change, diff } = shown;
    let text = format!("{about}\n{diff}\nrunning configuration: {}\nhash of the candidate: {}", change.base, change.hash);
    answer(&text, json!({ "diff": diff, "hash": change.hash, "base": change.base }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_name_their_previews_and_reads_do_not() {
        let tool = |name: &str| json!({ "name": name });
        let absent = json!({ "name": "network.cli.configure", "available": false, "_meta": { "available": false } });
        let mut tools = vec![tool("network.cli.exec"), tool("network.commit"), tool("network.rollback"), tool("network.file.push"), absent];
        offer(&mut tools);
        let named: Vec<_> = tools.iter().map(|tool| tool["_meta"][META]["tool"].as_str()).collect();
        assert_eq!(named, [None, Some(CHANGE), Some(ROLLBACK), Some(CHANGE), None, None, None]);
        assert!(
            tools
                .iter()
                .filter(|tool| tool["name"].as_str().is_some_and(is_preview))
                .all(|tool| tool["annotations"]["readOnlyHint"] == true)
        );
    }
}
