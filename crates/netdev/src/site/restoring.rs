//! Changes that are taken back: asked for by somebody, or past their deadline. Decides nothing about the configuration.

use std::time::{Duration, Instant};

use net_proto::change::{Phase, Reason, Transaction, discard};
use net_proto::fault::{Code, Fault};

use super::{PATIENCE, Settler, Site, unwritten};
use crate::clock::now;
use crate::drive::drive;
use crate::room;
use crate::store::Lock;

/// Longest time to wait for another process before a request to take its change back.
const HASTE: Duration = Duration::from_millis(250);
/// Longest time to wait for that rollback: a reload of FRR on another machine may take 90 s.
const RESTORED: Duration = Duration::from_secs(120);

impl Site {
    /// Takes a pending change back, or lets go of the candidate.
    ///
    /// # Errors
    /// Nothing is pending or open, the change is another's, or the old configuration does not come back.
    pub async fn roll_back(&self, by: Settler<'_>) -> Result<(), Fault> {
        self.changes.check_undo()?;
        let (lock, asked) = self.lock_to_restore(by).await?;
        let record = self.store.load()?;
        if record.change.as_ref().is_some_and(|change| change.phase == Phase::RolledBack && asked.as_ref() == Some(&change.id)) {
            return Ok(());
        }
        let (Settler::Caller(name) | Settler::Person(name)) = by;
        if record.pending().is_none() {
            return self.keep(&discard(&record, name, &now())?);
        }
        by.check_owner(&record)?;
        let transaction = Transaction::roll_back(record, Reason::Asked(name.to_owned()))?;
        room::settling(drive(self, transaction, &lock)).await.1.map(drop)
    }

    /// Waits for the lock. A process that has the lock for a pending change is asked to take the change back, whose id is answered.
    async fn lock_to_restore(&self, by: Settler<'_>) -> Result<(Lock, Option<String>), Fault> {
        let (began, mut asked) = (Instant::now(), None);
        loop {
            let locked = match self.store.lock(HASTE).await {
                Ok(lock) => return Ok((lock, asked)),
                Err(locked) => locked,
            };
            asked = self.ask_back(by)?.or(asked);
            match asked {
                None if began.elapsed() > PATIENCE => return Err(locked),
                Some(_) if began.elapsed() > RESTORED => {
                    let detail = "locked: the rollback was asked for, and is under way: look at the state of the change";
                    return Err(Fault::new(Code::AccessDenied, detail).retryable());
                }
                None | Some(_) => {}
            }
        }
    }

    /// Asks the process at work on the pending change for a rollback; answers the id of the change.
    fn ask_back(&self, by: Settler<'_>) -> Result<Option<String>, Fault> {
        let record = self.store.load()?;
        let Some(change) = record.pending() else { return Ok(None) };
        by.check_owner(&record)?;
        let (Settler::Caller(name) | Settler::Person(name)) = by;
        self.store.ask_back(&change.id, name).map_err(|error| unwritten(&error))?;
        Ok(Some(change.id.clone()))
    }

    /// Takes back a change past the deadline. False: nothing is due, or another process holds the lock.
    pub(crate) async fn restore_if_due(&self) -> Result<bool, Fault> {
        if self.store.load()?.pending().is_none() {
            return Ok(false);
        }
        let Ok(lock) = self.store.lock(Duration::ZERO).await else { return Ok(false) };
        let record = self.store.load()?;
        let Some(reason) = record.due(&now()) else { return Ok(false) };
        let is_confirming = record.change.as_ref().is_some_and(|change| change.phase == Phase::Confirming);
        let transaction = if is_confirming { Transaction::settle(record) } else { Transaction::roll_back(record, reason)? };
        room::settling(drive(self, transaction, &lock)).await.1.map(|_| true)
    }
}
