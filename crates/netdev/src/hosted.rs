//! FRR on a machine behind SSH whose login has a shell: commands, the running configuration, and changes under a restore job that runs on that
//! machine. Decides nothing.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use equipment::DeviceSettings;
use mcp_server::subject;
use net_proto::change::{FrrPrograms, job_answer};
use net_proto::dialect::Dialect;
use net_proto::fault::{Code, Fault};
use tokio::sync::Semaphore;

use crate::command::{ProgramOutput, last, turn};
use crate::frr;
use crate::login::Login;
use crate::shell::run;

/// Most sessions of callers at a time. Whoever confirms or restores waits for nobody.
const SESSIONS: usize = 4;
/// Longest time for a script of a job, `frr-reload.py` included.
const RELOAD: Duration = Duration::from_secs(90);
/// Port of SSH.
const PORT: u16 = 22;
/// Longest wait for a look at the machine, which goes on behind that.
const LOOK: Duration = Duration::from_millis(1_500);

/// An FRR on a machine behind SSH.
#[derive(Clone, Debug)]
pub(crate) struct HostedFrr {
    login: Login,
    timeout: Duration,
    dialect: Arc<Dialect>,
    programs: FrrPrograms,
    callers: Arc<Semaphore>,
    /// Answer of the machine to the last look; `None`: the machine has not answered yet.
    undo: Arc<RwLock<Option<Result<(), Fault>>>>,
}

impl HostedFrr {
    pub(crate) fn new(settings: &DeviceSettings, dialect: Arc<Dialect>, password: Option<String>) -> Self {
        Self {
            login: Login::new(settings, password, PORT),
            timeout: Duration::from_secs(settings.command_timeout),
            dialect,
            programs: FrrPrograms::new(settings.bindir.as_deref().unwrap_or("/usr/bin"), settings.pathspace.as_deref()),
            callers: Arc::new(Semaphore::new(SESSIONS)),
            undo: Arc::default(),
        }
    }

    /// Looks whether the machine could hold a restore job. Nobody waits long for a machine that is slow or away.
    pub(crate) async fn look(&self) {
        let frr = self.clone();
        let looking = subject::spawn(async move { frr.looked().await });
        drop(tokio::time::timeout(LOOK, looking).await);
    }

    async fn looked(&self) {
        let output = self.script(self.programs.look()).await;
        let able = output.and_then(|output| job_answer(&output.stdout, "able"));
        let is_answer = able.as_ref().map_or_else(|fault| fault.code == Code::RollbackNotSupported, |()| true);
        if is_answer {
            *self.undo.write().unwrap_or_else(PoisonError::into_inner) = Some(able);
        }
    }

    /// Checks for a machine that has not said that it can hold no restore job.
    ///
    /// # Errors
    /// -32087: it has.
    pub(crate) fn check_undo(&self) -> Result<(), Fault> {
        self.undo.read().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or(Ok(()))
    }

    /// Has the machine said that it can hold a restore job?
    pub(crate) fn can_undo(&self) -> bool {
        matches!(*self.undo.read().unwrap_or_else(PoisonError::into_inner), Some(Ok(())))
    }

    /// Answer to one command of a caller.
    pub(crate) async fn exec(&self, command: &str) -> Result<String, Fault> {
        let _one = turn(&self.callers, self.timeout).await?;
        self.executed(command).await
    }

    /// Answers to reading commands of our own, in order; `None` beyond `limit` bytes.
    pub(crate) async fn exec_within(&self, commands: &[String], limit: u64) -> Result<Option<String>, Fault> {
        let _one = turn(&self.callers, self.timeout).await?;
        let output = match self.script(self.programs.exec_all(commands, self.timeout.as_secs())).await {
            Err(fault) if fault.is_too_long() => return Ok(None),
            output => output?,
        };
        if output.stdout.len() as u64 > limit {
            return Ok(None);
        }
        frr::answer(&self.dialect, commands.first().map_or("", String::as_str), output).map(Some)
    }

    async fn executed(&self, command: &str) -> Result<String, Fault> {
        let output = self.script(self.programs.exec(command, self.timeout.as_secs())).await?;
        frr::answer(&self.dialect, command, output)
    }

    /// The running configuration without the head lines of `vtysh`.
    pub(crate) async fn running(&self) -> Result<String, Fault> {
        frr::whole(self.executed("show running-config no-header").await?)
    }

    /// Checks the syntax of a whole configuration, on the device and without a change.
    pub(crate) async fn validate(&self, text: &str) -> Result<(), Fault> {
        let output = self.script(self.programs.validate(text, self.timeout.as_secs())).await?;
        if output.is_success { Ok(()) } else { Err(frr::refusal(&self.dialect, "candidate-config", &output)) }
    }

    /// Starts the restore job on the device.
    pub(crate) async fn arm(&self, token: &str, seconds: u64, old: &str) -> Result<(), Fault> {
        let script = self.programs.job(token)?.arm(seconds, old);
        job_answer(&run(&self.login, script, RELOAD).await?.stdout, "armed")
    }

    /// Brings a configuration to the device, for as long as the restore job waits. Nobody waits longer for the answer than for the job.
    pub(crate) async fn apply(&self, token: &str, seconds: u64, new: &str) -> Result<(), Fault> {
        let script = self.programs.job(token)?.apply(new);
        let patience = Duration::from_secs(seconds.saturating_add(5)).min(RELOAD);
        job_answer(&run(&self.login, script, patience).await?.stdout, "applied 0")
    }

    /// Keeps the change.
    pub(crate) async fn confirm(&self, token: &str) -> Result<(), Fault> {
        let script = self.programs.job(token)?.confirm();
        job_answer(&run(&self.login, script, self.timeout).await?.stdout, "confirmed")
    }

    /// Brings the old configuration back.
    pub(crate) async fn restore(&self, token: &str, old: &str) -> Result<(), Fault> {
        let script = self.programs.job(token)?.restore(old);
        job_answer(&run(&self.login, script, RELOAD).await?.stdout, "restored")
    }

    /// Saves the running configuration for the next start of FRR.
    pub(crate) async fn save(&self) -> Result<(), Fault> {
        // A file that is written, but whose owner can't be changed, is told in the words of an error.
        let output = self.script(self.programs.exec("write memory", self.timeout.as_secs())).await?;
        let is_saved = output.is_success && output.stdout.contains("saved to");
        if is_saved { Ok(()) } else { Err(frr::refusal(&self.dialect, "write memory", &output)) }
    }

    /// Output of a reading script; `what` names its object for people.
    pub(crate) async fn shown(&self, what: &str, script: impl FnOnce(&FrrPrograms) -> String) -> Result<String, Fault> {
        let _one = turn(&self.callers, self.timeout).await?;
        let output = self.script(script(&self.programs)).await?;
        if output.is_success {
            return Ok(output.stdout);
        }
        let code = if output.stderr.contains("ermission denied") { Code::AccessDenied } else { Code::ConfigIncompatible };
        Err(Fault::new(code, format!("the login can't read {what} there: {}", last(&output.stderr))).at(what))
    }

    /// Runs a script, which ends itself in time where the device is there.
    async fn script(&self, script: String) -> Result<ProgramOutput, Fault> {
        run(&self.login, script, self.timeout + Duration::from_secs(3)).await
    }
}
