//! A commit, a confirmation or a rollback as a machine: says the next action, and hears the outcome. Does nothing by hand.
//!
//! The law: at every moment the old configuration runs, or a deadline on the disk will restore the old configuration, or somebody confirmed.
//! A device has to work off requests in order, also after the death of the caller.

use super::candidate::{locked, pending};
use super::form::listed;
use super::record::{ChangeRecord, Deadline, DeviceChange, Now, Phase, Reason};
use super::text::revision;
use crate::fault::{Code, Fault};

/// Restores in a row.
const TRIES: u32 = 3;

/// The next action.
#[derive(Debug, PartialEq, Eq)]
pub enum Want<'a> {
    /// Bring the record to the disk.
    Keep(&'a ChangeRecord),
    /// Start the process for a restore after the death of the present process.
    Arm(&'a DeviceChange),
    /// Keep the change on the device, whose own timer would take the change back.
    Confirm(&'a DeviceChange),
    /// Bring the candidate to the device.
    Apply(&'a DeviceChange),
    /// Read the running configuration.
    Read,
    /// Bring an old configuration back to the device.
    Restore(&'a str),
    /// Run the health checks, which get the time that each is given.
    Check(&'a DeviceChange),
    /// Run the health checks once more before a confirmation, without a wait.
    CheckAgain(&'a DeviceChange),
    /// Save the running configuration for the next start of the device.
    Save,
    /// Nothing more.
    End,
}

/// ChangeOutcome of an action.
#[derive(Debug)]
pub enum StepResult {
    Done,
    Running(String),
    /// Somebody else stands in the way of the change and of the old configuration, as the text says.
    Overtaken(String),
    /// The device has no such action.
    Unable,
    Failed(Fault),
}

/// Success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeOutcome {
    /// On the device until the deadline.
    Committed,
    /// For good; `is_saved`: also after a restart of the device.
    Confirmed { is_saved: bool },
    /// The old configuration runs.
    RolledBack,
}

/// Terms of a commit.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    pub who: &'a str,
    /// Milliseconds until the rollback.
    pub window: u64,
    /// Hash of the diff that the caller saw.
    pub hash: Option<&'a str>,
    /// Can the device be restored after the death of the present process?
    pub can_undo: bool,
    /// Name for the commit on a device with a timer of its own.
    pub persist: Option<&'a str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChangeStep {
    Base,
    KeepArmed,
    Arm,
    KeepDisarmed,
    Apply,
    ReadBack,
    Check,
    KeepApplied,
    KeepRolling,
    Look,
    Restore,
    Compare,
    KeepRolledBack,
    KeepOvertaken,
    KeepStuck,
    /// Run the health checks before a confirmation.
    CheckAgain,
    /// Read the running configuration before a confirmation, on a device without a timer.
    Verify,
    KeepConfirming,
    Confirm,
    Settle,
    /// The device answered a confirmation by a refusal.
    KeepRefused,
    /// The device had taken the change back before the confirmation.
    KeepLost,
    KeepConfirmed,
    /// Read the running configuration before a save that comes late.
    LookUnsaved,
    Save,
    KeepSaved,
    KeepUnsaved,
    End,
}

/// A commit, a confirmation or a rollback under way. The driver holds the lock of the device from before the read of the record.
#[derive(Debug)]
pub struct Transaction {
    record: ChangeRecord,
    step: ChangeStep,
    window: u64,
    tries: u32,
    persist: Option<String>,
    /// Answer to a confirmation.
    refusal: Option<Fault>,
    /// A confirmation was sent whose answer nobody has.
    was_sent: bool,
    /// The new configuration was sent, and the device has not answered: it may still begin to run.
    is_unknown: bool,
    /// The device has said that it took the change back.
    is_taken_back: bool,
    /// Work of somebody else in the way of the old configuration.
    in_the_way: Option<String>,
    /// Failure for the caller.
    fault: Option<Fault>,
    /// The device has saved the new configuration.
    is_saved: bool,
    outcome: Option<ChangeOutcome>,
    /// Moment at which the present action was asked for.
    asked: Option<Now>,
}

impl Transaction {
    /// Begins a commit of the open candidate.
    ///
    /// # Errors
    /// No candidate is open, another owns the candidate, the hash is of another candidate, or no way leads back.
    pub fn commit(record: ChangeRecord, terms: Terms<'_>, now: &Now) -> Result<Self, Fault> {
        let change = record.live().ok_or_else(|| Fault::new(Code::ConfigIncompatible, "there is no candidate: make one first"))?;
        if change.phase.is_pending() {
            return Err(pending(change, now));
        }
        if change.owner != terms.who {
            return Err(locked(change, now));
        }
        if terms.hash.is_some_and(|hash| hash != change.hash) {
            return Err(Fault::new(Code::ConfigIncompatible, "the candidate is not the one that was shown: look at its diff again"));
        }
        if !terms.can_undo {
            let detail = "nothing on this device would bring the old configuration back, so nothing was sent";
            return Err(Fault::new(Code::RollbackNotSupported, detail));
        }
        Ok(Self { window: terms.window, persist: terms.persist.map(str::to_owned), ..Self::new(record, ChangeStep::Base) })
    }

    /// Begins a confirmation of the change with this hash, or of any.
    ///
    /// # Errors
    /// Nothing is pending, another change is, or the deadline is over.
    pub fn confirm(record: &ChangeRecord, hash: Option<&str>, now: &Now) -> Result<Self, Fault> {
        let expired = || Fault::new(Code::ConfirmedCommitTimeout, "the window is over, and the old configuration is back or on its way");
        if record.pending().is_some_and(|change| hash.is_some_and(|hash| hash != change.hash)) {
            let detail = "the change that waits is not the one of the hash, so nothing was confirmed: look at its diff again";
            return Err(Fault::new(Code::ConfigIncompatible, detail).at("hash"));
        }
        match &record.change {
            // Sent before, so that only the device knows the outcome.
            Some(change) if change.phase == Phase::Confirming => return Ok(Self::settle(record.clone())),
            Some(change) if change.phase == Phase::Applied => {
                if change.deadline.as_ref().is_none_or(|deadline| deadline.is_over(now)) {
                    return Err(expired());
                }
            }
            Some(DeviceChange {
                phase: Phase::RolledBack | Phase::RollingBack,
                reason: Some(Reason::Timeout | Reason::Interrupted),
                ..
            }) => {
                return Err(expired());
            }
            Some(DeviceChange { phase: Phase::Overtaken, reason: Some(reason), .. }) => {
                return Err(Fault::new(Code::InvalidParams, format!("no change waits to be confirmed: {reason}")));
            }
            _ => return Err(Fault::new(Code::InvalidParams, "no change waits to be confirmed")),
        }
        Ok(Self::new(record.clone(), ChangeStep::CheckAgain))
    }

    /// Begins to save a confirmed change that was not saved. `is_by_a_person`: whatever runs now is saved.
    ///
    /// # Errors
    /// Nothing is left to be saved, or a change waits that a save would keep.
    pub fn save(record: ChangeRecord, is_by_a_person: bool) -> Result<Self, Fault> {
        if record.unsaved.is_none() {
            return Err(Fault::new(Code::InvalidParams, "no confirmed change is left to be saved"));
        }
        if let Some(change) = record.pending() {
            let detail = format!("the change {} waits for its confirmation, and a save would keep that too", change.id);
            return Err(Fault::new(Code::ConfigIncompatible, detail).retryable());
        }
        Ok(Self::new(record, if is_by_a_person { ChangeStep::Save } else { ChangeStep::LookUnsaved }))
    }

    /// Goes on with a confirmation of unknown outcome: the device tells.
    pub fn settle(record: ChangeRecord) -> Self {
        Self { was_sent: true, ..Self::new(record, ChangeStep::Confirm) }
    }

    /// Begins to bring the old configuration back.
    ///
    /// # Errors
    /// Nothing is pending.
    pub fn roll_back(record: ChangeRecord, reason: Reason) -> Result<Self, Fault> {
        if record.pending().is_none() {
            return Err(Fault::new(Code::InvalidParams, "no change is pending"));
        }
        if record.change.as_ref().is_some_and(|change| change.phase == Phase::Confirming) {
            let detail = "a confirmation is under way, and the device has not answered yet: confirm again to learn how it ended";
            return Err(Fault::new(Code::ConfigIncompatible, detail).retryable());
        }
        // Whoever sent a commit and died before the answer left the record armed.
        let is_cut_off = |change: &DeviceChange| change.phase == Phase::Armed && change.persist.is_some();
        let is_unknown = record.change.as_ref().is_some_and(|change| change.is_unanswered || is_cut_off(change));
        let mut begun = Self { is_unknown, ..Self::new(record, ChangeStep::KeepRolling) };
        begun.change(|change| change.is_unanswered = is_unknown);
        begun.turn_back(reason);
        Ok(begun)
    }

    fn new(record: ChangeRecord, step: ChangeStep) -> Self {
        Self {
            record,
            step,
            window: 0,
            tries: 0,
            persist: None,
            refusal: None,
            was_sent: false,
            is_unknown: false,
            is_taken_back: false,
            in_the_way: None,
            fault: None,
            is_saved: false,
            outcome: None,
            asked: None,
        }
    }

    /// The present record.
    pub fn record(&self) -> &ChangeRecord {
        &self.record
    }

    /// The next action.
    pub fn want(&self) -> Want<'_> {
        let Some(change) = &self.record.change else { return Want::End };
        match self.step {
            ChangeStep::KeepArmed
            | ChangeStep::KeepDisarmed
            | ChangeStep::KeepApplied
            | ChangeStep::KeepRolling
            | ChangeStep::KeepRolledBack
            | ChangeStep::KeepOvertaken
            | ChangeStep::KeepStuck
            | ChangeStep::KeepConfirming
            | ChangeStep::KeepRefused
            | ChangeStep::KeepLost
            | ChangeStep::KeepConfirmed
            | ChangeStep::KeepSaved
            | ChangeStep::KeepUnsaved => Want::Keep(&self.record),
            ChangeStep::Base
            | ChangeStep::ReadBack
            | ChangeStep::Look
            | ChangeStep::Compare
            | ChangeStep::Verify
            | ChangeStep::Settle
            | ChangeStep::LookUnsaved => Want::Read,
            ChangeStep::Confirm => Want::Confirm(change),
            ChangeStep::Arm => Want::Arm(change),
            ChangeStep::Apply => Want::Apply(change),
            ChangeStep::Check => Want::Check(change),
            ChangeStep::CheckAgain => Want::CheckAgain(change),
            ChangeStep::Restore => Want::Restore(change.snapshot.as_deref().unwrap_or_default()),
            ChangeStep::Save => Want::Save,
            ChangeStep::End => Want::End,
        }
    }

    /// The result, once no action is left.
    ///
    /// # Errors
    /// The failure for the caller.
    pub fn finish(self) -> Result<ChangeOutcome, Fault> {
        match (self.fault, self.outcome) {
            (None, Some(outcome)) => Ok(outcome),
            (Some(fault), _) => Err(fault),
            (None, None) => Err(Fault::new(Code::RollbackFailed, "the transaction did not come to its end")),
        }
    }

    /// Hears the outcome of the last action.
    pub fn hear(&mut self, done: StepResult, now: &Now) {
        self.step = match (self.step, done) {
            (ChangeStep::Base, StepResult::Running(text)) => self.armed(text, now),
            (ChangeStep::KeepArmed, StepResult::Done) => ChangeStep::Arm,
            (ChangeStep::Arm, StepResult::Done) => self.prepared(now),
            (ChangeStep::Arm, StepResult::Failed(fault)) => self.disarmed(fault),
            // Only reading back tells: acknowledgements get lost, and devices acknowledge what they did not do.
            (ChangeStep::Apply, StepResult::Failed(fault)) => {
                let is_unknown = matches!(fault.code, Code::Timeout | Code::Unreachable);
                self.is_unknown = is_unknown;
                self.change(|change| change.is_unanswered = is_unknown && change.persist.is_some());
                self.noted(fault, ChangeStep::ReadBack)
            }
            (ChangeStep::Apply, _) => ChangeStep::ReadBack,
            (ChangeStep::ReadBack, StepResult::Running(text)) => self.compared(&text),
            (ChangeStep::Check, StepResult::Done) => self.applied(now),
            (ChangeStep::ReadBack | ChangeStep::Check | ChangeStep::KeepApplied, StepResult::Failed(fault)) => {
                let detail = fault.detail.clone();
                self.fault.get_or_insert(fault);
                self.turn_back(Reason::Differs(detail))
            }
            (ChangeStep::ReadBack, StepResult::Overtaken(detail)) => {
                self.fault.get_or_insert_with(|| Fault::new(Code::ConfigIncompatible, detail.clone()).at("running"));
                self.turn_back(Reason::Differs(detail))
            }
            (ChangeStep::KeepApplied, _) => self.ended(ChangeOutcome::Committed),
            // The record on the disk says that the change is pending, which brings the old configuration back as well.
            (ChangeStep::KeepRolling, _) => {
                if self.is_unknown {
                    ChangeStep::Restore
                } else {
                    ChangeStep::Look
                }
            }
            (ChangeStep::Look | ChangeStep::Compare, StepResult::Running(text)) => self.looked(&text, now),
            (ChangeStep::Compare, StepResult::Overtaken(detail)) => {
                self.in_the_way.get_or_insert(detail);
                self.overtaken(now)
            }
            (ChangeStep::Look, _) => ChangeStep::Restore,
            (ChangeStep::Restore, StepResult::Overtaken(detail)) => {
                self.in_the_way = Some(detail);
                ChangeStep::Compare
            }
            (ChangeStep::Restore, StepResult::Failed(fault)) => self.noted(fault, ChangeStep::Compare),
            (ChangeStep::Restore, _) => {
                self.is_taken_back = true;
                ChangeStep::Compare
            }
            (ChangeStep::Compare, StepResult::Failed(fault)) => self.unread(fault),
            (ChangeStep::CheckAgain, done) => self.checked_again(done, now),
            (ChangeStep::Verify, StepResult::Running(text)) => self.verified(&text, now),
            (ChangeStep::KeepConfirming, StepResult::Done) => ChangeStep::Confirm,
            (ChangeStep::Confirm, done) => {
                self.refusal = if let StepResult::Failed(fault) = done { Some(fault) } else { None };
                ChangeStep::Settle
            }
            (ChangeStep::Settle, StepResult::Running(text)) => self.settled(&text),
            (ChangeStep::Settle, StepResult::Overtaken(detail)) => self.overtaken_by(detail),
            (ChangeStep::Settle, StepResult::Failed(fault)) => self.unsettled(fault),
            (ChangeStep::KeepConfirmed, StepResult::Done) => ChangeStep::Save,
            (ChangeStep::LookUnsaved, StepResult::Running(text)) => self.looked_unsaved(&text),
            (ChangeStep::Save, done) => self.saved(done),
            (ChangeStep::KeepUnsaved, _) if self.fault.is_some() => ChangeStep::End,
            (ChangeStep::KeepSaved | ChangeStep::KeepUnsaved, _) => self.ended(ChangeOutcome::Confirmed { is_saved: self.is_saved }),
            (ChangeStep::KeepRolledBack, _) => self.ended(ChangeOutcome::RolledBack),
            (_, StepResult::Failed(fault)) => self.noted(fault, ChangeStep::End),
            (_, StepResult::Done | StepResult::Running(_) | StepResult::Overtaken(_) | StepResult::Unable) => ChangeStep::End,
        };
        self.asked = Some(now.clone());
    }

    fn armed(&mut self, running: String, now: &Now) -> ChangeStep {
        let base = revision(&running);
        if self.record.change.as_ref().is_none_or(|change| change.base != base) {
            let detail = "the running configuration has changed since the diff was shown: nothing was applied; make the change again";
            return self.noted(Fault::new(Code::ConfigIncompatible, detail).at("running"), ChangeStep::End);
        }
        let (deadline, persist) = (Deadline::after(now, self.window), self.persist.take());
        self.change(|change| {
            change.phase = Phase::Armed;
            change.deadline = Some(deadline);
            change.snapshot = Some(running);
            change.persist = persist;
        });
        ChangeStep::KeepArmed
    }

    /// Applies nothing past the deadline: the way back took its time.
    fn prepared(&mut self, now: &Now) -> ChangeStep {
        if self.record.change.as_ref().and_then(|change| change.deadline.as_ref()).is_some_and(|deadline| !deadline.is_over(now)) {
            return ChangeStep::Apply;
        }
        let detail =
            "the window went by before anything that would take the change back was ready, so nothing was applied: commit for longer";
        self.disarmed(Fault::new(Code::ConfirmedCommitTimeout, detail))
    }

    fn disarmed(&mut self, fault: Fault) -> ChangeStep {
        self.fault = Some(fault);
        self.change(|change| {
            change.phase = Phase::Open;
            change.deadline = None;
            change.snapshot = None;
            change.persist = None;
        });
        ChangeStep::KeepDisarmed
    }

    fn compared(&mut self, running: &str) -> ChangeStep {
        let change = self.record.change.as_ref();
        let differences = change.map(|change| change.form.differences(&change.candidate, running)).unwrap_or_default();
        if differences.is_empty() {
            self.fault = None;
            self.change(|change| change.is_unanswered = false);
            return ChangeStep::Check;
        }
        let detail = format!("the device does not hold what it was told: {}", listed(&differences));
        self.fault.get_or_insert_with(|| Fault::new(Code::ConfigIncompatible, detail.clone()));
        self.turn_back(Reason::Differs(detail))
    }

    fn applied(&mut self, now: &Now) -> ChangeStep {
        if self.record.change.as_ref().and_then(|change| change.deadline.as_ref()).is_none_or(|deadline| deadline.is_over(now)) {
            self.fault = Some(Fault::new(Code::ConfirmedCommitTimeout, "the device took longer than the window"));
            return self.turn_back(Reason::Timeout);
        }
        self.change(|change| change.phase = Phase::Applied);
        ChangeStep::KeepApplied
    }

    fn turn_back(&mut self, reason: Reason) -> ChangeStep {
        self.change(|change| {
            change.phase = Phase::RollingBack;
            change.reason = Some(reason);
        });
        ChangeStep::KeepRolling
    }

    fn ended(&mut self, outcome: ChangeOutcome) -> ChangeStep {
        // A commit that was taken back is none; a rollback that got there is one.
        if self.window == 0 && outcome == ChangeOutcome::RolledBack {
            self.fault = None;
        }
        self.outcome = Some(outcome);
        ChangeStep::End
    }

    fn noted(&mut self, fault: Fault, next: ChangeStep) -> ChangeStep {
        self.fault.get_or_insert(fault);
        next
    }

    fn change(&mut self, change: impl FnOnce(&mut DeviceChange)) {
        if let Some(one) = &mut self.record.change {
            change(one);
        }
    }
}

mod judging;
#[cfg(test)]
mod tests;
