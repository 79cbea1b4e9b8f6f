//! `banyan restore`: a backup, put back where nothing is yet. Nothing is overwritten, and nothing is written before all of it was checked.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use runtime::whole;
use serde_json::json;

use crate::arguments::Place;
use crate::backed_up::{BackupList, CONFIG, FORM, HashedReader, LIST, STATE};
use crate::document;
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::table::counted;
use crate::{gate, places, tarball};

/// Largest list of files.
const LARGEST_LIST: u64 = 64 << 20;

/// Puts a backup back.
#[derive(Args)]
#[command(
    after_help = "Nothing is overwritten: move the old configuration and the old state directory away first. A record that was restored \
    goes on from where the backup was made: of later entries, only a checkpoint kept elsewhere tells (`banyan audit verify --seen`)."
)]
pub(crate) struct Restore {
    /// The file that `banyan backup` made
    file: PathBuf,
    /// Check the backup and write nothing
    #[arg(long)]
    dry_run: bool,
}

impl Restore {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let list = self.checked()?;
        let state = places::state_dir()?;
        let config = match (&place.config, &list.config) {
            (Some(given), _) => Some(given.clone()),
            (None, Some(_)) => Some(places::config_dir()?.join(places::CONFIG_NAME)),
            (None, None) => None,
        };
        if !self.dry_run {
            free(&state, config.as_deref(), &list)?;
            self.write(&state, config.as_deref(), &list).map_err(|error| {
                Failure::Failed(format!(
                    "the backup is not restored: {error}\n  remove what was written to {} and try again",
                    state.display()
                ))
            })?;
        }
        if output.wants_json() {
            return output.json(&json!({ "files": list.files.len(), "config": config, "state": state, "written": !self.dry_run }));
        }
        let done = if self.dry_run { "checked; nothing is written" } else { "restored" };
        output.line(&format!("{} {done}", counted(list.files.len(), "file")))?;
        if let Some(config) = &config {
            output.remark(&format!("the configuration is {}", config.display()));
        }
        if list.state != state {
            let look = output.paint_remark(Look::Warn, "warning:");
            output.remark(&format!(
                "{look} the state lay in {} and lies in {} now: paths in banyan.toml that name the old place need a change",
                list.state.display(),
                state.display()
            ));
        }
        output.remark("secrets of the keyring are not in a backup: `banyan secret set NAME` stores them again");
        Ok(())
    }

    /// Reads the whole archive and holds each file against the list.
    fn checked(&self) -> Result<BackupList, Failure> {
        let (mut hashes, mut list) = (BTreeMap::new(), None);
        let read = self.open()?;
        let failed =
            |error: io::Error| Failure::Failed(format!("{} is no whole backup: {error}\n  nothing is written", self.file.display()));
        tarball::read(read, |entry, content| {
            if entry.name == LIST {
                let mut text = Vec::new();
                content.take(LARGEST_LIST).read_to_end(&mut text)?;
                list = Some(serde_json::from_slice::<BackupList>(&text).map_err(io::Error::other)?);
                return Ok(());
            }
            let mut hashed = HashedReader::new(content);
            io::copy(&mut hashed, &mut io::sink())?;
            let is_twice = hashes.insert(entry.name.clone(), hashed.hex()).is_some();
            if is_twice { Err(io::Error::other(format!("{} stands in it twice", entry.name))) } else { Ok(()) }
        })
        .map_err(failed)?;
        let list = list.ok_or_else(|| failed(io::Error::other("its list of files is missing")))?;
        if list.form != FORM {
            return Err(Failure::Failed(format!(
                "the backup was made by Banyan {}, and this version does not read its form",
                list.version
            )));
        }
        let listed: BTreeMap<String, String> = list.files.iter().map(|file| (file.name.clone(), file.sha256.clone())).collect();
        if listed != hashes {
            return Err(failed(io::Error::other("its files are not those of its list")));
        }
        Ok(list)
    }

    fn write(&self, state: &Path, config: Option<&Path>, list: &BackupList) -> io::Result<()> {
        let read = self.open().map_err(|failure| io::Error::other(failure.to_string()))?;
        let directory = config.and_then(Path::parent).filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let own = list.config.as_deref().and_then(Path::file_name).map(PathBuf::from);
        tarball::read(read, |entry, content| {
            let path = match entry.name.split_once('/') {
                Some((CONFIG, below)) if own.as_deref() == Some(Path::new(below)) => {
                    config.map_or_else(|| directory.join(below), Path::to_owned)
                }
                Some((CONFIG, below)) => directory.join(below),
                Some((STATE, below)) => state.join(below),
                Some(_) | None => return Ok(()),
            };
            if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
                whole::make_dirs(above, 0o700)?;
            }
            let mut bytes = Vec::new();
            content.read_to_end(&mut bytes)?;
            whole::create(&path, &bytes)
        })
    }

    fn open(&self) -> Result<BufReader<File>, Failure> {
        File::open(&self.file).map(BufReader::new).map_err(|error| document::unread(&self.file, &error))
    }
}

/// Checks that no gate runs and that nothing is in the way.
fn free(state: &Path, config: Option<&Path>, list: &BackupList) -> Result<(), Failure> {
    if !gate::all()?.is_empty() {
        return Err(Failure::Refused("a gate is running\n  end it first with `banyan stop`".to_owned()));
    }
    let is_used = std::fs::read_dir(state).is_ok_and(|entries| entries.flatten().any(|entry| entry.file_name() != "run"));
    let taken = [is_used.then_some(state), config.filter(|file| file.exists())];
    match taken.into_iter().flatten().next() {
        Some(path) => Err(Failure::Refused(format!(
            "{} is there already, and nothing is overwritten\n  move it away, then restore the {} of the backup",
            path.display(),
            counted(list.files.len(), "file")
        ))),
        None => Ok(()),
    }
}
