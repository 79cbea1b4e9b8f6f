//! Facts of a call in the words of the gate behind this process. Words of other clients do not count. Decides nothing.

use std::collections::{BTreeMap, BTreeSet};

use equipment::RoleSettings;
use net_proto::fault::{Code, Fault};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Member of `_meta` with the devices of a group at which the gate does not let the caller make the call.
const REFUSED: &str = "io.banyan/refused";

/// Member of `_meta` with the caller.
const CALLER: &str = "io.banyan/caller";
/// Kinds of callers with names of their own choice: named together with the kind, or not at all.
const APART: [&str; 2] = ["participant", "parent"];

/// Caller, in the words of the gate or of a certificate.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct CallerIdentity {
    name: String,
    kind: String,
    #[serde(default)]
    groups: BTreeSet<String>,
    #[serde(default)]
    roles: BTreeSet<String>,
}

impl CallerIdentity {
    /// The caller in the words of the gate; `None`: the gate names none.
    pub(crate) fn from_gate(meta: &Map<String, Value>) -> Option<Self> {
        meta.get(CALLER).map(Self::deserialize).and_then(Result::ok)
    }

    /// A controller with a certificate of this name.
    pub(crate) fn certified(name: &str) -> Self {
        Self { name: name.to_owned(), kind: "certificate".to_owned(), groups: BTreeSet::new(), roles: BTreeSet::new() }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Does a role name this caller?
    pub(crate) fn is_named(&self, role: &RoleSettings) -> bool {
        // The gate's record names a gate above `parent HOST`: the kind is in front already.
        let bare = self.name.strip_prefix("parent ").filter(|_| self.kind == "parent").unwrap_or(&self.name);
        let own = if APART.contains(&self.kind.as_str()) { format!("{}:{bare}", self.kind) } else { self.name.clone() };
        let means = |name: &String| name.strip_suffix('*').map_or(*name == own, |begin| own.starts_with(begin));
        let is_apart = APART.contains(&self.kind.as_str());
        let is_meant = |name: &String| means(name) && (!is_apart || name.starts_with(&format!("{}:", self.kind)));
        role.callers.iter().any(is_meant) || role.groups.iter().any(|group| self.groups.contains(group) || self.roles.contains(group))
    }
}

/// Refusal of the gate about one device of a group.
#[derive(Deserialize)]
struct RefusedDevice {
    reason: String,
    #[serde(default)]
    decision: Option<String>,
}

/// Devices that the gate does not show to the caller: no answer names them.
pub(crate) fn hidden_devices(meta: &Map<String, Value>) -> BTreeSet<String> {
    let hidden = refusals(meta).into_iter().filter(|(_, refused)| refused.reason == "hidden");
    hidden.map(|(name, _)| name).collect()
}

/// Devices out of reach for a call of a group, each with the fault for its caller.
pub(crate) fn refused_devices(meta: &Map<String, Value>) -> BTreeMap<String, Fault> {
    refusals(meta).into_iter().map(|(name, refused)| (name, refused.fault())).collect()
}

fn refusals(meta: &Map<String, Value>) -> BTreeMap<String, RefusedDevice> {
    let refused = meta.get(REFUSED).map(BTreeMap::<String, RefusedDevice>::deserialize);
    refused.and_then(Result::ok).unwrap_or_default()
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
