//! The undoing of a confirmed change by another one: the candidate is what ran before. From there on the change is like every other. Decides
//! neither what is kept nor how a change is applied.

use net_proto::change::{ChangeRecord, Edits, KeptChange, edits_of, revision};
use net_proto::fault::{Code, Fault};
use net_proto::netconf::EditOperation;
use net_proto::snmp::values_of;

use crate::bulk::Bulk;
use crate::clock::now;
use crate::datastore::{NodeEdit, NodeEdits};
use crate::site::{PATIENCE, Preview, Settler, Site};

impl Site {
    /// Makes the configuration from before the last confirmed change the candidate of `who`; answers the diff.
    pub(crate) async fn undo(&self, who: &str) -> Result<Preview, Fault> {
        self.may_undo(who)?;
        let _lock = self.store.lock(PATIENCE).await?;
        let (record, shown) = self.undone(who).await?;
        self.validate(&shown.change.candidate).await.map_err(|fault| self.cleaned_of(&record, fault))?;
        self.keep(&record)?;
        Ok(shown)
    }

    /// The diff that an undo would make. Nothing is kept.
    pub(crate) async fn foresee_undo(&self, who: &str) -> Result<Preview, Fault> {
        self.may_undo(who)?;
        let _lock = self.store.lock(PATIENCE).await?;
        Ok(self.undone(who).await?.1)
    }

    /// Undoes the last confirmed change for as long as a commit holds without a confirmation; answers the diff, without secrets.
    ///
    /// # Errors
    /// No change is kept, another's change is open or pending, the device was changed since, or the device does not take the change.
    pub async fn undo_for_now(&self, who: &str) -> Result<String, Fault> {
        let shown = self.undo(who).await?;
        let committed = self.commit(who, None, Some(&shown.change.hash)).await;
        if committed.is_err() && self.store.load()?.pending().is_none() {
            // A change that was taken back is over already, and there is no candidate to let go of.
            drop(self.roll_back(Settler::Person(who)).await);
        }
        committed.map(|_| shown.diff)
    }

    /// Checks that `who` may undo something now. Whoever can't keeps the lock from nobody who confirms or restores.
    fn may_undo(&self, who: &str) -> Result<(), Fault> {
        self.may_change()?;
        if self.changes.candidate_line().is_some() || self.changes.netconf().is_ok() {
            let detail = "this device takes edits and no whole configuration from here, so a confirmed change is undone by edits alone";
            return Err(Fault::new(Code::RollbackNotSupported, detail));
        }
        let record = self.store.load()?;
        edits_of(&record, who, &now())?;
        record.undoable().map(drop)
    }

    /// The record with the undo as the candidate, and the diff.
    async fn undone(&self, who: &str) -> Result<(ChangeRecord, Preview), Fault> {
        let record = self.store.load()?;
        edits_of(&record, who, &now())?;
        let (kept, running) = (record.undoable()?, self.changes.running().await?);
        let redactor = self.redactor.knowing_those_of([kept.snapshot.as_str(), kept.candidate.as_str(), running.as_str()]);
        kept.check(&running).map_err(|fault| fault.cleaned(|text| redactor.text(text)))?;
        let (record, shown) = if self.changes.has_command_line() {
            let edits = Edits::Whole(kept.snapshot.clone());
            self.may_edit(&edits, Bulk::Single)?;
            let (record, beneath) = self.edited(who, edits).await?;
            let shown = self.shown(&record, &beneath)?;
            (record, shown)
        } else {
            self.tried(who, &settings_before(&kept)?).await?
        };
        self.check_lasting(&running, &shown.change.candidate)?;
        let leads_back = kept.form.differences(&kept.snapshot, &shown.change.candidate).is_empty();
        match (shown.change.base == revision(&running), leads_back) {
            (true, true) => Ok((record, shown)),
            (true, false) => {
                let detail = format!("the device makes something else of the configuration from before {}, so nothing is changed", kept.id);
                Err(Fault::new(Code::ConfigIncompatible, detail))
            }
            (false, _) => {
                let detail = "the running configuration changed meanwhile, so nothing is changed: try again";
                Err(Fault::new(Code::ConfigIncompatible, detail).retryable())
            }
        }
    }
}

/// Edits that set what a device over SNMP held before a change.
fn settings_before(kept: &KeptChange) -> Result<NodeEdits, Fault> {
    let values = values_of(&kept.candidate, &kept.snapshot)?;
    let all = values.into_iter().map(|(path, value)| NodeEdit { path, operation: EditOperation::Merge, value: Some(value) }).collect();
    Ok(NodeEdits { all, bulk: Bulk::Single })
}
