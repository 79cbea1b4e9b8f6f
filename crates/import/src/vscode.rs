//! VS Code: `servers` and `inputs` in `mcp.json`, or below `mcp` in `settings.json`, as in older releases.
//! Does not ask the questions of `inputs`.

use serde_json::{Map, Value};

use super::entry::Dialect;
use super::note::NoteKind;
use super::reading::Reading;
use super::text::Question;

pub(super) fn read(reading: &mut Reading<'_>, text: &str) -> Result<(), String> {
    let mut members = reading.json(text)?;
    if reading.file.file_name().is_some_and(|name| name == "settings.json") {
        match members.shift_remove("mcp") {
            Some(Value::Object(members)) => servers(reading, "mcp.", members),
            Some(_) => reading.note(NoteKind::Skipped, "mcp", "it is not an object"),
            None => {}
        }
    } else {
        servers(reading, "", members);
    }
    Ok(())
}

/// Takes `servers`, with the questions described by `inputs`.
pub(super) fn servers(reading: &mut Reading<'_>, before: &str, mut members: Map<String, Value>) {
    if let Some(Value::Array(inputs)) = members.shift_remove("inputs") {
        reading.inputs.extend(inputs.iter().filter_map(Question::of_input));
    }
    let servers = members.shift_remove("servers");
    reading.servers(&format!("{before}servers"), servers, Dialect::BRACES);
    reading.rest(before.trim_end_matches('.'), &members);
}
