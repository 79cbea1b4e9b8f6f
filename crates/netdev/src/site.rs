//! A device with settings, record and backend, and the actions on the change of the device. The only way to a device for every process. Does
//! not know MCP.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use equipment::{Confirmation, DeviceSecrets, DeviceSettings};
use net_proto::change::{
    Author, ChangeOutcome, ChangeRecord, ConfigForm, DeviceChange, Edits, Reason, StepResult, Terms, Transaction, TriedEdits, Want, adopt,
    diff, edit, edits_of, merged, take_over,
};
use net_proto::dialect::Dialect;
use net_proto::fault::{Code, Fault};
use net_proto::ovsdb::tried;
use net_proto::redact::Redactor;
use net_proto::role::DeviceAction;
use runtime::whole::{self, Readers};
use serde::Serialize;

mod restoring;
mod settler;

use crate::bulk::Bulk;
use crate::caller::CallerIdentity;
use crate::clock::{now, written};
use crate::drive::drive;
use crate::freeze::Freezes;
use crate::intake::Intake;
use crate::pause::NextTry;
use crate::permission::{DeviceRules, PresentRole};
use crate::room;
use crate::share;
use crate::store::Store;
use crate::way::DeviceWay;
pub use settler::Settler;

/// Longest time to wait for another process at work on the device.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Phase of a change whose record can't be read.
const UNREADABLE: &str = "unreadable";

/// A device.
#[derive(Clone, Debug)]
pub struct Site {
    pub(crate) settings: DeviceSettings,
    pub(crate) state: PathBuf,
    pub(crate) store: Store,
    /// Way for reads.
    pub(crate) backend: DeviceWay,
    /// Way for changes; the same as for reads, unless the device has a login for changes.
    pub(crate) changes: DeviceWay,
    pub(crate) redactor: Redactor,
    pub(crate) dialect: Arc<Dialect>,
    /// Owner of the changes that are made over MCP.
    pub(crate) caller: String,
    pub(crate) rules: DeviceRules,
    /// Secrets for processes that restore the device.
    pub(crate) secrets: DeviceSecrets,
    pub(crate) freezes: Freezes,
    pub(crate) intake: Arc<Intake>,
    /// Moment of the next save of what could not be saved.
    pub(crate) next_save: Arc<NextTry>,
}

/// State of the change of a device.
#[derive(Clone, Debug, Serialize)]
pub struct ChangeState {
    pub device: String,
    /// `none` for a device without a change, `unreadable` where the record can't be read.
    pub phase: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Moment of the rollback, and seconds until then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds_left: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Reason for which the device has not saved the last confirmed change, without secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsaved: Option<String>,
    /// Sentences about freezes that hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub frozen: Vec<String>,
}

/// A candidate and the diff for people.
#[derive(Clone, Debug)]
pub(crate) struct Preview {
    pub(crate) change: DeviceChange,
    pub(crate) diff: String,
}

impl Site {
    /// Opens a device with the record below `state`.
    ///
    /// # Errors
    /// The directory of the record can't be made.
    pub fn open(settings: DeviceSettings, secrets: &DeviceSecrets, state: &Path) -> std::io::Result<Self> {
        let store = Store::open(state, &settings.name)?;
        let dialect = settings.open_dialect().map_err(std::io::Error::other)?;
        let redactor = Redactor::default().knowing(&secrets.values());
        let (backend, rules) =
            (DeviceWay::new(&settings, Arc::clone(&dialect), secrets), DeviceRules::new(&settings).map_err(std::io::Error::other)?);
        let changes = match settings.writing() {
            Some(writing) => DeviceWay::new(&writing, Arc::clone(&dialect), &secrets.writing()),
            None => backend.clone(),
        };
        let (caller, freezes) = ("mcp".to_owned(), Freezes::new(state));
        let intake = Arc::new(Intake::new(&settings, secrets, state, &store));
        Ok(Self {
            settings,
            state: state.to_owned(),
            store,
            backend,
            changes,
            redactor,
            dialect,
            caller,
            rules,
            secrets: secrets.clone(),
            freezes,
            intake,
            next_save: Arc::new(NextTry::new(Instant::now())),
        })
    }

    /// The same device for a caller of the gate. Each caller with a certificate owns changes of its own, and with roles each caller.
    pub(crate) fn of_caller(self: &Arc<Self>, caller: Option<CallerIdentity>) -> Arc<Self> {
        match caller.filter(|caller| caller.is_certified() || self.rules.has_roles()) {
            None => Arc::clone(self),
            Some(caller) => Arc::new(Self { caller: caller.qualified(), rules: self.rules.for_caller(caller), ..Self::clone(self) }),
        }
    }

    /// Asks the device about its abilities, as each login sees them.
    pub(crate) async fn look(&self) {
        let changes = async {
            if self.settings.writer.is_some() {
                self.changes.look().await;
            }
        };
        tokio::join!(self.backend.look(), changes);
    }

    /// Tries the ways to the device; answers the first line of `show version`.
    ///
    /// # Errors
    /// The way to the device is broken.
    pub async fn try_reach(&self) -> Result<String, Fault> {
        self.backend.running().await?;
        if self.settings.writer.is_some() {
            self.changes.running().await.map_err(|fault| Fault { detail: format!("the login for changes: {}", fault.detail), ..fault })?;
        }
        self.backend.version().await
    }

    /// State of the change.
    ///
    /// # Errors
    /// The record can't be read.
    pub fn standing(&self) -> Result<ChangeState, Fault> {
        let (record, now) = (self.store.load()?, now());
        let change = record.change.as_ref();
        let deadline = change.and_then(|change| change.deadline.as_ref());
        let frozen = self.freezes.holding(&self.settings).map(|all| {
            all.into_iter()
                .map(|(scope, freeze)| {
                    let until = freeze.until.map(|until| format!(" until {}", written(until * 1000))).unwrap_or_default();
                    let reason = freeze.reason.map(|reason| format!(": {reason}")).unwrap_or_default();
                    format!("{} froze {}{until}{reason}", freeze.by, scope.description())
                })
                .collect()
        });
        Ok(ChangeState {
            // A device whose freeze can't be read is changed by nobody; what waits there is to be seen all the same.
            frozen: frozen.unwrap_or_else(|fault| vec![fault.detail]),
            unsaved: record.unsaved.as_ref().map(|why| self.cleaned_of(&record, Fault::new(Code::ConfigIncompatible, why)).detail),
            device: self.settings.name.clone(),
            phase: change.map_or("none", |change| change.phase.as_str()).to_owned(),
            change: change.map(|change| change.id.clone()),
            owner: change.map(|change| change.owner.clone()),
            deadline: deadline.map(|deadline| written(now.wall.saturating_add(deadline.left(&now)))),
            seconds_left: deadline.map(|deadline| deadline.left(&now).div_ceil(1000)),
            reason: change.and_then(|change| change.reason.clone()).map(|reason| match reason {
                Reason::Differs(detail) => Reason::Differs(self.redactor.text(&detail)),
                Reason::Overtaken(detail) => Reason::Overtaken(self.redactor.text(&detail)),
                reason @ (Reason::Timeout | Reason::Asked(_) | Reason::Interrupted) => reason,
            }),
        })
    }

    /// State of the change for a list of devices, `unreadable` without a readable record.
    pub fn listed(&self) -> ChangeState {
        self.standing().unwrap_or_else(|fault| ChangeState {
            device: self.settings.name.clone(),
            phase: UNREADABLE.to_owned(),
            change: None,
            owner: None,
            deadline: None,
            seconds_left: None,
            reason: None,
            unsaved: None,
            frozen: vec![fault.detail],
        })
    }

    /// The diff of the open or pending change for people, without secrets.
    ///
    /// # Errors
    /// The record can't be read; below an open candidate, the device gives no running configuration.
    pub async fn diff(&self) -> Result<Option<String>, Fault> {
        let record = self.store.load()?;
        let Some(change) = record.live() else { return Ok(None) };
        let running = if change.snapshot.is_some() { String::new() } else { self.changes.running().await? };
        Ok(Some(self.shown(&record, &running)?.diff))
    }

    /// Adds to the candidate of `who`; answers the diff.
    pub(crate) async fn edit(&self, who: &str, edits: Edits, bulk: Bulk) -> Result<Preview, Fault> {
        self.changes.check_lines()?;
        self.may_edit(&edits, bulk)?;
        // Whoever can't edit now keeps the lock from nobody who confirms or restores.
        edits_of(&self.store.load()?, who, &now())?;
        let _lock = self.store.lock(PATIENCE).await?;
        let (record, running) = self.edited(who, edits).await?;
        let shown = self.shown(&record, &running)?;
        self.check_candidate(&running, &shown.change.candidate).await.map_err(|fault| self.cleaned_of(&record, fault))?;
        self.keep(&record)?;
        Ok(shown)
    }

    /// The record with such edits of `who`, and the running configuration. Nothing is kept.
    pub(crate) async fn edited(&self, who: &str, edits: Edits) -> Result<(ChangeRecord, String), Fault> {
        let author = Author { device: &self.settings.name, who };
        if let Some(ovs) = self.changes.ovs() {
            let (rows, record, now) = (ovs.rows().await?, self.store.load()?, now());
            let running = rows.config().write();
            let (all, text) = merged(&record, who, edits, &running, self.dialect.grammar(), &now)?;
            return Ok((adopt(&record, author, tried(&rows, all, &text)?, &now)?, running));
        }
        let Some(device) = self.changes.candidate_line() else {
            let running = self.changes.running().await?;
            if self.changes.is_text() {
                return Ok((self.whole(author, edits, &running).await?, running));
            }
            return Ok((edit(&self.store.load()?, author, edits, &running, self.dialect.grammar(), &now())?, running));
        };
        let record = self.store.load()?;
        let mut all = edits_of(&record, who, &now())?;
        match edits {
            Edits::Commands(commands) => all.extend(commands),
            Edits::Whole(_) => {
                let detail = "this device takes commands, and no whole configuration: use network.cli.configure";
                return Err(Fault::new(Code::ConfigIncompatible, detail));
            }
        }
        let sent = self.redactor.knowing_those_of(all.iter().map(String::as_str));
        let tried = device.try_edits(all).await.map_err(|fault| fault.cleaned(|text| sent.text(text)))?;
        let running = tried.running.clone();
        Ok((adopt(&record, author, tried, &now())?, running))
    }

    /// The record with a whole text as the candidate.
    async fn whole(&self, author: Author<'_>, edits: Edits, running: &str) -> Result<ChangeRecord, Fault> {
        let Edits::Whole(candidate) = edits else {
            let detail = "the configuration of this device is one text: push a whole one by network.file.push";
            return Err(Fault::new(Code::ConfigIncompatible, detail));
        };
        let tried = TriedEdits { form: ConfigForm::Text, edits: Vec::new(), running: running.to_owned(), candidate };
        let record = self.store.load()?;
        let known = record.change.as_ref().and_then(|change| change.start.as_deref());
        let start = self.changes.start_revision(running, known).await?;
        let mut adopted = adopt(&record, author, tried, &now())?;
        adopted.change.iter_mut().for_each(|change| change.start.clone_from(&start));
        Ok(adopted)
    }

    /// The diff that such edits of `who` would make. Nothing is kept, and the device checks nothing.
    pub(crate) async fn foresee(&self, who: &str, edits: Edits, bulk: Bulk) -> Result<Preview, Fault> {
        self.changes.check_lines()?;
        self.may_edit(&edits, bulk)?;
        // A try on the device amid a commit of another process could count as its confirmation: Junos takes `commit check` for one.
        let tries = self.changes.candidate_line().is_some();
        let _lock = if tries { Some(self.store.lock(PATIENCE).await?) } else { None };
        let (record, running) = self.edited(who, edits).await?;
        let shown = self.shown(&record, &running)?;
        self.check_lasting(&running, &shown.change.candidate)?;
        Ok(shown)
    }

    /// The candidate and the present diff.
    pub(crate) async fn candidate(&self) -> Result<Preview, Fault> {
        Ok(self.candidate_on().await?.0)
    }

    /// The candidate and the present diff, with the running configuration beneath.
    pub(crate) async fn candidate_on(&self) -> Result<(Preview, String), Fault> {
        // Without a candidate, nothing is read by the login for changes.
        self.store.load()?.live().ok_or_else(no_candidate)?;
        let running = self.changes.running().await?;
        Ok((self.shown(&self.store.load()?, &running)?, running))
    }

    pub(crate) fn shown(&self, record: &ChangeRecord, running: &str) -> Result<Preview, Fault> {
        let change = record.live().cloned().ok_or_else(no_candidate)?;
        let base = change.snapshot.as_deref().unwrap_or(running);
        let mut diff = diff(base, &change, self.dialect.grammar(), &self.redactor);
        if self.changes.types_lines() && !change.commands.is_empty() {
            // The difference leaves out what a later line undoes, and that is typed as well.
            let lines = self.redactor.lines(&change.commands.join("\n"), false).join("\n");
            diff.push_str(&format!("Typed on the device, line by line:\n{lines}\n"));
        }
        Ok(Preview { diff, change })
    }

    /// Commits the candidate of `who` for some seconds.
    pub(crate) async fn commit(&self, who: &str, seconds: Option<u64>, hash: Option<&str>) -> Result<ChangeRecord, Fault> {
        self.may_change()?;
        let window = seconds.unwrap_or(self.settings.confirm_within);
        let longest = self.settings.longest_window;
        if window == 0 || window > longest {
            return Err(Fault::new(Code::InvalidParams, format!("`confirmed` is 1 to {longest} seconds")));
        }
        if let Some(within) = self.settings.health.iter().map(|health| health.within).max().filter(|within| window <= *within) {
            let detail = format!("a health check of this device may take {within} s, so `confirmed` has to be more than that");
            return Err(Fault::new(Code::InvalidParams, detail).at("confirmed"));
        }
        let lock = self.store.lock(PATIENCE).await?;
        self.store.forget_asked(&lock);
        // A freeze, or the end of a window, since then.
        self.may_change()?;
        let persist = self.changes.has_timer().then(runtime::random::token);
        let terms = Terms { who, window: window * 1000, hash, can_undo: true, persist: persist.as_deref() };
        let record = self.store.load()?;
        self.may_commit(&record).await?;
        let transaction = Transaction::commit(record, terms, &now())?;
        match share::uncounted(drive(self, transaction, &lock)).await {
            (record, Ok(ChangeOutcome::Committed)) => Ok(record),
            (_, Ok(_)) => {
                Err(Fault::new(Code::ConfirmedCommitTimeout, "the device took longer than the window; the old configuration runs"))
            }
            (_, Err(fault)) => Err(fault),
        }
    }

    /// Confirms the pending change, where its hash is the one given; answers true if the device saved the new configuration as well. Saves an
    /// unsaved confirmed change. `is_unchecked`: whatever the health checks of the device say.
    ///
    /// # Errors
    /// Nothing is pending, the change is another's, the deadline is over, the device runs something else, or the record can't be written.
    pub async fn confirm(&self, by: Settler<'_>, hash: Option<&str>, is_unchecked: bool) -> Result<bool, Fault> {
        if let Settler::Caller(_) = by {
            if self.settings.confirmation == Confirmation::Person {
                let detail = format!("a person confirms changes of this device: `banyan device confirm {}`", self.settings.name);
                return Err(Fault::new(Code::AccessDenied, detail));
            }
            self.permit(DeviceAction::Confirm)?;
            self.changes.check_undo()?;
        }
        let lock = self.store.lock(PATIENCE).await?;
        let record = self.store.load()?;
        by.check_owner(&record)?;
        let transaction = if by.may_save(&record, hash) {
            Transaction::save(record, matches!(by, Settler::Person(_)))?
        } else {
            let mut transaction = Transaction::confirm(&record, hash, &now())?;
            if is_unchecked && matches!(transaction.want(), Want::CheckAgain(_)) {
                transaction.hear(StepResult::Done, &now());
            }
            transaction
        };
        let (_, outcome) = room::settling(drive(self, transaction, &lock)).await;
        Ok(outcome? == ChangeOutcome::Confirmed { is_saved: true })
    }

    /// Makes somebody else the owner of the change.
    ///
    /// # Errors
    /// No change is open or pending.
    pub async fn take_over(&self, who: &str) -> Result<(), Fault> {
        let _lock = self.store.lock(PATIENCE).await?;
        self.keep(&take_over(&self.store.load()?, who, &now())?)
    }

    /// A file in the directory of the device.
    pub(crate) fn written(&self, name: &str, content: &str) -> Result<PathBuf, Fault> {
        let path = self.store.file(name);
        whole::replace_for_now(&path, content.as_bytes(), Readers::Owner).map_err(|error| unwritten(&error))?;
        Ok(path)
    }

    pub(crate) fn keep(&self, record: &ChangeRecord) -> Result<(), Fault> {
        self.store.keep(record).map_err(|error| unwritten(&error))
    }

    /// Runs a command that only shows something, or that a rule of the device allows.
    pub(crate) async fn show(&self, command: &str) -> Result<String, Fault> {
        if !self.backend.has_command_line() {
            self.backend.check_lines()?;
        }
        let command = self.dialect.command(command)?;
        self.permit(DeviceAction::Command(&command))?;
        self.backend.exec(&command.text).await
    }

    /// The failure without secrets, those of the change included, which a device may quote in any sentence.
    pub(crate) fn cleaned_of(&self, record: &ChangeRecord, fault: Fault) -> Fault {
        let texts = record.change.iter().flat_map(|change| {
            change.commands.iter().map(String::as_str).chain([change.candidate.as_str()]).chain(change.snapshot.as_deref())
        });
        let redactor = self.redactor.knowing_those_of(texts);
        fault.cleaned(|text| redactor.text(text))
    }

    /// The rules with the windows and freezes of this moment.
    pub(crate) fn present_role(&self) -> Result<PresentRole, Fault> {
        self.rules.at_present(&self.freezes, &self.settings)
    }

    pub(crate) fn permit(&self, action: DeviceAction<'_>) -> Result<(), Fault> {
        self.present_role()?.permit(action)
    }

    /// Checks that somebody may make a change now, and that something would take the change back.
    pub(crate) fn may_change(&self) -> Result<(), Fault> {
        self.permit(DeviceAction::Commit)?;
        self.changes.check_undo()
    }

    /// Holds a read of the whole configuration against the rules on paths, or on commands.
    pub(crate) fn may_read_whole(&self) -> Result<(), Fault> {
        if self.changes.has_command_line() {
            self.may_show(self.dialect.running_command())
        } else {
            self.permit(DeviceAction::ReadPath("/"))
        }
    }

    /// Holds the command behind a resource or a file against the rules on commands.
    pub(crate) fn may_show(&self, command: &str) -> Result<(), Fault> {
        self.permit(DeviceAction::Show(&self.dialect.command(command)?))
    }
}

/// Removes a file with secrets; a file that is left is overwritten by the next change, and only the owner can read it.
pub(crate) fn forget(file: &Path) {
    drop(std::fs::remove_file(file));
}

fn no_candidate() -> Fault {
    Fault::new(Code::ConfigIncompatible, "there is no candidate: make one first")
}

fn unwritten(error: &std::io::Error) -> Fault {
    Fault::new(Code::HardwareFailure, format!("the record of the change can't be written, so nothing was changed: {error}"))
}

#[cfg(test)]
mod tests;
