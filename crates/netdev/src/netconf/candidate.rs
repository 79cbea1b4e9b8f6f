//! Changes over NETCONF: a candidate is made under the locks of the device, committed for some seconds, confirmed or cancelled. Outside of these
//! steps no lock is held, and nothing stays in the candidate. Decides nothing.

use std::sync::Arc;

use mcp_server::subject;
use net_proto::change::{ConfigForm, StepResult, TriedEdits, listed};
use net_proto::fault::{Code, Fault, Operation, Trouble};
use net_proto::netconf::{CANDIDATE, CONFIRMED_COMMIT, Datastore, EditTest, NetconfCapabilities, NetconfRequest, STARTUP, VALIDATE};

use super::{Netconf, SessionTurn};

impl Netconf {
    /// Lets the device make a candidate of the edits; nothing is left of the try.
    pub(crate) async fn try_edits(&self, edits: Vec<String>) -> Result<TriedEdits, Fault> {
        let mut turn = self.turn().await?;
        self.lock(&mut turn).await?;
        let made = self.made(&mut turn, &edits).await;
        self.let_go(&mut turn, true).await;
        let (running, candidate) = made?;
        Ok(TriedEdits { form: ConfigForm::Data, edits, running, candidate })
    }

    /// Makes the candidate again, and keeps the locks for the commit.
    pub(crate) async fn prepare(&self, edits: &[String], wanted: &str) -> Result<(), Fault> {
        let mut turn = self.turn().await?;
        self.lock(&mut turn).await?;
        let checked = self.made(&mut turn, edits).await.and_then(|(_, candidate)| {
            let differences = ConfigForm::Data.differences(wanted, &candidate);
            let detail = "the device has changed since the diff was shown, so nothing was applied: make the change again";
            if differences.is_empty() { Ok(()) } else { Err(Fault::new(Code::ConfigIncompatible, detail).at("candidate")) }
        });
        if checked.is_err() {
            self.let_go(&mut turn, true).await;
        }
        checked
    }

    /// Commits the prepared candidate. The device takes the change back after `seconds`, unless somebody confirms by the name.
    pub(crate) async fn commit(&self, seconds: u32, persist: &str) -> Result<(), Fault> {
        let mut turn = match self.turn().await {
            Ok(turn) => turn,
            Err(busy) => {
                self.abandon();
                return Err(busy);
            }
        };
        // Another session has no candidate.
        if !turn.as_ref().is_some_and(|session| session.holds_locks) {
            return Err(Trouble::SessionLost { reason: "the candidate went with it".to_owned() }.into());
        }
        let done = match seconds {
            0 => Err(Fault::new(Code::ConfirmedCommitTimeout, "the device took longer than the window, so nothing was applied")),
            _ => self.ask(&mut turn, Operation::Commit, &NetconfRequest::ConfirmedCommit { seconds, persist }).await.map(drop),
        };
        self.let_go(&mut turn, done.is_err()).await;
        done
    }

    /// Keeps a committed change.
    pub(crate) async fn confirm(&self, persist: &str) -> Result<(), Fault> {
        let mut turn = self.turn().await?;
        // A confirming commit brings along whatever the candidate holds by now.
        let read = |source| NetconfRequest::GetConfig { source, filter: None };
        let candidate = self.tree(&mut turn, &read(Datastore::Candidate)).await?;
        let foreign = self.tree(&mut turn, &read(Datastore::Running)).await?.differences(&candidate);
        if !foreign.is_empty() {
            let detail =
                format!("somebody else has edited the candidate, and a confirmation would commit that as well: {}", listed(&foreign));
            return Err(Fault::new(Code::AccessDenied, detail).retryable());
        }
        self.ask(&mut turn, Operation::Confirm, &NetconfRequest::Confirm { persist_id: persist }).await.map(drop)
    }

    /// Takes a committed change back before its time.
    pub(crate) async fn cancel(&self, persist: &str) -> Result<(), Fault> {
        let mut turn = self.turn().await?;
        self.ask(&mut turn, Operation::Rollback, &NetconfRequest::Cancel { persist_id: persist }).await.map(drop)
    }

    /// Checks that the device starts with what runs.
    pub(crate) fn save(&self) -> StepResult {
        match self.hello() {
            Some(device) if !device.has(STARTUP) => StepResult::Done,
            // The device starts with a configuration of its own, which is not written from here.
            Some(_) => StepResult::Unable,
            None => StepResult::Failed(Fault::new(Code::Unreachable, "the device has not told what it can do").retryable()),
        }
    }

    /// Takes both locks. A lock on a clean candidate is had only while nobody else edits.
    async fn lock(&self, turn: &mut SessionTurn<'_>) -> Result<(), Fault> {
        // Locks that were left behind end with their session.
        if turn.as_ref().is_some_and(|session| session.holds_locks) {
            **turn = None;
        }
        changeable(&*self.opened(turn).await?)?;
        self.ask(turn, Operation::Lock, &NetconfRequest::Lock(Datastore::Running)).await?;
        // The lock may have been had over another session than the one of the first hello.
        if let Err(fault) = turn.as_ref().map_or(Ok(()), |session| changeable(&session.device)) {
            **turn = None;
            return Err(fault);
        }
        if let Some(session) = turn.as_mut() {
            session.holds_locks = true;
        }
        let locked = self.ask(turn, Operation::Lock, &NetconfRequest::Lock(Datastore::Candidate)).await;
        if locked.is_err() {
            let freed = self.ask(turn, Operation::Other, &NetconfRequest::Unlock(Datastore::Running)).await;
            self.leave(turn, freed.is_ok());
        }
        locked.map(drop)
    }

    /// Running configuration and candidate after the edits, of which the last one is tested together with all others.
    async fn made(&self, turn: &mut SessionTurn<'_>, edits: &[String]) -> Result<(String, String), Fault> {
        self.ask(turn, Operation::Other, &NetconfRequest::Discard).await?;
        let can_test = self.hello().is_some_and(|device| device.has(VALIDATE));
        for (number, config) in edits.iter().enumerate() {
            let test = match (can_test, number + 1 == edits.len()) {
                (false, _) => EditTest::Unsupported,
                (true, false) => EditTest::Later,
                (true, true) => EditTest::Now,
            };
            self.ask(turn, Operation::Edit, &NetconfRequest::Config { target: Datastore::Candidate, config, test }).await?;
        }
        let read = |source| NetconfRequest::GetConfig { source, filter: None };
        let running = self.tree(turn, &read(Datastore::Running)).await?.text();
        Ok((running, self.tree(turn, &read(Datastore::Candidate)).await?.text()))
    }

    /// Empties the candidate where told, and gives the locks back. Where the device does not do so, the session ends, and the locks with it.
    async fn let_go(&self, turn: &mut SessionTurn<'_>, discards: bool) {
        let discard = discards.then_some(NetconfRequest::Discard);
        let unlocks = [NetconfRequest::Unlock(Datastore::Candidate), NetconfRequest::Unlock(Datastore::Running)];
        let mut is_free = true;
        for request in discard.into_iter().chain(unlocks) {
            if turn.is_some() {
                is_free &= self.ask(turn, Operation::Other, &request).await.is_ok();
            }
        }
        self.leave(turn, is_free);
    }

    /// Ends the session that holds the locks as soon as nobody reads over it.
    fn abandon(&self) {
        let kept = Arc::clone(&self.kept);
        subject::spawn(async move {
            let mut turn = kept.lock().await;
            if turn.as_ref().is_some_and(|session| session.holds_locks) {
                *turn = None;
            }
        });
    }

    fn leave(&self, turn: &mut SessionTurn<'_>, is_free: bool) {
        match turn.as_mut() {
            Some(session) if is_free => session.holds_locks = false,
            _ => **turn = None,
        }
    }
}

/// Checks that the device itself would take a change back.
fn changeable(device: &NetconfCapabilities) -> Result<(), Fault> {
    if device.has(CANDIDATE) && device.has(CONFIRMED_COMMIT) {
        return Ok(());
    }
    let detail =
        "the device has no candidate or no confirmed commit (1.1), so nothing would bring the old configuration back, and nothing was sent";
    Err(Fault::new(Code::RollbackNotSupported, detail))
}
