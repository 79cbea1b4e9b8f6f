//! Findings in one file so far. Does not know the shapes of files: the modules of the clients do.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Map, Value};

use super::client::{Client, Location};
use super::entry::{self, Dialect};
use super::found::Server;
use super::json;
use super::note::{Note, NoteKind};
use super::places::Places;
use super::text::Question;

/// The state of reading one file.
pub(super) struct Reading<'a> {
    pub(super) places: &'a Places,
    pub(super) client: Option<Client>,
    pub(super) file: PathBuf,
    /// The directory of the project that owns the file, or the current part of the file.
    pub(super) project: Option<PathBuf>,
    pub(super) servers: Vec<Server>,
    pub(super) notes: Vec<Note>,
    /// Questions of servers, by id.
    pub(super) questions: BTreeMap<String, Question>,
    /// Descriptions of questions in the file, by id.
    pub(super) inputs: BTreeMap<String, Question>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(places: &'a Places, client: Option<Client>, location: &Location) -> Self {
        Self {
            places,
            client,
            file: location.path.clone(),
            project: location.project.clone(),
            servers: Vec::new(),
            notes: Vec::new(),
            questions: BTreeMap::new(),
            inputs: BTreeMap::new(),
        }
    }

    pub(super) fn note(&mut self, kind: NoteKind, path: &str, text: impl Into<String>) {
        self.notes.push(Note { file: self.file.clone(), path: path.to_owned(), kind, text: text.into() });
    }

    /// The members of the file's outermost object.
    pub(super) fn json(&mut self, text: &str) -> Result<Map<String, Value>, String> {
        let document = json::parse(text)?;
        for path in document.repeated {
            self.note(NoteKind::NotTaken, &path, "the name stands twice: the last one counts");
        }
        Ok(document.members)
    }

    /// Takes the servers of an object of servers, if present.
    pub(super) fn servers(&mut self, path: &str, servers: Option<Value>, dialect: Dialect) {
        match servers {
            None | Some(Value::Null) => {}
            Some(Value::Object(servers)) => {
                for (name, server) in servers {
                    entry::read(self, &json::joined(path, &name), &name, server, dialect);
                }
            }
            Some(_) => self.note(NoteKind::Skipped, path, "it is not an object of servers"),
        }
    }

    /// Reports the remaining keys of a file about servers only.
    pub(super) fn rest(&mut self, path: &str, members: &Map<String, Value>) {
        for name in members.keys().filter(|name| *name != "$schema") {
            self.note(NoteKind::NotTaken, &json::joined(path, name), "this key is not understood, and not taken");
        }
    }

    /// Gives the keyring's name for a client's question with this id.
    pub(super) fn ask(&mut self, id: &str) -> String {
        let known = self.inputs.get(id);
        let question = self.questions.entry(id.to_owned()).or_insert_with(|| known.cloned().unwrap_or_else(|| Question::unknown(id)));
        question.name.clone()
    }
}
