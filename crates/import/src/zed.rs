//! Zed's `settings.json`: `context_servers`, texts as they are. Other keys are not about servers and are left alone.

use super::entry::Dialect;
use super::reading::Reading;

pub(super) fn read(reading: &mut Reading<'_>, text: &str) -> Result<(), String> {
    let mut members = reading.json(text)?;
    reading.servers("context_servers", members.shift_remove("context_servers"), Dialect::LITERAL);
    Ok(())
}
