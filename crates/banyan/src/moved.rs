//! Servers on their way from a client's file into `banyan.toml`: servers present there are not written twice.
//! Does not touch the client's file.

use std::path::{Path, PathBuf};

use banyan_model::Segment;
use config::resolved::{Config, Mount, Transport};
use config::secret::SystemSources;
use import::{Found, Server, SourceFile, to_toml};

use crate::failure::Failure;
use crate::turn::Turn;
use crate::{document, private};

/// A planned change of a configuration.
pub(crate) struct MovedServers {
    file: PathBuf,
    text: String,
    is_new: bool,
    names: Vec<String>,
    /// Held until the change is made or dropped.
    _turn: Option<Turn>,
}

impl MovedServers {
    /// Plans the text of `file`, which need not exist, with `servers` added.
    pub(crate) fn plan(servers: &[Server], file: &Path) -> Result<Self, Failure> {
        let turn = Turn::to_edit(file)?;
        let is_new = !file.exists();
        let config = if is_new { Config::default() } else { gateway::parts::sections().load(file, &SystemSources)? };
        let mut taken: Vec<Segment> = config.mounts.keys().cloned().collect();
        let mut found = Found::default();
        for server in servers.iter().filter(|s| !config.mounts.values().any(|m| same(m, &s.mount))) {
            let mut server = server.clone();
            server.mount.name = free(&server.mount.name, &taken);
            taken.push(server.mount.name.clone());
            found.servers.push(server);
        }
        for origin in servers.iter().filter_map(|s| s.origins.first()) {
            if !found.files.iter().any(|f| f.path == origin.file) {
                let (client, path, servers) = (origin.client, origin.file.clone(), found.servers.len());
                found.files.push(SourceFile { client, path, project: None, servers, problem: None });
            }
        }
        let names = found.servers.iter().map(|s| s.mount.name.to_string()).collect();
        let text = if is_new || found.servers.is_empty() { to_toml(&found) } else { appended(file, &found)? };
        Ok(Self { file: file.to_owned(), text, is_new, names, _turn: turn })
    }

    /// Gives the names of the added servers.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Makes the change. Nothing to add is nothing to do.
    pub(crate) fn write(&self) -> Result<(), Failure> {
        if self.names.is_empty() {
            return Ok(());
        }
        let failed = |error: std::io::Error| document::failed(&self.file, "written", &error);
        if !self.is_new {
            return private::replace(&self.file, &self.text).map_err(failed);
        }
        if let Some(directory) = self.file.parent() {
            std::fs::create_dir_all(directory).map_err(failed)?;
        }
        private::write_new(&self.file, &self.text).map_err(failed)
    }
}

/// Appends sections behind the present text, which stays unchanged.
fn appended(file: &Path, found: &Found) -> Result<String, Failure> {
    let old = std::fs::read_to_string(file).map_err(|error| document::failed(file, "read", &error))?;
    let new = to_toml(found);
    let sections = new.split_once("\n\n").map_or("", |(_, sections)| sections);
    let text = format!("{}\n\n{sections}", old.trim_end());
    gateway::parts::sections().parse(&text, file, &SystemSources)?;
    Ok(text)
}

/// The same program with the same arguments, or the same address. Secrets may have moved into the keyring since.
fn same(a: &Mount, b: &Mount) -> bool {
    match (&a.transport, &b.transport) {
        (Transport::Stdio(a), Transport::Stdio(b)) => a.command == b.command && a.args == b.args,
        (Transport::Http(a) | Transport::Sse(a), Transport::Http(b) | Transport::Sse(b)) => a.url == b.url,
        (Transport::Family(a), Transport::Family(b)) => a == b,
        (Transport::Family(_) | Transport::Stdio(_), _)
        | (Transport::Http(_) | Transport::Sse(_), Transport::Family(_) | Transport::Stdio(_)) => false,
    }
}

/// Gives the name itself, or the name with the lowest free number from 2.
fn free(name: &Segment, taken: &[Segment]) -> Segment {
    let numbered = |n: usize| {
        let end = format!("-{n}");
        let start: String = name.as_str().chars().take(Segment::MAX - end.len()).collect();
        Segment::new(&format!("{start}{end}")).unwrap_or_else(|_| name.clone())
    };
    let mut candidates = std::iter::once(name.clone()).chain((2..).map(numbered));
    candidates.find(|n| !taken.contains(n)).unwrap_or_else(|| name.clone())
}

#[cfg(test)]
mod tests {
    use import::{Places, from_file};

    use super::*;

    #[test]
    fn what_is_there_stays_and_only_what_is_new_is_added() {
        let dir = tempfile::tempdir().unwrap();
        let json = dir.path().join("servers.json");
        std::fs::write(&json, r#"{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}, "a b": {"url": "http://h/mcp"}}}"#).unwrap();
        let servers = from_file(&json, &Places::here().unwrap()).unwrap().servers;
        let file = dir.path().join("banyan.toml");
        let old = "# mine\n[mount.other]\ncommand = 'x' # the same as a\n[mount.b]\ncommand = 'z'\n";
        std::fs::write(&file, old).unwrap();

        let moved = MovedServers::plan(&servers, &file).unwrap();
        assert_eq!(moved.names(), ["b-2", "a-b"]);
        moved.write().unwrap();
        drop(moved);
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.starts_with(old.trim_end()), "{text}");
        let config = gateway::parts::sections().load(&file, &SystemSources).unwrap();
        assert_eq!(config.mounts.keys().map(Segment::as_str).collect::<Vec<_>>(), ["a-b", "b", "b-2", "other"]);
        assert_eq!(MovedServers::plan(&servers, &file).unwrap().names(), [""; 0]);
    }
}
