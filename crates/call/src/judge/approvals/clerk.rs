//! Works at the approval desk: everything that waits, in one commit. Answers follow from the disk, and are given only once their
//! consequences are there too. Changes that could not be written have not happened: before anything else, the desk is put back to the kept
//! state. Decides nothing.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use banyan_model::{Machine, Now};
use policy::approval::{Desk, News};
use store::{Pending, RowKind, StoreError, Stores};

use crate::judge::approvals::{Deliver, Fact, Job, Passkeys, Room, rows};

/// Longest time between two turns, once the desk was read.
const LONG: Duration = Duration::from_secs(3600);
/// Time until the next turn after a failed one.
const AGAIN: Duration = Duration::from_secs(1);

/// Output of the clerk: turns first, then all news, then all answers.
pub enum ClerkOutput {
    /// An answer whose grounds are kept.
    Deliver(Deliver),
    /// News of the desk, already kept.
    News(News),
    /// Jobs for `Clerk::work`, which may wait for the disk; possibly none.
    Turn(Vec<Job>),
}

/// Owner of the desk.
pub struct Clerk {
    pub room: Room,
    stores: Arc<dyn Stores>,
    gate: String,
    /// Version of the policy with which the gate began.
    policy: String,
    /// `None` until something has to be kept or read.
    kept: Option<Box<dyn Pending>>,
    /// The desk has the approvals of earlier runs.
    is_restored: bool,
    /// Operators as last read.
    operators: Vec<String>,
    /// Facts still to be written; they hold whatever happens to the disk.
    owed: Vec<Fact>,
    pub is_failing: bool,
    /// Jobs for the next turn.
    jobs: Vec<Job>,
    /// A turn is due, even without jobs.
    is_due: bool,
    worked: Option<Instant>,
    answers: VecDeque<Deliver>,
}

impl Clerk {
    /// Makes the clerk for the desk of `gate`, with the approvals in its stores.
    pub fn new(desk: Desk, stores: Arc<dyn Stores>, gate: String, policy: String) -> Self {
        let room = Room { desk, passkeys: Passkeys::default(), waiting: HashMap::new() };
        let (kept, operators, owed, jobs, answers) = (None, Vec::new(), Vec::new(), Vec::new(), VecDeque::new());
        let (is_restored, is_failing, is_due, worked) = (false, false, false, None);
        Self { room, stores, gate, policy, kept, is_restored, operators, owed, is_failing, jobs, is_due, worked, answers }
    }

    /// Takes jobs for the next turn.
    pub(super) fn handle_jobs(&mut self, jobs: Vec<Job>) {
        self.jobs.extend(jobs);
    }

    /// Orders a turn, even without jobs.
    pub(super) fn order_turn(&mut self) {
        self.is_due = true;
    }

    /// Does a batch of jobs. If the disk fails, only the facts of the batch count, once they can be written.
    pub(super) fn work(&mut self, now: Now, batch: Vec<Job>) {
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
        self.worked = Some(now.instant);
        self.answers.extend(worked.into_iter().flatten());
    }

    fn try_work(&mut self, batch: Vec<Job>, now: Now) -> Result<Vec<Deliver>, StoreError> {
        let before = self.owed.len();
        self.owed.extend(batch.iter().filter_map(Job::fact));
        let kept = match &mut self.kept {
            Some(kept) => kept,
            none => none.insert(self.stores.pending(&self.gate, now.unix_seconds())?),
        };
        // Other gates of this directory enrol and remove keys too, but none until this turn is over.
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
            // The policy may differ from that of the run before.
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

impl Machine for Clerk {
    type Output = ClerkOutput;

    fn handle_timeout(&mut self, _: Now) {
        self.order_turn();
    }

    fn poll_output(&mut self) -> Option<ClerkOutput> {
        if std::mem::take(&mut self.is_due) || !self.jobs.is_empty() {
            return Some(ClerkOutput::Turn(std::mem::take(&mut self.jobs)));
        }
        // Changes that could not be written have not happened, so there is no news of them.
        let news = if self.is_failing { None } else { self.room.desk.poll_output() };
        news.map(ClerkOutput::News).or_else(|| self.answers.pop_front().map(ClerkOutput::Deliver))
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let worked = self.worked?;
        if self.is_failing {
            return Some((worked + AGAIN, "approvals are to be written down again"));
        }
        let long = (worked + LONG, "other gates may have enrolled keys");
        Some(self.room.desk.poll_timeout().filter(|(at, _)| *at < long.0).unwrap_or(long))
    }
}
