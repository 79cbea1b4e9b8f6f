//! Files of a backup on their way to their places: all of them, or none. Reads no archive and knows no file's meaning.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use runtime::whole;

use crate::backed_up::{BackupList, CONFIG, HashedReader, LIST, STAGED, STATE, is_remade};

/// RestorePlaces of a backup's files, by their names in the archive.
#[derive(Debug)]
pub(crate) struct RestorePlaces {
    by_name: BTreeMap<String, PathBuf>,
    /// Name of the configuration, which is put in place last.
    config: Option<String>,
    state: PathBuf,
    directory: PathBuf,
}

impl RestorePlaces {
    /// Gives each file of a list a place in the state directory, or beside the configuration. The error names a file without a place.
    pub(crate) fn planned(list: &BackupList, state: &Path, config: Option<&Path>) -> Result<Self, String> {
        let own = list.config.as_deref().and_then(Path::file_name).and_then(|name| name.to_str());
        let beside = config.and_then(Path::parent).filter(|directory| !directory.as_os_str().is_empty());
        let directory = beside.unwrap_or(Path::new(".")).to_owned();
        let mut by_name = BTreeMap::new();
        for name in list.files.iter().map(|file| &file.name) {
            let place = match (name.split_once('/'), own, config) {
                (Some((CONFIG, below)), Some(own), Some(config)) if below == own => Some(config.to_owned()),
                (Some((CONFIG, below)), Some(_), Some(_)) if !below.ends_with(STAGED) => Some(directory.join(below)),
                (Some((STATE, below)), ..) if below == "banyan.db" || !is_remade(below) => Some(state.join(below)),
                _ => None,
            };
            by_name.insert(name.clone(), place.ok_or_else(|| format!("{name} is no file that a backup holds"))?);
        }
        let config = own.map(|own| format!("{CONFIG}/{own}"));
        if let Some(missing) = config.as_ref().filter(|name| !by_name.contains_key(*name)) {
            return Err(format!("{missing} is missing"));
        }
        let different: BTreeSet<&PathBuf> = by_name.values().collect();
        if different.len() < by_name.len() {
            return Err("two of its files have the same place".to_owned());
        }
        Ok(Self { by_name, config, state: state.to_owned(), directory })
    }

    /// Lists names with places.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.by_name.iter().map(|(name, path)| (name.as_str(), path.as_path()))
    }

    /// Lists paths that are in the way: places taken, entries of the state directory, and links that would lead a file elsewhere.
    pub(crate) fn taken(&self) -> Vec<PathBuf> {
        let is_there = |path: &Path| fs::symlink_metadata(path).is_ok();
        let is_link = |path: &&Path| fs::symlink_metadata(path).is_ok_and(|about| !about.is_dir());
        let mut taken: BTreeSet<PathBuf> = self.by_name.values().filter(|path| is_there(path)).cloned().collect();
        for path in self.by_name.values() {
            let root = if path.starts_with(&self.state) { &self.state } else { &self.directory };
            let above = path.ancestors().skip(1).take_while(|above| *above != root && above.starts_with(root));
            taken.extend(above.filter(is_link).map(Path::to_owned));
        }
        let entries = fs::read_dir(&self.state).into_iter().flatten().flatten();
        taken.extend(entries.filter(|entry| entry.file_name() != "run").map(|entry| entry.path()));
        taken.into_iter().collect()
    }
}

/// Files written beside their places. Dropping removes each, and files put in place, unless all were.
pub(crate) struct Staging<'a> {
    places: &'a RestorePlaces,
    hashes: BTreeMap<&'a str, &'a str>,
    /// Names of files that are written.
    staged: BTreeSet<String>,
    placed: Vec<PathBuf>,
    /// Directories made, the outermost first.
    made: Vec<PathBuf>,
    is_done: bool,
}

impl<'a> Staging<'a> {
    pub(crate) fn new(places: &'a RestorePlaces, list: &'a BackupList) -> Self {
        let hashes = list.files.iter().map(|file| (file.name.as_str(), file.sha256.as_str())).collect();
        Self { places, hashes, staged: BTreeSet::new(), placed: Vec::new(), made: Vec::new(), is_done: false }
    }

    /// Writes a file beside its place and brings it to the disk. Refuses content other than the content that was checked.
    pub(crate) fn write(&mut self, name: &str, is_program: bool, content: &mut dyn Read) -> io::Result<()> {
        if name == LIST {
            return Ok(());
        }
        let changed = || io::Error::other(format!("{name} has changed since the archive was checked"));
        let path = self.places.by_name.get(name).ok_or_else(changed)?;
        self.make_above(path)?;
        let mode = if is_program { 0o700 } else { 0o600 };
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(beside(path))?;
        self.staged.insert(name.to_owned());
        let mut hashed = HashedReader::new(content);
        io::copy(&mut hashed, &mut file)?;
        file.sync_all()?;
        if self.hashes.get(name) == Some(&hashed.hex().as_str()) {
            return Ok(());
        }
        self.staged.remove(name);
        fs::remove_file(beside(path))?;
        Err(changed())
    }

    /// The path of a written file, before the file is put in its place.
    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        self.staged.get(name).and_then(|name| self.places.by_name.get(name)).map(|path| beside(path))
    }

    /// Puts all files in their places, the configuration last. Overwrites nothing.
    pub(crate) fn place(mut self) -> io::Result<()> {
        if self.staged.len() < self.places.by_name.len() {
            return Err(io::Error::other("the archive has changed since it was checked"));
        }
        let is_last = |name: &str| self.places.config.as_deref() == Some(name);
        let (last, others): (Vec<_>, Vec<_>) = self.places.iter().partition(|(name, _)| is_last(name));
        for (_, path) in others.into_iter().chain(last) {
            fs::hard_link(beside(path), path)?;
            self.placed.push(path.to_owned());
            whole::sync_dir(path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new(".")))?;
        }
        self.is_done = true;
        Ok(())
    }

    fn make_above(&mut self, path: &Path) -> io::Result<()> {
        let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) else { return Ok(()) };
        let missing = above.ancestors().take_while(|above| !above.as_os_str().is_empty() && !above.exists());
        let missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
        whole::make_dirs(above, 0o700)?;
        self.made.extend(missing.into_iter().rev());
        Ok(())
    }
}

impl Drop for Staging<'_> {
    fn drop(&mut self) {
        let staged = self.staged.iter().filter_map(|name| self.places.by_name.get(name));
        staged.for_each(|path| _ = fs::remove_file(beside(path)));
        if !self.is_done {
            self.placed.iter().for_each(|path| _ = fs::remove_file(path));
            self.made.iter().rev().for_each(|path| _ = fs::remove_dir(path));
        }
    }
}

/// Brings changes of a written file to the disk.
pub(crate) fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(STAGED);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backed_up::ListedFile;

    fn list(config: Option<&str>, names: &[&str]) -> BackupList {
        // SHA-256 of the text `x`.
        let sha256 = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
        let files = names.iter().map(|name| ListedFile { name: (*name).to_owned(), sha256: sha256.to_owned() }).collect();
        BackupList { form: 1, version: "1".to_owned(), made: 0, config: config.map(Into::into), state: "/s".into(), files }
    }

    #[test]
    fn files_that_no_backup_holds_have_no_place() {
        let places = |list: &BackupList| RestorePlaces::planned(list, Path::new("/s"), Some(Path::new("/c/new.toml"))).map(|_| ());
        assert_eq!(places(&list(Some("/old/banyan.toml"), &["config/banyan.toml", "state/banyan.db", "state/ca/a"])), Ok(()));
        for (config, names) in [
            (None, &["config/.bashrc"][..]),
            (Some("/old/banyan.toml"), &["config/a"]),
            (Some("/old/banyan.toml"), &["config/banyan.toml", "config/new.toml"]),
            (Some("/old/banyan.toml"), &["config/banyan.toml", "elsewhere/a"]),
            (None, &["state/banyan.db-wal"]),
            (None, &["state/run/1.json"]),
        ] {
            assert!(places(&list(config, names)).is_err(), "{names:?}");
        }
    }

    #[test]
    fn links_and_taken_places_are_in_the_way() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::os::unix::fs::symlink("/tmp", at("keys")).unwrap();
        fs::create_dir_all(at("state/run")).unwrap();
        fs::write(at("state/left"), "x").unwrap();
        let list = list(Some("/old/banyan.toml"), &["config/banyan.toml", "config/keys/own.pem", "state/a"]);
        let places = RestorePlaces::planned(&list, &at("state"), Some(&at("banyan.toml"))).unwrap();
        assert_eq!(places.taken(), [at("keys"), at("state/left")]);
    }

    #[test]
    fn a_failure_leaves_nothing_behind_and_success_all() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let list = list(Some("/old/banyan.toml"), &["config/banyan.toml", "state/a/run.sh"]);
        let places = RestorePlaces::planned(&list, &at("state"), Some(&at("banyan.toml"))).unwrap();
        let mut staging = Staging::new(&places, &list);
        staging.write("state/a/run.sh", true, &mut b"x".as_slice()).unwrap();
        assert!(staging.write("config/banyan.toml", false, &mut b"y".as_slice()).is_err(), "another content");
        assert!(staging.place().is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);

        let mut staging = Staging::new(&places, &list);
        staging.write("state/a/run.sh", true, &mut b"x".as_slice()).unwrap();
        staging.write("config/banyan.toml", false, &mut b"x".as_slice()).unwrap();
        fs::write(at("banyan.toml"), "came meanwhile").unwrap();
        assert!(staging.place().is_err());
        assert_eq!((fs::read_dir(dir.path()).unwrap().count(), fs::read(at("banyan.toml")).unwrap()), (1, b"came meanwhile".to_vec()));

        fs::remove_file(at("banyan.toml")).unwrap();
        let mut staging = Staging::new(&places, &list);
        staging.write("config/banyan.toml", false, &mut b"x".as_slice()).unwrap();
        staging.write("state/a/run.sh", true, &mut b"x".as_slice()).unwrap();
        staging.place().unwrap();
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(at("state/a/run.sh")).unwrap().permissions());
        assert_eq!((mode & 0o777, fs::read_dir(at("state/a")).unwrap().count()), (0o700, 1));
    }
}
