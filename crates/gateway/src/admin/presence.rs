//! The presence file, by which a running gate is found on its own machine: the address of the listener and the token of the admin API.
//! Readable by the owner only. Does not talk to the gate.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A running gate.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    /// `http://ADDRESS:PORT` or `https://ADDRESS:PORT`, without a path; an address to connect to.
    pub url: String,
    /// Bound address, perhaps of all interfaces; absent in the files of older gates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<SocketAddr>,
    /// PEM file with the certificate of the listener.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<PathBuf>,
    pub pid: u32,
    /// Bearer token of the admin API.
    pub token: String,
    /// Path of the configuration, or the source of the servers. For people.
    pub serves: String,
    /// SHA-256 of the file in `serves`, in hexadecimal, for a gate that read the file once and does not follow changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Set for a gate started by a client: such a gate ends when unused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub while_used: bool,
}

/// Description of a gate's configuration, for the presence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServedConfig {
    /// Path of the configuration, or the source of the servers. For people.
    pub what: String,
    /// SHA-256 of the configuration, in hexadecimal, when read only once.
    pub digest: Option<String>,
    /// Set for a gate that ends when unused.
    pub while_used: bool,
}

impl From<&str> for ServedConfig {
    fn from(what: &str) -> Self {
        Self { what: what.to_owned(), ..Self::default() }
    }
}

/// Hides the token.
impl std::fmt::Debug for Presence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Presence").field("url", &self.url).field("pid", &self.pid).finish_non_exhaustive()
    }
}

/// A published [`Presence`]; dropping the value removes the file.
#[derive(Debug)]
pub struct PresenceFile {
    path: PathBuf,
}

impl Drop for PresenceFile {
    fn drop(&mut self) {
        _ = fs::remove_file(&self.path);
    }
}

impl Presence {
    /// Writes the file into `dir`, with mode 0600. Makes a missing `dir` with mode 0700.
    pub fn publish(&self, dir: &Path) -> io::Result<PresenceFile> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let path = dir.join(file_name(self.pid));
        match fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            Ok(()) | Err(_) => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        Ok(PresenceFile { path })
    }

    /// Lists gates with a living process, by process id. Removes the files of dead ones.
    pub fn all(dir: &Path) -> io::Result<Vec<Self>> {
        let entries = match fs::read_dir(dir) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut found = Vec::new();
        for entry in entries.flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(pid_of) else { continue };
            if !lives(pid) {
                _ = fs::remove_file(entry.path());
                continue;
            }
            let text = fs::read(entry.path()).unwrap_or_default();
            found.extend(serde_json::from_slice::<Self>(&text).ok().filter(|p| p.pid == pid));
        }
        found.sort_by_key(|p| p.pid);
        Ok(found)
    }
}

fn file_name(pid: u32) -> String {
    format!("gate-{pid}.json")
}

fn pid_of(name: &str) -> Option<u32> {
    name.strip_prefix("gate-")?.strip_suffix(".json")?.parse().ok()
}

fn lives(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn presence(pid: u32) -> Presence {
        let (url, token, serves) = ("http://127.0.0.1:1".into(), "s3cret".into(), "banyan.toml".into());
        Presence { url, listen: None, certificate: None, pid, token, serves, digest: None, while_used: false }
    }

    #[test]
    fn a_published_gate_is_found_by_its_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("banyan");
        let ours = presence(std::process::id());
        let published = ours.publish(&dir).unwrap();
        assert_eq!(Presence::all(&dir).unwrap(), [ours]);
        let mode = |p: &Path| fs::metadata(p).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&dir), mode(&published.path)), (0o700, 0o600));
        drop(published);
        assert_eq!(Presence::all(&dir).unwrap(), []);
    }

    #[test]
    fn what_a_dead_gate_left_behind_is_taken_away() {
        let dir = tempfile::tempdir().unwrap();
        let dead = presence(0x3fff_fff0);
        std::mem::forget(dead.publish(dir.path()).unwrap());
        assert_eq!(Presence::all(dir.path()).unwrap(), []);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_token_is_not_shown() {
        assert!(!format!("{:?}", presence(1)).contains("s3cret"));
    }
}
