//! The machine below a device, here or behind SSH: load, memory, counters of interfaces, crash reports, the configuration of the start and the
//! log. Decides nothing.

use std::path::Path;
use std::time::Duration;

use net_proto::change::{CRASHES, FrrPrograms};
use net_proto::fault::{Code, Fault};
use net_proto::machine;
use serde_json::{Value, json};

use super::crash;
use crate::clock::written;
use crate::hosted::HostedFrr;
use crate::site::Site;
use crate::way::DeviceWay;

/// Longest configuration of the start, in bytes.
const STARTUP: u64 = 16 << 20;
/// Bytes of the end of a log that a read looks at.
const LOG: u64 = 4 << 20;
/// Pause between two looks at the processors.
const LOOKS: Duration = Duration::from_millis(200);

/// Machine of a device.
pub(super) enum Machine<'a> {
    /// The machine of Banyan.
    Here(&'a Site),
    /// A machine behind a login with a shell.
    There(&'a HostedFrr),
}

/// Machine of a device, where its load and memory can be read.
pub(super) fn find(site: &Site) -> Option<Machine<'_>> {
    match &site.backend {
        DeviceWay::Frr(_) | DeviceWay::Bird(_) | DeviceWay::Ovs(_) => Some(Machine::Here(site)),
        DeviceWay::Hosted(frr) => Some(Machine::There(frr)),
        DeviceWay::Ssh(_) | DeviceWay::Netconf(_) | DeviceWay::Snmp(_) => None,
    }
}

/// Has the device a readable configuration of its start?
pub(super) fn has_startup(site: &Site) -> bool {
    matches!(site.backend, DeviceWay::Frr(_) | DeviceWay::Hosted(_) | DeviceWay::Bird(_))
}

/// Unit and precision of the load.
pub(super) fn cpu_meta() -> Value {
    json!({ "unit": "percent", "precision": 0.1 })
}

/// Unit and precision of the memory.
pub(super) fn memory_meta() -> Value {
    json!({ "unit": "bytes", "precision": 1024 })
}

impl Machine<'_> {
    /// Load of the processors, with their kind and their number.
    pub(super) async fn cpu(&self) -> Result<(Value, Value), Fault> {
        let (looks, processors) = match self {
            Self::Here(_) => {
                let before = from_proc("stat")?;
                tokio::time::sleep(LOOKS).await;
                (before + &from_proc("stat")?, from_proc("cpuinfo").unwrap_or_default())
            }
            Self::There(frr) => {
                let text = frr.shown("/proc/stat", |programs| programs.load()).await?;
                (text.clone(), text)
            }
        };
        let load = machine::load(&looks).ok_or_else(|| odd("/proc/stat"))?;
        let (model, count) = machine::processors(&processors);
        let usable = std::thread::available_parallelism().map_or(count, usize::from);
        let mut meta = cpu_meta();
        meta["hardware-model"] = model.into();
        meta["hardware-cores"] = if matches!(self, Self::Here(_)) { usable } else { count }.into();
        Ok((json!({ "utilization": load }), meta))
    }

    /// Main memory.
    pub(super) async fn memory(&self) -> Result<Value, Fault> {
        let text = match self {
            Self::Here(_) => from_proc("meminfo")?,
            Self::There(frr) => frr.shown("/proc/meminfo", |programs| programs.memory()).await?,
        };
        machine::memory(&text).ok_or_else(|| odd("/proc/meminfo"))
    }

    /// Text with the counters of all interfaces in the network namespace of `zebra`; empty without a `zebra`.
    pub(super) async fn counters(&self) -> Result<String, Fault> {
        match self {
            Self::Here(site) => Ok(counters_here(&programs(site).zebra_file()).unwrap_or_default()),
            Self::There(frr) => frr.shown("/proc/net/dev", |programs| programs.counters()).await,
        }
    }

    /// Crash reports of a daemon of FRR, the newest first.
    pub(super) async fn crashes(&self, daemon: &str) -> Result<Vec<Value>, Fault> {
        match self {
            Self::Here(_) => Ok(crash::reports(Path::new(CRASHES), daemon)),
            Self::There(frr) => {
                let text = frr.shown(CRASHES, |programs| programs.crashes(daemon)).await?;
                Ok(crash::newest(daemon, machine::reports(&text)))
            }
        }
    }

    /// Configuration of the start.
    pub(super) async fn startup(&self) -> Result<String, Fault> {
        match self {
            Self::Here(site) => {
                if let DeviceWay::Bird(bird) = &site.backend {
                    return bird.start();
                }
                let path = programs(site).startup_file();
                let failed = |error| Fault::new(Code::ConfigIncompatible, format!("{path}: {error}")).at("startup-config");
                std::fs::read_to_string(&path).map_err(failed)
            }
            Self::There(frr) => {
                let text = frr.shown("startup-config", |programs| programs.startup(STARTUP)).await?;
                let cut = || Fault::new(Code::HardwareFailure, format!("the startup configuration has more than {STARTUP} bytes"));
                if text.len() as u64 >= STARTUP { Err(cut().at("startup-config")) } else { Ok(text) }
            }
        }
    }

    /// Time of the last write to the configuration of the start, on the machine of Banyan.
    pub(super) fn startup_written(&self) -> Option<String> {
        let Self::Here(site) = self else { return None };
        let changed = if let DeviceWay::Bird(bird) = &site.backend {
            bird.start_written()?
        } else {
            std::fs::metadata(programs(site).startup_file()).ok()?.modified().ok()?
        };
        Some(written(u64::try_from(changed.duration_since(std::time::UNIX_EPOCH).ok()?.as_millis()).ok()?))
    }

    /// Last lines of the file that FRR logs to.
    pub(super) async fn log(&self, path: &Path, count: usize) -> Result<Vec<String>, Fault> {
        match self {
            Self::Here(_) => Ok(crate::log::last(path, count)?.into_iter().map(|(line, _)| line).collect()),
            Self::There(frr) => {
                let path = path.display().to_string();
                let text = frr.shown(&path, |programs| programs.last_lines(&path, count, LOG)).await?;
                Ok(text.lines().map(str::to_owned).collect())
            }
        }
    }
}

/// Programs and files of an FRR on the machine of Banyan.
fn programs(site: &Site) -> FrrPrograms {
    FrrPrograms::new(site.settings.bindir.as_deref().unwrap_or("/usr/bin"), site.settings.pathspace.as_deref())
}

/// Counters in the network namespace of the `zebra` whose process a file names.
fn counters_here(file: &str) -> Option<String> {
    let process: u32 = std::fs::read_to_string(file).ok()?.trim().parse().ok()?;
    // The number may be that of another program by now.
    let is_zebra = from_proc(&format!("{process}/comm")).is_ok_and(|name| name.trim() == "zebra");
    is_zebra.then(|| from_proc(&format!("{process}/net/dev")).ok()).flatten()
}

fn odd(file: &str) -> Fault {
    Fault::new(Code::ConfigIncompatible, format!("{file} of the machine can't be read")).at(file)
}

fn from_proc(name: &str) -> Result<String, Fault> {
    std::fs::read_to_string(format!("/proc/{name}")).map_err(|error| Fault::new(Code::ConfigIncompatible, format!("/proc/{name}: {error}")))
}
