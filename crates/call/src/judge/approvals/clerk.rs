//! Works at the desk: all that waits for it with one commit. What is said follows from what is on the disk, and is said only once what comes
//! of it is there too. What could not be written has not happened: before anything else is done it is put back as it is kept. Decides nothing.

use std::collections::HashMap;
use std::sync::Arc;

use policy::approval::Desk;
use store::{Pending, RowKind, StoreError, Stores};

use crate::judge::approvals::{Deliver, Fact, Job, Passkeys, Room, rows};

/// Whoever has the desk.
pub struct Clerk {
    pub room: Room,
    stores: Arc<dyn Stores>,
    gate: String,
    /// The version of the policy with which the gate began.
    policy: String,
    /// `None` until something has to be kept or read.
    kept: Option<Box<dyn Pending>>,
    /// Whether the desk has what was kept by the gate that ran before.
    pub is_restored: bool,
    /// The operators as they were read last.
    operators: Vec<String>,
    /// What has happened whatever becomes of the disk, and could not be written so far.
    owed: Vec<Fact>,
    pub is_failing: bool,
}

impl Clerk {
    /// For the desk of `gate`, with what is kept in its stores.
    pub fn new(desk: Desk, stores: Arc<dyn Stores>, gate: String, policy: String) -> Self {
        let room = Room { desk, passkeys: Passkeys::default(), waiting: HashMap::new() };
        Self { room, stores, gate, policy, kept: None, is_restored: false, operators: Vec::new(), owed: Vec::new(), is_failing: false }
    }

    /// Does a batch of jobs; what is to be delivered now. `None`: it could not be written, and nothing of it counts but the facts, which
    /// hold once they can be.
    pub(super) fn work(&mut self, batch: Vec<Job>, now: u64) -> Option<Vec<Deliver>> {
        let worked = self.try_work(batch, now);
        match &worked {
            Ok(_) if self.is_failing => tracing::info!("approvals are written down again"),
            Err(StoreError::Changed) => {
                tracing::info!("another gate changed approvals meanwhile: what was asked here has to be asked again")
            }
            Err(error) if !self.is_failing => {
                tracing::error!(%error, "approvals can't be written down: nothing that needs one goes out until they can be");
            }
            Ok(_) | Err(_) => {}
        }
        self.is_failing = worked.is_err();
        worked.ok()
    }

    fn try_work(&mut self, batch: Vec<Job>, now: u64) -> Result<Vec<Deliver>, StoreError> {
        let before = self.owed.len();
        self.owed.extend(batch.iter().filter_map(Job::fact));
        let kept = match &mut self.kept {
            Some(kept) => kept,
            none => none.insert(self.stores.pending(&self.gate, now)?),
        };
        // Other gates of this directory enrol and remove keys too. Until this turn is over, none of them does.
        let turn = kept.begin()?;
        let (operators, desk) = (turn.all(RowKind::Operator)?, &mut self.room.desk);
        if self.is_restored {
            let is_unkept = desk.changes().next().is_some();
            if is_unkept {
                rows::put_back(desk, &*turn)?;
                self.room.waiting.retain(|id, _| desk.approval(id).is_some());
            }
            if is_unkept || operators != self.operators {
                desk.know(now, rows::operators(&operators));
            }
        } else {
            rows::restore(desk, &*turn, now)?;
            // It may be another one than the gate before had.
            desk.set_policy(now, &self.policy);
            self.is_restored = true;
        }
        self.operators = operators;
        self.owed[..before].iter().for_each(|fact| fact(&mut self.room.desk, now));
        let deliver = batch.into_iter().map(|job| job.done(&mut self.room, now)).collect();
        self.room.desk.handle_timeout(now);
        turn.write(&rows::changed(&self.room.desk))?;
        self.room.desk.kept();
        self.owed.clear();
        Ok(deliver)
    }
}
