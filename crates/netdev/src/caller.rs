//! Facts of a call in the words of the gate behind this process. Words of other clients do not count. Decides nothing.

use std::collections::{BTreeMap, BTreeSet};

use banyan_model::PrincipalKind;
use equipment::RoleSettings;
use net_proto::fault::{Code, Fault};
use serde::{Deserialize, Deserializer, de};
use serde_json::{Map, Value};

/// Member of `_meta` with the devices of a group at which the gate does not let the caller make the call.
const REFUSED: &str = "io.banyan/refused";

/// Member of `_meta` with the caller.
const CALLER: &str = "io.banyan/caller";

/// Caller, in the words of the gate.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct CallerIdentity {
    name: String,
    #[serde(deserialize_with = "kind")]
    kind: PrincipalKind,
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

    /// Checks for a caller with a certificate, such as a controller.
    pub(crate) fn is_certified(&self) -> bool {
        self.kind == PrincipalKind::Certificate
    }

    /// The kind before the name, as roles write it and changes keep it.
    pub(crate) fn qualified(&self) -> String {
        equipment::qualified(self.kind, &self.name)
    }

    /// Does a role name this caller?
    pub(crate) fn is_named(&self, role: &RoleSettings) -> bool {
        role.names(self.kind, &self.name) || role.groups.iter().any(|group| self.groups.contains(group) || self.roles.contains(group))
    }
}

fn kind<'de, D: Deserializer<'de>>(from: D) -> Result<PrincipalKind, D::Error> {
    let word = String::deserialize(from)?;
    PrincipalKind::parse(&word).ok_or_else(|| de::Error::custom(format!("no kind of caller is called {word}")))
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
