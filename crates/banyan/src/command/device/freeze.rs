//! `banyan device freeze` and `unfreeze`: no new changes of a device, a group or all devices, at once and until somebody ends that. What waits for
//! a confirmation is confirmed or rolled back all the same.

use clap::Args;
use netdev::{Devices, FreezeScope, Freezes};
use serde_json::json;

use crate::arguments::Place;
use crate::failure::Failure;
use crate::output::Output;
use crate::places;
use crate::printable::printable;
use crate::similar::did_you_mean;

/// Devices that are frozen, or are no more.
#[derive(Args)]
#[group(required = true, multiple = false)]
struct Frost {
    /// Name of a device
    name: Option<String>,
    /// Name of a group: all its devices, also those that come later
    #[arg(long)]
    group: Option<String>,
    /// All devices
    #[arg(long)]
    all: bool,
}

#[derive(Args)]
pub(super) struct FreezeBegin {
    #[command(flatten)]
    devices: Frost,
    /// Reason, for callers with refused changes
    #[arg(long)]
    reason: Option<String>,
    /// Time until the freeze ends by itself, like 90m, 12h or 14d
    #[arg(long = "for", value_parser = seconds)]
    time: Option<u64>,
}

#[derive(Args)]
pub(super) struct FreezeEnd {
    #[command(flatten)]
    devices: Frost,
}

impl FreezeBegin {
    pub(super) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let scope = self.devices.scope(place)?;
        let begun = freezes()?.begin(&scope, &super::person(), self.reason.as_deref(), self.time);
        let freeze = begun.map_err(|error| Failure::Failed(format!("the freeze can't be written: {error}")))?;
        let shape = json!({ "frozen": scope.description(), "by": freeze.by, "reason": freeze.reason, "until": freeze.until });
        super::done(
            &format!("changes of {} are refused from now on; `banyan device unfreeze` ends that", scope.description()),
            &shape,
            output,
        )
    }
}

impl FreezeEnd {
    pub(super) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let scope = self.devices.scope(place)?;
        let ended = freezes()?.remove(&scope).map_err(|error| Failure::Failed(format!("the freeze can't be ended: {error}")))?;
        if !ended {
            let text =
                format!("no freeze is about {}\n  `banyan device list --json` shows the freezes of each device", scope.description());
            return Err(Failure::NotFound(printable(&text)));
        }
        super::done(&format!("the freeze of {} is over", scope.description()), &json!({ "unfrozen": scope.description() }), output)
    }
}

fn freezes() -> Result<Freezes, Failure> {
    Ok(Freezes::new(&places::state_dir()?))
}

impl Frost {
    fn scope(&self, place: &Place) -> Result<FreezeScope, Failure> {
        let Devices { all, groups } = super::devices(&super::configuration(place)?);
        let unknown = |kind: &str, name: &str, known: Vec<&String>| {
            let near = did_you_mean(name, known.into_iter().map(String::as_str));
            Failure::NotFound(format!("there is no {kind} `{}`{near}\n  `banyan device list` shows them", printable(name)))
        };
        match (&self.name, &self.group) {
            (Some(name), _) if all.contains_key(name) => Ok(FreezeScope::Device(name.clone())),
            (Some(name), _) => Err(unknown("device", name, all.keys().collect())),
            (None, Some(group)) if groups.contains_key(group) => Ok(FreezeScope::Group(group.clone())),
            (None, Some(group)) => Err(unknown("group", group, groups.keys().collect())),
            (None, None) => Ok(FreezeScope::All),
        }
    }
}

/// Reads a time such as `90m`.
fn seconds(text: &str) -> Result<u64, String> {
    let unit = [("m", 60), ("h", 3_600), ("d", 86_400)].into_iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)));
    let time = unit.and_then(|(number, seconds)| number.parse::<u64>().ok()?.checked_mul(seconds)).filter(|time| *time > 0);
    time.ok_or_else(|| "a time is a whole number with m, h or d, such as 12h".to_owned())
}
