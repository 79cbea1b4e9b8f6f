//! The last confirmed change, kept so that another change can undo it. Decides what is kept and for which running configuration; makes no
//! candidate.

use serde::{Deserialize, Serialize};

use super::form::{ConfigForm, listed};
use super::record::{ChangeRecord, DeviceChange, Phase};
use crate::fault::{Code, Fault};

/// Most bytes of both configurations of a kept change.
pub const MOST_KEPT: usize = 16 << 20;

/// A confirmed change with the configurations before and after. Both hold secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptChange {
    pub id: String,
    #[serde(default)]
    pub form: ConfigForm,
    /// Configuration before the change, byte for byte.
    pub snapshot: String,
    /// Configuration that was confirmed.
    pub candidate: String,
}

impl ChangeRecord {
    /// The last confirmed change, unless the change is too large to be kept.
    pub fn last_confirmed(&self) -> Option<KeptChange> {
        match &self.change {
            Some(change) if change.phase == Phase::Confirmed => KeptChange::from_change(change),
            _ => self.kept.clone(),
        }
    }

    /// The confirmed change that a new one may undo.
    ///
    /// # Errors
    /// No change is kept, or a candidate is open beside.
    pub fn undoable(&self) -> Result<KeptChange, Fault> {
        if let Some(open) = self.live().filter(|change| !change.phase.is_pending()) {
            let detail = format!("the candidate {} is open: commit the candidate, or let go of it by network.rollback first", open.id);
            return Err(Fault::new(Code::ConfigIncompatible, detail));
        }
        self.last_confirmed().ok_or_else(|| {
            let most = MOST_KEPT >> 20;
            let detail = format!(
                "no confirmed change is kept that could be undone: only the last one made through Banyan is, up to {most} MiB with the configuration before"
            );
            Fault::new(Code::ConfigIncompatible, detail)
        })
    }
}

impl KeptChange {
    fn from_change(change: &DeviceChange) -> Option<Self> {
        let (snapshot, candidate) = (change.snapshot.clone()?, change.candidate.clone());
        let is_kept = snapshot.len().saturating_add(candidate.len()) <= MOST_KEPT;
        is_kept.then(|| Self { id: change.id.clone(), form: change.form, snapshot, candidate })
    }

    /// Checks that the device still runs what was confirmed: whatever came later would be lost.
    ///
    /// # Errors
    /// -32084 with the differences, secrets included.
    pub fn check(&self, running: &str) -> Result<(), Fault> {
        let later = self.form.differences(&self.candidate, running);
        if later.is_empty() {
            return Ok(());
        }
        let detail = format!(
            "the device was changed after {} was confirmed, and an undo would lose that, so nothing is changed: {}",
            self.id,
            listed(&later)
        );
        Err(Fault::new(Code::ConfigIncompatible, detail).at("running"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::{Author, Now, TriedEdits, adopt, discard};

    const BEFORE: &str = "hostname before\n";
    const AFTER: &str = "hostname after\n";

    fn now() -> Now {
        Now { wall: 1, boot: "b".to_owned(), up: 1 }
    }

    fn adopted(record: &ChangeRecord, running: &str, candidate: &str) -> ChangeRecord {
        let tried = TriedEdits { form: ConfigForm::Lines, edits: Vec::new(), running: running.to_owned(), candidate: candidate.to_owned() };
        adopt(record, Author { device: "r1", who: "mcp" }, tried, &now()).unwrap()
    }

    fn confirmed(record: &ChangeRecord, running: &str, candidate: &str) -> ChangeRecord {
        let mut record = adopted(record, running, candidate);
        record.change.iter_mut().for_each(|change| {
            change.phase = Phase::Confirmed;
            change.snapshot = Some(running.to_owned());
        });
        record
    }

    #[test]
    fn nm_09_a_confirmed_change_outlives_later_candidates() {
        let none = ChangeRecord::default().undoable().unwrap_err();
        assert!(none.code == Code::ConfigIncompatible && none.detail.contains("no confirmed change is kept"), "{none:?}");
        let record = confirmed(&ChangeRecord::default(), BEFORE, AFTER);
        assert_eq!(record.undoable().unwrap().snapshot, BEFORE);
        let open = adopted(&record, AFTER, "hostname third\n");
        assert!(open.undoable().unwrap_err().detail.contains("is open"));
        let kept = discard(&open, "mcp", &now()).unwrap().undoable().unwrap();
        assert_eq!((kept.id.as_str(), kept.snapshot.as_str()), ("r1-1", BEFORE));
    }

    #[test]
    fn nm_09_only_the_last_confirmed_change_is_kept() {
        let first = confirmed(&ChangeRecord::default(), BEFORE, AFTER);
        let second = confirmed(&first, AFTER, "hostname third\n");
        assert_eq!(second.undoable().unwrap().snapshot, AFTER);
        // A change too large to be kept does not bring an older one back.
        let huge = confirmed(&first, AFTER, &"x".repeat(MOST_KEPT));
        assert!(huge.undoable().is_err());
        assert!(adopted(&huge, &"x".repeat(MOST_KEPT), BEFORE).kept.is_none());
    }

    #[test]
    fn nm_09_later_changes_stand_in_the_way_of_an_undo() {
        let kept = confirmed(&ChangeRecord::default(), BEFORE, AFTER).undoable().unwrap();
        kept.check(AFTER).unwrap();
        let later = kept.check("hostname after\nip route 10.0.0.0/8 blackhole\n").unwrap_err();
        assert!(later.code == Code::ConfigIncompatible && later.detail.contains("+ ip route 10.0.0.0/8 blackhole"), "{later:?}");
    }
}
