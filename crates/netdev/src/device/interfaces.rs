//! Interfaces of a device, by every way to a device. Changes nothing.

use std::collections::BTreeMap;

use net_proto::fault::Fault;
use net_proto::interfaces::{InterfaceModel, InterfaceTable};
use net_proto::machine::counters;
use net_proto::snmp::interface_columns;

use super::machine;
use super::reads::{may_follow, parsed};
use crate::netconf::Netconf;
use crate::site::Site;
use crate::way::DeviceWay;

const LIST: &str = "interfaces";
const ONE: &str = "interface/";

/// Checks for the list of interfaces, or for one of them.
pub(super) fn is_one(path: &str) -> bool {
    path == LIST || path.starts_with(ONE)
}

/// Name in the path of an interface, with plain slashes or `%2F`.
pub(super) fn named(path: &str) -> Option<String> {
    path.strip_prefix(ONE).map(|name| name.replace("%2F", "/").replace("%2f", "/"))
}

/// Does the device tell its interfaces here?
pub(super) fn are_told(site: &Site) -> bool {
    match &site.backend {
        DeviceWay::Snmp(_) | DeviceWay::Ovs(_) => true,
        DeviceWay::Netconf(netconf) => model(netconf).is_some(),
        DeviceWay::Frr(_) | DeviceWay::Hosted(_) | DeviceWay::Ssh(_) | DeviceWay::Bird(_) => site.dialect.is_frr(),
    }
}

/// Model of the interfaces in the last hello.
fn model(netconf: &Netconf) -> Option<InterfaceModel> {
    InterfaceModel::among(&netconf.hello()?.modules())
}

/// The present interfaces behind a path: all, or over NETCONF the named one. `None`: no model of interfaces is known.
pub(super) async fn table(site: &Site, path: &str) -> Result<Option<InterfaceTable>, Fault> {
    match &site.backend {
        DeviceWay::Snmp(snmp) => {
            may_follow(site, true)?;
            Ok(Some(InterfaceTable::of_snmp(&snmp.walk(interface_columns()).await?)))
        }
        DeviceWay::Ovs(ovs) => {
            site.may_show("show interface")?;
            Ok(Some(InterfaceTable::of_switch(&ovs.shown().await?)))
        }
        DeviceWay::Netconf(netconf) => {
            let Some((model, path)) = model(netconf).and_then(|model| Some((model, model.path(named(path).as_deref())?))) else {
                return Ok(None);
            };
            let (tree, device) = site.data(&path, true).await?;
            Ok(Some(InterfaceTable::of_yang(model, tree.json(&device))))
        }
        DeviceWay::Frr(_) | DeviceWay::Hosted(_) | DeviceWay::Ssh(_) | DeviceWay::Bird(_) => {
            site.may_show("show interface json")?;
            let kernel = async {
                let Some(machine) = machine::find(site) else { return String::new() };
                // A kernel that tells nothing leaves the counters out.
                machine.counters().await.unwrap_or_default()
            };
            let (shown, kernel) = tokio::join!(site.backend.exec("show interface json"), kernel);
            let known = if site.dialect.is_frr() { counters(&kernel) } else { BTreeMap::new() };
            Ok(Some(InterfaceTable::of_frr(&parsed(&shown?)?, &known)))
        }
    }
}
