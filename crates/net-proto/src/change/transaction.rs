//! A commit, a confirmation or a rollback as a machine: says the next action, and hears the outcome. Does nothing by hand.
//!
//! The law: at every moment the old configuration runs, or a deadline on the disk will restore the old configuration, or somebody confirmed.
//! A device has to work off requests in order, also after the death of the caller.

use super::candidate::{locked, pending, with};
use super::record::{Change, Deadline, Now, Phase, Reason, Record};
use super::text::{Tree, revision};
use crate::fault::{Code, Fault};

/// Restores in a row.
const TRIES: u32 = 3;

/// The next action.
#[derive(Debug, PartialEq, Eq)]
pub enum Want<'a> {
    /// Bring the record to the disk.
    Keep(&'a Record),
    /// Start the process for a restore after the death of the present process.
    Arm(&'a Change),
    /// Bring the candidate to the device.
    Apply(&'a Change),
    /// Read the running configuration.
    Read,
    /// Bring an old configuration back to the device.
    Restore(&'a str),
    /// Run the health checks.
    Check,
    /// Save the running configuration for the next start of the device.
    Save,
    /// Nothing more.
    End,
}

/// Outcome of an action.
#[derive(Debug)]
pub enum Done {
    Done,
    Running(String),
    Failed(Fault),
}

/// Success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
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
    KeepStuck,
    KeepConfirmed,
    Save,
    End,
}

/// A commit, a confirmation or a rollback under way. The driver holds the lock of the device from before the read of the record.
#[derive(Debug)]
pub struct Transaction {
    record: Record,
    step: Step,
    window: u64,
    tries: u32,
    /// Failure for the caller.
    fault: Option<Fault>,
    outcome: Option<Outcome>,
}

impl Transaction {
    /// Begins a commit of the open candidate.
    ///
    /// # Errors
    /// No candidate is open, another owns the candidate, the hash is of another candidate, or no way leads back.
    pub fn commit(record: Record, terms: Terms<'_>, now: &Now) -> Result<Self, Fault> {
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
        Ok(Self { window: terms.window, ..Self::new(record, Step::Base) })
    }

    /// Begins a confirmation.
    ///
    /// # Errors
    /// Nothing is pending, or the deadline is over.
    pub fn confirm(record: &Record, now: &Now) -> Result<Self, Fault> {
        let expired = || Fault::new(Code::ConfirmedCommitTimeout, "the window is over, and the old configuration is back or on its way");
        match &record.change {
            Some(change) if change.phase == Phase::Applied => {
                if change.deadline.as_ref().is_none_or(|deadline| deadline.is_over(now)) {
                    return Err(expired());
                }
            }
            Some(Change { phase: Phase::RolledBack | Phase::RollingBack, reason: Some(Reason::Timeout | Reason::Interrupted), .. }) => {
                return Err(expired());
            }
            _ => return Err(Fault::new(Code::InvalidParams, "no change waits to be confirmed")),
        }
        let record = with(record, |change| {
            change.phase = Phase::Confirmed;
            change.deadline = None;
        });
        Ok(Self::new(record, Step::KeepConfirmed))
    }

    /// Begins to bring the old configuration back.
    ///
    /// # Errors
    /// Nothing is pending.
    pub fn roll_back(record: Record, reason: Reason) -> Result<Self, Fault> {
        if record.pending().is_none() {
            return Err(Fault::new(Code::InvalidParams, "no change is pending"));
        }
        let mut begun = Self::new(record, Step::KeepRolling);
        begun.turn_back(reason);
        Ok(begun)
    }

    fn new(record: Record, step: Step) -> Self {
        Self { record, step, window: 0, tries: 0, fault: None, outcome: None }
    }

    /// The present record.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// The next action.
    pub fn want(&self) -> Want<'_> {
        let Some(change) = &self.record.change else { return Want::End };
        match self.step {
            Step::KeepArmed
            | Step::KeepDisarmed
            | Step::KeepApplied
            | Step::KeepRolling
            | Step::KeepRolledBack
            | Step::KeepStuck
            | Step::KeepConfirmed => Want::Keep(&self.record),
            Step::Base | Step::ReadBack | Step::Look | Step::Compare => Want::Read,
            Step::Arm => Want::Arm(change),
            Step::Apply => Want::Apply(change),
            Step::Check => Want::Check,
            Step::Restore => Want::Restore(change.snapshot.as_deref().unwrap_or_default()),
            Step::Save => Want::Save,
            Step::End => Want::End,
        }
    }

    /// The result, once no action is left.
    ///
    /// # Errors
    /// The failure for the caller.
    pub fn finish(self) -> Result<Outcome, Fault> {
        match (self.fault, self.outcome) {
            (None, Some(outcome)) => Ok(outcome),
            (Some(fault), _) => Err(fault),
            (None, None) => Err(Fault::new(Code::RollbackFailed, "the transaction did not come to its end")),
        }
    }

    /// Hears the outcome of the last action.
    pub fn hear(&mut self, done: Done, now: &Now) {
        self.step = match (self.step, done) {
            (Step::Base, Done::Running(text)) => self.armed(text, now),
            (Step::KeepArmed, Done::Done) => Step::Arm,
            (Step::Arm, Done::Done) => Step::Apply,
            (Step::Arm, Done::Failed(fault)) => self.disarmed(fault),
            // Only reading back tells: acknowledgements get lost, and devices acknowledge what they did not do.
            (Step::Apply, Done::Failed(fault)) => self.noted(fault, Step::ReadBack),
            (Step::Apply, _) => Step::ReadBack,
            (Step::ReadBack, Done::Running(text)) => self.compared(&text),
            (Step::Check, Done::Done) => self.applied(now),
            (Step::ReadBack | Step::Check | Step::KeepApplied, Done::Failed(fault)) => {
                let detail = fault.detail.clone();
                self.fault.get_or_insert(fault);
                self.turn_back(Reason::Differs(detail))
            }
            (Step::KeepApplied, _) => self.ended(Outcome::Committed),
            // The record on the disk says that the change is pending, which brings the old configuration back as well.
            (Step::KeepRolling, _) => Step::Look,
            (Step::Look | Step::Compare, Done::Running(text)) => self.looked(&text),
            (Step::Look, _) => Step::Restore,
            (Step::Restore, Done::Failed(fault)) => self.noted(fault, Step::Compare),
            (Step::Restore, _) => Step::Compare,
            (Step::Compare, Done::Failed(fault)) => self.again(&fault.detail),
            (Step::KeepConfirmed, Done::Done) => Step::Save,
            (Step::Save, done) => self.ended(Outcome::Confirmed { is_saved: matches!(done, Done::Done) }),
            (Step::KeepRolledBack, _) => self.ended(Outcome::RolledBack),
            (_, Done::Failed(fault)) => self.noted(fault, Step::End),
            (_, Done::Done | Done::Running(_)) => Step::End,
        };
    }

    fn armed(&mut self, running: String, now: &Now) -> Step {
        let base = revision(&running);
        if self.record.change.as_ref().is_none_or(|change| change.base != base) {
            let detail = "the running configuration has changed since the diff was shown: nothing was applied; make the change again";
            return self.noted(Fault::new(Code::ConfigIncompatible, detail).at("running"), Step::End);
        }
        let deadline = Deadline::after(now, self.window);
        self.change(|change| {
            change.phase = Phase::Armed;
            change.deadline = Some(deadline);
            change.snapshot = Some(running);
        });
        Step::KeepArmed
    }

    fn disarmed(&mut self, fault: Fault) -> Step {
        self.fault = Some(fault);
        self.change(|change| {
            change.phase = Phase::Open;
            change.deadline = None;
            change.snapshot = None;
        });
        Step::KeepDisarmed
    }

    fn compared(&mut self, running: &str) -> Step {
        let candidate = self.record.change.as_ref().map(|change| Tree::read(&change.candidate));
        let differences = candidate.map(|candidate| candidate.differences(&Tree::read(running))).unwrap_or_default();
        if differences.is_empty() {
            self.fault = None;
            return Step::Check;
        }
        let detail = format!("the device does not hold what it was told: {}", differences.join("; "));
        self.fault.get_or_insert_with(|| Fault::new(Code::ConfigIncompatible, detail.clone()));
        self.turn_back(Reason::Differs(detail))
    }

    fn applied(&mut self, now: &Now) -> Step {
        if self.record.change.as_ref().and_then(|change| change.deadline.as_ref()).is_none_or(|deadline| deadline.is_over(now)) {
            self.fault = Some(Fault::new(Code::ConfirmedCommitTimeout, "the device took longer than the window"));
            return self.turn_back(Reason::Timeout);
        }
        self.change(|change| change.phase = Phase::Applied);
        Step::KeepApplied
    }

    fn turn_back(&mut self, reason: Reason) -> Step {
        self.change(|change| {
            change.phase = Phase::RollingBack;
            change.reason = Some(reason);
        });
        Step::KeepRolling
    }

    fn looked(&mut self, running: &str) -> Step {
        let snapshot = self.record.change.as_ref().and_then(|change| change.snapshot.as_deref());
        if snapshot.is_none_or(|snapshot| snapshot == running) {
            self.change(|change| {
                change.phase = Phase::RolledBack;
                change.deadline = None;
                change.snapshot = None;
            });
            return Step::KeepRolledBack;
        }
        self.again("the running configuration is not the old one")
    }

    fn again(&mut self, why: &str) -> Step {
        if self.step == Step::Look || self.tries < TRIES {
            self.tries += 1;
            return Step::Restore;
        }
        let earlier = self.fault.take().map(|fault| format!(" (before that: {})", fault.detail)).unwrap_or_default();
        self.fault = Some(Fault::new(Code::RollbackFailed, format!("{why}, after {TRIES} tries{earlier}")));
        self.change(|change| change.failures += 1);
        Step::KeepStuck
    }

    fn ended(&mut self, outcome: Outcome) -> Step {
        // A commit that was taken back is none; a rollback that got there is one.
        if self.window == 0 {
            self.fault = None;
        }
        self.outcome = Some(outcome);
        Step::End
    }

    fn noted(&mut self, fault: Fault, next: Step) -> Step {
        self.fault.get_or_insert(fault);
        next
    }

    fn change(&mut self, change: impl FnOnce(&mut Change)) {
        if let Some(one) = &mut self.record.change {
            change(one);
        }
    }
}
