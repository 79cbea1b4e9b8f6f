//! Resources of a device over SNMP, and `network.yang.get` on its objects. Changes nothing.

use mcp_server::Arguments;
use net_proto::fault::{Code, Fault};
use net_proto::role::DeviceAction;
use net_proto::snmp::{memory, memory_columns, named, processor_columns, processors};
use serde_json::{Value, json};

use super::tools::{answer, text};
use crate::clock::{now, written};
use crate::site::Site;
use crate::snmp::Snmp;

const CPU: &str = "system/cpu-utilization";
const MEMORY: &str = "system/memory-summary";

/// Type, data and metadata of a resource that is read over SNMP; `None`: the resource is none of these.
pub(super) async fn content(snmp: &Snmp, path: &str) -> Result<Option<(Value, Value)>, Fault> {
    // Some agents measure for a minute before they tell a load.
    let absent = |what: &str| Fault::new(Code::ConfigIncompatible, format!("the device tells nothing of {what} over SNMP")).retryable();
    match path {
        CPU => {
            let (load, count) = processors(&snmp.walk(processor_columns()).await?).ok_or_else(|| absent("processors"))?;
            let mut meta = cpu_meta();
            meta["hardware-cores"] = count.into();
            Ok(Some((json!({ "utilization": load }), meta)))
        }
        MEMORY => {
            let memory = memory(&snmp.walk(memory_columns()).await?).ok_or_else(|| absent("main memory"))?;
            Ok(Some((memory, memory_meta())))
        }
        _ => Ok(None),
    }
}

/// Unit and precision of the load.
pub(super) fn cpu_meta() -> Value {
    json!({ "unit": "percent", "precision": 1 })
}

/// Unit and precision of the memory.
pub(super) fn memory_meta() -> Value {
    json!({ "unit": "bytes", "precision": 1024 })
}

/// Checks for a resource that `content` reads.
pub(super) fn is_one(path: &str) -> bool {
    matches!(path, CPU | MEMORY)
}

/// Reads objects by a path.
pub(super) async fn get(site: &Site, snmp: &Snmp, arguments: &Arguments) -> Result<Value, Fault> {
    let path = text(arguments, "path")?;
    let datastore = arguments.get("datastore").map_or(Some("running"), Value::as_str);
    if !matches!(datastore, Some("running" | "operational")) {
        return Err(Fault::new(Code::InvalidParams, "`datastore` is running or operational"));
    }
    site.permit(DeviceAction::ReadPath(&site.ruled(path)))?;
    let mut data = named(&snmp.data(path).await?);
    site.redactor.value(&mut data);
    let is_empty = data.as_object().is_none_or(serde_json::Map::is_empty);
    let shown =
        if is_empty { "The device holds no data there.".to_owned() } else { serde_json::to_string_pretty(&data).unwrap_or_default() };
    Ok(answer(&shown, json!({ "path": site.redactor.path(path), "datastore": datastore, "data": data, "readAt": written(now().wall) })))
}
