//! Notes on an import, for people. Never holds a value of a file, only names and places.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

/// Something to tell about a place in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    pub file: PathBuf,
    /// The place in the file: `mcpServers.github.env`. Empty for the whole file.
    pub path: String,
    pub kind: NoteKind,
    pub text: String,
}

/// Sort of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoteKind {
    /// The entry points at Banyan and is left out.
    Banyan,
    /// The server is switched off there and here.
    Disabled,
    /// A value was taken in another form.
    Changed,
    /// A key has no meaning for Banyan and is not taken.
    NotTaken,
    /// The server is mounted under another name.
    Renamed,
    /// Another file has the server too.
    Same,
    /// The server, or the file, can't be taken at all.
    Skipped,
    /// The client lets tools run without asking; Banyan does not adopt the permission.
    Trust,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if !self.path.is_empty() {
            write!(f, ": {}", self.path)?;
        }
        write!(f, ": {}", self.text)
    }
}
