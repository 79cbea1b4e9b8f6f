//! Files of a backup: the configuration with the files that it names beside itself, and the state directory. Asks nobody.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use toml_edit::{DocumentMut, Item, Value};

use crate::tarball::{self, TarEntry, TarWriter};

/// Name of the list of files, which ends an archive.
pub(crate) const LIST: &str = "banyan-backup.json";
/// Directories in an archive.
pub(crate) const CONFIG: &str = "config";
pub(crate) const STATE: &str = "state";
/// Version of the form of an archive.
pub(crate) const FORM: u32 = 1;
/// First letters of the name of the copy of a store, while a backup is made.
pub(crate) const COPY: &str = "run-copy-";
/// Last letters of the name of a file that a restore has not put in its place yet.
pub(crate) const STAGED: &str = ".banyan-restore";
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
    let about = file.metadata()?;
    let entry = TarEntry { name: name.to_owned(), size: about.len(), is_program: about.permissions().mode() & 0o100 != 0 };
    let mut hashed = HashedReader::new(file.take(entry.size));
    archive.add(&entry, &mut hashed)?;
    Ok(ListedFile { name: name.to_owned(), sha256: hashed.hex() })
}

/// Files that belong to a backup, and files that a backup leaves out.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct KeptFiles {
    /// Paths below the directory.
    pub(crate) kept: Vec<PathBuf>,
    /// Paths below the directory, each with the reason.
    pub(crate) left_out: Vec<(PathBuf, &'static str)>,
}

/// Names of files in the state directory that no backup holds: a gate makes them anew, or a killed process left them behind.
pub(crate) fn is_remade(below: &str) -> bool {
    let name = below.rsplit('/').next().unwrap_or_default();
    let (first, is_top) = (below.split('/').next().unwrap_or_default(), !below.contains('/'));
    let is_left_behind = name.ends_with(".banyan-new") || name.ends_with(STAGED) || (is_top && name.starts_with(COPY));
    first == "run" || name.starts_with("index.db") || is_left_behind || (is_top && name.starts_with("banyan.db"))
}

/// Lists the files of the state directory: all but the store, its index, and the marks of running gates.
pub(crate) fn of_state(dir: &Path) -> io::Result<KeptFiles> {
    let mut found = KeptFiles::default();
    let mut directories = vec![dir.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory)? {
            let entry = entry?;
            let (kind, path) = (entry.file_type()?, entry.path());
            let below = path.strip_prefix(dir).unwrap_or(&path).to_owned();
            if is_remade(&below.to_string_lossy()) {
                continue;
            }
            if kind.is_dir() {
                directories.push(path);
                continue;
            }
            match std::fs::symlink_metadata(&path) {
                Ok(about) => found.sort_in(STATE, below, &about, tarball::LARGEST),
                // A gate took the file away meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    found.kept.sort();
    found.left_out.sort();
    Ok(found)
}

impl KeptFiles {
    /// Decides on one path below a directory whose name in the archive is `directory`.
    fn sort_in(&mut self, directory: &str, below: PathBuf, about: &Metadata, largest: u64) {
        let takes = |name: &str| tarball::takes(&format!("{directory}/{name}"), 0);
        let why = match about.file_type() {
            kind if kind.is_symlink() => Some("a symbolic link"),
            kind if kind.is_dir() => Some("a directory"),
            kind if !kind.is_file() => Some("no plain file"),
            _ if about.len() > largest => Some("too large"),
            _ if !below.to_str().is_some_and(takes) => Some("no archive takes the name"),
            _ => None,
        };
        match why {
            Some(why) => self.left_out.push((below, why)),
            None => self.kept.push(below),
        }
    }
}

/// Lists the files in the directory of a configuration that the configuration names, by their paths below, after the configuration.
pub(crate) fn of_config(file: &Path, text: &str) -> KeptFiles {
    let own = file.file_name().map(PathBuf::from).unwrap_or_default();
    let directory = file.parent().unwrap_or(Path::new("."));
    let mut texts = Vec::new();
    if let Ok(document) = text.parse::<DocumentMut>() {
        of_item(document.as_item(), &mut texts);
    }
    let mut named: Vec<PathBuf> = texts.iter().filter_map(|text| named(text, directory)).filter(|path| *path != own).collect();
    named.sort();
    named.dedup();
    let mut found = KeptFiles { kept: vec![own], left_out: Vec::new() };
    for below in named {
        if let Ok(about) = std::fs::symlink_metadata(directory.join(&below)) {
            found.sort_in(CONFIG, below, &about, LARGEST_NAMED);
        }
    }
    found
}

/// Reads a text as a path below a directory.
fn named(text: &str, directory: &Path) -> Option<PathBuf> {
    let path = text.strip_prefix("${file:").and_then(|text| text.strip_suffix('}')).unwrap_or(text);
    let path = directory.join(path);
    let below = path.strip_prefix(directory).ok().filter(|below| !below.as_os_str().is_empty())?;
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
        assert_eq!(found.kept, ["banyan.toml", "keys/own.pem", "rules.cedar", "up.token"].map(PathBuf::from));
        assert_eq!(found.left_out, []);
    }

    #[test]
    fn each_omitted_file_is_listed_with_its_reason() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("rules")).unwrap();
        File::create(dir.path().join("large")).unwrap().set_len(LARGEST_NAMED + 1).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", dir.path().join("link")).unwrap();
        std::fs::write(dir.path().join("back\\slash"), "x").unwrap();
        let found = of_config(&dir.path().join("banyan.toml"), "a = 'rules'\nb = 'large'\nc = 'link'\nd = ''\ne = '.'\n");
        let left_out = [("large", "too large"), ("link", "a symbolic link"), ("rules", "a directory")];
        assert_eq!(found.left_out, left_out.map(|(path, why)| (PathBuf::from(path), why)));
        let found = of_state(dir.path()).unwrap();
        let left_out = [("back\\slash", "no archive takes the name"), ("link", "a symbolic link")];
        assert_eq!(found.left_out, left_out.map(|(path, why)| (PathBuf::from(path), why)));
    }

    #[test]
    fn marks_of_running_gates_are_no_state_worth_keeping() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["ca/root.pem", "run/1.json", "banyan.db", "banyan.db-wal", "audit/a/1/index.db", "audit/a/1/entries", "run-copy-7.db"]
        {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        assert_eq!(of_state(dir.path()).unwrap().kept, ["audit/a/1/entries", "ca/root.pem"].map(PathBuf::from));
    }
}
