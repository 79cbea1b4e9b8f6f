//! `banyan.toml` as edited here: comments and order stay. The meaning of a section is not known here.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use config::resolved::Config;
use config::secret::SystemSources;
use toml_edit::{DocumentMut, Item, Table};

use crate::arguments::Place;
use crate::failure::Failure;
use crate::turn::Turn;
use crate::{places, private};

/// `banyan.toml`; empty if missing.
pub(crate) struct Document {
    pub(crate) path: PathBuf,
    pub(crate) toml: DocumentMut,
    /// Comments of a file that holds nothing else: sections come after them.
    comments: String,
    is_new: bool,
    /// Held until the document is dropped: what was read is what is replaced.
    _turn: Option<Turn>,
}

impl Document {
    /// Opens the configuration in use, or the place of a new one.
    pub(crate) fn open(place: &Place) -> Result<Self, Failure> {
        match places::config_file(place.config.as_deref())? {
            Some(path) => Self::at(path),
            None => Self::at(places::config_dir()?.join(places::CONFIG_NAME)),
        }
    }

    /// Opens the configuration in a file, or the place of a new one.
    pub(crate) fn at(path: PathBuf) -> Result<Self, Failure> {
        let turn = Turn::to_edit(&path)?;
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(failed(&path, "read", &error)),
        };
        let is_new = text.is_none();
        let mut toml = parsed(&text.unwrap_or_default(), &path)?;
        let comments = if toml.is_empty() { toml.trailing().as_str().unwrap_or_default().to_owned() } else { String::new() };
        if !comments.is_empty() {
            toml.set_trailing("");
        }
        Ok(Self { path, toml, comments, is_new, _turn: turn })
    }

    /// Checks if the file was there before.
    pub(crate) const fn is_there(&self) -> bool {
        !self.is_new
    }

    /// Gives the section `[name]`, empty if missing.
    pub(crate) fn section(&mut self, name: &str) -> Result<&mut Table, Failure> {
        let path = self.path.display();
        let section = self.toml.entry(name).or_insert(Item::Table(Table::new()));
        section
            .as_table_mut()
            .ok_or_else(|| Failure::Failed(format!("`{name}` in {path} is not written as [{name}]\n  write it so, then try again")))
    }

    /// Removes the section `[group.name]`. Comments stay that stand apart from the section by a blank line, or at the head of the file.
    pub(crate) fn remove(&mut self, group: &str, name: &str) -> Result<(), Failure> {
        let first = first_position(&self.toml);
        let section = self.section(group)?;
        let removed = section.remove(name);
        if section.is_empty() {
            self.toml.remove(group);
        }
        let Some(Item::Table(removed)) = removed else { return Ok(()) };
        let prefix = removed.decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default();
        let is_first = lowest(&removed) == first;
        let kept = if is_first { prefix } else { prefix.rfind("\n\n").and_then(|at| prefix.get(..at + 2)).unwrap_or_default() };
        if kept.contains('#') {
            self.put_back(kept, lowest(&removed));
        }
        Ok(())
    }

    /// Puts comments in front of the first section behind `position`, or at the end.
    fn put_back(&mut self, comments: &str, position: Option<isize>) {
        let mut next = None;
        each_table(self.toml.as_table_mut(), &mut |table| {
            next = [next, table.position().filter(|at| Some(*at) > position)].into_iter().flatten().min();
        });
        let mut is_put = false;
        each_table(self.toml.as_table_mut(), &mut |table| {
            if !is_put && next.is_some() && table.position() == next {
                let old = table.decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default().to_owned();
                let gap = if comments.ends_with("\n\n") || old.starts_with('\n') { "" } else { "\n" };
                table.decor_mut().set_prefix(format!("{comments}{gap}{old}"));
                is_put = true;
            }
        });
        if !is_put && self.toml.is_empty() {
            comments.clone_into(&mut self.comments);
        } else if !is_put {
            let old = self.toml.trailing().as_str().unwrap_or_default().to_owned();
            self.toml.set_trailing(format!("{old}{comments}"));
        }
    }

    /// Checks that a gate would take the document.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.parsed().map(drop)
    }

    /// The document as a gate would take it.
    pub(crate) fn parsed(&self) -> Result<Config, Failure> {
        Ok(gateway::parts::sections().parse(&self.text(), &self.path, &SystemSources)?)
    }

    fn text(&self) -> String {
        let gap = if self.comments.is_empty() || self.comments.ends_with("\n\n") { "" } else { "\n" };
        format!("{}{gap}{}", self.comments, self.toml)
    }

    /// Writes the document to its place, old or new.
    pub(crate) fn write(&self) -> Result<(), Failure> {
        let text = self.text();
        if !self.is_new {
            return private::replace(&self.path, &text).map_err(|e| failed(&self.path, "written", &e));
        }
        if let Some(directory) = self.path.parent() {
            std::fs::create_dir_all(directory).map_err(|e| failed(directory, "made", &e))?;
        }
        private::write_new(&self.path, &text).map_err(|e| failed(&self.path, "written", &e))
    }
}

/// Visits each section of a document.
fn each_table(table: &mut Table, visit: &mut dyn FnMut(&mut Table)) {
    visit(table);
    for (_, item) in table.iter_mut() {
        match item {
            Item::ArrayOfTables(tables) => tables.iter_mut().for_each(|table| each_table(table, visit)),
            Item::Table(table) => each_table(table, visit),
            Item::None | Item::Value(_) => {}
        }
    }
}

/// Place of the first section of a table in the file.
fn lowest(table: &Table) -> Option<isize> {
    let below = table.iter().filter_map(|(_, item)| match item {
        Item::ArrayOfTables(tables) => tables.iter().filter_map(lowest).min(),
        Item::Table(table) => lowest(table),
        Item::None | Item::Value(_) => None,
    });
    let own = table.position().filter(|_| !table.is_implicit());
    own.into_iter().chain(below).min()
}

/// Place of the first section of a document.
fn first_position(document: &DocumentMut) -> Option<isize> {
    document
        .iter()
        .filter_map(|(_, item)| match item {
            Item::ArrayOfTables(tables) => tables.iter().filter_map(lowest).min(),
            Item::Table(table) => lowest(table),
            Item::None | Item::Value(_) => None,
        })
        .min()
}

/// Parses a `banyan.toml` for editing. Faults are worded as by `banyan check`: lines of the file may hold secrets.
pub(crate) fn parsed(text: &str, path: &Path) -> Result<DocumentMut, Failure> {
    text.parse().map_err(|error: toml_edit::TomlError| match gateway::parts::sections().parse(text, path, &SystemSources) {
        Err(shown) => shown.into(),
        Ok(_) => Failure::Failed(format!("{} is no TOML: {}\n  mend it, then try again", path.display(), error.message())),
    })
}

/// Words a failure with a file.
pub(crate) fn failed(path: &Path, what: &str, error: &std::io::Error) -> Failure {
    Failure::Failed(worded(path, what, error))
}

/// Words the failure to read a named file.
pub(crate) fn unread(path: &Path, error: &std::io::Error) -> Failure {
    let text = worded(path, "read", error);
    if error.kind() == ErrorKind::NotFound { Failure::NotFound(text) } else { Failure::Failed(text) }
}

fn worded(path: &Path, what: &str, error: &std::io::Error) -> String {
    let advice = advice(error).map(|advice| format!("\n  {advice}")).unwrap_or_default();
    format!("{} can't be {what}: {error}{advice}", path.display())
}

/// Advises on a file that can't be read or written.
fn advice(error: &std::io::Error) -> Option<&'static str> {
    const ADVICE: [(ErrorKind, &str); 7] = [
        (ErrorKind::InvalidData, "it is no text: name another file"),
        (ErrorKind::IsADirectory, "it is a directory: name a file"),
        (ErrorKind::NotADirectory, "something on the way to it is no directory: see how its path is written"),
        (ErrorKind::NotFound, "see how its path is written, and from where"),
        (ErrorKind::PermissionDenied, "let your user have it, or run this as the user whose it is"),
        (ErrorKind::ReadOnlyFilesystem, "it lies where nothing can be written: name another place"),
        (ErrorKind::StorageFull, "the disk is full: make room, then try again"),
    ];
    ADVICE.iter().find(|(kind, _)| *kind == error.kind()).map(|(_, advice)| *advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without(text: &str, name: &str) -> String {
        let path = PathBuf::from("banyan.toml");
        let toml = parsed(text, &path).unwrap();
        let mut document = Document { path, toml, comments: String::new(), is_new: false, _turn: None };
        document.remove("mount", name).unwrap();
        document.text()
    }

    #[test]
    fn a_removed_section_takes_only_its_own_comment() {
        let text = "# The gate of the office.\n# Ask Ada.\n[mount.a]\ncommand = 'x'\n\n# Of b.\n[mount.b]\ncommand = 'y'\n\n# Group two.\n\n# Of c.\n[mount.c]\ncommand = 'z'\n";
        assert_eq!(
            without(text, "a"),
            "# The gate of the office.\n# Ask Ada.\n\n# Of b.\n[mount.b]\ncommand = 'y'\n\n# Group two.\n\n# Of c.\n[mount.c]\ncommand = 'z'\n"
        );
        let left = without(text, "b");
        assert!(!left.contains("# Of b.") && left.starts_with("# The gate"), "{left}");
        let left = without(text, "c");
        assert!(left.contains("# Group two.") && !left.contains("# Of c."), "{left}");
        assert_eq!(without("# Head.\n[mount.a]\ncommand = 'x'\n", "a").trim_end(), "# Head.");
    }
}
