//! Facts of a call in the words of the gate behind this process. Words of other clients do not count. Decides nothing.

use std::collections::BTreeMap;

use net_proto::fault::{Code, Fault};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Member of `_meta` with the devices of a group at which the gate does not let the caller make the call.
const REFUSED: &str = "io.banyan/refused";

/// Refusal of the gate about one device of a group.
#[derive(Deserialize)]
struct RefusedDevice {
    reason: String,
    #[serde(default)]
    decision: Option<String>,
}

/// Devices out of reach for a call of a group, each with the fault for its caller.
pub(crate) fn refused_devices(meta: &Map<String, Value>) -> BTreeMap<String, Fault> {
    let refused = meta.get(REFUSED).map(BTreeMap::<String, RefusedDevice>::deserialize);
    refused.and_then(Result::ok).unwrap_or_default().into_iter().map(|(name, refused)| (name, refused.fault())).collect()
}

impl RefusedDevice {
    fn fault(&self) -> Fault {
        let decision = self.decision.as_deref().map(|id| format!(" (decision {id})")).unwrap_or_default();
        let detail = match self.reason.as_str() {
            "gated" => format!("a person has to agree to this call at this device: make it there, and not for the group{decision}"),
            _ => format!("the gate does not let this caller make this call at this device{decision}"),
        };
        Fault::new(Code::AccessDenied, detail)
    }
}
