//! `banyan backup`: configuration and state of this user's gates in one file. Does not decide what belongs to a backup.

use std::fs::OpenOptions;
use std::io::{self, BufWriter};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use crate::arguments::Place;
use crate::backed_up::{self, BackupList, CONFIG, COPY, FORM, LIST, STATE};
use crate::document;
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::printable::printable;
use crate::table::counted;
use crate::tarball::{TarEntry, TarWriter};
use crate::turn::canonical;
use crate::{places, time};

/// Paths that a backup leaves out, each with the reason.
type LeftOut = Vec<(PathBuf, &'static str)>;

/// Keeps the configuration, the keys and the state of this user's gates in one file.
#[derive(Args)]
#[command(
    after_help = "The file is a tar archive. It holds private keys and the record: keep it as you keep these. Gates may run meanwhile. \
    Secrets in the system's keyring are not in it."
)]
pub(crate) struct Backup {
    /// The file to make
    file: PathBuf,
}

impl Backup {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let (made, left_out) = self.write(place).inspect_err(|failure| {
            // A file that was there before is none of this run's.
            if !matches!(failure, Failure::Refused(_)) {
                _ = std::fs::remove_file(&self.file);
            }
        })?;
        if output.wants_json() {
            return output.json(&json!({ "file": self.file, "config": made.config, "state": made.state, "files": made.files.len(), "left_out": left_out.iter().map(|(path, why)| json!({ "path": path, "why": why })).collect::<Vec<_>>() }));
        }
        output.line(&format!("{} kept in {}", counted(made.files.len(), "file"), self.file.display()))?;
        let warning = output.paint_remark(Look::Warn, "warning:");
        for (path, why) in &left_out {
            output.remark(&format!("{warning} {} is left out: {why}", printable(&path.display().to_string())));
        }
        output.remark("it holds private keys; `banyan restore FILE` puts the backup back");
        Ok(())
    }

    fn write(&self, place: &Place) -> Result<(BackupList, LeftOut), Failure> {
        let state = places::state_dir()?;
        self.check_apart(&state)?;
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.file);
        let file = made.map_err(|error| {
            if error.kind() == io::ErrorKind::AlreadyExists {
                return Failure::Refused(format!("{} is there already: name another file", self.file.display()));
            }
            document::failed(&self.file, "written", &error)
        })?;
        let config = places::config_file(place.config.as_deref())?.map(|file| std::path::absolute(&file).unwrap_or(file));
        let made = time::now();
        let mut archive = TarWriter::new(BufWriter::new(file), made);
        let (mut files, mut left_out) = (Vec::new(), LeftOut::new());
        if let Some(config) = &config {
            let text = std::fs::read_to_string(config).map_err(|error| document::unread(config, &error))?;
            let directory = config.parent().unwrap_or(Path::new("/"));
            let found = backed_up::of_config(config, &text);
            left_out.extend(found.left_out.into_iter().map(|(below, why)| (directory.join(below), why)));
            for below in found.kept {
                let path = directory.join(&below);
                let name = format!("{CONFIG}/{}", below.display());
                files.push(backed_up::add(&mut archive, &name, &path).map_err(|error| document::failed(&path, "kept", &error))?);
            }
        }
        if state.is_dir() {
            let failed = |path: &Path, error: &io::Error| document::failed(path, "kept", error);
            let found = backed_up::of_state(&state).map_err(|error| failed(&state, &error))?;
            left_out.extend(found.left_out.into_iter().map(|(below, why)| (state.join(below), why)));
            for below in found.kept {
                let path = state.join(&below);
                match backed_up::add(&mut archive, &format!("{STATE}/{}", below.display()), &path) {
                    Ok(listed) => files.push(listed),
                    // A gate took the file away meanwhile.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(failed(&path, &error)),
                }
            }
            files.extend(self.store(&state, &mut archive)?);
        }
        if files.is_empty() {
            return Err(Failure::NotFound(format!("there is nothing to keep: no banyan.toml, and no {}", state.display())));
        }
        let list = BackupList { form: FORM, version: env!("CARGO_PKG_VERSION").to_owned(), made, config, state, files };
        let text = serde_json::to_vec_pretty(&list).unwrap_or_default();
        let size = u64::try_from(text.len()).unwrap_or_default();
        let head = TarEntry { name: LIST.to_owned(), size, is_program: false };
        let ended = archive.add(&head, text.as_slice()).and_then(|()| archive.finish()?.into_inner().map_err(io::Error::other)?.sync_all());
        ended.map_err(|error| document::failed(&self.file, "written", &error))?;
        Ok((list, left_out))
    }

    /// Refuses a backup within the state directory: the next backup would hold the backup.
    fn check_apart(&self, state: &Path) -> Result<(), Failure> {
        let directory = self.file.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if canonical(directory).starts_with(canonical(state)) {
            return Err(Failure::Refused(format!(
                "{} lies in the state directory, which is kept itself\n  name a place elsewhere",
                self.file.display()
            )));
        }
        Ok(())
    }

    /// Adds a copy of the store, made at one moment.
    fn store<W: io::Write>(&self, state: &Path, archive: &mut TarWriter<W>) -> Result<Option<backed_up::ListedFile>, Failure> {
        let copy = state.join(format!("{COPY}{}.db", std::process::id()));
        let copied = disk::snapshot(state, &copy).map_err(|error| Failure::Failed(format!("the store can't be copied: {error}")))?;
        if !copied {
            return Ok(None);
        }
        let listed = backed_up::add(archive, &format!("{STATE}/banyan.db"), &copy);
        _ = std::fs::remove_file(&copy);
        listed.map(Some).map_err(|error| document::failed(&copy, "kept", &error))
    }
}
