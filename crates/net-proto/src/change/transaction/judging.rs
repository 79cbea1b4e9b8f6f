//! Judges what a device shows after a rollback or a confirmation. Does not choose the action before that.

use super::{ChangeStep, StepResult, TRIES, Transaction};
use crate::change::form::{ConfigForm, listed};
use crate::change::record::{Deadline, DeviceChange, Now, Phase, Reason};
use crate::fault::{Code, Fault};

impl Transaction {
    pub(super) fn looked(&mut self, running: &str, now: &Now) -> ChangeStep {
        // After a device was told to restore, what is no part of the change was made by somebody else.
        let is_back = |change: &DeviceChange| {
            let snapshot = change.snapshot.as_deref();
            snapshot.is_none_or(|old| {
                change.form.is_restored(old, running)
                    || (self.tries > 0 && self.in_the_way.is_none() && !change.form.holds_part(old, &change.candidate, running))
            })
        };
        if self.record.change.as_ref().is_none_or(is_back) {
            if self.is_open(now) {
                return ChangeStep::KeepStuck;
            }
            self.change(|change| {
                change.phase = Phase::RolledBack;
                change.deadline = None;
                change.snapshot = None;
            });
            return ChangeStep::KeepRolledBack;
        }
        if self.in_the_way.is_some() {
            return self.overtaken(now);
        }
        self.again("the running configuration is not the old one")
    }

    /// Recognizes a commit that the device has neither answered nor taken back: whatever runs now, it may still be carried out, with the timer
    /// of its own. So the record keeps a deadline for that long. What was read counts for the moment at which it was asked for.
    fn is_open(&mut self, now: &Now) -> bool {
        let Some(change) = self.record.change.as_ref().filter(|change| change.is_unanswered && !self.is_taken_back) else { return false };
        let is_over = change.deadline.as_ref().is_none_or(|deadline| deadline.is_over(self.asked.as_ref().unwrap_or(now)));
        // The device counts its time from the moment at which it begins, which is not before the commit was given up. Since the machine began
        // again, only the wall clock would tell, which may have jumped.
        let of_another_run = change.deadline.as_ref().filter(|deadline| deadline.boot != now.boot).map(Deadline::length);
        let window = of_another_run.unwrap_or_default().max(self.window);
        if window > 0 {
            self.change(|change| change.deadline = Some(Deadline::after(now, window)));
        } else if is_over {
            return false;
        }
        let detail = "the old configuration runs, but the device has not answered the commit and may still carry it out: the change is over once \
            the time of the commit has passed";
        self.fault.get_or_insert_with(|| Fault::new(Code::Timeout, detail).retryable());
        true
    }

    /// Judges by the running configuration whether a confirmation would keep the change: a restart of the device brings the old configuration
    /// back without a word. After drift the change stays pending, and the deadline brings the old configuration back.
    pub(super) fn verified(&mut self, running: &str, now: &Now) -> ChangeStep {
        let Some(change) = self.record.change.as_ref() else { return ChangeStep::End };
        let old = change.snapshot.as_deref().unwrap_or_default();
        let lost = change.form.lost(old, &change.candidate, running);
        if lost.is_empty() {
            // The read took its time.
            if change.deadline.as_ref().is_none_or(|deadline| deadline.is_over(now)) {
                let detail = "the window went by while the device was read, so nothing was confirmed";
                return self.noted(Fault::new(Code::ConfirmedCommitTimeout, detail), ChangeStep::End);
            }
            return self.confirmed();
        }
        if change.form.is_restored(old, running) {
            self.gone(Reason::Differs("the device ran the old configuration before anybody confirmed".to_owned()));
            let detail = "the device runs the old configuration already, after a restart or by somebody's hand: nothing was confirmed, and \
                nothing is left to take back. Make the change again";
            return self.noted(Fault::new(Code::ConfirmedCommitTimeout, detail), ChangeStep::KeepLost);
        }
        let detail = format!(
            "drift: the device does not run what was applied any more, so nothing was confirmed, and the old configuration comes back at the \
             deadline: {}",
            listed(&lost)
        );
        self.noted(Fault::new(Code::ConfigIncompatible, detail).at("running"), ChangeStep::End)
    }

    /// Ends a change whose old configuration runs without a word of Banyan.
    fn gone(&mut self, reason: Reason) {
        self.change(|change| {
            change.phase = Phase::RolledBack;
            change.reason = Some(reason);
            (change.deadline, change.snapshot) = (None, None);
        });
    }

    /// Judges a confirmation by the running configuration, and by the answer of the device where the change runs.
    pub(super) fn settled(&mut self, running: &str) -> ChangeStep {
        let Some(change) = self.record.change.as_ref() else { return ChangeStep::End };
        let old = change.snapshot.as_deref().unwrap_or_default();
        let is_gone = change.form.is_restored(old, running) || !change.form.holds_part(old, &change.candidate, running);
        let differences = change.form.differences(&change.candidate, running);
        match self.refusal.take() {
            _ if is_gone => {
                self.gone(Reason::Timeout);
                let detail = "the device had taken the change back already: the old configuration runs";
                self.noted(Fault::new(Code::ConfirmedCommitTimeout, detail), ChangeStep::KeepLost)
            }
            Some(refusal) if matches!(refusal.code, Code::Timeout | Code::Unreachable) => {
                self.was_sent = true;
                if self.tries < TRIES {
                    self.tries += 1;
                    return ChangeStep::Confirm;
                }
                self.noted(refusal, ChangeStep::End)
            }
            Some(refusal) if !self.was_sent || !matches!(refusal.code, Code::ConfirmedCommitTimeout | Code::InvalidParams) => {
                self.change(|change| change.phase = Phase::Applied);
                self.noted(refusal, ChangeStep::KeepRefused)
            }
            // A text runs as a whole or not at all.
            Some(refusal) if change.form == ConfigForm::Text && !differences.is_empty() => {
                self.change(|change| change.phase = Phase::Applied);
                self.noted(refusal, ChangeStep::KeepRefused)
            }
            // Nothing waits for a confirmation, and the change runs: an earlier confirmation arrived.
            Some(_) | None => {
                if !differences.is_empty() {
                    let detail = format!("the change is kept, but the device does not hold what it was told: {}", listed(&differences));
                    self.fault = Some(Fault::new(Code::ConfigIncompatible, detail));
                }
                self.confirmed()
            }
        }
    }

    /// Until the device has saved it, a confirmed change is lost by a restart: the record on the disk says so before the device is told.
    fn confirmed(&mut self) -> ChangeStep {
        self.change(|change| {
            change.phase = Phase::Confirmed;
            change.deadline = None;
        });
        self.record.unsaved = Some("the device was not told to".to_owned());
        ChangeStep::KeepConfirmed
    }

    /// Goes on with a confirmation of a healthy device; of another one, nothing is confirmed, and the deadline stays.
    pub(super) fn checked_again(&mut self, done: StepResult, now: &Now) -> ChangeStep {
        if let StepResult::Failed(fault) = done {
            let detail = format!("{}, so nothing was confirmed, and the old configuration comes back at the deadline", fault.detail);
            return self.noted(Fault { detail, may_retry: true, ..fault }, ChangeStep::End);
        }
        let Some(change) = self.record.change.as_ref() else { return ChangeStep::End };
        if change.persist.is_none() {
            return ChangeStep::Verify;
        }
        // The checks took their time.
        if change.deadline.as_ref().is_none_or(|deadline| deadline.is_over(now)) {
            let detail = "the window went by while the health of the device was checked, so nothing was confirmed";
            return self.noted(Fault::new(Code::ConfirmedCommitTimeout, detail), ChangeStep::End);
        }
        self.change(|change| change.phase = Phase::Confirming);
        ChangeStep::KeepConfirming
    }

    /// Saves what was confirmed, and nothing that somebody else made since.
    pub(super) fn looked_unsaved(&mut self, running: &str) -> ChangeStep {
        let lost = self.record.last_confirmed().map(|kept| kept.form.lost(&kept.snapshot, &kept.candidate, running));
        let detail = match lost {
            Some(lost) if lost.is_empty() => return ChangeStep::Save,
            Some(lost) => format!("the device does not run what was confirmed: {}", listed(&lost)),
            None => "the confirmed change is too large to be compared with what runs".to_owned(),
        };
        self.record.unsaved = Some(detail.clone());
        self.noted(Fault::new(Code::ConfigIncompatible, format!("{detail}. So nothing was saved")).at("running"), ChangeStep::KeepUnsaved)
    }

    pub(super) fn saved(&mut self, done: StepResult) -> ChangeStep {
        if let StepResult::Failed(fault) = done {
            self.record.unsaved = Some(fault.detail);
            return ChangeStep::KeepUnsaved;
        }
        self.is_saved = !matches!(done, StepResult::Unable);
        self.record.unsaved = None;
        ChangeStep::KeepSaved
    }

    fn again(&mut self, why: &str) -> ChangeStep {
        if self.step == ChangeStep::Look || self.tries < TRIES {
            self.tries += 1;
            return ChangeStep::Restore;
        }
        let earlier = self.fault.take().map(|fault| format!(" (before that: {})", fault.detail)).unwrap_or_default();
        self.fault = Some(Fault::new(Code::RollbackFailed, format!("{why}, after {TRIES} tries{earlier}")));
        self.change(|change| change.failures += 1);
        ChangeStep::KeepStuck
    }

    /// Goes on where the device can't be asked how a restore went. A device with a timer of its own restores itself, so nothing has failed yet.
    pub(super) fn unread(&mut self, fault: Fault) -> ChangeStep {
        let has_timer = self.record.change.as_ref().is_some_and(|change| change.persist.is_some());
        if !has_timer || self.tries < TRIES || !matches!(fault.code, Code::Timeout | Code::Unreachable) {
            return self.again(&fault.detail);
        }
        self.change(|change| change.failures += 1);
        self.noted(fault, ChangeStep::KeepStuck)
    }

    /// Ends a change whose old configuration can't come back, unless the device may still carry out the commit.
    pub(super) fn overtaken(&mut self, now: &Now) -> ChangeStep {
        if self.is_open(now) {
            return ChangeStep::KeepStuck;
        }
        let detail = self.in_the_way.take().unwrap_or_default();
        self.overtaken_by(detail)
    }

    pub(super) fn overtaken_by(&mut self, detail: String) -> ChangeStep {
        self.change(|change| {
            change.phase = Phase::Overtaken;
            change.reason = Some(Reason::Overtaken(detail.clone()));
            (change.deadline, change.snapshot) = (None, None);
        });
        self.fault = Some(Fault::new(Code::RollbackFailed, detail));
        ChangeStep::KeepOvertaken
    }

    /// Goes on where nobody can read how a confirmation went. A confirmation that the device has refused is none, whatever runs.
    pub(super) fn unsettled(&mut self, fault: Fault) -> ChangeStep {
        match self.refusal.take() {
            Some(refusal) if !self.was_sent && !matches!(refusal.code, Code::Timeout | Code::Unreachable) => {
                self.change(|change| change.phase = Phase::Applied);
                self.noted(refusal, ChangeStep::KeepRefused)
            }
            Some(_) | None => self.noted(fault, ChangeStep::End),
        }
    }
}
