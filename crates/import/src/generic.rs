//! A file named by the user: `mcpServers`, or a client's name for it, in any of their shapes. Does not
//! look for files.

use serde_json::Value;

use super::entry::Dialect;
use super::reading::Reading;
use super::vscode;

/// Names of the object of servers.
const NAMES: [&str; 3] = ["mcpServers", "context_servers", "mcp_servers"];

pub(super) fn read(reading: &mut Reading<'_>, text: &str) -> Result<(), String> {
    let mut members = reading.json(text)?;
    if let Some(name) = NAMES.into_iter().find(|name| members.get(*name).is_some_and(Value::is_object)) {
        reading.servers(name, members.shift_remove(name), Dialect::BRACES);
        reading.rest("", &members);
        return Ok(());
    }
    if members.get("servers").is_some_and(Value::is_object) {
        vscode::servers(reading, "", members);
        return Ok(());
    }
    if let Some(Value::Object(below)) = members.get_mut("mcp").filter(|mcp| mcp.get("servers").is_some_and(Value::is_object)) {
        let below = std::mem::take(below);
        vscode::servers(reading, "mcp.", below);
        return Ok(());
    }
    Err("it has no object `mcpServers` (or `servers`, `context_servers`, `mcp_servers`)".into())
}
