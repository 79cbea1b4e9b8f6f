//! Candidates: owner, commands and diff. Nothing here reaches a device.

use super::form::ConfigForm;
use super::record::{ChangeRecord, DeviceChange, Now, Phase, binding};
use super::text::{Grammar, Tree, revision, unified};
use crate::fault::{Code, Fault};
use crate::redact::Redactor;

/// Milliseconds after the last edit for which an open candidate stays with the owner.
pub const LEASE: u64 = 10 * 60 * 1000;

/// Material of a candidate.
#[derive(Clone, Debug)]
pub enum Edits {
    /// Further commands of the configuration mode.
    Commands(Vec<String>),
    /// A whole configuration, in place of the candidate.
    Whole(String),
}

/// Somebody at work on a device.
#[derive(Clone, Copy, Debug)]
pub struct Author<'a> {
    /// Name of the device, the begin of the ids of changes.
    pub device: &'a str,
    pub who: &'a str,
}

/// Makes or changes the candidate of a device with the running configuration `running`.
///
/// # Errors
/// Another's change is open or pending, or nothing would change.
pub fn edit(
    record: &ChangeRecord,
    author: Author<'_>,
    edits: Edits,
    running: &str,
    grammar: &Grammar,
    now: &Now,
) -> Result<ChangeRecord, Fault> {
    let (edits, candidate) = merged(record, author.who, edits, running, grammar, now)?;
    adopt(record, author, TriedEdits { form: ConfigForm::Lines, edits, running: running.to_owned(), candidate }, now)
}

/// All edits of the candidate of `who` with these, and the lines that they make of the running configuration.
///
/// # Errors
/// Another's change is open or pending.
pub fn merged(
    record: &ChangeRecord,
    who: &str,
    edits: Edits,
    running: &str,
    grammar: &Grammar,
    now: &Now,
) -> Result<(Vec<String>, String), Fault> {
    let open = owned(record, who, now)?;
    let mut commands = open.map(|change| change.commands.clone()).unwrap_or_default();
    let mut tree = match edits {
        Edits::Whole(text) => {
            commands.clear();
            Tree::read(&text)
        }
        Edits::Commands(more) => {
            commands.extend(more);
            let whole = open.filter(|change| change.commands.is_empty()).map_or(running, |change| &change.candidate);
            Tree::read(whole)
        }
    };
    tree.merge(commands.iter().map(String::as_str), grammar);
    Ok((commands, tree.write(grammar)))
}

/// Edits of a candidate with the outcome.
#[derive(Clone, Debug)]
pub struct TriedEdits {
    pub form: ConfigForm,
    /// All edits of the candidate so far.
    pub edits: Vec<String>,
    pub running: String,
    pub candidate: String,
}

/// Takes a candidate that the device itself has made of edits.
///
/// # Errors
/// Another's change is open or pending, or nothing would change.
pub fn adopt(record: &ChangeRecord, author: Author<'_>, tried: TriedEdits, now: &Now) -> Result<ChangeRecord, Fault> {
    let open = owned(record, author.who, now)?;
    if tried.form.differences(&tried.candidate, &tried.running).is_empty() {
        return Err(Fault::new(Code::ConfigIncompatible, "nothing would change: the running configuration holds all of it already"));
    }
    let base = revision(&tried.running);
    let count = record.count + u64::from(open.is_none());
    let change = DeviceChange {
        id: open.map_or_else(|| format!("{}-{count}", author.device), |change| change.id.clone()),
        owner: author.who.to_owned(),
        phase: Phase::Open,
        lease: now.wall.saturating_add(LEASE),
        hash: binding(&base, &tried.candidate, &tried.edits),
        base,
        candidate: tried.candidate,
        form: tried.form,
        persist: None,
        commands: tried.edits,
        deadline: None,
        snapshot: None,
        reason: None,
        start: None,
        failures: 0,
        is_unanswered: false,
    };
    Ok(ChangeRecord { count, change: Some(change), kept: record.last_confirmed(), unsaved: record.unsaved.clone() })
}

/// Edits of the open candidate of `who` so far.
///
/// # Errors
/// Another's change is open or pending.
pub fn edits_of(record: &ChangeRecord, who: &str, now: &Now) -> Result<Vec<String>, Fault> {
    Ok(owned(record, who, now)?.map(|change| change.commands.clone()).unwrap_or_default())
}

/// Lets go of an open candidate.
///
/// # Errors
/// No candidate is open, or another owns the candidate.
pub fn discard(record: &ChangeRecord, who: &str, now: &Now) -> Result<ChangeRecord, Fault> {
    owned(record, who, now)?.ok_or_else(|| {
        let way = if record.last_confirmed().is_some() { ": a confirmed one is undone by `confirmed: true`, or `--confirmed`" } else { "" };
        Fault::new(Code::ConfigIncompatible, format!("there is no change to roll back{way}"))
    })?;
    Ok(with(record, |change| change.phase = Phase::Discarded))
}

/// Makes `who` the owner of the open or pending change.
///
/// # Errors
/// No change is open or pending.
pub fn take_over(record: &ChangeRecord, who: &str, now: &Now) -> Result<ChangeRecord, Fault> {
    record.live().ok_or_else(|| Fault::new(Code::ConfigIncompatible, "no change is open or pending that could be taken over"))?;
    let owner = who.to_owned();
    Ok(with(record, |change| {
        change.owner = owner;
        change.lease = now.wall.saturating_add(LEASE);
    }))
}

/// Difference of a change, as `diff -u` has it, without secrets: each line as it is hidden within its whole configuration.
pub fn diff(running: &str, change: &DeviceChange, grammar: &Grammar, redactor: &Redactor) -> String {
    let before = match change.form {
        ConfigForm::Lines => Tree::read(running).write(grammar),
        ConfigForm::Data | ConfigForm::Objects | ConfigForm::Text | ConfigForm::Rows => running.to_owned(),
    };
    unified(&before, &change.candidate, |text| redactor.lines(text, change.form == ConfigForm::Data))
}

/// The open candidate of `who`.
fn owned<'a>(record: &'a ChangeRecord, who: &str, now: &Now) -> Result<Option<&'a DeviceChange>, Fault> {
    let Some(change) = record.live() else { return Ok(None) };
    if change.phase.is_pending() {
        return Err(pending(change, now));
    }
    // A candidate past the lease is anybody's to replace.
    let is_left = change.lease <= now.wall;
    match (change.owner == who, is_left) {
        (true, _) => Ok(Some(change)),
        (false, true) => Ok(None),
        (false, false) => Err(locked(change, now)),
    }
}

/// Owner of a change in a text for people. The word `token` with a colon would be taken for a secret, and hidden with what follows.
pub fn owner_in_words(owner: &str) -> String {
    owner.strip_prefix("token:").map_or_else(|| owner.to_owned(), |name| format!("`{name}` of the tokens"))
}

pub(super) fn locked(change: &DeviceChange, now: &Now) -> Fault {
    let seconds = change.lease.saturating_sub(now.wall) / 1000;
    let detail = format!(
        "locked: change {} is being made by {} for {seconds} s more; `banyan device take-over` makes it yours",
        change.id,
        owner_in_words(&change.owner)
    );
    Fault::new(Code::AccessDenied, detail).retryable()
}

pub(super) fn pending(change: &DeviceChange, now: &Now) -> Fault {
    let seconds = change.deadline.as_ref().map_or(0, |deadline| deadline.left(now).div_ceil(1000));
    let detail = format!(
        "locked: change {} of {} waits for its confirmation and is rolled back in {seconds} s; confirm it or roll it back first",
        change.id,
        owner_in_words(&change.owner)
    );
    Fault::new(Code::AccessDenied, detail).retryable()
}

pub(super) fn with(record: &ChangeRecord, change: impl FnOnce(&mut DeviceChange)) -> ChangeRecord {
    let mut record = record.clone();
    if let Some(one) = &mut record.change {
        change(one);
    }
    record
}
