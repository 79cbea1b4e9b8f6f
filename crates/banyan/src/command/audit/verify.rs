//! `banyan audit verify`: compares a record with its proofs, and names the place of a fault. Repairs nothing.

use std::path::PathBuf;

use clap::Args;
use disk::journal::examine::{BrokenPlace, ChainReport, Evidence, Report, checkpoints, examine, key};

use crate::document;
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::table::counted;

/// Checks every line, every hash and the signature.
#[derive(Args)]
pub(crate) struct Verify {
    /// The directory of the record
    #[arg(value_name = "DIR")]
    of: Option<PathBuf>,
    /// The public key that must have signed, as `banyan audit checkpoint` shows it, or a file with it
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Checkpoints that were kept elsewhere: the record must begin with the entries that each of them signs
    #[arg(long, value_name = "FILE")]
    seen: Vec<PathBuf>,
}

impl Verify {
    pub(super) fn run(&self, found: impl FnOnce(Option<&PathBuf>) -> Result<PathBuf, Failure>, output: &Output) -> Result<(), Failure> {
        let known = self.known()?;
        let dir = found(self.of.as_ref())?;
        let report = examine(&dir, &known)?;
        if output.wants_json() {
            output.json(&report)?;
        } else {
            let is_broken = |chain: &ChainReport| report.breaks.iter().any(|broken| broken.chain == chain.name);
            report.chains.iter().try_for_each(|chain| output.line(&chain_line(chain, is_broken(chain), output)))?;
            report.breaks.iter().try_for_each(|broken| output.line(&broken_line(broken, output)))?;
        }
        self.ended(&report, &dir, output)
    }

    fn known(&self) -> Result<Evidence, Failure> {
        let read = |path: &PathBuf| std::fs::read_to_string(path).map_err(|error| document::unread(path, &error));
        let checkpoints_of = |path: &PathBuf| {
            checkpoints(&read(path)?).map_err(|why| {
                let path = path.display();
                Failure::Usage(format!("{path} holds something else than checkpoints: {why}\n  `banyan audit checkpoint` prints one"))
            })
        };
        let text = self.key.as_ref().map(|given| if given.contains('+') { Ok(given.clone()) } else { read(&given.into()) }).transpose()?;
        let key = text.map(|text| key(text.trim())).transpose();
        let key = key.map_err(|why| {
            Failure::Usage(format!(
                "{why}\n  it stands in `key.pub` in the directory of the record: a copy of that, kept elsewhere, is what to name"
            ))
        })?;
        let seen = self.seen.iter().map(checkpoints_of).collect::<Result<Vec<_>, _>>()?;
        Ok(Evidence { key, seen: seen.concat() })
    }

    fn ended(&self, report: &Report, dir: &std::path::Path, output: &Output) -> Result<(), Failure> {
        if !report.sound {
            let text = format!(
                "the record in {} is not what was written: {}\n  keep it as it is, and compare it with what was exported or signed for before",
                dir.display(),
                counted(report.breaks.len(), "place")
            );
            return Err(Failure::Failed(text));
        }
        if self.key.is_none() && self.seen.is_empty() && !output.wants_json() {
            let text = "a holder of the signing key can write a whole record anew: a copy of the key (`--key`) and a checkpoint (`--seen`) kept elsewhere show that";
            output.remark(&output.paint_remark(Look::Dim, text));
        }
        if !output.wants_json() {
            output.line(&output.paint(Look::Good, "the record is sound"))?;
        }
        Ok(())
    }
}

/// Draws a line for a chain. A broken chain is read only up to the break, so that its number of entries is not known.
fn chain_line(chain: &ChainReport, is_broken: bool, output: &Output) -> String {
    let name = output.paint(Look::Strong, &chain.name);
    if is_broken {
        return format!("{name}  broken; {} signed for", entries(chain.signed));
    }
    let mut text = format!("{name}  {}", entries(chain.size.saturating_sub(chain.first)));
    let mut also = |is_so: bool, more: String| {
        if is_so {
            text.push_str(", ");
            text.push_str(&more);
        }
    };
    also(chain.first > 0, format!("from {} on (older ones were taken away)", chain.first));
    also(chain.signed < chain.size, format!("the last {} not signed for yet", chain.size.saturating_sub(chain.signed)));
    also(chain.missing > 0, format!("{} calls that the record says could not be written", chain.missing));
    also(chain.cut > 0, format!("{} cut lines that the record says", chain.cut));
    text
}

fn entries(count: u64) -> String {
    counted(usize::try_from(count).unwrap_or(usize::MAX), "entry").replace("entrys", "entries")
}

fn broken_line(broken: &BrokenPlace, output: &Output) -> String {
    let line = broken.line.map(|line| format!(":{line}")).unwrap_or_default();
    format!("{}  {}{line}\n    {}", output.paint(Look::Bad, &broken.chain), broken.file.display(), broken.what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_told_by_what_is_known_of_it() {
        let chain = |first, size, signed| ChainReport { name: "chain-0001".into(), first, size, signed, ..ChainReport::default() };
        let told = |chain: &ChainReport, is_broken| chain_line(chain, is_broken, &Output::new(false));
        assert_eq!(told(&chain(0, 28, 28), false), "chain-0001  28 entries");
        assert_eq!(
            told(&chain(2, 3, 1), false),
            "chain-0001  1 entry, from 2 on (older ones were taken away), the last 2 not signed for yet"
        );
        // Where it breaks at once, more is signed for than was read.
        assert_eq!(told(&chain(0, 0, 28), true), "chain-0001  broken; 28 entries signed for");
    }
}
