//! The gate used by `banyan stdio` and `banyan device listen`: the running gate of their configuration, or a gate that they start and leave
//! running. No message passes through here.

use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use gateway::admin::client::{AdminClient, AdminError, LineConnection};
use gateway::admin::presence::Presence;
use gateway::bridge::Gates;
use tokio::time::{Instant, sleep};

use crate::arguments::Place;
use crate::failure::Failure;
use crate::output::Output;
use crate::turn::{self, Turn};
use crate::{gate, places, plan};

/// Longest time for a gate to start, or to end before another is started.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time between two looks for the gate.
const LOOK: Duration = Duration::from_millis(20);

/// Finds the gate of one configuration, and starts it.
pub(crate) struct BridgedGate {
    source: Source,
    place: Place,
    output: Output,
    /// Command that uses the gate, for its remarks.
    command: &'static str,
    /// Path of this program, fixed at the start: a later file in its place is another program.
    program: PathBuf,
    log_format: &'static str,
}

/// The configuration that a gate has to serve.
enum Source {
    /// A configuration named by the user.
    Configuration(PathBuf),
    /// The servers of this very file.
    From(PathBuf),
    /// A named gate with any configuration, never started from here.
    Named,
    /// The user's own configuration; without one, any gate started by a person without a configuration.
    Own(PathBuf),
}

/// Client that the gate is reached for.
#[derive(Clone, Copy)]
enum LineClient<'a> {
    /// A controller with a certificate of this name, and its server.
    Controller(&'a str, &'a str),
    Owner,
}

impl BridgedGate {
    /// Chooses the gate by the arguments of `command`.
    pub(crate) fn new(
        from: Option<&Path>,
        place: &Place,
        log_format: &'static str,
        command: &'static str,
        output: &Output,
    ) -> Result<Self, Failure> {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let source = match (from, &place.gate, &place.config) {
            (Some(from), _, _) => Source::From(absolute(from)),
            (None, Some(_), _) => Source::Named,
            (None, None, Some(config)) => Source::Configuration(absolute(config)),
            (None, None, None) => Source::Own(places::config_dir()?.join(places::CONFIG_NAME)),
        };
        let program = std::env::current_exe().map_err(|e| Failure::Failed(format!("this program's own path is not known: {e}")))?;
        Ok(Self { source, place: place.clone(), output: output.clone(), command, program, log_format })
    }

    /// Connects to the gate; starts a missing gate if `starts`.
    pub(crate) async fn reach(&self, starts: bool) -> Result<Option<LineConnection>, Failure> {
        self.reach_for(LineClient::Owner, starts).await
    }

    /// Connects a controller with a certificate of this name to a server of the gate, which is started where none runs.
    pub(crate) async fn reach_server(&self, controller: &str, server: &str) -> Result<LineConnection, Failure> {
        let reached = self.reach_for(LineClient::Controller(controller, server), true).await?;
        reached.ok_or_else(|| Failure::NotFound("no gate is running".to_owned()))
    }

    async fn reach_for(&self, client: LineClient<'_>, starts: bool) -> Result<Option<LineConnection>, Failure> {
        let (mut until, mut dead) = (Instant::now() + PATIENCE, None);
        loop {
            let Some(gate) = self.running()?.filter(|gate| dead != Some(gate.pid)) else {
                if !starts {
                    return Ok(None);
                }
                self.start(dead).await?;
                continue;
            };
            let admin = AdminClient::new(gate.clone());
            let attached = match client {
                LineClient::Controller(name, server) => admin.attach_controller(name, server).await,
                LineClient::Owner => admin.attach().await,
            };
            match (attached, client) {
                (Ok(connection), LineClient::Controller(..)) => return Ok(Some(connection)),
                (Ok(connection), LineClient::Owner) => {
                    self.tell(&gate);
                    return Ok(Some(connection));
                }
                (Err(error @ AdminError::Refused(_)), LineClient::Controller(..)) => return Err(error.into()),
                (Err(AdminError::Malformed { .. } | AdminError::Refused(_)), _) => {
                    return Err(Failure::Failed(strange(&gate, self.command)));
                }
                (Err(AdminError::Unreachable { .. }), _) if !starts => return Ok(None),
                // It may be ending.
                (Err(AdminError::Unreachable { .. }), _) if Instant::now() < until => sleep(LOOK).await,
                // Nobody has listened there for so long: another process has its id by now.
                (Err(AdminError::Unreachable { source, .. }), _)
                    if source.kind() == std::io::ErrorKind::ConnectionRefused && dead.is_none() =>
                {
                    (until, dead) = (Instant::now() + PATIENCE, Some(gate.pid));
                }
                (Err(error), _) => return Err(error.into()),
            }
        }
    }

    fn running(&self) -> Result<Option<Presence>, Failure> {
        match &self.source {
            Source::Configuration(file) => Ok(gate::serving(file)?.into_iter().next()),
            Source::From(file) => {
                let digest = plan::digest(file);
                Ok(gate::all()?.into_iter().find(|gate| gate::serves(gate, file) && gate.digest.is_some() && gate.digest == digest))
            }
            Source::Named => gate::presence(&self.place).map(Some),
            Source::Own(file) => match gate::serving(file)?.into_iter().next() {
                None if !file.exists() => Ok(gate::without_file()?.into_iter().next()),
                gate => Ok(gate),
            },
        }
    }

    /// Starts the gate, unless another process has meanwhile. `dead` is the process id of a gate that does not count.
    async fn start(&self, dead: Option<u32>) -> Result<(), Failure> {
        let (file, is_configuration) = match &self.source {
            Source::Configuration(file) | Source::Own(file) => (file, true),
            Source::From(file) => (file, false),
            Source::Named => return Err(Failure::NotFound("the gate that was named does not run".to_owned())),
        };
        let _turn = Turn::wait_for(file).await?;
        if self.running()?.is_some_and(|gate| dead != Some(gate.pid)) {
            return Ok(());
        }
        // What is wrong with it is better said here than in a log.
        drop(plan::for_client((!is_configuration).then_some(file.as_path()), &self.place, &self.output)?);
        let log = log_file(file);
        let mut command = Command::new(&self.program);
        command.args(["up", "--while-used", "--yes", "--log-format", self.log_format]);
        command.arg(if is_configuration { "--config" } else { "--from" }).arg(file);
        command.env_remove("BANYAN_CONFIG").env_remove("BANYAN_GATE").stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(log.as_ref().and_then(|(_, log)| log.try_clone().ok()).map_or_else(Stdio::null, Stdio::from));
        let child = command.spawn().map_err(|e| Failure::Failed(format!("{} can't be started: {e}", self.program.display())))?;
        self.started(child, log.map(|(path, _)| path)).await
    }

    /// Waits until the gate announces its address.
    async fn started(&self, mut child: Child, log: Option<PathBuf>) -> Result<(), Failure> {
        let until = Instant::now() + PATIENCE;
        loop {
            if gate::all()?.iter().any(|gate| gate.pid == child.id()) {
                let log = log.map(|log| format!("; its log is {}", log.display())).unwrap_or_default();
                self.output.remark(&format!("{}: started the gate as process {}{log}", self.command, child.id()));
                // It is another process's child for as long as this one lives.
                std::thread::spawn(move || drop(child.wait()));
                return Ok(());
            }
            if let Ok(Some(status)) = child.try_wait() {
                return Err(ended(status, log.as_deref()));
            }
            if Instant::now() > until {
                drop(child.kill());
                drop(child.wait());
                return Err(Failure::Failed(format!("the gate did not start within {} s", PATIENCE.as_secs())));
            }
            sleep(LOOK).await;
        }
    }

    fn tell(&self, gate: &Presence) {
        let (Presence { url, pid, .. }, command) = (gate, self.command);
        self.output.remark(&format!(
            "{command}: uses the gate at {url}/mcp, process {pid}: `banyan console --gate {pid}` opens its console, and `status`, \
             `approvals` and `audit list` show what is called here"
        ));
    }
}

impl Gates for BridgedGate {
    type Connection = LineConnection;

    async fn connect(&mut self, starts: bool) -> Result<Option<LineConnection>, String> {
        self.reach(starts).await.map_err(|failure| failure.to_string())
    }
}

/// Words the complaint about a gate that does not understand the bridge.
fn strange(gate: &Presence, command: &str) -> String {
    let Presence { url, pid, .. } = gate;
    format!(
        "the gate at {url}, process {pid}, is of a version that `{command}` of this one can't use\n  end it with `banyan stop --gate \
         {pid}`, and start it with this program"
    )
}

/// Opens an empty log file for a gate without a terminal. A gate goes without a log where no place is found.
fn log_file(file: &Path) -> Option<(PathBuf, File)> {
    let dir = places::state_dir().ok()?.join("log");
    DirBuilder::new().recursive(true).mode(0o700).create(&dir).ok()?;
    let path = dir.join(format!("{}.log", turn::name(file)));
    let log = OpenOptions::new().append(true).create(true).mode(0o600).open(&path).ok()?;
    log.set_len(0).ok()?;
    Some((path, log))
}

/// Names the reason of a gate's early end, from the last lines of its log.
fn ended(status: ExitStatus, log: Option<&Path>) -> Failure {
    let said = log.and_then(|log| std::fs::read_to_string(log).ok()).unwrap_or_default();
    let why = match said.rsplit_once("error: ") {
        Some((_, why)) => why.trim_end().to_owned(),
        None => format!("the gate ended at once ({status})"),
    };
    match status.code() {
        Some(2) => Failure::Usage(why),
        Some(3) => Failure::NotFound(why),
        Some(4) => Failure::Refused(why),
        Some(_) | None => Failure::Failed(why),
    }
}
