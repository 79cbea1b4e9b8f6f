//! `banyan device`: serves network devices, and shows and settles their changes. Works beside a running gate and without one: the record of a
//! change lies in the state directory. Does not decide what may be changed.

mod add;
mod freeze;
mod import;
mod listen;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use config::resolved::Config;
use config::secret::SystemSources;
use netdev::{Backend, ChangeState, ControllerShapes, DeviceSecrets, DeviceSettings, Devices, Settler, Site};
use serde::Serialize;
use serde_json::json;

use crate::arguments::Place;
use crate::failure::Failure;
use crate::output::Output;
use crate::places::person;
use crate::printable::printable;
use crate::table::{self, Align};
use crate::{files, places, threads};

/// Serves network devices, and shows and settles their changes.
#[derive(Args)]
pub(crate) struct Device {
    #[command(subcommand)]
    action: DeviceCommand,
}

#[derive(Subcommand)]
enum DeviceCommand {
    /// Try the way to a device, and write it into the configuration
    Add(add::AddedDevice),
    /// Keep the change that waits on a device
    Confirm {
        /// Name of the device
        name: String,
        /// Keep it although the health checks of the device do not hold
        #[arg(long)]
        unhealthy: bool,
    },
    /// Serve the devices that stand in groups, each over a connection to a socket
    #[command(hide = true)]
    Fleet {
        #[arg(long)]
        connections: usize,
        #[arg(long)]
        logins: usize,
    },
    /// Refuse every new change of a device, a group or all devices, at once
    Freeze(freeze::FreezeBegin),
    /// Restore a device without a confirmation
    #[command(hide = true)]
    Guard(Handover),
    /// Add the devices of an inventory to the configuration: Ansible, Nornir, NetBox or containerlab
    Import(import::InventoryImport),
    /// List the devices and their changes
    List,
    /// Serve a device over TLS to controllers that speak the draft's transport and have a certificate
    Listen(listen::Listen),
    /// Bring the old configuration back at once
    Rollback {
        /// Name of the device
        name: String,
        /// Undo the last confirmed change: a change of its own, taken back unless it is confirmed
        #[arg(long)]
        confirmed: bool,
    },
    /// Serve one device on standard input and output
    #[command(hide = true)]
    Serve {
        #[command(flatten)]
        handover: Handover,
        /// Shapes of prompts and updates: those of the draft, those of MCP, or by the client's capability `network`
        #[arg(long, value_enum, default_value_t)]
        compat: Compat,
    },
    /// Show the change of a device, its owner and its deadline
    Status {
        /// Name of the device
        name: String,
    },
    /// Make the change of a device yours
    TakeOver {
        /// Name of the device
        name: String,
    },
    /// End a freeze
    Unfreeze(freeze::FreezeEnd),
}

/// Dialect of the shapes where the draft and MCP differ.
#[derive(Clone, Copy, Default, ValueEnum)]
enum Compat {
    #[default]
    Auto,
    Draft,
    Mcp,
}

impl From<Compat> for netdev::Compat {
    fn from(compat: Compat) -> Self {
        match compat {
            Compat::Auto => Self::Auto,
            Compat::Draft => Self::Draft,
            Compat::Mcp => Self::Mcp,
        }
    }
}

impl From<Compat> for ControllerShapes {
    fn from(compat: Compat) -> Self {
        match compat {
            Compat::Auto => Self::ByCapability,
            Compat::Draft => Self::Draft,
            Compat::Mcp => Self::Mcp,
        }
    }
}

/// A device as one process hands it to another.
#[derive(Args)]
struct Handover {
    #[arg(long)]
    settings: String,
    #[arg(long)]
    state: Option<PathBuf>,
}

impl Device {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        match &self.action {
            DeviceCommand::Add(added) => added.run(place, output),
            DeviceCommand::Confirm { name, unhealthy } => {
                let is_saved = settle(name, place, async |site| site.confirm(Settler::Person(&person()), None, *unhealthy).await)?;
                let text = if is_saved { "confirmed" } else { "confirmed, but not saved: it is gone when the device restarts" };
                done(text, &json!({ "device": name, "status": "confirmed", "saved": is_saved }), output)
            }
            DeviceCommand::Fleet { connections, logins } => {
                fleet(netdev::DeviceLimits { connections: *connections, logins: *logins }, output)
            }
            DeviceCommand::Freeze(begin) => begin.run(place, output),
            DeviceCommand::Unfreeze(end) => end.run(place, output),
            DeviceCommand::Guard(handover) => {
                let site = handover.site()?;
                threads::wait(async { netdev::guard(&site, &mut std::io::stdout()).await })
            }
            DeviceCommand::Import(inventory) => inventory.run(place, output),
            DeviceCommand::List => list(place, output),
            DeviceCommand::Listen(listen) => listen.run(place, output),
            DeviceCommand::Rollback { name, confirmed: true } => undo(name, place, output),
            DeviceCommand::Rollback { name, confirmed: false } => {
                settle(name, place, async |site| site.roll_back(Settler::Person(&person())).await)?;
                done("rolled back", &json!({ "device": name, "status": "rolled_back" }), output)
            }
            DeviceCommand::Serve { handover, compat } => serve(handover, *compat),
            DeviceCommand::Status { name } => status(name, place, output),
            DeviceCommand::TakeOver { name } => {
                settle(name, place, async |site| site.take_over(&person()).await)?;
                done("taken over", &json!({ "device": name, "owner": person() }), output)
            }
        }
    }
}

impl Handover {
    fn site(&self) -> Result<Site, Failure> {
        let state = self.state.clone().map_or_else(places::state_dir, Ok)?;
        let secrets = DeviceSecrets::handed_over(|variable| std::env::var(variable).ok());
        open(DeviceSettings::read(&self.settings).map_err(Failure::Usage)?, &secrets, &state)
    }
}

fn open(settings: DeviceSettings, secrets: &DeviceSecrets, state: &std::path::Path) -> Result<Site, Failure> {
    Site::open(settings, secrets, state).map_err(|error| Failure::Failed(format!("{} can't be used: {error}", state.display())))
}

fn serve(handover: &Handover, compat: Compat) -> Result<(), Failure> {
    let site = handover.site()?;
    let runtime = threads::serving()?;
    let served = runtime.block_on(netdev::serve(site, compat.into(), tokio::io::stdin(), tokio::io::stdout()));
    // A read of standard input can't be taken back, and nobody waits for it.
    runtime.shutdown_background();
    served.map_err(|error| Failure::Failed(format!("the device lost its client: {error}")))
}

/// Serves devices in groups until standard input ends: the gate that started this is gone then.
fn fleet(limits: netdev::DeviceLimits, output: &Output) -> Result<(), Failure> {
    let path = std::env::var_os("BANYAN_SOCKET")
        .map(PathBuf::from)
        .ok_or_else(|| Failure::Usage("a gate starts this, and names a socket".to_owned()))?;
    let state = places::state_dir()?;
    files::raise_limit();
    let runtime = threads::serving()?;
    let ended = runtime.block_on(async {
        let failed = |error: std::io::Error| Failure::Failed(format!("{} can't be used: {error}", path.display()));
        let listener = tokio::net::UnixListener::bind(&path).map_err(failed)?;
        output.line("listening")?;
        let (mut input, mut sink) = (tokio::io::stdin(), tokio::io::sink());
        tokio::select! {
            () = netdev::serve_fleet(listener, state, (netdev::Compat::Auto, limits)) => Ok(()),
            read = tokio::io::copy(&mut input, &mut sink) => read.map(drop).map_err(failed),
        }
    });
    runtime.shutdown_background();
    // The gate removes it, unless the gate was killed.
    drop(std::fs::remove_file(&path));
    if let Some(dir) = path.parent() {
        drop(std::fs::remove_dir(dir));
    }
    ended
}

fn configuration(place: &Place) -> Result<Config, Failure> {
    let path = places::config_file(place.config.as_deref())?;
    let path = path.ok_or_else(|| Failure::NotFound("there is no banyan.toml\n  `banyan device add NAME` makes one".to_owned()))?;
    Ok(gateway::parts::sections().load(&path, &SystemSources)?)
}

fn devices(config: &Config) -> Devices {
    config.values.get::<Devices>().cloned().unwrap_or_default()
}

/// Settings of a device of the configuration.
fn known(name: &str, config: &Config) -> Result<DeviceSettings, Failure> {
    let none = || Failure::NotFound(format!("there is no device `{}`\n  `banyan device list` shows them", printable(name)));
    devices(config).all.remove(name).ok_or_else(none)
}

/// A device of the configuration, with the password for the login.
fn site(name: &str, config: &Config) -> Result<Site, Failure> {
    let settings = known(name, config)?;
    let secrets = DeviceSecrets::resolve(config, name, &SystemSources).map_err(|error| Failure::Failed(error.to_string()))?;
    open(settings, &secrets, &places::state_dir()?)
}

fn settle<T>(name: &str, place: &Place, work: impl AsyncFnOnce(&Site) -> Result<T, netdev::Fault>) -> Result<T, Failure> {
    let site = site(name, &configuration(place)?)?;
    threads::wait(async { work(&site).await.map_err(|fault| failed(&fault)) })?
}

/// A device of the configuration with the state of its change.
#[derive(Serialize)]
struct ListedDevice {
    #[serde(flatten)]
    state: ChangeState,
    backend: Backend,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    groups: Vec<String>,
}

fn list(place: &Place, output: &Output) -> Result<(), Failure> {
    let (mut all, directory) = (Vec::new(), places::state_dir()?);
    for settings in devices(&configuration(place)?).all.into_values() {
        let (backend, address, groups) = (settings.backend, settings.address.clone(), settings.groups.clone());
        let state = open(settings, &DeviceSecrets::default(), &directory)?.listed();
        all.push(ListedDevice { state, backend, address, groups });
    }
    if output.wants_json() {
        return output.json(&json!({ "devices": all }));
    }
    let mut rows = vec![["NAME", "GROUPS", "FROZEN", "CHANGE", "STANDS", "OWNER", "LEFT"].map(str::to_owned).to_vec()];
    for ListedDevice { state: one, groups, .. } in all {
        let left = one.seconds_left.map(|seconds| format!("{seconds} s")).unwrap_or_default();
        let frozen = if one.frozen.is_empty() { "" } else { "yes" };
        let cells = [
            one.device,
            groups.join(" "),
            frozen.to_owned(),
            one.change.unwrap_or_default(),
            if one.unsaved.is_some() { format!("{}, not saved", one.phase) } else { one.phase },
            one.owner.unwrap_or_default(),
            left,
        ];
        rows.push(cells.iter().map(|cell| printable(cell)).collect());
    }
    table::lines(&[Align::Left; 7], &rows).iter().try_for_each(|line| output.line(line))
}

fn status(name: &str, place: &Place, output: &Output) -> Result<(), Failure> {
    let standing = site(name, &configuration(place)?)?.standing().map_err(|fault| failed(&fault))?;
    if output.wants_json() {
        return output.json(&standing);
    }
    standing.frozen.iter().try_for_each(|frozen| output.line(&printable(frozen)))?;
    let Some(change) = &standing.change else { return output.line("no change was ever made through Banyan") };
    let why = standing.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    output.line(&printable(&format!(
        "change {change} of {}: {}{why}",
        standing.owner.unwrap_or_default(),
        standing.phase.replace('_', " ")
    )))?;
    if let Some(why) = &standing.unsaved {
        output.line(&printable(&format!("not saved on the device, which a restart there would lose: {why}")))?;
        output.line("saving is tried again while the device is served and runs what was confirmed")?;
        output.line(&format!("`banyan device confirm {}` saves what the device runs now: look at it first", printable(name)))?;
    }
    if let (Some(deadline), Some(left)) = (standing.deadline, standing.seconds_left) {
        output.line(&format!("rolled back in {left} s, at {deadline}, unless `banyan device confirm {}` keeps it", printable(name)))?;
    }
    Ok(())
}

/// Undoes the last confirmed change for some time.
fn undo(name: &str, place: &Place, output: &Output) -> Result<(), Failure> {
    let diff = settle(name, place, async |site| site.undo_for_now(&person()).await)?;
    if output.wants_json() {
        return output.json(&json!({ "device": name, "status": "applied", "diff": diff }));
    }
    diff.lines().try_for_each(|line| output.line(&printable(line)))?;
    status(name, place, output)
}

fn done(text: &str, shape: &serde_json::Value, output: &Output) -> Result<(), Failure> {
    if output.wants_json() { output.json(shape) } else { output.line(&printable(text)) }
}

fn failed(fault: &netdev::Fault) -> Failure {
    if fault.code == netdev::Code::InvalidParams {
        // The arguments are ours: the change of the device is not what the command is for.
        return Failure::Failed(format!("{}\n  `banyan device list` shows the changes", printable(&fault.detail)));
    }
    Failure::Failed(format!("{}\n  {}", printable(&fault.to_string()), fault.code.recovery()))
}
