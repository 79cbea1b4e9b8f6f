//! A device with a timer of its own, as NETCONF has them: a commit is taken back at its time unless somebody confirms. Takes nothing on trust.

use net_proto::fault::{Code, Fault};

/// Commit that waits for its confirmation.
#[derive(Debug)]
struct TimedCommit {
    name: String,
    /// Moment of the rollback, in milliseconds of the device.
    end: u64,
    old: String,
}

/// Timer of a device.
#[derive(Debug, Default)]
pub(super) struct DeviceTimer {
    time: u64,
    commit: Option<TimedCommit>,
    /// Commit that the device has taken and not begun.
    queued: Option<QueuedCommit>,
}

/// Commit that a slow device carries out later.
#[derive(Debug)]
struct QueuedCommit {
    begin: u64,
    new: String,
    name: String,
    milliseconds: u64,
}

impl DeviceTimer {
    /// Commits `new` in place of `running` for some time, unless another commit waits.
    pub(super) fn commit(&mut self, running: &mut String, new: &str, name: &str, milliseconds: u64) -> Result<(), Fault> {
        if self.commit.is_some() {
            return Err(Fault::new(Code::AccessDenied, "cannot perform the operation with confirmed-commit pending"));
        }
        let old = std::mem::replace(running, new.to_owned());
        self.commit = Some(TimedCommit { name: name.to_owned(), end: self.time + milliseconds, old });
        Ok(())
    }

    /// Commits `new` for some time as [`Self::commit`] does, but only after a while.
    pub(super) fn queue(&mut self, after: u64, new: &str, name: &str, milliseconds: u64) {
        self.queued = Some(QueuedCommit { begin: self.time + after, new: new.to_owned(), name: name.to_owned(), milliseconds });
    }

    /// Keeps the commit of this name.
    pub(super) fn confirm(&mut self, name: &str) -> Result<(), Fault> {
        self.named(name).map(drop).map_err(|()| Fault::new(Code::ConfirmedCommitTimeout, "persistent confirmed commit not active"))
    }

    /// Takes the commit of this name back.
    pub(super) fn cancel(&mut self, running: &mut String, name: &str) -> Result<(), Fault> {
        let commit = self.named(name).map_err(|()| Fault::new(Code::RollbackFailed, "operation failed"))?;
        *running = commit.old;
        Ok(())
    }

    /// Lets time pass; answers whether a commit was taken back.
    pub(super) fn pass(&mut self, running: &mut String, milliseconds: u64) -> bool {
        self.time += milliseconds;
        if let Some(queued) = self.queued.take_if(|queued| queued.begin <= self.time) {
            drop(self.commit(running, &queued.new, &queued.name, queued.milliseconds));
        }
        let due = self.commit.take_if(|commit| commit.end <= self.time);
        due.map(|commit| *running = commit.old).is_some()
    }

    /// Forgets the commit, as at a restart.
    pub(super) fn forget(&mut self) {
        (self.commit, self.queued) = (None, None);
    }

    /// Configuration that the timer brings back.
    pub(super) fn old(&self) -> Option<&String> {
        self.commit.as_ref().map(|commit| &commit.old)
    }

    fn named(&mut self, name: &str) -> Result<TimedCommit, ()> {
        self.commit.take_if(|commit| commit.name == name).ok_or(())
    }
}
