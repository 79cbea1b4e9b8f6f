//! `banyan audit`: reads the record of calls and decisions, and checks it. Needs the files only; changes nothing.

mod export;
mod verify;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use config::secret::SystemSources;
use disk::journal::archive::{Archive, ArchiveError, ChainDir, records};
use disk::journal::index::{EVENTS, Search};
use gateway::admin::audit::{proof, shown};
use gateway::admin::shapes::{AuditEntry, AuditFound, AuditStatus, Status};

use crate::arguments::Place;
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::printable::printable;
use crate::table::{self, Align};
use crate::{document, gate, places, threads, time};

/// Reads and checks the record of calls and decisions.
#[derive(Args)]
pub(crate) struct Audit {
    /// The directory of the record [default: that of the running gate, or the one in the state directory]
    #[arg(long, global = true, value_name = "DIR")]
    dir: Option<PathBuf>,
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Print the last signed checkpoint: keep it elsewhere, and `verify --seen` finds later changes
    Checkpoint,
    /// Copy the record as a static log (C2SP tlog-tiles), or print its lines
    Export(export::Export),
    /// Show the newest entries
    List(List),
    /// Print an entry with the proof that it is in the record (C2SP tlog-proof)
    Prove(One),
    /// Show all entries of a call or of an approval, or one entry
    Show(One),
    /// Check every line, every hash and the signature, and say where something was changed
    Verify(verify::Verify),
}

#[derive(Args)]
struct List {
    /// Not older than this: `15m`, `24h`, `7d`
    #[arg(long, value_name = "AGE")]
    since: Option<String>,
    /// Older than this
    #[arg(long, value_name = "AGE")]
    until: Option<String>,
    /// Only calls of this principal
    #[arg(long, value_name = "NAME")]
    principal: Option<String>,
    /// Only calls of `MOUNT.NAME`; `*` at the end stands for any text
    #[arg(long, value_name = "NAME", visible_alias = "tool")]
    route: Option<String>,
    /// Only calls with this end: `done`, `tool_error`, `error`, `cancelled`, `timed_out`, `unknown`, `refused`, `denied`, ...
    #[arg(long, value_name = "WORD")]
    outcome: Option<String>,
    /// Only entries of this kind: `called`, `intended`, `refused`, `approval_decided`, `changed`, ...
    #[arg(long, value_name = "WORD")]
    event: Option<String>,
    /// Only calls of this trace, over all gates on their way
    #[arg(long, value_name = "TRACE")]
    trace: Option<String>,
    /// How many
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    limit: u64,
}

#[derive(Args)]
struct One {
    /// The id of a call, of an approval or of a grant, or the place of an entry: `SEQ`, or `CHAIN/SEQ`
    #[arg(value_name = "ID")]
    id: String,
}

impl Audit {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        if let What::Verify(verify) = &self.what {
            return verify.run(|given| self.found(given, place, output), output);
        }
        let archive = Archive::open(&self.found(None, place, output)?)?;
        match &self.what {
            What::Checkpoint => {
                let chain = archive.chain(None)?;
                let (key, checkpoint) = (archive.key(&chain)?, archive.checkpoint(&chain)?);
                if output.wants_json() {
                    return output.json(&serde_json::json!({ "chain": chain.number, "key": key, "checkpoint": checkpoint }));
                }
                output.remark(&output.paint_remark(Look::Dim, &format!("signed by {key}")));
                output.raw(checkpoint.as_bytes())
            }
            What::Export(export) => export.run(&archive, output),
            What::List(list) => list.run(&archive, output),
            What::Prove(one) => one.prove(&archive, output),
            What::Show(one) => one.show(&archive, output),
            What::Verify(_) => Ok(()),
        }
    }

    /// Finds the directory of the record.
    fn found(&self, given: Option<&PathBuf>, place: &Place, output: &Output) -> Result<PathBuf, Failure> {
        given.or(self.dir.as_ref()).map_or_else(|| record(place, output), |dir| Ok(dir.clone()))
    }
}

/// Finds the directory of the record: that of the running gate, or the one in the state directory.
pub(super) fn record(place: &Place, output: &Output) -> Result<PathBuf, Failure> {
    if let Some(gate) = gate::running(place)? {
        let status: Status = threads::wait(gate.get("/-/status", &[]))??;
        if let Some(AuditStatus { directory: Some(dir), .. }) = status.audit {
            return Ok(dir.into());
        }
    }
    if let Some(path) = places::config_file(place.config.as_deref())?
        && let Ok(config) = gateway::parts::sections().load(&path, &SystemSources)
        && let Some(dir) = &config.audit.path
    {
        return Ok(dir.clone());
    }
    let mut all = records(&places::state_dir()?);
    all.sort_by_key(|dir| Archive::open(dir).ok().and_then(|a| std::fs::metadata(a.chain(None).ok()?.path).ok()?.modified().ok()));
    let others = all.len().saturating_sub(1);
    let last = all.pop().ok_or_else(|| {
        Failure::NotFound(
            "nothing was recorded yet: a gate begins a record with its first call\n  `--dir DIRECTORY` names a record that lies elsewhere"
                .into(),
        )
    })?;
    if others > 0 {
        let text = format!("the record written last is meant, {}; `--dir` names one of the {others} others beside it", last.display());
        output.remark(&output.paint_remark(Look::Dim, &text));
    }
    Ok(last)
}

impl List {
    fn run(&self, archive: &Archive, output: &Output) -> Result<(), Failure> {
        let search = Search {
            since: self.since.as_deref().map(ago).transpose()?,
            until: self.until.as_deref().map(ago).transpose()?,
            principal: self.principal.clone(),
            route: self.route.clone(),
            outcome: self.outcome.clone(),
            event: self.event.clone(),
            trace: self.trace.clone(),
            limit: self.limit,
            ..Search::default()
        };
        let entries: Vec<AuditEntry> = archive.search(&search)?.iter().map(shown).collect();
        if output.wants_json() {
            return output.json(&AuditFound { entries });
        }
        if entries.is_empty() {
            return self.nothing(output);
        }
        let now = time::now();
        let head = ["ENTRY", "AGE", "EVENT", "PRINCIPAL", "TOOL", "OUTCOME", "TOOK", "ID"].map(str::to_owned).to_vec();
        let rows: Vec<Vec<String>> = std::iter::once(head).chain(entries.iter().map(|entry| row(entry, now))).collect();
        let columns = [Align::Right, Align::Right, Align::Left, Align::Left, Align::Left, Align::Left, Align::Right, Align::Left];
        table::lines(&columns, &rows).iter().try_for_each(|line| output.line(line))
    }
}

impl List {
    /// Reports an empty list, or unknown words in the query.
    fn nothing(&self, output: &Output) -> Result<(), Failure> {
        if self.event.as_deref().is_some_and(|event| !EVENTS.contains(&event)) {
            return Err(Failure::Usage(format!("there is no such `--event`\n  it is one of {}", EVENTS.join(", "))));
        }
        output.line("no entry matches")
    }
}

fn row(entry: &AuditEntry, now: u64) -> Vec<String> {
    let text = |text: &Option<String>| text.as_deref().map(printable).unwrap_or_default();
    let took = entry.took_us.map(|us| format!("{:.1} ms", std::time::Duration::from_micros(us).as_secs_f64() * 1000.0)).unwrap_or_default();
    let ago = format!("{} ago", table::duration(now.saturating_sub(entry.time / 1_000_000)));
    let place = format!("{}/{}", entry.chain, entry.seq);
    // What has no name in the tree may have lines that say what it is about.
    let about = if entry.changed.is_empty() { text(&entry.route) } else { cut(&printable(&entry.changed.join("; "))) };
    let id = if entry.call.is_some() { text(&entry.call) } else { text(&entry.approval) };
    let times = entry.count.map(|count| format!(" ({count}x)")).unwrap_or_default();
    vec![place, ago, printable(&entry.event), text(&entry.principal), about, text(&entry.outcome) + &times, took, id]
}

/// Cuts a text to the width of a column.
fn cut(text: &str) -> String {
    const MOST: usize = 60;
    if text.chars().count() <= MOST { text.to_owned() } else { text.chars().take(MOST - 1).chain(['…']).collect() }
}

/// A time before now, in microseconds since 1970.
fn ago(text: &str) -> Result<u64, Failure> {
    let age = config::age(text).ok_or_else(|| Failure::Usage(format!("`{text}` is no age: write 15m, 24h or 7d")))?;
    Ok(time::now().saturating_sub(age.as_secs()).saturating_mul(1_000_000))
}

impl One {
    fn prove(&self, archive: &Archive, output: &Output) -> Result<(), Failure> {
        let (chain, seq) = self.only(archive)?;
        let proof = proof(archive, &chain, seq)?;
        if output.wants_json() {
            return output.json(&proof);
        }
        output.remark(&output.paint_remark(Look::Dim, &format!("proved for entry {}/{seq}, signed by {}", chain.number, proof.key)));
        output.raw(proof.proof.as_bytes())
    }

    fn show(&self, archive: &Archive, output: &Output) -> Result<(), Failure> {
        let entries = match self.place(archive)? {
            Some((chain, seq)) => vec![shown(&archive.entry(&chain, seq)?)],
            None => self.of_call(archive)?,
        };
        if output.wants_json() {
            return output.json(&AuditFound { entries });
        }
        let now = time::now();
        for entry in &entries {
            output.line(&output.paint(Look::Strong, &row(entry, now).join("  ")))?;
            let line: serde_json::Value = entry.line.as_ref().and_then(|l| serde_json::from_str(l.get()).ok()).unwrap_or_default();
            let facts = serde_json::to_string_pretty(&line["facts"]).unwrap_or_default();
            facts.lines().try_for_each(|line| output.line(&format!("    {}", printable(line))))?;
        }
        Ok(())
    }

    /// Lists the entries of a call, in the order of writing.
    fn of_call(&self, archive: &Archive) -> Result<Vec<AuditEntry>, Failure> {
        let search = Search { id: Some(self.id.clone()), limit: 1000, ..Search::default() };
        let mut entries: Vec<AuditEntry> = archive.search(&search)?.iter().map(shown).collect();
        entries.reverse();
        if entries.is_empty() {
            return Err(Failure::NotFound(format!(
                "there is no call and no approval `{}` in this record\n  `banyan audit list` shows the newest",
                printable(&self.id)
            )));
        }
        Ok(entries)
    }

    fn place(&self, archive: &Archive) -> Result<Option<(ChainDir, u64)>, Failure> {
        let (chain, seq) = self.id.split_once('/').map_or((None, self.id.as_str()), |(chain, seq)| (Some(chain), seq));
        let (Ok(seq), Ok(chain)) = (seq.parse(), chain.map(str::parse).transpose()) else { return Ok(None) };
        Ok(Some((archive.chain(chain)?, seq)))
    }

    fn only(&self, archive: &Archive) -> Result<(ChainDir, u64), Failure> {
        if let Some(place) = self.place(archive)? {
            return Ok(place);
        }
        let entries = self.of_call(archive)?;
        let last = entries.last().ok_or_else(|| Failure::NotFound("there is no such entry".into()))?;
        Ok((archive.chain(Some(last.chain))?, last.seq))
    }
}

impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Self {
        match error {
            ArchiveError::Io { path, source } => document::failed(&path, "read", &source),
            ArchiveError::NotFound(why) => {
                Self::NotFound(format!("{why}\n  `banyan audit list` shows the record written last, `--dir DIRECTORY` names another"))
            }
            ArchiveError::Index(_) | ArchiveError::Unproved(_) => Self::Failed(error.to_string()),
        }
    }
}
