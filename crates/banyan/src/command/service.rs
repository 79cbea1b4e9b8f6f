//! `banyan service`: the gate as a service, started at login or with the machine. Knows no service manager by itself.

mod supervisor;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use runtime::whole;
use serde_json::json;

use crate::arguments::Place;
use crate::document;
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::printable::printable_lines;
use crate::{gate, places};
use supervisor::Supervisor;

/// Runs the gate as a service: at login, or with the machine.
#[derive(Args)]
#[command(
    after_help = "A service starts with few variables. Those of this shell that servers commonly need (PATH, proxies, certificates) are \
    written into the service; the address of a proxy with a password is not. Under systemd, others go into the file \
    ~/.config/banyan/environment, with `--system` /etc/banyan/environment, as NAME=VALUE. launchd reads no such file.\n\
    `loginctl enable-linger` lets a user's services run before the first login."
)]
pub(crate) struct Service {
    #[command(subcommand)]
    action: ServiceAction,
}

#[derive(Subcommand)]
enum ServiceAction {
    /// Install the service and start it
    Install {
        /// For the machine in place of this user: as the user `banyan`, with /etc/banyan/banyan.toml
        #[arg(long)]
        system: bool,
        /// Print the service's file and write nothing
        #[arg(long)]
        print: bool,
        /// The program to name in a file that is printed
        #[arg(long, requires = "print", hide = true, value_name = "PATH")]
        program: Option<PathBuf>,
        /// Write the service's file and start nothing
        #[arg(long, conflicts_with = "print")]
        no_start: bool,
    },
    /// Show if the service is installed and runs
    Status {
        /// The service of the machine
        #[arg(long)]
        system: bool,
    },
    /// End the service and remove it
    Uninstall {
        /// The service of the machine
        #[arg(long)]
        system: bool,
    },
}

impl Service {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        match &self.action {
            ServiceAction::Install { system, print: true, program: named, .. } => {
                let supervisor = Supervisor::here(*system)?;
                let program = named.clone().map_or_else(|| program(supervisor), Ok)?;
                tell_left_out(supervisor, output);
                output.raw(supervisor.text(&program, &wanted(supervisor, place)?)?.as_bytes())
            }
            ServiceAction::Install { system, no_start, .. } => {
                let supervisor = Supervisor::here(*system)?;
                let config = config(supervisor, place)?;
                let file = write(supervisor, &config)?;
                tell_left_out(supervisor, output);
                if !no_start {
                    started(supervisor, &file)?;
                }
                report_installed(supervisor, &file, &config, !no_start, output)
            }
            ServiceAction::Status { system } => status(Supervisor::here(*system)?, place, output),
            ServiceAction::Uninstall { system } => uninstall(Supervisor::here(*system)?, output),
        }
    }
}

/// Installs the service of this user for the configuration in `config`, and starts it.
pub(crate) fn install(config: &Path, output: &Output) -> Result<(), Failure> {
    let supervisor = Supervisor::here(false)?;
    let file = write(supervisor, config)?;
    tell_left_out(supervisor, output);
    started(supervisor, &file)?;
    output.remark(&format!("installed {}: the gate runs now and at each login", file.display()));
    Ok(())
}

/// Checks if a service of this user runs a gate for the configuration in `config`, now or at the next login.
pub(crate) fn starts(config: &Path) -> bool {
    Supervisor::here(false).is_ok_and(|supervisor| supervisor.starts(config))
}

fn write(supervisor: Supervisor, config: &Path) -> Result<PathBuf, Failure> {
    supervisor.check_own()?;
    let file = supervisor.file()?;
    let text = supervisor.text(&program(supervisor)?, config)?;
    if let Some(directory) = file.parent() {
        std::fs::create_dir_all(directory).map_err(|error| document::failed(directory, "made", &error))?;
    }
    whole::replace(&file, text.as_bytes(), supervisor.readers()).map_err(|error| document::failed(&file, "written", &error))?;
    Ok(file)
}

/// Says which variables the service does not get, for their values hold credentials.
fn tell_left_out(supervisor: Supervisor, output: &Output) {
    let names = supervisor.left_out();
    if names.is_empty() {
        return;
    }
    let remedy = match supervisor {
        Supervisor::Launchd => "name a proxy without credentials",
        Supervisor::System | Supervisor::User => "a line NAME=VALUE in ~/.config/banyan/environment (mode 0600) gives them to the gate",
    };
    let warning = output.paint_remark(Look::Warn, "warning:");
    let names = names.join(", ");
    output.remark(&format!(
        "{warning} the service's file leaves out {names}: the value holds a user's name or a password\n  {remedy}, and \
         `pass_env` passes them on to servers"
    ));
}

fn started(supervisor: Supervisor, file: &Path) -> Result<(), Failure> {
    supervisor.start().map_err(|why| {
        let later = match supervisor {
            Supervisor::Launchd => "the gate starts at the next login",
            Supervisor::System => "`systemctl enable --now banyan` starts the gate where systemd runs",
            Supervisor::User => {
                "`systemctl --user enable --now banyan` starts the gate where systemd runs for you; elsewhere, keep `banyan up` running"
            }
        };
        Failure::Failed(format!("{} is written, and the gate is not started: {}\n  {later}", file.display(), printable_lines(&why)))
    })
}

/// The program for the service. The gate of a machine can't reach home directories.
fn program(supervisor: Supervisor) -> Result<PathBuf, Failure> {
    let program = std::env::current_exe().map_err(|e| Failure::Failed(format!("this program's own path is not known: {e}")))?;
    let is_at_home = ["/home", "/root", "/run/user"].iter().any(|home| program.starts_with(home));
    if supervisor == Supervisor::System && is_at_home {
        return Err(Failure::Refused(format!(
            "{} lies in a home directory, which the service may not read\n  copy it to /usr/local/bin, and run `service install` from there",
            program.display()
        )));
    }
    Ok(program)
}

/// The configuration for the service, which must be there: a service can ask nobody.
fn config(supervisor: Supervisor, place: &Place) -> Result<PathBuf, Failure> {
    let file = wanted(supervisor, place)?;
    let missing = || Failure::NotFound(format!("there is no {} for the service to serve\n  {}", file.display(), places::MAKE_ONE));
    if file.is_file() { Ok(file) } else { Err(missing()) }
}

/// The place of the configuration for the service, from the root on.
fn wanted(supervisor: Supervisor, place: &Place) -> Result<PathBuf, Failure> {
    let file = match (&place.config, supervisor) {
        (None, Supervisor::System) => Path::new("/etc/banyan").join(places::CONFIG_NAME),
        (given, Supervisor::Launchd | Supervisor::System | Supervisor::User) => match places::config_file(given.as_deref())? {
            Some(file) => file,
            None => places::config_dir()?.join(places::CONFIG_NAME),
        },
    };
    Ok(std::path::absolute(&file).unwrap_or(file))
}

fn report_installed(supervisor: Supervisor, file: &Path, config: &Path, is_started: bool, output: &Output) -> Result<(), Failure> {
    if output.wants_json() {
        return output
            .json(&json!({ "installed": true, "file": file, "manager": supervisor.name(), "config": config, "started": is_started }));
    }
    output.line(&format!("installed {}", file.display()))?;
    if is_started {
        output.remark(&format!("the gate serves {}; `banyan status` shows its servers", config.display()));
    }
    Ok(())
}

fn status(supervisor: Supervisor, place: &Place, output: &Output) -> Result<(), Failure> {
    let (file, is_installed) = (supervisor.file()?, supervisor.installed()?.is_some());
    let runs = if is_installed { supervisor.runs() } else { Ok(false) };
    let url = gate::running(place).ok().flatten().and_then(|_| gate::presence(place).ok()).map(|gate| gate.url);
    if output.wants_json() {
        return output.json(&json!({
            "installed": is_installed, "file": file, "manager": supervisor.name(), "runs": runs.as_ref().ok(), "url": url,
        }));
    }
    if !is_installed {
        output.line("not installed; `banyan service install` installs the service")?;
    } else {
        let runs = match &runs {
            Ok(true) => output.paint(Look::Good, "runs"),
            Ok(false) => output.paint(Look::Bad, "does not run"),
            Err(why) => output.paint(Look::Warn, &format!("not known to run: {}", printable_lines(why))),
        };
        output.line(&format!("{}  {}  {runs}", file.display(), supervisor.name()))?;
    }
    url.iter().try_for_each(|url| output.line(&format!("a gate answers at {url}")))
}

fn uninstall(supervisor: Supervisor, output: &Output) -> Result<(), Failure> {
    let file = supervisor.file()?;
    if supervisor.installed()?.is_none() {
        return Err(Failure::NotFound(format!("there is no {}: the service is not installed", file.display())));
    }
    supervisor.check_own()?;
    if let Err(why) = supervisor.stop() {
        output.remark(&format!("{} the service was not ended: {}", output.paint_remark(Look::Warn, "warning:"), printable_lines(&why)));
    }
    std::fs::remove_file(&file).map_err(|error| document::failed(&file, "removed", &error))?;
    _ = supervisor.forget();
    if output.wants_json() {
        return output.json(&json!({ "installed": false, "file": file, "manager": supervisor.name() }));
    }
    output.line(&format!("removed {}", file.display()))
}
