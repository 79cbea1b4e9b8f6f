//! FRR through `vtysh`: commands, the running configuration, and `frr-reload.py` for whole configurations. Decides nothing.

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use equipment::DeviceSettings;
use net_proto::dialect::Dialect;
use net_proto::fault::{Code, Fault};

use tokio::sync::Semaphore;

use crate::command::{ProgramOutput, last, run, run_within, turn};
use crate::frr;

/// Longest time for `frr-reload.py`.
const RELOAD: Duration = Duration::from_secs(60);
/// Most `vtysh` at a time.
const SESSIONS: usize = 4;
const RELOADER: &str = "/usr/lib/frr/frr-reload.py";

/// An FRR on this machine.
#[derive(Clone, Debug)]
pub(crate) struct Frr {
    pathspace: Option<String>,
    bindir: String,
    timeout: Duration,
    dialect: Arc<Dialect>,
    /// Room for further `vtysh` beside those that run.
    room: Arc<Semaphore>,
    /// Room for further commands of callers.
    callers: Arc<Semaphore>,
}

impl Frr {
    pub(crate) fn new(settings: &DeviceSettings, dialect: Arc<Dialect>) -> Self {
        let bindir = settings.bindir.clone().unwrap_or_else(|| "/usr/bin".to_owned());
        Self {
            pathspace: settings.pathspace.clone(),
            bindir,
            timeout: Duration::from_secs(settings.command_timeout),
            dialect,
            room: Arc::new(Semaphore::new(SESSIONS)),
            callers: Arc::new(Semaphore::new(SESSIONS - 1)),
        }
    }

    /// Checks for the program behind every restore.
    ///
    /// # Errors
    /// -32087: the program is missing.
    pub(crate) fn check_undo(&self) -> Result<(), Fault> {
        let can_run = std::fs::metadata(RELOADER).is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0);
        if can_run {
            return Ok(());
        }
        let detail = format!(
            "{RELOADER} is not there, so nothing would bring the old configuration back, and nothing was sent: install it (Debian: frr-pythontools)"
        );
        Err(Fault::new(Code::RollbackNotSupported, detail))
    }

    /// Answer to one command of a caller. Callers leave a `vtysh` to whoever confirms or restores.
    pub(crate) async fn exec(&self, command: &str) -> Result<String, Fault> {
        let _one = turn(&self.callers, self.timeout).await?;
        self.executed(command).await
    }

    /// Answers to commands of our own that read, one behind the other; `None` where they have more than `limit` bytes.
    pub(crate) async fn exec_within(&self, commands: &[String], limit: u64) -> Result<Option<String>, Fault> {
        let _one = turn(&self.callers, self.timeout).await?;
        let program = self.program();
        let arguments = commands.iter().flat_map(|command| ["-c", command]);
        let all: Vec<&str> = program.iter().map(String::as_str).chain(arguments).collect();
        let Some(output) = run_within(&all, self.timeout, None, limit).await? else { return Ok(None) };
        if output.is_success {
            Ok(Some(output.stdout))
        } else {
            Err(frr::refusal(&self.dialect, commands.first().map_or("", String::as_str), &output))
        }
    }

    /// Answer to one command of the exec mode.
    async fn executed(&self, command: &str) -> Result<String, Fault> {
        let output = self.vtysh(&["-c", command]).await?;
        frr::answer(&self.dialect, command, output).map_err(|fault| self.with_advice(fault))
    }

    /// The running configuration without the head lines of `vtysh`.
    pub(crate) async fn running(&self) -> Result<String, Fault> {
        frr::whole(self.executed("show running-config no-header").await?)
    }

    /// Checks the syntax of a whole configuration, on the device and without a change.
    pub(crate) async fn validate(&self, file: &Path) -> Result<(), Fault> {
        let output = self.vtysh(&["-C", "-f", &file.display().to_string()]).await?;
        if output.is_success { Ok(()) } else { Err(frr::refusal(&self.dialect, "candidate-config", &output)) }
    }

    /// Brings the device to the configuration in `file`. `held` stays open until the reload has ended, also after the death of this process.
    pub(crate) async fn reload(&self, file: &Path, held: File) -> Result<(), Fault> {
        // Commands lie in a file meanwhile, which nobody else may read. A file named `frr.conf` in the directory of configurations is the one
        // that `frr-reload.py` does not save as what FRR starts with.
        let beside = file.parent().unwrap_or(file).display().to_string();
        let file = file.display().to_string();
        let seconds = RELOAD.as_secs().to_string();
        let mut program = vec![
            "timeout",
            "-k",
            "5",
            &seconds,
            RELOADER,
            "--reload",
            "--stdout",
            "--bindir",
            &self.bindir,
            "--rundir",
            &beside,
            "--confdir",
            &beside,
        ];
        if let Some(pathspace) = &self.pathspace {
            program.extend(["-N", pathspace]);
        }
        program.push(&file);
        let output = run(&program, RELOAD + Duration::from_secs(10), Some(held)).await?;
        if output.is_success {
            Ok(())
        } else {
            Err(Fault::new(Code::ConfigIncompatible, format!("frr-reload.py: {}", last(&format!("{}{}", output.stdout, output.stderr)))))
        }
    }

    /// Carries out the commands of the configuration mode in `file`, also those behind one that fails.
    pub(crate) async fn configure(&self, file: &Path) -> Result<(), Fault> {
        self.vtysh(&["-f", &file.display().to_string()]).await.map(drop)
    }

    /// Saves the running configuration for the next start of FRR.
    pub(crate) async fn save(&self) -> Result<(), Fault> {
        self.executed("write memory").await.map(drop)
    }

    /// The fault of a `vtysh` without a daemon, with place and remedy.
    fn with_advice(&self, fault: Fault) -> Fault {
        if !frr::found_no_daemon(&fault) {
            return fault;
        }
        let space = self.pathspace.as_deref();
        let place = space.map_or_else(|| "/run/frr".to_owned(), |name| format!("/run/frr/{name}"));
        let tried = self.program().join(" ");
        let remedy = match (Path::new(&place).is_dir(), space) {
            (false, None) => {
                "No FRR runs here: start one (`systemctl start frr`), name its path space (`--pathspace`), or name another machine (`--address`)"
            }
            (false, Some(_)) => "No FRR runs in this path space: check the name, or start that FRR",
            (true, _) => {
                "The daemons are down, or this user may not speak to them: start FRR (`systemctl start frr`), or add the user to the group `frrvty`"
            }
        };
        Fault { detail: format!("`{tried}` found no daemon of FRR at {place}. {remedy}."), ..fault }
    }

    async fn vtysh(&self, arguments: &[&str]) -> Result<ProgramOutput, Fault> {
        let program = self.program();
        let all: Vec<&str> = program.iter().map(String::as_str).chain(arguments.iter().copied()).collect();
        let _one = turn(&self.room, self.timeout).await?;
        run(&all, self.timeout, None).await
    }

    /// `vtysh` and the arguments that name the FRR.
    fn program(&self) -> Vec<String> {
        let place = self.pathspace.iter().flat_map(|pathspace| ["-N".to_owned(), pathspace.clone()]);
        std::iter::once(format!("{}/vtysh", self.bindir)).chain(place).collect()
    }
}
