//! `banyan restore`: a backup, put back where nothing is yet. Nothing is overwritten, and nothing is written before all of it was checked.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use crate::arguments::Place;
use crate::backed_up::{BackupList, FORM, HashedReader, LIST, STATE};
use crate::document;
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::printable::printable;
use crate::restored::{self, RestorePlaces, Staging};
use crate::table::counted;
use crate::{gate, places, tarball};

/// Largest list of files.
const LARGEST_LIST: u64 = 64 << 20;
/// Number of paths in the way that are named.
const SHOWN: usize = 20;

/// Puts a backup back.
#[derive(Args)]
#[command(
    after_help = "Nothing is overwritten: move the old configuration and the old state directory away first. A record that was restored \
    goes on from where the backup was made: of later entries, only a checkpoint kept elsewhere tells (`banyan audit verify --seen`). \
    Grants, tokens and operators are those of the backup; approvals that were open then, and grants for a number of calls, are void. \
    Restore only a backup of your own: banyan.toml names programs that a gate starts."
)]
pub(crate) struct Restore {
    /// The file that `banyan backup` made
    file: PathBuf,
    /// Check the backup, list its files and write nothing
    #[arg(long)]
    dry_run: bool,
}

impl Restore {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let list = self.checked()?;
        let state = places::state_dir()?;
        let config = match (&place.config, &list.config) {
            (Some(given), Some(_)) => Some(given.clone()),
            (None, Some(_)) => Some(places::config_dir()?.join(places::CONFIG_NAME)),
            (_, None) => None,
        };
        let places = RestorePlaces::planned(&list, &state, config.as_deref()).map_err(|why| self.broken(&why))?;
        let voided = if self.dry_run { 0 } else { self.write(&places, &list)? };
        if output.wants_json() {
            let names: Vec<&str> = places.iter().map(|(name, _)| name).collect();
            let written = !self.dry_run;
            return output.json(&json!({
                "files": list.files.len(), "names": names, "config": config, "state": state, "written": written, "voided": voided,
            }));
        }
        if self.dry_run {
            places
                .iter()
                .try_for_each(|(name, path)| output.line(&format!("{}  {}", printable(name), printable(&path.display().to_string()))))?;
        }
        let done = if self.dry_run { "checked; nothing is written" } else { "restored" };
        output.line(&format!("{} {done}", counted(list.files.len(), "file")))?;
        if let Some(config) = &config {
            output.remark(&format!("the configuration is {}", config.display()));
        }
        tell_differences(&list, &state, voided, output);
        Ok(())
    }

    /// Reads the whole archive and holds each file against the list.
    fn checked(&self) -> Result<BackupList, Failure> {
        let (mut hashes, mut list) = (BTreeMap::new(), None);
        let read = self.open()?;
        let failed = |error: io::Error| self.broken(&error.to_string());
        tarball::read(read, |entry, content| {
            if entry.name == LIST {
                if list.is_some() {
                    return Err(io::Error::other("its list of files stands in it twice"));
                }
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
                printable(&list.version)
            )));
        }
        let listed: BTreeMap<String, String> = list.files.iter().map(|file| (file.name.clone(), file.sha256.clone())).collect();
        if listed != hashes {
            return Err(failed(io::Error::other("its files are not those of its list")));
        }
        Ok(list)
    }

    /// Writes all files or none, and counts the approvals and grants that are void.
    fn write(&self, places: &RestorePlaces, list: &BackupList) -> Result<usize, Failure> {
        free(places, list)?;
        let mut staging = Staging::new(places, list);
        let failed = |error: io::Error| {
            let why = printable(&error.to_string());
            Failure::Failed(format!("the backup is not restored: {why}\n  nothing is written"))
        };
        tarball::read(self.open()?, |entry, content| staging.write(&entry.name, entry.is_program, content)).map_err(failed)?;
        let mut voided = 0;
        if let Some(store) = staging.path(&format!("{STATE}/banyan.db")) {
            voided = disk::void_open(&store).map_err(|error| failed(io::Error::other(error)))?;
            restored::sync(&store).map_err(failed)?;
        }
        staging.place().map_err(failed)?;
        Ok(voided)
    }

    fn broken(&self, why: &str) -> Failure {
        Failure::Failed(format!("{} is no whole backup: {}\n  nothing is written", self.file.display(), printable(why)))
    }

    fn open(&self) -> Result<BufReader<File>, Failure> {
        File::open(&self.file).map(BufReader::new).map_err(|error| document::unread(&self.file, &error))
    }
}

/// Tells how the restored state differs from the state at the time of the backup.
fn tell_differences(list: &BackupList, state: &Path, voided: usize, output: &Output) {
    let warning = output.paint_remark(Look::Warn, "warning:");
    if voided > 0 {
        output.remark(&format!(
            "{warning} open approvals and counted grants of the backup are void ({voided}): calls may have used them since"
        ));
    }
    if list.state != state {
        output.remark(&format!(
            "{warning} the state lay in {} and lies in {} now: paths in banyan.toml that name the old place need a change",
            printable(&list.state.display().to_string()),
            state.display()
        ));
    }
    output.remark("secrets of the keyring are not in a backup: `banyan secret set NAME` stores them again");
}

/// Checks that no gate runs and that nothing is in the way.
fn free(places: &RestorePlaces, list: &BackupList) -> Result<(), Failure> {
    if !gate::all()?.is_empty() {
        return Err(Failure::Refused("a gate is running\n  end it first with `banyan stop`".to_owned()));
    }
    let taken = places.taken();
    let shown: Vec<String> = taken.iter().take(SHOWN).map(|path| printable(&path.display().to_string())).collect();
    if shown.is_empty() {
        return Ok(());
    }
    let more = match taken.len() - shown.len() {
        0 => String::new(),
        more => format!("\n  and {more} more"),
    };
    Err(Failure::Refused(format!(
        "nothing is overwritten, and these are there already:\n  {}{more}\n  move them away, then restore the {} of the backup",
        shown.join("\n  "),
        counted(list.files.len(), "file")
    )))
}
