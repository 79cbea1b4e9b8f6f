//! Previews of changes, for the people whose approval a gate asks for: the diff that a call would make, with nothing kept and nothing applied.
//! Not the changes themselves.

use mcp_server::Arguments;
use net_proto::change::{Edits, Phase, text::revision};
use net_proto::fault::{Code, Fault};
use serde_json::{Value, json};

use super::tools::{answer, bulk, commands, hash, is_confirmation, is_undo, text};
use super::yang;
use crate::bulk::Bulk;
use crate::site::{Preview, Site};

/// Changes, each with the tool that previews the change: which one is meant is never guessed from arguments.
const PREVIEWS: [(&str, &str); 5] = [
    ("network.cli.configure", "network.preview.configure"),
    ("network.commit", "network.preview.commit"),
    ("network.file.push", "network.preview.push"),
    ("network.rollback", "network.preview.rollback"),
    ("network.yang.edit", "network.preview.edit"),
];
/// Member of a tool's `_meta` by which a gate finds the preview (docs/approvals.md).
const META: &str = "io.banyan/preview";

/// Adds the previews to the tools of a device, and names them at the changes that the device has.
pub(super) fn offer(tools: &mut Vec<Value>) {
    let reads = json!({ "readOnlyHint": true, "openWorldHint": false });
    let mut previews = Vec::new();
    for tool in tools.iter_mut() {
        let preview = PREVIEWS.iter().find(|(change, _)| tool["name"] == *change && tool["available"] != false);
        let Some((change, preview)) = preview else { continue };
        tool["_meta"] = json!({ META: { "tool": preview } });
        previews.push(json!({
            "name": preview,
            "description": format!("Shows the diff that {change} would make with the same arguments. Changes nothing, and keeps no candidate"),
            "inputSchema": tool["inputSchema"],
            "annotations": reads,
        }));
    }
    tools.append(&mut previews);
}

/// Checks for a preview.
pub(super) fn is_preview(tool: &str) -> bool {
    PREVIEWS.iter().any(|(_, preview)| tool == *preview)
}

/// Previews a call.
pub(super) async fn call(site: &Site, tool: &str, arguments: &Arguments) -> Result<Value, Fault> {
    site.changes.check_undo()?;
    let about = "Makes this the candidate, which a commit would apply:";
    match tool {
        "network.preview.configure" => {
            Ok(described(about, &site.foresee(&site.caller, Edits::Commands(commands(arguments)?), bulk(arguments)?).await?))
        }
        "network.preview.push" => {
            Ok(described(about, &site.foresee(&site.caller, Edits::Whole(text(arguments, "content")?.to_owned()), Bulk::Single).await?))
        }
        "network.preview.edit" => Ok(described(about, &yang::foresee(site, &site.caller, arguments).await?)),
        "network.preview.commit" => commit(site, arguments).await,
        "network.preview.rollback" if is_undo(arguments)? => Ok(described(about, &site.foresee_undo(&site.caller).await?)),
        _ => {
            let (shown, _) = site.candidate_on().await?;
            let is_open = shown.change.phase == Phase::Open;
            let about = if is_open { "Lets go of the candidate:" } else { "Brings the old configuration back, and takes away:" };
            Ok(described(about, &shown))
        }
    }
}

async fn commit(site: &Site, arguments: &Arguments) -> Result<Value, Fault> {
    let is_confirmation = is_confirmation(arguments)?;
    let (shown, running) = site.candidate_on().await?;
    if is_confirmation {
        return match hash(arguments) {
            Some(hash) if hash != shown.change.hash => Err(another()),
            Some(_) | None => Ok(described("Keeps what was applied:", &shown)),
        };
    }
    // Without the hash, another candidate could take the place of this one between the preview and the commit.
    let Some(hash) = hash(arguments) else {
        let detail = "a commit is previewed with its `hash` alone, which the tool that made the candidate answered";
        return Err(Fault::new(Code::InvalidParams, detail));
    };
    if hash != shown.change.hash {
        return Err(another());
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

fn another() -> Fault {
    Fault::new(Code::ConfigIncompatible, "the candidate is not the one of the hash: look at its diff again").at("hash")
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
        let (commit, rollback, push) = ("network.preview.commit", "network.preview.rollback", "network.preview.push");
        assert_eq!(named, [None, Some(commit), Some(rollback), Some(push), None, None, None, None]);
        assert!(
            tools
                .iter()
                .filter(|tool| tool["name"].as_str().is_some_and(is_preview))
                .all(|tool| tool["annotations"]["readOnlyHint"] == true)
        );
    }
}
