//! Claude Code: `.mcp.json` of a project, and `~/.claude.json` with a person's own servers and those of each project.
//! The many other keys of the latter are left alone. Does not approve a project's servers: who calls asks.

use std::path::Path;

use serde_json::{Map, Value};

use super::client::Client;
use super::entry::{Dialect, Unit};
use super::json;
use super::note::NoteKind;
use super::reading::Reading;

const DIALECT: Dialect = Dialect { timeout: Unit::Milliseconds, ..Dialect::BRACES };

pub(super) fn read(reading: &mut Reading<'_>, text: &str) -> Result<(), String> {
    let mut members = reading.json(text)?;
    reading.servers("mcpServers", members.shift_remove("mcpServers"), DIALECT);
    if let Some(project) = reading.project.clone() {
        reading.rest("", &members);
        let switched_off = switched_off(reading, &project);
        for server in reading.servers.iter_mut().filter(|server| switched_off.contains(&server.name)) {
            server.enabled = false;
        }
    } else if let Some(Value::Object(projects)) = members.shift_remove("projects") {
        of_projects(reading, projects);
    }
    Ok(())
}

/// Takes the servers of the projects that the working directory is in, and tells of the others.
fn of_projects(reading: &mut Reading<'_>, projects: Map<String, Value>) {
    for (dir, mut project) in projects {
        let path = json::joined(&json::joined("projects", &dir), "mcpServers");
        let Some(servers) = project.get_mut("mcpServers").map(Value::take) else { continue };
        let count = servers.as_object().map_or(0, Map::len);
        if count == 0 {
            continue;
        }
        if !reading.places.cwd.starts_with(&dir) {
            let text = format!("these belong to that project ({count}): start Banyan there to take them");
            reading.note(NoteKind::Skipped, &path, text);
            continue;
        }
        let before = reading.servers.len();
        reading.project = Some(Path::new(&dir).to_owned());
        reading.servers(&path, Some(servers), DIALECT);
        reading.project = None;
        let switched_off = names(&project, "disabledMcpServers");
        for server in reading.servers.iter_mut().skip(before).filter(|server| switched_off.contains(&server.name)) {
            server.enabled = false;
        }
    }
}

/// Lists the servers of a project's `.mcp.json` that the user refused: Claude Code keeps refusals in other files.
fn switched_off(reading: &Reading<'_>, project: &Path) -> Vec<String> {
    let own = Client::ClaudeCode.own_files(reading.places).into_iter();
    let local = ["settings.json", "settings.local.json"].map(|name| project.join(".claude").join(name));
    let files = own.chain(local).filter_map(|path| json::parse(&super::read(&path).ok()??).ok());
    let refused = |file: json::Document| {
        let file = Value::Object(file.members);
        let of_project = file.get("projects").and_then(|projects| projects.get(project.to_str()?));
        [Some(&file), of_project].into_iter().flatten().flat_map(|place| names(place, "disabledMcpjsonServers")).collect::<Vec<_>>()
    };
    files.flat_map(refused).collect()
}

fn names(project: &Value, key: &str) -> Vec<String> {
    let names = project.get(key).and_then(Value::as_array).into_iter().flatten();
    names.filter_map(Value::as_str).map(str::to_owned).collect()
}
