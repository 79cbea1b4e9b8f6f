//! Resources of an Open vSwitch: interfaces with their counters and VLANs. Changes nothing.

use net_proto::fault::Fault;
use serde_json::{Value, json};

use crate::ovs::Ovs;

/// Data and metadata of a resource; `None`: the switch has no such interface.
pub(super) async fn content(ovs: &Ovs, path: &str) -> Result<Option<(Value, Value)>, Fault> {
    let all = ovs.shown().await?.interfaces();
    if path == "interfaces" {
        let all: Vec<Value> = all.into_iter().map(|one| one.data).collect();
        return Ok(Some((json!({ "openconfig-interfaces:interfaces": { "interface": all } }), meta())));
    }
    let name = path.strip_prefix("interface/").unwrap_or_default().replace("%2F", "/").replace("%2f", "/");
    let Some(one) = all.into_iter().find(|one| one.name == name) else { return Ok(None) };
    let mut meta = meta();
    if let Some(address) = one.hardware {
        meta["hardware-address"] = address.into();
    }
    Ok(Some((json!({ "openconfig-interfaces:interface": one.data }), meta)))
}

/// Checks for a resource that `content` reads.
pub(super) fn is_one(path: &str) -> bool {
    path == "interfaces" || path.starts_with("interface/")
}

/// Units. The switch counts on its own every few seconds, and says nothing of the moment.
fn meta() -> Value {
    json!({ "unit": { "mtu": "bytes", "in-octets": "bytes", "out-octets": "bytes", "in-pkts": "packets", "out-pkts": "packets" }, "precision": 1 })
}
