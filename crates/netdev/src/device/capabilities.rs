//! `capabilities.network` of a device: over NETCONF from the hello of the device. Asks no device.

use net_proto::netconf::{CANDIDATE, CONFIRMED_COMMIT};
use serde_json::{Value, json};

use super::streams;
use crate::site::Site;
use crate::way::DeviceWay;

/// The object of section 3 of the draft.
pub(crate) fn network(site: &Site) -> Value {
    let settings = &site.settings;
    let hello = site.backend.netconf().ok().and_then(|netconf| netconf.hello());
    let has = |uri: &str| hello.as_ref().is_some_and(|hello| hello.has(uri));
    let modules = hello.as_ref().map(|hello| hello.modules().into_iter().map(|(module, _)| module).collect::<Vec<_>>());
    let (can_undo, datastores) = match &site.changes {
        DeviceWay::Frr(frr) if frr.check_undo().is_err() => (false, vec!["running", "operational"]),
        DeviceWay::Frr(_) => (true, vec!["running", "candidate", "operational"]),
        DeviceWay::Hosted(frr) if frr.check_undo().is_err() => (false, vec!["running"]),
        DeviceWay::Hosted(frr) => (frr.can_undo(), vec!["running", "candidate"]),
        DeviceWay::Bird(_) | DeviceWay::Ovs(_) => (true, vec!["running", "candidate"]),
        DeviceWay::Ssh(ssh) if ssh.check_undo().is_ok() => (ssh.has_timer(), vec!["running", "candidate"]),
        DeviceWay::Ssh(_) => (false, vec!["running"]),
        DeviceWay::Snmp(snmp) => {
            let candidate = snmp.accepts_no_rollback.then_some("candidate");
            (snmp.accepts_no_rollback, ["running"].into_iter().chain(candidate).chain(["operational"]).collect())
        }
        DeviceWay::Netconf(_) => {
            let candidate = has(CANDIDATE).then_some("candidate");
            (has(CONFIRMED_COMMIT), ["running"].into_iter().chain(candidate).chain(["operational"]).collect())
        }
    };
    let dialect = site.backend.has_command_line().then(|| site.dialect.draft_name());
    json!({
        "yangModules": modules.unwrap_or_default(),
        "cliDialect": dialect,
        "configDatastore": datastores,
        // Each as updates of a resource.
        "notificationStream": streams::names(site),
        "maxBulkEdit": settings.max_bulk_edit,
        "supportsRollback": can_undo,
        "rollbackTimeout": settings.longest_window,
    })
}
