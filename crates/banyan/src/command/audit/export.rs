//! `banyan audit export`: the lines of a record for other programs, or all of a chain as a static log that any client of C2SP tlog-tiles
//! reads. The record itself does not change.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use disk::journal::archive::Archive;

use crate::document;
use crate::failure::Failure;
use crate::output::{Look, Output};

/// Copies the record.
#[derive(Args)]
pub(crate) struct Export {
    /// Write a static log into this new directory: `checkpoint`, `tile/...` and `tile/entries/...`
    #[arg(long, value_name = "DIR")]
    tiles: Option<PathBuf>,
    /// The chain; without it, the lines of all, or the log of the last
    #[arg(long, value_name = "NUMBER")]
    chain: Option<u32>,
}

impl Export {
    pub(super) fn run(&self, archive: &Archive, output: &Output) -> Result<(), Failure> {
        let Some(target) = &self.tiles else {
            let chains = archive.chains()?.into_iter().filter(|chain| self.chain.is_none_or(|wanted| wanted == chain.number));
            for chain in chains {
                for segment in chain.segments().map_err(|e| failed(&chain.path, &e))? {
                    output.raw(&fs::read(&segment.path).map_err(|e| failed(&segment.path, &e))?)?;
                }
            }
            return Ok(());
        };
        if target.exists() {
            return Err(Failure::Refused(format!("{} is there already: name a directory that is not", target.display())));
        }
        let chain = archive.chain(self.chain)?;
        let (mut files, mut unwritten) = (0, None);
        let made = archive.log(&chain, |path, content| {
            let path = target.join(path);
            files += 1;
            let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, content));
            written.inspect_err(|error| unwritten = Some(document::failed(&path, "written", error)))
        });
        made.map_err(|error| unwritten.unwrap_or_else(|| error.into()))?;
        output.remark(&output.paint_remark(Look::Dim, &format!("{files} files of {} in {}", chain.name(), target.display())));
        Ok(())
    }
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    document::failed(path, "read", error)
}
