//! Windsurf's `mcp_config.json`: `mcpServers`, addresses in `serverUrl`, `${env:NAME}` and `${file:/path}` in texts. Does not
//! read a single entry: `entry` does.

use super::entry::Dialect;
use super::reading::Reading;

pub(super) fn read(reading: &mut Reading<'_>, text: &str) -> Result<(), String> {
    let mut members = reading.json(text)?;
    reading.servers("mcpServers", members.shift_remove("mcpServers"), Dialect::BRACES);
    reading.rest("", &members);
    Ok(())
}
