//! Cline's `cline_mcp_settings.json`: `mcpServers` with `disabled` and lists of tools that run without asking. Timeouts
//! count seconds, and a `url` without a type is HTTP+SSE.

use super::entry::{Dialect, Unit};
use super::reading::Reading;

const DIALECT: Dialect = Dialect { url_is_sse: true, timeout: Unit::Seconds, ..Dialect::BRACES };

pub(super) fn read(reading: &mut Reading<'_>, text: &str) -> Result<(), String> {
    let mut members = reading.json(text)?;
    reading.servers("mcpServers", members.shift_remove("mcpServers"), DIALECT);
    reading.rest("", &members);
    Ok(())
}
