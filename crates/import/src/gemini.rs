//! Gemini CLI's `settings.json`: `mcpServers`, `$NAME` in texts, `httpUrl` for streamable HTTP and `url` for HTTP+SSE, and
//! the lists of servers in `mcp`. Its other keys are not about servers and are left alone.

use serde_json::Value;

use super::entry::{Dialect, Unit};
use super::reading::Reading;
use super::text::Texts;

const DIALECT: Dialect = Dialect { texts: Texts::BracesAndBare, url_is_sse: true, timeout: Unit::Milliseconds };

pub(super) fn read(reading: &mut Reading<'_>, text: &str) -> Result<(), String> {
    let mut members = reading.json(text)?;
    reading.servers("mcpServers", members.shift_remove("mcpServers"), DIALECT);
    let mcp = members.get("mcp");
    let (allowed, excluded) = (names(mcp, "allowed"), names(mcp, "excluded"));
    for server in &mut reading.servers {
        let is_allowed = allowed.is_empty() || allowed.contains(&server.name);
        server.enabled &= is_allowed && !excluded.contains(&server.name);
    }
    Ok(())
}

fn names(mcp: Option<&Value>, key: &str) -> Vec<String> {
    let names = mcp.and_then(|mcp| mcp.get(key)).and_then(Value::as_array).into_iter().flatten();
    names.filter_map(Value::as_str).map(str::to_owned).collect()
}
