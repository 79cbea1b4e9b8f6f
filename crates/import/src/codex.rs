//! Codex's `config.toml`: tables below `mcp_servers`, texts as they are, secrets named by variable. Other keys are not
//! about servers and are left alone.

use serde_json::Value;

use super::entry::{Dialect, Unit};
use super::reading::Reading;

const DIALECT: Dialect = Dialect { timeout: Unit::Seconds, ..Dialect::LITERAL };

pub(super) fn read(reading: &mut Reading<'_>, text: &str) -> Result<(), String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut table: ::toml::Table = ::toml::from_str(text).map_err(|error| explained(&error, text))?;
    let Some(servers) = table.remove("mcp_servers") else { return Ok(()) };
    let servers: Value = servers.try_into().map_err(|error: ::toml::de::Error| error.message().to_owned())?;
    reading.servers("mcp_servers", Some(servers), DIALECT);
    Ok(())
}

/// Explains a fault without quoting the line, which may hold a secret.
fn explained(error: &::toml::de::Error, text: &str) -> String {
    let at = error.span().map_or(0, |span| span.start.min(text.len()));
    let line = text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
    format!("it is not TOML: {} in line {line}", error.message())
}
