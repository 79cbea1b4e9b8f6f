//! Saves that come late: of confirmed changes that a device refused to save, or was not told to. Decides nothing about a change that waits.

use std::time::{Duration, Instant};

use net_proto::change::{ChangeOutcome, ChangeRecord, Transaction};
use net_proto::fault::Fault;

use crate::drive::drive;
use crate::room;
use crate::site::Site;

impl Site {
    /// Saves an unsaved confirmed change, where the device still runs the change and the next try is due. False: nothing was to be done.
    pub(crate) async fn save_if_left(&self) -> Result<bool, Fault> {
        let is_left = |record: &ChangeRecord| record.unsaved.is_some() && record.pending().is_none();
        if !is_left(&self.store.load()?) || !self.next_save.begin(Instant::now()) {
            return Ok(false);
        }
        let Ok(lock) = self.store.lock(Duration::ZERO).await else { return Ok(false) };
        let record = self.store.load()?;
        if !is_left(&record) {
            return Ok(false);
        }
        // Where nothing has to be written, nobody's work can be saved by mistake.
        let transaction = Transaction::save(record, !self.changes.writes_saves())?;
        let saved =
            room::settling(drive(self, transaction, &lock)).await.1.map(|outcome| outcome == ChangeOutcome::Confirmed { is_saved: true });
        self.next_save.hear(saved.as_ref().is_ok_and(|is_saved| *is_saved), Instant::now());
        self.know_start().await?;
        saved
    }

    /// Tells an open candidate what the device starts with since a save: the candidate would take that for the work of somebody else.
    async fn know_start(&self) -> Result<(), Fault> {
        let mut record = self.store.load()?;
        if record.unsaved.is_some() || record.live().is_none_or(|change| change.start.is_none()) {
            return Ok(());
        }
        let start = self.changes.start_revision(&self.changes.running().await?, None).await?;
        record.change.iter_mut().for_each(|change| change.start.clone_from(&start));
        self.keep(&record)
    }
}
