//! Claude Desktop's `claude_desktop_config.json`: programs in `mcpServers`, texts as they are. Other keys are not
//! about servers and are left alone.

use super::entry::Dialect;
use super::reading::Reading;

pub(super) fn read(reading: &mut Reading<'_>, text: &str) -> Result<(), String> {
    let mut members = reading.json(text)?;
    reading.servers("mcpServers", members.shift_remove("mcpServers"), Dialect::LITERAL);
    Ok(())
}
