//! Questions about single servers and tools: a tool's whole definition, the tree below a server that is a gate, a restart. Does not check
//! the asker.

use std::collections::BTreeMap;

use banyan_model::Segment;
use serde_json::value::RawValue;

use crate::Gateway;
use crate::admin::shapes::{Below, BelowNode, ReleaseReply, RestartReply, ToolDefinition, ToolRow};
use call::tree::annotation::ToolFacts;
use call::tree::snapshot::Branch;
use call::tree::view::is_gated;
use call::words::refusal::Refusal;

impl Gateway {
    /// Finds one of `tools` as `ToolRow::find` does, with the definition as the server wrote it and the MCP-AX annotations.
    ///
    /// # Errors
    /// None of `tools` has the name.
    pub fn definition(&self, tools: &[ToolRow], name: &str) -> Result<ToolDefinition, Refusal> {
        let none = || Refusal::not_found(format!("there is no tool `{name}`"));
        let tool = ToolRow::find(tools, name).cloned().ok_or_else(none)?;
        let tree = self.0.gate.mounts.tree.load_full();
        let (mount, local) = tool.dotted.split_once('.').ok_or_else(none)?;
        let branch = Segment::new(mount).ok().and_then(|mount| tree.branch(&mount)).ok_or_else(none)?;
        let offer = branch.catalog.tools.iter().find(|offer| offer.local.to_string() == local).ok_or_else(none)?;
        let raw = &offer.entry.raw;
        let gated = |noted: &ToolFacts| is_gated(&tree.config, &branch.mount.config.name, noted);
        let written = offer.noted.as_ref().map_or_else(|| raw.clone(), |noted| noted.written(raw, branch.is_lost, gated(noted)));
        let definition = String::from_utf8(written.to_vec()).ok().and_then(|text| RawValue::from_string(text).ok());
        let definition = definition.ok_or_else(|| Refusal::failed(format!("the definition of `{name}` is no JSON")))?;
        Ok(ToolDefinition { tool, definition })
    }

    /// Lists the tree below servers that are gates: by the names of shown tools, and by the paths of failed servers where these are shown.
    pub(super) fn below(&self, is_shown: &dyn Fn((usize, usize)) -> bool, shows_failed: bool) -> Below {
        let tree = self.0.gate.mounts.tree.load_full();
        let gates = tree.branches.iter().enumerate().filter(|(_, branch)| branch.is_gate());
        Below { nodes: gates.flat_map(|(at, branch)| nodes(branch, &|tool| is_shown((at, tool)), shows_failed)).collect() }
    }

    /// Frees a segment that its authority kept beyond its sessions (AX-12).
    ///
    /// # Errors
    /// When no authority keeps the segment.
    pub async fn release(&self, segment: &str) -> Result<ReleaseReply, Refusal> {
        let named = Segment::new(segment).map_err(|bad| Refusal::not_found(bad.to_string()))?;
        if self.0.mesh.registry.release(named).await {
            return Ok(ReleaseReply { released: segment.to_owned() });
        }
        let why = format!(
            "no authority keeps the segment `{segment}`: whoever registers first has it; `banyan explain {segment}` says who was refused"
        );
        Err(Refusal::not_found(why))
    }

    /// Starts a server again: closes the connection, ends the process, and connects anew at once.
    pub fn restart(&self, name: &str) -> Result<RestartReply, Refusal> {
        let mounts = self.0.gate.mounts.all.load();
        let found = mounts.iter().find(|m| m.config.name.as_str() == name);
        let mount = found.ok_or_else(|| Refusal::not_found(format!("there is no server `{name}`")))?;
        if mount.registration.is_some() {
            let why = format!("`{name}` registered itself here: start it again where it runs, and it will register anew");
            return Err(Refusal::refused(why));
        }
        tracing::info!(mount = name, "somebody asked for a restart");
        mount.connections.restart();
        Ok(RestartReply { restarting: name.to_owned() })
    }
}

/// Makes a node for each segment between a mount and its tools, and for each segment of a failed server's path.
fn nodes(branch: &Branch, is_shown: &dyn Fn(usize) -> bool, shows_failed: bool) -> Vec<BelowNode> {
    let mut found: BTreeMap<String, BelowNode> = BTreeMap::new();
    for (_, offer) in branch.catalog.tools.iter().enumerate().filter(|(place, _)| is_shown(*place)) {
        let local = offer.local.to_string();
        let hops = offer.noted.as_ref().map_or(1, |noted| noted.hops());
        let is_lost = offer.noted.as_ref().is_some_and(|noted| noted.availability(branch.is_lost) == "degraded");
        for (end, _) in local.match_indices('.') {
            let path = format!("{}.{}", branch.mount.config.name, local.get(..end).unwrap_or_default());
            let node = found.entry(path.clone()).or_insert(BelowNode { path, tools: 0, hops: 0, degraded: true, failed: false });
            node.tools += 1;
            node.hops = node.hops.max(hops);
            node.degraded &= is_lost;
        }
    }
    for failed in branch.catalog.failed_below.iter().filter(|_| shows_failed) {
        let whole = format!("{}.{failed}", branch.mount.config.name);
        let ends = whole.match_indices('.').map(|(end, _)| end).skip(1).chain([whole.len()]);
        for path in ends.filter_map(|end| whole.get(..end)) {
            let hops = u8::try_from(path.split('.').count()).unwrap_or(u8::MAX);
            let empty = BelowNode { path: path.to_owned(), tools: 0, hops, degraded: true, failed: false };
            let node = found.entry(path.to_owned()).or_insert(empty);
            node.failed |= path == whole;
        }
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::resolved::Config;

    #[tokio::test]
    async fn what_is_not_there_is_said_not_to_be() {
        let dir = tempfile::tempdir().unwrap();
        let gateway = Gateway::start(Config::default(), dir.path().into());
        assert!(gateway.definition(&gateway.tools(None), "a.b").unwrap_err().message.contains("no tool `a.b`"));
        assert!(gateway.restart("a").unwrap_err().message.contains("no server `a`"));
        assert!(gateway.below(&|_| true, true).nodes.is_empty());
        gateway.shutdown().await;
    }
}
