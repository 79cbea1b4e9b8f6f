//! Changes over a command line: tried, applied for a time, kept and taken back, by the commands of the dialect. Decides nothing.

use std::time::Duration;

use net_proto::change::text::Tree;
use net_proto::change::{ConfigForm, DeviceChange, TriedEdits, listed};
use net_proto::dialect::{CandidateCommands, ChangeMethod, TerminalMode, TimerCommands};
use net_proto::fault::{Code, Fault};

use super::{CliSession, Ssh};

/// Longest time for a commit, or for what takes a commit back.
const COMMIT: Duration = Duration::from_secs(180);
/// Earlier configurations among which the old one is looked for.
const EARLIER: usize = 5;

impl Ssh {
    /// Checks that something would take a change back, or that the operator accepts that nothing would.
    ///
    /// # Errors
    /// -32087: nothing would.
    pub(crate) fn check_undo(&self) -> Result<(), Fault> {
        if self.has_timer() || self.accepts_no_rollback {
            return Ok(());
        }
        let detail = "nothing on this device would bring the old configuration back, so nothing was sent";
        Err(Fault::new(Code::RollbackNotSupported, detail))
    }

    /// Does the device take an unconfirmed change back by itself?
    pub(crate) fn has_timer(&self) -> bool {
        !matches!(self.dialect.change_method(), ChangeMethod::None)
    }

    /// Command that shows the version of the device.
    pub(crate) fn version_command(&self) -> &str {
        self.dialect.version_command()
    }

    /// Does the device make candidates by itself?
    pub(crate) fn has_candidate(&self) -> bool {
        matches!(self.dialect.change_method(), ChangeMethod::Candidate(_))
    }

    /// The running configuration.
    pub(crate) async fn running(&self) -> Result<String, Fault> {
        let shown = self.asked(self.dialect.running_command()).await?;
        let text = self.dialect.configuration(&shown);
        // An empty answer would count as the loss of all lines.
        if text.trim().is_empty() {
            return Err(Fault::new(Code::Unreachable, "the device shows no configuration").retryable());
        }
        Ok(text)
    }

    /// Lets the device make a candidate of all lines; nothing is left of the try.
    pub(crate) async fn try_edits(&self, edits: Vec<String>) -> Result<TriedEdits, Fault> {
        let commands = self.candidate()?.clone();
        let running = self.running().await?;
        let mut session = self.open().await?;
        let made = self.made(&mut session, &commands, &edits).await;
        self.let_go(session, &commands).await;
        Ok(TriedEdits { form: ConfigForm::Lines, edits, running, candidate: made? })
    }

    /// Applies a change, which the device takes back after `seconds`.
    pub(crate) async fn apply(&self, change: &DeviceChange, seconds: u64) -> Result<(), Fault> {
        match self.dialect.change_method() {
            ChangeMethod::Candidate(commands) => self.commit(commands, change, seconds).await,
            ChangeMethod::Timer(commands) => {
                let enter = self.dialect.timed(&commands.enter, seconds);
                self.typed(&enter, &self.lines(change)).await
            }
            ChangeMethod::None => self.typed(self.dialect.configuring().0, &self.lines(change)).await,
        }
    }

    /// Did the device refuse a timer? Another timer there is somebody else's.
    pub(crate) fn has_no_timer_of(&self, applied: &Fault) -> bool {
        let ChangeMethod::Timer(TimerCommands { enter, .. }) = self.dialect.change_method() else { return false };
        let begin = enter.split("{time}").next().unwrap_or_default();
        applied.path.as_ref().is_some_and(|place| place.starts_with(begin))
    }

    /// Keeps a change.
    pub(crate) async fn confirm(&self, change: &DeviceChange) -> Result<(), Fault> {
        match self.dialect.change_method() {
            ChangeMethod::Candidate(commands) => {
                let mut session = self.open().await?;
                let kept = self.keep(&mut session, commands, &change.candidate, &commands.confirm).await;
                self.let_go(session, commands).await;
                kept
            }
            ChangeMethod::Timer(TimerCommands { confirm, .. }) => self.asked(confirm).await.map(drop),
            ChangeMethod::None => Ok(()),
        }
    }

    /// Brings the old configuration back.
    pub(crate) async fn restore(&self, change: &DeviceChange, old: &str) -> Result<(), Fault> {
        match self.dialect.change_method() {
            ChangeMethod::Candidate(commands) => self.bring_back(commands, old).await,
            ChangeMethod::Timer(TimerCommands { revert, .. }) => {
                let mut session = self.open().await?;
                let said = session.say(revert, COMMIT).await;
                session.close().await;
                said.map(drop)
            }
            ChangeMethod::None => {
                let running = self.running().await?;
                let lines = Tree::read(&running).towards(&Tree::read(old), self.dialect.grammar());
                let lines = if lines.is_empty() { self.undone(change) } else { lines };
                self.typed(self.dialect.configuring().0, &lines).await
            }
        }
    }

    /// Saves the running configuration for the next start of the device.
    pub(crate) async fn save(&self) -> Result<(), Fault> {
        match self.dialect.configuring().2 {
            // A commit is what such a device starts with.
            "" => Ok(()),
            command => self.asked(command).await.map(drop),
        }
    }

    fn candidate(&self) -> Result<&CandidateCommands, Fault> {
        match self.dialect.change_method() {
            ChangeMethod::Candidate(commands) => Ok(commands),
            ChangeMethod::Timer(_) | ChangeMethod::None => Err(Fault::new(Code::ConfigIncompatible, "the device has no candidate")),
        }
    }

    /// Enters the configuration mode, and gives the lines; answers the candidate.
    async fn made(&self, session: &mut CliSession, commands: &CandidateCommands, lines: &[String]) -> Result<String, Fault> {
        let entered = self.enter(session, self.dialect.configuring().0).await?;
        if self.dialect.waits(&entered) {
            // A check would count as its confirmation.
            let detail = "locked: a commit of somebody else waits on the device for its confirmation, so nothing was tried";
            return Err(Fault::new(Code::AccessDenied, detail).retryable());
        }
        for line in lines {
            self.give(session, line).await?;
        }
        if let Some(check) = &commands.check {
            session.say(check, COMMIT).await?;
        }
        self.shown(session, commands).await
    }

    async fn shown(&self, session: &mut CliSession, commands: &CandidateCommands) -> Result<String, Fault> {
        Ok(self.dialect.configuration(&session.say(&commands.show, self.timeout).await?.text))
    }

    /// Enters the configuration mode; answers the words of the device.
    async fn enter(&self, session: &mut CliSession, command: &str) -> Result<String, Fault> {
        let reply = session.say(command, self.timeout).await?;
        if reply.mode == TerminalMode::Configure {
            return Ok(reply.text);
        }
        let said = reply.text.trim();
        let detail = format!("`{command}` does not lead to the configuration mode of the device, so nothing was applied: {said}");
        Err(Fault::new(Code::RollbackNotSupported, detail).at(command))
    }

    /// Gives a line of the configuration mode. After `exit`, the next lines would be commands of the device.
    async fn give(&self, session: &mut CliSession, line: &str) -> Result<(), Fault> {
        match session.say(line, self.timeout).await?.mode {
            TerminalMode::Configure => Ok(()),
            TerminalMode::Exec => {
                let detail = format!("`{line}` leaves the configuration mode of the device, so nothing behind it was sent: leave it out");
                Err(Fault::new(Code::AccessDenied, detail).at(line))
            }
        }
    }

    async fn commit(&self, commands: &CandidateCommands, change: &DeviceChange, seconds: u64) -> Result<(), Fault> {
        let mut session = self.open().await?;
        let done = self.committed(&mut session, commands, change, seconds).await;
        self.let_go(session, commands).await;
        done
    }

    async fn committed(
        &self,
        session: &mut CliSession,
        commands: &CandidateCommands,
        change: &DeviceChange,
        seconds: u64,
    ) -> Result<(), Fault> {
        let made = self.made(session, commands, &change.commands).await?;
        let differences = ConfigForm::Lines.differences(&change.candidate, &made);
        if !differences.is_empty() {
            let detail = "the device has changed since the diff was shown, so nothing was applied: make the change again";
            return Err(Fault::new(Code::ConfigIncompatible, detail).at("candidate"));
        }
        let commit = self.dialect.timed(&commands.commit, seconds);
        session.say(&commit, COMMIT).await.map(drop)
    }

    /// Commits by `command` where the candidate is `wanted`.
    async fn keep(&self, session: &mut CliSession, commands: &CandidateCommands, wanted: &str, command: &str) -> Result<(), Fault> {
        self.enter(session, self.dialect.configuring().0).await?;
        let shown = self.shown(session, commands).await?;
        let differences = ConfigForm::Lines.differences(wanted, &shown);
        if !differences.is_empty() {
            let detail = format!("the device does not run the change any more, or somebody else edits: {}", listed(&differences));
            return Err(Fault::new(Code::ConfirmedCommitTimeout, detail));
        }
        session.say(command, COMMIT).await.map(drop)
    }

    /// Cancels the commit, or commits the earlier configuration that is the old one.
    async fn bring_back(&self, commands: &CandidateCommands, old: &str) -> Result<(), Fault> {
        let mut session = self.open().await?;
        let mut done = self.enter(&mut session, self.dialect.configuring().0).await.map(drop);
        if done.is_ok() {
            done = match &commands.cancel {
                Some(cancel) => session.say(cancel, COMMIT).await.map(drop),
                None => self.earlier(&mut session, commands, old).await,
            };
        }
        self.let_go(session, commands).await;
        done
    }

    async fn earlier(&self, session: &mut CliSession, commands: &CandidateCommands, old: &str) -> Result<(), Fault> {
        let load = commands.earlier.as_deref().unwrap_or(&commands.discard);
        for number in 0..=EARLIER {
            session.say(&load.replace("{number}", &number.to_string()), self.timeout).await?;
            if self.shown(session, commands).await? == old {
                // The configuration of number 0 runs already.
                return if number == 0 { Ok(()) } else { session.say(&commands.confirm, COMMIT).await.map(drop) };
            }
        }
        let detail = format!("none of the last {EARLIER} configurations of the device is the old one");
        Err(Fault::new(Code::RollbackFailed, detail))
    }

    /// Empties the candidate, and leaves the configuration mode; what is left ends with the session.
    async fn let_go(&self, mut session: CliSession, commands: &CandidateCommands) {
        if session.say(&commands.discard, self.timeout).await.is_ok() {
            drop(session.say(self.dialect.configuring().1, self.timeout).await);
        }
        session.close().await;
    }

    /// Lines that lead from the old configuration to the candidate.
    fn lines(&self, change: &DeviceChange) -> Vec<String> {
        if !change.commands.is_empty() {
            return change.commands.clone();
        }
        let old = Tree::read(change.snapshot.as_deref().unwrap_or_default());
        old.towards(&Tree::read(&change.candidate), self.dialect.grammar())
    }

    /// Lines that lead from the candidate to the old configuration.
    fn undone(&self, change: &DeviceChange) -> Vec<String> {
        let old = Tree::read(change.snapshot.as_deref().unwrap_or_default());
        Tree::read(&change.candidate).towards(&old, self.dialect.grammar())
    }

    /// Types lines in the configuration mode. The first line that the device refuses is the last.
    async fn typed(&self, enter: &str, lines: &[String]) -> Result<(), Fault> {
        let mut session = self.open().await?;
        let mut done = self.enter(&mut session, enter).await.map(drop);
        for line in lines {
            if done.is_ok() {
                done = self.give(&mut session, line).await;
            }
        }
        let left = session.say(self.dialect.configuring().1, self.timeout).await.and_then(|reply| match reply.mode {
            TerminalMode::Exec => Ok(()),
            TerminalMode::Configure => {
                let detail = "the device has not left its configuration mode, so that nobody knows how far it came";
                Err(Fault::new(Code::Timeout, detail).retryable())
            }
        });
        session.close().await;
        done.and(left)
    }
}
