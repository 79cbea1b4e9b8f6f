//! `banyan connect` and `banyan disconnect`: makes a client use the gate in place of its own servers, and back.
//! How a client's file is changed is the gateway's business, not known here.

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use clap::Args;
use config::resolved::Config;
use config::secret::SystemSources;
use gateway::admin::presence::Presence;
use gateway::trust::ca::Ca;
use import::connect::{self, ConnectError, Endpoint, Plan, Request};
use import::{Client, Places};
use serde::Serialize;

use crate::arguments::Place;
use crate::command::service;
use crate::failure::Failure;
use crate::moved::MovedServers;
use crate::output::{Look, Output};
use crate::plan::{self, Wish};
use crate::printable::{printable, printable_lines};
use crate::similar::did_you_mean;
use crate::{document, gate, left_behind, places, private, terminal};

/// The variable in a client's environment for its token.
const TOKEN_VARIABLE: &str = "BANYAN_TOKEN";

/// Longest wait for the gate of a new service, and time between two looks.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(100);

/// Makes a client use the gate in place of its own servers.
#[derive(Args)]
#[command(after_help = "The client's servers move into banyan.toml, and its file gets one entry that points here. A backup stays beside \
    the file; `banyan disconnect CLIENT` puts it back.")]
pub(crate) struct Connect {
    /// The client
    #[arg(value_parser = client, value_name = "CLIENT", help = clients())]
    client: Client,
    /// Let the client start `banyan stdio` in place of an address
    #[arg(long)]
    stdio: bool,
    /// Leave this server in the client's file; may be given several times
    #[arg(long, value_name = "SERVER")]
    keep: Vec<String>,
    /// Connect the client even where no gate runs and no service would start one
    #[arg(long)]
    without_gate: bool,
    /// Show the changes without making them
    #[arg(long)]
    dry_run: bool,
    /// Move servers without asking
    #[arg(short, long)]
    yes: bool,
}

/// Gives a client its own servers back.
#[derive(Args)]
pub(crate) struct Disconnect {
    /// The client
    #[arg(value_parser = client, value_name = "CLIENT", help = clients())]
    client: Client,
    /// Show the changes without making them
    #[arg(long)]
    dry_run: bool,
}

/// `--json` of both commands.
#[derive(Serialize)]
struct Report<'a> {
    client: &'a str,
    file: &'a Path,
    changed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    backup: Option<&'a Path>,
    kept: &'a [String],
    moved: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<&'a Path>,
}

impl Connect {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let mut machine = self.machine(place)?;
        let keep: BTreeSet<String> = self.keep.iter().cloned().collect();
        let request =
            Request { client: self.client, places: &machine.places, endpoint: self.endpoint(&machine)?, keep, now: SystemTime::now() };
        let plan = connect::connect(&request)?;
        let moved = MovedServers::plan(&plan.removed, &machine.file)?;
        show(&plan, output);
        if !moved.names().is_empty() {
            output.remark(&format!("these servers move into {}: {}", machine.file.display(), moved.names().join(", ")));
        }
        let left = left_behind::lines(&plan, &import::discover(&machine.places), &machine.places, &machine.file.display().to_string());
        if !self.dry_run {
            self.agree(&moved)?;
            let installs = self.wants_service(&plan, &machine)?;
            // The client keeps its servers until a gate answers.
            if installs {
                machine.serve(output)?;
            }
            moved.write()?;
            plan.apply()?;
            machine.is_running |= installs;
        }
        self.tell(&plan, &moved, &machine, output)?;
        if !plan.is_nothing() && !output.wants_json() {
            left.iter().for_each(|line| output.remark(&format!("{} {line}", output.paint_remark(Look::Warn, "warning:"))));
        }
        Ok(())
    }

    /// Refuses to leave a client without any server: a gate has to run, or to be started by somebody. Gives whether a service is wanted.
    fn wants_service(&self, plan: &Plan, machine: &Machine) -> Result<bool, Failure> {
        let is_served = machine.is_running || self.starts_a_program(machine) || service::starts(&machine.file);
        if is_served || self.without_gate || plan.is_nothing() {
            return Ok(false);
        }
        let (file, other) = (machine.file.display(), machine.other.as_deref().unwrap_or_default());
        let question = format!("No gate serves {file}{other}. Install a service that runs one now and at each login?");
        if terminal::somebody_is_there() && terminal::agrees(&question)? {
            return Ok(true);
        }
        Err(Failure::Refused(format!(
            "no gate serves {file}{other}, so that {} would have no server at all: nothing is changed\n  `banyan service install` runs a \
             gate now and at each login, `banyan up` as long as its terminal is open; `--stdio` lets the client start one; \
             `--without-gate` connects all the same",
            plan.client
        )))
    }

    /// Asks for agreement: the client will no longer start the servers that leave its file.
    fn agree(&self, moved: &MovedServers) -> Result<(), Failure> {
        if moved.names().is_empty() || self.yes {
            return Ok(());
        }
        let remedy = "`--yes` moves them; `--keep SERVER` leaves one where it is; `--dry-run` shows the change";
        if !terminal::somebody_is_there() {
            return Err(Failure::Refused(format!("nobody is there to agree to servers being moved\n  {remedy}")));
        }
        if terminal::agrees("Move them?")? { Ok(()) } else { Err(Failure::Refused(format!("nothing is changed\n  {remedy}"))) }
    }

    fn tell(&self, plan: &Plan, moved: &MovedServers, machine: &Machine, output: &Output) -> Result<(), Failure> {
        let done = !self.dry_run && !plan.is_nothing();
        if output.wants_json() {
            let config = (!moved.names().is_empty()).then_some(machine.file.as_path());
            return output.json(&report(plan, done, moved.names(), config));
        }
        if self.dry_run {
            return output.line("nothing is changed");
        }
        if plan.is_nothing() {
            return output.line(&format!("{} is connected already", plan.client));
        }
        output.line(&format!("{} is connected; restart it", plan.client))?;
        if let (false, Endpoint::Http { url, .. }) = (machine.is_running, self.endpoint(machine)?) {
            let warning = output.paint_remark(Look::Warn, "warning:");
            output.remark(&format!(
                "{warning} no gate runs at {url}, so that it has no tools: `banyan up` starts one, `banyan service install` one at each login"
            ));
        }
        if self.starts_a_program(machine) {
            output.remark(&format!(
                "it starts `banyan stdio`, which uses the gate that runs with {0}, or starts one: `banyan status --config {0}` and \
                 `banyan approvals --config {0}` show what it calls",
                machine.file.display()
            ));
        } else if machine.needs_token {
            output.remark(&format!(
                "it sends the token that it finds in {TOKEN_VARIABLE}: make one with `banyan token add {}`",
                plan.client.id()
            ));
        }
        output.remark(&output.paint_remark(Look::Dim, &format!("`banyan disconnect {}` undoes it", plan.client.id())));
        Ok(())
    }

    fn machine(&self, place: &Place) -> Result<Machine, Failure> {
        let file = match places::config_file(place.config.as_deref())? {
            Some(file) => file,
            None => places::config_dir()?.join(places::CONFIG_NAME),
        };
        let file = std::path::absolute(&file).unwrap_or(file);
        let config = if file.exists() { gateway::parts::sections().load(&file, &SystemSources)? } else { Config::default() };
        let meant = if place.gate.is_some() { vec![gate::presence(place)?] } else { gate::all()? };
        let (serving, others): (Vec<Presence>, Vec<Presence>) = meant.into_iter().partition(|gate| is_of(gate, &file));
        let running = serving.iter().filter_map(address_of).find(|address| answers(*address));
        let (is_running, address) = (running.is_some(), running.unwrap_or(config.listen));
        let other = others.first().map(|gate| format!(" (the gate at {} serves {})", gate.url, printable(&gate.serves)));
        let places = plan::clients(&Wish { from: None, listen: Some(address), yes: false })?;
        let scheme = if config.trust.tls.is_some() { "https" } else { "http" };
        let authority = Ca::dir(&places::state_dir()?);
        let is_private = config.trust.tls.as_ref().is_some_and(|tls| tls.certificate.starts_with(&authority));
        Ok(Machine { places, file, address, is_running, other, scheme, is_private, needs_token: config.wants_credential() })
    }

    fn starts_a_program(&self, machine: &Machine) -> bool {
        self.stdio || !self.client.takes_address() || machine.is_private
    }

    fn endpoint(&self, machine: &Machine) -> Result<Endpoint, Failure> {
        if self.starts_a_program(machine) {
            let program = std::env::current_exe().map_err(|e| Failure::Failed(format!("this program's own path is not known: {e}")))?;
            let args = ["stdio".to_owned(), "--config".to_owned(), machine.file.display().to_string()];
            return Ok(Endpoint::Stdio { command: program.display().to_string(), args: args.into() });
        }
        let bearer_env = machine.needs_token.then(|| TOKEN_VARIABLE.to_owned());
        let url = format!("{}://{}/mcp", machine.scheme, machine.address).parse();
        url.map(|url| Endpoint::Http { url, bearer_env }).map_err(|e| Failure::Failed(format!("{} makes no address: {e}", machine.address)))
    }
}

impl Disconnect {
    pub(crate) fn run(&self, output: &Output) -> Result<(), Failure> {
        let places = plan::clients(&Wish { from: None, listen: None, yes: false })?;
        let plan = connect::disconnect(self.client, &places)?;
        show(&plan, output);
        if !self.dry_run {
            plan.apply()?;
        }
        if output.wants_json() {
            return output.json(&report(&plan, !self.dry_run, &[], None));
        }
        if self.dry_run {
            return output.line("nothing is changed");
        }
        output.line(&format!("{} has its own servers back; restart it", plan.client))
    }
}

/// Places needed for a connection.
struct Machine {
    places: Places,
    /// The configuration that takes the servers; need not exist yet.
    file: PathBuf,
    address: SocketAddr,
    /// A gate that serves the configuration answers there.
    is_running: bool,
    /// A running gate that serves something else, in words.
    other: Option<String>,
    scheme: &'static str,
    /// The gate's certificate is of an authority that no client knows.
    is_private: bool,
    needs_token: bool,
}

impl Machine {
    /// Installs a service for the configuration and waits until its gate answers. The service needs a file: a missing one is made, and
    /// removed after a failure.
    fn serve(&self, output: &Output) -> Result<(), Failure> {
        let is_new = !self.file.exists();
        if is_new {
            if let Some(directory) = self.file.parent() {
                std::fs::create_dir_all(directory).map_err(|error| document::failed(directory, "made", &error))?;
            }
            private::write_new(&self.file, "").map_err(|error| document::failed(&self.file, "written", &error))?;
        }
        let served = service::install(&self.file, output).and_then(|()| self.wait());
        served.inspect_err(|_| {
            if is_new {
                _ = std::fs::remove_file(&self.file);
            }
        })
    }

    fn wait(&self) -> Result<(), Failure> {
        let until = Instant::now() + PATIENCE;
        while !gate::serving(&self.file)?.iter().filter_map(address_of).any(answers) {
            if Instant::now() > until {
                return Err(Failure::Failed(
                    "the service is installed, and no gate answers: the client is as before\n  `banyan service status` shows the service, \
                     and `banyan up` shows why the gate ends"
                        .to_owned(),
                ));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}

/// Checks if a gate serves `file`, or, while there is no such file, the servers of clients' files. A demonstration serves neither.
fn is_of(gate: &Presence, file: &Path) -> bool {
    let is_found = !Path::new(&gate.serves).is_absolute() && !gate.serves.starts_with(plan::DEMONSTRATION);
    !gate.while_used && (gate::serves(gate, file) || (is_found && !file.exists()))
}

fn address_of(gate: &Presence) -> Option<SocketAddr> {
    gate.url.split_once("://")?.1.parse().ok()
}

fn answers(address: SocketAddr) -> bool {
    TcpStream::connect_timeout(&address, PATIENCE).is_ok()
}

fn show(plan: &Plan, output: &Output) {
    if !output.wants_json() && !plan.is_nothing() {
        output.remark(&printable_lines(plan.diff().trim_end()));
    }
}

fn report<'a>(plan: &'a Plan, changed: bool, moved: &[String], config: Option<&'a Path>) -> Report<'a> {
    let backup = if changed { plan.backup.as_deref() } else { None };
    Report { client: plan.client.id(), file: &plan.file, changed, backup, kept: &plan.kept, moved: moved.to_vec(), config }
}

fn client(text: &str) -> Result<Client, String> {
    Client::from_id(text).ok_or_else(|| {
        let hint = did_you_mean(text, Client::ALL.iter().map(|c| c.id()));
        format!("no such client is known{hint}\n  {}", clients())
    })
}

fn clients() -> String {
    let ids: Vec<&str> = Client::ALL.iter().map(|c| c.id()).collect();
    format!("One of {}", ids.join(", "))
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        let text = error.to_string();
        match error {
            ConnectError::NotConnected { .. } | ConnectError::NotInstalled { .. } => Self::NotFound(text),
            ConnectError::NoBearer { .. } | ConnectError::ProgramsOnly { .. } => Self::Usage(text),
            ConnectError::Changed { .. } | ConnectError::Unreadable { .. } | ConnectError::Write { .. } => Self::Failed(text),
        }
    }
}
