//! Files of a backup: the configuration with the files that it names beside itself, and the state directory. Asks nobody.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use toml_edit::{DocumentMut, Item, Value};

use crate::tarball::TarWriter;

/// Name of the list of files, which ends an archive.
pub(crate) const LIST: &str = "banyan-backup.json";
/// Directories in an archive.
pub(crate) const CONFIG: &str = "config";
pub(crate) const STATE: &str = "state";
/// Version of the form of an archive.
pub(crate) const FORM: u32 = 1;
/// Largest file beside a configuration that counts as named by the configuration.
const LARGEST_NAMED: u64 = 16 << 20;

/// Description of a backup, the last file of the archive.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct BackupList {
    pub(crate) form: u32,
    pub(crate) version: String,
    /// Time of the backup, in seconds since 1970.
    pub(crate) made: u64,
    /// Place of the configuration on the machine of the backup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) config: Option<PathBuf>,
    pub(crate) state: PathBuf,
    pub(crate) files: Vec<ListedFile>,
}

/// A file of a backup.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ListedFile {
    pub(crate) name: String,
    pub(crate) sha256: String,
}

/// Reads through and keeps the hash of the content.
pub(crate) struct HashedReader<R> {
    inner: R,
    hash: Sha256,
}

impl<R: Read> HashedReader<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { inner, hash: Sha256::new() }
    }

    /// The hash of the content so far, in hexadecimal.
    pub(crate) fn hex(self) -> String {
        self.hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl<R: Read> Read for HashedReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(into)?;
        self.hash.update(into.get(..read).unwrap_or_default());
        Ok(read)
    }
}

/// Adds the file at `path` to an archive as `name`.
pub(crate) fn add<W: io::Write>(archive: &mut TarWriter<W>, name: &str, path: &Path) -> io::Result<ListedFile> {
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    let mut hashed = HashedReader::new(file.take(size));
    archive.add(name, size, &mut hashed)?;
    Ok(ListedFile { name: name.to_owned(), sha256: hashed.hex() })
}

/// Lists the files of the state directory, by their paths below: all but the store, its index, and the marks of running gates.
pub(crate) fn of_state(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut directories = vec![dir.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory)? {
            let entry = entry?;
            let (kind, path) = (entry.file_type()?, entry.path());
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_remade = name.starts_with("index.db") || (directory == dir && (name == "run" || name.starts_with("banyan.db")));
            if kind.is_dir() && !is_remade {
                directories.push(path);
            } else if kind.is_file() && !is_remade {
                found.extend(path.strip_prefix(dir).map(Path::to_owned));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Lists the files in the directory of a configuration that the configuration names, by their paths below, after the configuration.
pub(crate) fn of_config(file: &Path, text: &str) -> Vec<PathBuf> {
    let own = file.file_name().map(PathBuf::from).unwrap_or_default();
    let directory = file.parent().unwrap_or(Path::new("."));
    let mut texts = Vec::new();
    if let Ok(document) = text.parse::<DocumentMut>() {
        of_item(document.as_item(), &mut texts);
    }
    let mut found: Vec<PathBuf> = texts.iter().filter_map(|text| named(text, directory)).filter(|path| *path != own).collect();
    found.sort();
    found.dedup();
    std::iter::once(own).chain(found).collect()
}

fn named(text: &str, directory: &Path) -> Option<PathBuf> {
    let path = text.strip_prefix("${file:").and_then(|text| text.strip_suffix('}')).unwrap_or(text);
    let path = directory.join(path);
    let is_file = std::fs::symlink_metadata(&path).is_ok_and(|file| file.is_file() && file.len() <= LARGEST_NAMED);
    let below = path.strip_prefix(directory).ok().filter(|_| is_file)?;
    below.components().all(|part| matches!(part, std::path::Component::Normal(_))).then(|| below.to_owned())
}

fn of_item(item: &Item, texts: &mut Vec<String>) {
    match item {
        Item::ArrayOfTables(tables) => tables.iter().for_each(|table| table.iter().for_each(|(_, item)| of_item(item, texts))),
        Item::None => {}
        Item::Table(table) => table.iter().for_each(|(_, item)| of_item(item, texts)),
        Item::Value(value) => of_value(value, texts),
    }
}

fn of_value(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| of_value(value, texts)),
        Value::InlineTable(table) => table.iter().for_each(|(_, value)| of_value(value, texts)),
        Value::String(text) => texts.push(text.value().clone()),
        Value::Boolean(_) | Value::Datetime(_) | Value::Float(_) | Value::Integer(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_named_beside_the_configuration_belong_to_a_backup() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let text = "policy = 'rules.cedar'\n[[parent]]\nurl = 'https://a'\ntoken = '${file:up.token}'\n\
                    [tls]\ncertificate = '/etc/hostname'\nkey = 'keys/own.pem'\nclient_ca = '../banyan.toml'\n";
        ["rules.cedar", "up.token", "keys/own.pem", "unnamed"].iter().for_each(|name| write(name, "x"));
        write("banyan.toml", text);
        let found = of_config(&dir.path().join("banyan.toml"), text);
        assert_eq!(found, ["banyan.toml", "keys/own.pem", "rules.cedar", "up.token"].map(PathBuf::from));
    }

    #[test]
    fn marks_of_running_gates_are_no_state_worth_keeping() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["ca/root.pem", "run/1.json", "banyan.db", "banyan.db-wal", "audit/a/1/index.db", "audit/a/1/entries"] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        assert_eq!(of_state(dir.path()).unwrap(), ["audit/a/1/entries", "ca/root.pem"].map(PathBuf::from));
    }
}
