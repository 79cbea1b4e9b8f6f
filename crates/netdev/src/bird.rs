//! BIRD on this machine through `birdc`: commands, and changes under the timer of `configure timeout`. Decides nothing.
//!
//! What is loaded lies beside the configuration file, a file for each name, with a constant at its end that holds the name: so BIRD itself says
//! whether the change runs, or what ran before. The configuration file is written once the change is confirmed.

mod files;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use equipment::DeviceSettings;
use net_proto::bird::{self, Reconfiguration};
use net_proto::change::{DeviceChange, revision};
use net_proto::dialect::Dialect;
use net_proto::fault::{Code, Fault};
use tokio::sync::Semaphore;

use crate::command::{ProgramOutput, last, run, turn};
use files::BirdFiles;

/// Most `birdc` at a time.
const SESSIONS: usize = 4;
/// Pause between two looks at a BIRD at work.
const PAUSE: Duration = Duration::from_millis(100);

/// View of BIRD while a change is pending.
#[derive(Debug)]
pub(crate) enum BirdView {
    Running(String),
    /// A configuration loaded by somebody else, and readable for nobody.
    Foreign(String),
}

/// A BIRD on this machine.
#[derive(Clone, Debug)]
pub(crate) struct Bird {
    program: String,
    socket: String,
    files: BirdFiles,
    timeout: Duration,
    dialect: Arc<Dialect>,
    /// Room for further `birdc` beside those that run.
    room: Arc<Semaphore>,
    /// Room for further commands of callers.
    callers: Arc<Semaphore>,
}

impl Bird {
    pub(crate) fn new(settings: &DeviceSettings, dialect: Arc<Dialect>) -> Self {
        Self {
            program: format!("{}/birdc", settings.bindir.as_deref().unwrap_or("/usr/sbin")),
            socket: settings.socket.clone().unwrap_or_else(|| "/run/bird/bird.ctl".to_owned()),
            files: BirdFiles::new(settings.file.clone().unwrap_or_else(|| "/etc/bird/bird.conf".into())),
            timeout: Duration::from_secs(settings.command_timeout),
            dialect,
            room: Arc::new(Semaphore::new(SESSIONS)),
            callers: Arc::new(Semaphore::new(SESSIONS - 1)),
        }
    }

    /// Answer to one command. BIRD itself takes only reads in this mode. Callers leave a `birdc` to whoever confirms or restores.
    pub(crate) async fn exec(&self, command: &str) -> Result<String, Fault> {
        bird::check_command(command)?;
        let _one = turn(&self.callers, self.timeout).await?;
        let output = self.birdc(&["-r"], command).await?;
        let text = bird::answer(&output.stdout);
        match self.dialect.fault(command, text) {
            Some(fault) => Err(fault),
            None if output.is_success => Ok(text.to_owned()),
            None => Err(refused(command, &output)),
        }
    }

    /// The running configuration: the one under the name that BIRD tells, else the file.
    pub(crate) async fn running(&self) -> Result<String, Fault> {
        self.running_change().await?.map_or_else(|| self.files.start(), |change| self.files.loaded(&change))
    }

    /// The configuration of the start.
    pub(crate) fn start(&self) -> Result<String, Fault> {
        self.files.start()
    }

    /// Moment of the last write to the configuration of the start.
    pub(crate) fn start_written(&self) -> Option<SystemTime> {
        self.files.written_at()
    }

    /// View of BIRD while a change is pending. A configuration without a name is one of somebody else then, unless BIRD has started anew.
    pub(crate) async fn seen(&self) -> Result<BirdView, Fault> {
        let status = self.idle().await?;
        match self.running_change().await? {
            Some(change) => self.files.loaded(&change).map(BirdView::Running),
            None if bird::is_unconfirmed(&status) => Err(waiting()),
            None if bird::is_fresh(&self.birdc(&[], "show status").await?.stdout) => self.files.start().map(BirdView::Running),
            None => Ok(BirdView::Foreign(format!(
                "somebody else has loaded a configuration into BIRD meanwhile: neither the change nor the old configuration runs under its name; \
                 `birdc configure` loads {}",
                self.files.file().display()
            ))),
        }
    }

    /// Revision of the file that BIRD starts with, below a candidate on `running`; `known` is that of the earlier candidate.
    ///
    /// # Errors
    /// -32083: somebody has edited the file, and BIRD does not run that.
    pub(crate) async fn start_revision(&self, running: &str, known: Option<&str>) -> Result<String, Fault> {
        self.check_loaded().await?;
        let start = self.files.start()?;
        let found = revision(&start);
        if start == running || known == Some(found.as_str()) { Ok(found) } else { Err(self.edited()) }
    }

    /// Checks that nobody has edited the file since the candidate was made.
    ///
    /// # Errors
    /// -32083 with the way on.
    pub(crate) fn check_start(&self, change: &DeviceChange) -> Result<(), Fault> {
        let found = revision(&self.files.start()?);
        if change.start.as_ref().is_none_or(|known| *known == found) { Ok(()) } else { Err(self.edited()) }
    }

    /// Checks that the file is what BIRD has read, where BIRD runs what came from the file.
    async fn check_loaded(&self) -> Result<(), Fault> {
        if self.running_change().await?.is_some() {
            return Ok(());
        }
        let age = bird::age(&self.birdc(&[], "show status").await?.stdout).map(Duration::from_millis);
        let loaded = age.and_then(|age| SystemTime::now().checked_sub(age));
        let is_newer = loaded.zip(self.files.written_at()).is_some_and(|(loaded, written)| written > loaded);
        if is_newer { Err(self.edited()) } else { Ok(()) }
    }

    /// Checks a whole configuration, on the device and without a change.
    pub(crate) async fn validate(&self, text: &str) -> Result<(), Fault> {
        let file = self.files.beside("check");
        self.files.write(&file, text)?;
        let checked = self.birdc(&[], &format!("configure check \"{}\"", file.display())).await;
        drop(std::fs::remove_file(&file));
        let checked = checked?;
        if checked.is_success { Ok(()) } else { Err(wrong(&file, &checked)) }
    }

    /// Checks that BIRD neither works on a configuration nor waits with one.
    ///
    /// # Errors
    /// -32083, for a retry.
    pub(crate) async fn check_free(&self) -> Result<(), Fault> {
        let busy = |_| locked("BIRD is at work on a configuration of somebody else, so nothing was applied");
        if bird::is_unconfirmed(&self.idle().await.map_err(busy)?) {
            return Err(locked("a configuration of somebody else waits in BIRD for its confirmation, so nothing was applied"));
        }
        Ok(())
    }

    /// Applies a configuration, which BIRD takes back after `seconds`. What ran before has a name from here on, too: so a look after the timer
    /// tells what the timer led to.
    pub(crate) async fn apply(&self, token: &str, seconds: u64, change: &DeviceChange) -> Result<(), Fault> {
        if seconds == 0 {
            return Err(Fault::new(Code::ConfirmedCommitTimeout, "the device took longer than the window, so nothing was applied"));
        }
        self.check_free().await?;
        let before = self.running_change().await?;
        self.files.clear(before.as_deref(), token);
        if before.is_none() {
            let old = old_name(token);
            let file = self.files.write_loaded(&old, change.snapshot.as_deref().unwrap_or_default())?;
            self.load(&format!("configure soft \"{}\"", file.display()), &file, &old).await?;
        }
        let file = self.files.write_loaded(token, &change.candidate)?;
        self.load(&format!("configure \"{}\" timeout {seconds}", file.display()), &file, token).await
    }

    /// Confirms the change to BIRD, where BIRD runs the change: the command itself would confirm the configuration of anybody.
    pub(crate) async fn confirm(&self, token: &str, change: &DeviceChange) -> Result<(), Fault> {
        self.check_start(change)?;
        self.idle().await?;
        let other = || Fault::new(Code::InvalidParams, "BIRD runs another configuration than the change, so nothing was confirmed");
        if self.running_change().await?.as_deref() != Some(token) {
            return Err(other());
        }
        let done = self.birdc(&[], "configure confirm").await?;
        // Where somebody has stopped the timer by hand, nothing takes the change back any more.
        let is_kept = (done.is_success && bird::is_confirmed(&done.stdout))
            || (outcome(&done) == Reconfiguration::Nothing && !bird::is_unconfirmed(&self.idle().await?));
        let still = self.running_change().await?;
        if is_kept && still.as_deref() == Some(token) { Ok(()) } else { Err(other()) }
    }

    /// Brings the old configuration back, where BIRD runs the change.
    ///
    /// # Errors
    /// -32602: BIRD neither runs the change nor waits with it.
    pub(crate) async fn undo(&self, token: &str, snapshot: &str) -> Result<(), Fault> {
        let status = self.idle().await?;
        let is_timed = bird::is_unconfirmed(&status);
        if self.running_change().await?.as_deref() != Some(token) {
            let detail = "BIRD neither runs the change nor waits with it: somebody else has loaded another configuration";
            return Err(if is_timed { waiting() } else { Fault::new(Code::InvalidParams, detail) });
        }
        if is_timed {
            let done = self.birdc(&[], "configure undo").await?;
            match outcome(&done) {
                Reconfiguration::Done | Reconfiguration::Underway => return self.is_left(token).await,
                // The timer came first, or somebody confirmed.
                Reconfiguration::Nothing if self.is_left(token).await.is_ok() => return Ok(()),
                Reconfiguration::Nothing => {}
                Reconfiguration::Refused => return Err(refused("configure undo", &done)),
            }
        }
        // The timer is gone: what ran is loaded from a file of its own, for the configuration file may hold something else by now.
        let old = old_name(token);
        let file = self.files.write_loaded(&old, snapshot)?;
        self.load(&format!("configure \"{}\"", file.display()), &file, &old).await
    }

    /// Writes the running configuration for the next start of BIRD.
    pub(crate) async fn save(&self, change: Option<&DeviceChange>) -> Result<(), Fault> {
        let text = self.running().await?;
        // Written before, by a save that nobody could note any more.
        if self.files.start().is_ok_and(|start| start == text) {
            return Ok(());
        }
        change.map_or(Ok(()), |change| self.check_start(change))?;
        self.files.save(&text)
    }

    /// Gives a command that loads `file`, and waits until BIRD runs the configuration of this name.
    async fn load(&self, command: &str, file: &Path, name: &str) -> Result<(), Fault> {
        let done = self.birdc(&[], command).await?;
        if !matches!(outcome(&done), Reconfiguration::Done | Reconfiguration::Underway) {
            return Err(wrong(file, &done));
        }
        self.idle().await?;
        if self.running_change().await?.as_deref() == Some(name) {
            return Ok(());
        }
        let detail = "BIRD runs another configuration than the one that was sent: somebody else has loaded it meanwhile";
        Err(Fault::new(Code::ConfigIncompatible, detail).at("running"))
    }

    /// Waits until BIRD has begun to run something else than the change.
    async fn is_left(&self, token: &str) -> Result<(), Fault> {
        self.idle().await?;
        if self.running_change().await?.as_deref() == Some(token) {
            return Err(Fault::new(Code::RollbackFailed, "BIRD still runs the change"));
        }
        Ok(())
    }

    /// Waits until BIRD is done with all given configurations; answers its status.
    ///
    /// # Errors
    /// -32081: BIRD is at work for longer.
    async fn idle(&self) -> Result<String, Fault> {
        let waited = tokio::time::timeout(self.timeout, async {
            loop {
                let status = self.birdc(&[], "configure status").await?;
                if bird::is_idle(&status.stdout) {
                    return Ok(status.stdout);
                }
                tokio::time::sleep(PAUSE).await;
            }
        });
        waited.await.unwrap_or_else(|_| {
            let detail = format!("BIRD was at work on a configuration for more than {} s", self.timeout.as_secs());
            Err(Fault::new(Code::Timeout, detail).retryable())
        })
    }

    fn edited(&self) -> Fault {
        let file = self.files.file().display();
        let detail = format!(
            "{file} was edited by hand, and saving would overwrite that: load it by `birdc configure` and make the change again, \
             or put back what it held before"
        );
        Fault::new(Code::AccessDenied, detail).at(file.to_string())
    }

    /// The change named by BIRD.
    async fn running_change(&self) -> Result<Option<String>, Fault> {
        let named = self.birdc(&[], &bird::asking_for_change()).await?;
        let change = bird::running_change(&named.stdout, named.is_success);
        change.map(|change| change.map(str::to_owned)).map_err(|_| refused("eval", &named))
    }

    async fn birdc(&self, options: &[&str], command: &str) -> Result<ProgramOutput, Fault> {
        let _one = turn(&self.room, self.timeout).await?;
        let output = run(&self.arguments(options, command), self.timeout, None).await?;
        if output.stderr.contains("Unable to connect") || output.stdout.is_empty() {
            let said = last(&output.stderr).to_owned();
            return Err(Fault::new(Code::Unreachable, format!("BIRD does not answer at {}: {said}", self.socket)).retryable());
        }
        Ok(output)
    }

    /// The program with its arguments. No word of the command is an option, wherever it stands.
    fn arguments<'all>(&'all self, options: &[&'all str], command: &'all str) -> Vec<&'all str> {
        let mut all = vec![self.program.as_str(), "-s", &self.socket];
        all.extend(options);
        all.push("--");
        all.extend(command.split(' ').filter(|word| !word.is_empty()));
        all
    }
}

/// Name of the configuration from before a change.
fn old_name(token: &str) -> String {
    format!("{token}-old")
}

fn outcome(done: &ProgramOutput) -> Reconfiguration {
    bird::reconfiguration(&done.stdout, done.is_success)
}

fn locked(why: &str) -> Fault {
    Fault::new(Code::AccessDenied, format!("locked: {why}")).retryable()
}

fn waiting() -> Fault {
    locked("a configuration that somebody else has loaded for a time runs in BIRD, and after that time BIRD may return to the change")
}

/// The fault of a refused configuration.
fn wrong(file: &Path, output: &ProgramOutput) -> Fault {
    let line = bird::refusal(&output.stdout, &file.display().to_string());
    Fault::new(Code::ConfigIncompatible, format!("BIRD refuses line {line}")).at("candidate-config")
}

fn refused(what: &str, output: &ProgramOutput) -> Fault {
    let said = [&output.stdout, &output.stderr].map(|text| text.trim()).join("\n");
    Fault::new(Code::ConfigIncompatible, format!("BIRD refused it: {}", last(&said))).at(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bird() -> Bird {
        Bird::new(&DeviceSettings::new("b"), Dialect::named("bird").unwrap())
    }

    #[test]
    fn nm_12_options_of_birdc_end_before_the_command() {
        let bird = bird();
        let all = bird.arguments(&["-r"], "show protocols  all -s /other.ctl");
        let expected = ["/usr/sbin/birdc", "-s", "/run/bird/bird.ctl", "-r", "--", "show", "protocols", "all", "-s", "/other.ctl"];
        assert_eq!(all, expected);
    }

    #[tokio::test]
    async fn nm_12_a_command_with_an_option_is_never_run() {
        let fault = bird().exec("show protocols all -s /other.ctl").await.unwrap_err();
        assert_eq!(fault.code, Code::AccessDenied);
    }
}
