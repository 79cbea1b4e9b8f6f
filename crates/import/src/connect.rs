//! Points a client's own file at Banyan, and back. Everything else in the file stays unchanged, to the byte; the old
//! servers are kept in a backup beside it. Decides and shows first, writes on demand. Does not import the servers
//! taken out: the caller compares them with Banyan's own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::client::Location;
use super::reading::Reading;
use super::{Client, NoteKind, Places, Server};

mod backup;
mod diff;
mod endpoint;
mod format;
mod json;
mod mask;
mod toml;
mod write;

pub use endpoint::Endpoint;

use backup::Backup;
use format::Format;

/// The name of Banyan's entry in clients' files.
pub const ENTRY: &str = "banyan";

/// A wanted connection of a client.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    pub client: Client,
    pub places: &'a Places,
    /// The client's way to Banyan.
    pub endpoint: Endpoint,
    /// Servers to leave in the file beside Banyan, by their names there. Servers beyond Banyan stay anyway.
    pub keep: BTreeSet<String>,
    /// Date of the backup.
    pub now: SystemTime,
}

/// A change of a client's file that is decided and not yet made.
#[derive(Clone, Debug)]
pub struct Plan {
    pub client: Client,
    /// The file to be written, behind any links.
    pub file: PathBuf,
    /// The servers that leave the file, as Banyan would mount them.
    pub removed: Vec<Server>,
    /// The servers that stay in the file.
    pub kept: Vec<String>,
    /// The new backup beside the file; `None` when a backup is put back.
    pub backup: Option<PathBuf>,
    before: Option<String>,
    after: Option<String>,
    format: Format,
    step: Step,
}

/// The fate of backups.
#[derive(Clone, Debug)]
enum Step {
    /// Make a backup with this text (`None`: there was no file), and drop an older one.
    Make {
        path: PathBuf,
        text: Option<String>,
        old: Option<Backup>,
    },
    Nothing,
    /// The backup is in the file again: whole, or together with later changes.
    Spend {
        backup: Backup,
        whole: bool,
    },
}

/// Obstacles to changing a client's file. Nothing was changed then.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Somebody else wrote the file after the plan was made.
    #[error("`{}` has changed in the meantime, and is left alone\n  close the client and try again", path.display())]
    Changed { path: PathBuf },
    /// The client has no way to send a token.
    #[error("{client} can't take a token from a variable\n  connect it through `banyan stdio`: `banyan connect {} --stdio`", client.id())]
    NoBearer { client: Client },
    /// The file has no entry of Banyan's, and no backup exists.
    #[error("{client} is not connected: `{}` has no server `{ENTRY}`, and no backup is beside it", path.display())]
    NotConnected { client: Client, path: PathBuf },
    /// The directory of the client's file is missing.
    #[error("{client} does not seem to be installed: there is no directory `{}`\n  start it once, and connect it then", dir.display())]
    NotInstalled {
        client: Client,
        /// The expected directory.
        dir: PathBuf,
    },
    /// The client starts programs only.
    #[error("{client} starts programs and takes no address\n  connect it through `banyan stdio`: `banyan connect {} --stdio`", client.id())]
    ProgramsOnly { client: Client },
    /// The file, or its backup, can't be read as expected.
    #[error("`{}` can't be changed safely: {problem}\n  mend the file and try again; nothing was written", path.display())]
    Unreadable { path: PathBuf, problem: String },
    #[error("can't write `{}`: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
}

/// Gives the text of a client's file with Banyan put in beside everything else, with Banyan taken out again, and as
/// shown. For checks against any text.
pub fn on_text(client: Client, file: &Path, text: &str) -> Result<[String; 3], String> {
    let format = Format::for_file(client, file).ok_or("nothing is written to this file")?;
    let kept: Vec<String> = format.names(text)?.into_iter().filter(|name| name != ENTRY).collect();
    let entry = serde_json::json!({"url": "http://127.0.0.1:1/mcp"});
    let pointed = format.pointed(text, &entry, &kept)?;
    let restored = format.restored(&pointed, Some(text), ENTRY)?;
    Ok([pointed, restored, format.masked(text)])
}

/// The names in the list of servers of such a text.
pub fn names(client: Client, file: &Path, text: &str) -> Result<Vec<String>, String> {
    Format::for_file(client, file).ok_or("nothing is written to this file")?.names(text)
}

/// Plans to point a client at Banyan. For a connected client, the plan starts from the state before.
pub fn connect(request: &Request<'_>) -> Result<Plan, ConnectError> {
    let client = request.client;
    let entry = request.endpoint.entry(client)?;
    let target = Target::choose(client, request.places)?;
    let before = target.text(&target.file)?;
    let old = Backup::newest(&target.file);
    let connected =
        before.as_deref().is_some_and(|text| target.format.names(text).is_ok_and(|names| names.iter().any(|name| name == ENTRY)));
    let old = old.filter(|_| connected);
    let base = match &old {
        Some(backup) => target.restored(before.as_deref(), backup)?.0,
        None => before.clone(),
    };

    let text = base.as_deref().unwrap_or_default();
    let (removed, kept) = target.sorted(text, request)?;
    let after = target.format.pointed(text, &entry, &kept).map_err(|problem| target.unreadable(problem))?;

    let is_done = before.as_deref() == Some(&after);
    let path = backup::path(&target.file, request.now, &after, base.is_some());
    let backup = if is_done { old.as_ref().map(|backup| backup.path.clone()) } else { Some(path.clone()) };
    let step = if is_done { Step::Nothing } else { Step::Make { path, text: base, old } };
    Ok(Plan { client, file: target.file, removed, kept, backup, before, after: Some(after), format: target.format, step })
}

/// Plans to restore a client's file. Changes made since then stay.
pub fn disconnect(client: Client, places: &Places) -> Result<Plan, ConnectError> {
    let target = Target::choose(client, places)?;
    let before = target.text(&target.file)?;
    let not_connected = || ConnectError::NotConnected { client, path: target.file.clone() };
    let names = target.format.names(before.as_deref().unwrap_or_default()).map_err(|problem| target.unreadable(problem))?;
    let (after, step) = match Backup::newest(&target.file) {
        Some(backup) => {
            let (after, whole) = target.restored(before.as_deref(), &backup)?;
            (after, Step::Spend { backup, whole })
        }
        None if names.iter().any(|name| name == ENTRY) => {
            let text = before.as_deref().unwrap_or_default();
            (Some(target.format.restored(text, None, ENTRY).map_err(|problem| target.unreadable(problem))?), Step::Nothing)
        }
        None => return Err(not_connected()),
    };
    Ok(Plan { client, file: target.file, removed: Vec::new(), kept: Vec::new(), backup: None, before, after, format: target.format, step })
}

impl Plan {
    /// Tells if the file needs no change.
    pub fn is_nothing(&self) -> bool {
        self.before == self.after
    }

    /// Shows the changes, line by line, secrets hidden. Empty without changes.
    pub fn diff(&self) -> String {
        let shown = |text: &Option<String>| text.as_deref().map(|text| self.format.masked(text));
        diff::unified(&self.file, shown(&self.before).as_deref(), shown(&self.after).as_deref())
    }

    /// Makes the change: backup first, then the file in one piece. Refuses if the file has changed meanwhile.
    pub fn apply(&self) -> Result<(), ConnectError> {
        if self.is_nothing() {
            return Ok(());
        }
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| ConnectError::Write { path, source }
        };
        if let Step::Make { path, text, .. } = &self.step {
            write::backup(path, text.as_deref().unwrap_or_default()).map_err(failed(path))?;
        }
        let written = match write::unchanged(&self.file, self.before.as_deref()) {
            Err(source) => Err(failed(&self.file)(source)),
            Ok(false) => Err(ConnectError::Changed { path: self.file.clone() }),
            Ok(true) => write::replace(&self.file, self.after.as_deref()).map_err(failed(&self.file)),
        };
        match (&self.step, written) {
            (Step::Make { path, .. }, Err(error)) => {
                std::fs::remove_file(path).ok();
                Err(error)
            }
            (_, Err(error)) => Err(error),
            (Step::Make { old: Some(old), .. }, Ok(())) => old.spend(true).map_err(failed(&old.path)),
            (Step::Spend { backup, whole }, Ok(())) => backup.spend(*whole).map_err(failed(&backup.path)),
            (Step::Make { old: None, .. } | Step::Nothing, Ok(())) => Ok(()),
        }
    }
}

/// The client's file to be written.
struct Target<'a> {
    client: Client,
    places: &'a Places,
    file: PathBuf,
    format: Format,
}

impl<'a> Target<'a> {
    /// Picks the first existing own file, or else the first with an existing directory.
    fn choose(client: Client, places: &'a Places) -> Result<Self, ConnectError> {
        let files: Vec<PathBuf> = client.own_files(places).into_iter().filter(|file| Format::for_file(client, file).is_some()).collect();
        let directory = |file: &PathBuf| file.parent().map(Path::to_owned).unwrap_or_default();
        let found = files.iter().find(|file| file.is_file()).or_else(|| files.iter().find(|file| directory(file).is_dir()));
        let (Some(file), Some(format)) = (found, found.and_then(|file| Format::for_file(client, file))) else {
            let dir = files.first().map(directory).unwrap_or_default();
            return Err(ConnectError::NotInstalled { client, dir });
        };
        let file = file.canonicalize().unwrap_or_else(|_| file.clone());
        Ok(Self { client, places, file, format })
    }

    fn text(&self, file: &Path) -> Result<Option<String>, ConnectError> {
        super::read(file).map_err(|problem| ConnectError::Unreadable { path: file.to_owned(), problem })
    }

    fn unreadable(&self, problem: String) -> ConnectError {
        ConnectError::Unreadable { path: self.file.clone(), problem }
    }

    /// Separates the wanted servers that Banyan can take from the names of those that stay. Entries that already lead to
    /// Banyan are neither.
    fn sorted(&self, text: &str, request: &Request<'_>) -> Result<(Vec<Server>, Vec<String>), ConnectError> {
        let location = Location { path: self.file.clone(), project: None };
        let mut reading = Reading::new(self.places, Some(self.client), &location);
        (self.client.reader())(&mut reading, text).map_err(|problem| self.unreadable(problem))?;
        let names = self.format.names(text).map_err(|problem| self.unreadable(problem))?;
        let path = |name: &str| super::json::joined(self.format.key(), name);
        let is_here = |server: &Server| server.origins.iter().any(|origin| origin.path == path(&server.name));
        let wanted = |server: &Server| is_here(server) && !request.keep.contains(&server.name);
        let removed: Vec<Server> = reading.servers.into_iter().filter(wanted).collect();
        let ours: BTreeSet<&str> =
            reading.notes.iter().filter(|note| note.kind == NoteKind::Banyan).map(|note| note.path.as_str()).collect();
        let stays =
            |name: &String| name != ENTRY && !ours.contains(path(name).as_str()) && !removed.iter().any(|server| server.name == *name);
        let kept = names.into_iter().filter(stays).collect();
        Ok((removed, kept))
    }

    /// Gives the text from before the connection together with later changes; and tells if there were none.
    fn restored(&self, current: Option<&str>, backup: &Backup) -> Result<(Option<String>, bool), ConnectError> {
        let kept = self.text(&backup.path)?;
        let kept = kept.as_deref().filter(|_| !backup.was_absent);
        if current.is_none_or(|current| backup.is_of(current)) {
            return Ok((kept.map(str::to_owned), true));
        }
        let current = current.unwrap_or_default();
        let merged = self.format.restored(current, kept, ENTRY).map_err(|problem| self.unreadable(problem))?;
        Ok((Some(merged), false))
    }
}

#[cfg(test)]
mod tests;
