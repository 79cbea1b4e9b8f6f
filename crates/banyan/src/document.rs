//! `banyan.toml` as it is edited here: its comments and order stay. What it means is not known here.

use std::path::{Path, PathBuf};

use gateway::config::secret::SystemSources;
use toml_edit::{DocumentMut, Item, Table};

use crate::arguments::Place;
use crate::failure::Failure;
use crate::{places, private};

/// `banyan.toml`; an empty one where there is none.
pub(crate) struct Document {
    pub(crate) path: PathBuf,
    pub(crate) toml: DocumentMut,
    is_new: bool,
}

impl Document {
    /// That which is in use, or the one that would be.
    pub(crate) fn open(place: &Place) -> Result<Self, Failure> {
        let path = match places::config_file(place.config.as_deref())? {
            Some(path) => path,
            None => places::config_dir()?.join(places::CONFIG_NAME),
        };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(&path, "read", &error)),
        };
        let is_new = text.is_none();
        let no_toml = |e| Failure::Failed(format!("{} is no TOML: {e}\n  `banyan check` says more", path.display()));
        let toml = text.unwrap_or_default().parse().map_err(no_toml)?;
        Ok(Self { path, toml, is_new })
    }

    /// The section `[name]`, empty where there is none.
    pub(crate) fn section(&mut self, name: &str) -> Result<&mut Table, Failure> {
        let path = self.path.display();
        let section = self.toml.entry(name).or_insert(Item::Table(Table::new()));
        section.as_table_mut().ok_or_else(|| Failure::Failed(format!("`{name}` in {path} is not written as [{name}]")))
    }

    /// Whether a gate would take it.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        gateway::config::parse(&self.toml.to_string(), &self.path, &SystemSources)?;
        Ok(())
    }

    /// Writes it where it was, or where it will be found.
    pub(crate) fn write(&self) -> Result<(), Failure> {
        let text = self.toml.to_string();
        if !self.is_new {
            return private::replace(&self.path, &text).map_err(|e| failed(&self.path, "written", &e));
        }
        if let Some(directory) = self.path.parent() {
            std::fs::create_dir_all(directory).map_err(|e| failed(directory, "made", &e))?;
        }
        private::write_new(&self.path, &text).map_err(|e| failed(&self.path, "written", &e))
    }
}

/// What became of a file.
pub(crate) fn failed(path: &Path, what: &str, error: &std::io::Error) -> Failure {
    Failure::Failed(format!("{} can't be {what}: {error}", path.display()))
}
