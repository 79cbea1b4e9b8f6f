//! All findings, each server once and under a name of its own. Does not write them down.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use banyan_model::Segment;
use serde::Serialize;

use config::resolved::{Mount, Process, Remote, Transport};
use config::secret::{Piece, SecretRef};
use config::suggest;

use super::client::Client;
use super::note::{Note, NoteKind};
use super::reading::Reading;
use super::text::Question;

/// The findings in all files.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Existing files in the order of reading.
    pub files: Vec<SourceFile>,
    /// The servers, in the order of the files.
    pub servers: Vec<Server>,
    /// Notes for people.
    pub notes: Vec<Note>,
    /// Questions to be asked before all servers work.
    pub questions: Vec<Question>,
}

/// An existing file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourceFile {
    /// `None` for a file named by the user.
    pub client: Option<Client>,
    pub path: PathBuf,
    /// The directory of the file's project.
    pub project: Option<PathBuf>,
    /// Number of servers that can be taken, duplicates in other files included.
    pub servers: usize,
    /// The reason for taking nothing from the file.
    pub problem: Option<String>,
}

/// A server that can be mounted.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// The mount, under a unique name.
    pub mount: Mount,
    /// The name in the client's file.
    pub name: String,
    /// Switched on in the client.
    pub enabled: bool,
    /// Places of the server; the first was taken.
    pub origins: Vec<Origin>,
}

/// A place where a server stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// `None` for a file named by the user.
    pub client: Option<Client>,
    pub file: PathBuf,
    /// The place in the file: `mcpServers.github`.
    pub path: String,
    /// The directory of the file's project. The author of the project wrote the entry.
    pub project: Option<PathBuf>,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.client {
            Some(client) => write!(f, "{client}: {}", self.file.display()),
            None => write!(f, "{}", self.file.display()),
        }
    }
}

impl Found {
    /// Gives the mounts of the servers that are switched on.
    pub fn mounts(&self) -> BTreeMap<Segment, Arc<Mount>> {
        let enabled = self.servers.iter().filter(|server| server.enabled);
        enabled.map(|server| (server.mount.name.clone(), Arc::new(server.mount.clone()))).collect()
    }

    /// Puts the answer to a question into the servers that asked, for answers that are no secrets. Secrets are stored
    /// under the question's name instead.
    pub fn answer(&mut self, name: &str, answer: &str) {
        let texts = self.servers.iter_mut().flat_map(|server| texts(&mut server.mount.transport));
        for text in texts {
            replace(text, &|piece| (*piece == Piece::Keyring(name.to_owned())).then(|| Piece::Plain(answer.to_owned())));
        }
        self.questions.retain(|question| question.name != name);
    }

    pub(super) fn take(&mut self, mut reading: Reading<'_>) {
        self.tell_questions_apart(&mut reading);
        let (client, path, project) = (reading.client, reading.file.clone(), reading.project.clone());
        self.files.push(SourceFile { client, path, project, servers: reading.servers.len(), problem: None });
        self.questions.extend(std::mem::take(&mut reading.questions).into_values());
        for server in std::mem::take(&mut reading.servers) {
            self.take_server(server, &mut reading);
        }
        self.notes.append(&mut reading.notes);
    }

    pub(super) fn take_unreadable(&mut self, mut reading: Reading<'_>, problem: String) {
        reading.note(NoteKind::Skipped, "", problem.clone());
        let (client, path, project) = (reading.client, reading.file.clone(), reading.project.clone());
        self.files.push(SourceFile { client, path, project, servers: 0, problem: Some(problem) });
        self.notes.append(&mut reading.notes);
    }

    fn take_server(&mut self, mut server: Server, reading: &mut Reading<'_>) {
        let path = server.origins.first().map(|origin| origin.path.clone()).unwrap_or_default();
        if let Some(known) = self.servers.iter_mut().find(|known| is_same(known, &server)) {
            let with = match (credentials(&known.mount), credentials(&server.mount)) {
                (first, this) if first == this || this.is_empty() => "",
                (first, _) if first.is_empty() => {
                    known.mount.transport = server.mount.transport;
                    "; its secrets are taken, as the first has none"
                }
                _ => "; its secrets differ, and those of the first are taken",
            };
            reading.note(NoteKind::Same, &path, format!("it is the server `{}` again{with}", known.mount.name));
            known.enabled |= server.enabled;
            known.origins.append(&mut server.origins);
            return;
        }
        server.mount.name = self.free_name(&server.mount.name);
        if !server.enabled {
            reading.note(NoteKind::Disabled, &path, "it is switched off, and stays so");
        }
        if server.mount.name.as_str() != server.name {
            reading.note(NoteKind::Renamed, &path, format!("it is mounted as `{}`", server.mount.name));
        }
        self.servers.push(server);
    }

    /// Gives the name itself, or the name with the lowest free number from 2.
    fn free_name(&self, name: &Segment) -> Segment {
        let taken = |name: &Segment| self.servers.iter().any(|server| server.mount.name == *name);
        let numbered = |number: usize| {
            let end = format!("-{number}");
            let room = Segment::MAX - end.len();
            suggest::segment(&format!("{}{end}", &name.as_str()[..name.as_str().len().min(room)]))
        };
        let candidates = std::iter::once(name.clone()).chain((2..).map(numbered));
        candidates.into_iter().find(|name| !taken(name)).unwrap_or_else(|| name.clone())
    }

    /// Numbers a later question with an id used by an earlier file for another one.
    fn tell_questions_apart(&self, reading: &mut Reading<'_>) {
        let taken = |name: &str| self.questions.iter().any(|question| question.name == name);
        for question in reading.questions.values_mut().filter(|question| taken(&question.name)) {
            let old = std::mem::take(&mut question.name);
            question.name = (2..).map(|number| format!("{old}-{number}")).find(|name| !taken(name)).unwrap_or_default();
            let renamed = |piece: &Piece| (*piece == Piece::Keyring(old.clone())).then(|| Piece::Keyring(question.name.clone()));
            for text in reading.servers.iter_mut().flat_map(|server| texts(&mut server.mount.transport)) {
                replace(text, &renamed);
            }
        }
    }
}

/// The same program with the same arguments, or the same address; and either the same secrets or the same name.
fn is_same(known: &Server, other: &Server) -> bool {
    let (a, b) = (&known.mount.transport, &other.mount.transport);
    let same_target = match (a, b) {
        (Transport::Stdio(a), Transport::Stdio(b)) => {
            a.command == b.command && a.args == b.args && (a.cwd == b.cwd || a.cwd.is_none() || b.cwd.is_none())
        }
        (Transport::Http(a) | Transport::Sse(a), Transport::Http(b) | Transport::Sse(b)) => a.url == b.url,
        (Transport::Family(a), Transport::Family(b)) => a == b,
        (Transport::Family(_) | Transport::Stdio(_), _)
        | (Transport::Http(_) | Transport::Sse(_), Transport::Family(_) | Transport::Stdio(_)) => false,
    };
    let same_name = suggest::segment(&known.name) == suggest::segment(&other.name);
    same_target && (same_name || credentials(&known.mount) == credentials(&other.mount))
}

fn credentials(mount: &Mount) -> &BTreeMap<String, SecretRef> {
    static NONE: BTreeMap<String, SecretRef> = BTreeMap::new();
    match &mount.transport {
        Transport::Http(Remote { headers, .. }) | Transport::Sse(Remote { headers, .. }) => headers,
        Transport::Family(_) => &NONE,
        Transport::Stdio(Process { env, .. }) => env,
    }
}

/// Lists the texts of a server that may hold references.
fn texts(transport: &mut Transport) -> Vec<&mut SecretRef> {
    match transport {
        Transport::Http(remote) | Transport::Sse(remote) => {
            let secret = remote.oauth.as_mut().and_then(|oauth| oauth.client_secret.as_mut());
            remote.headers.values_mut().chain(secret).collect()
        }
        Transport::Family(_) => Vec::new(),
        Transport::Stdio(process) => process.args.iter_mut().chain(process.env.values_mut()).collect(),
    }
}

/// Replaces pieces of a text; a text that can't be put together stays unchanged.
fn replace(text: &mut SecretRef, with: &dyn Fn(&Piece) -> Option<Piece>) {
    let pieces = text.pieces().iter().map(|piece| with(piece).unwrap_or_else(|| piece.clone())).collect();
    if let Ok(replaced) = SecretRef::of(pieces) {
        *text = replaced;
    }
}
