//! Roles at a device: rules for the callers that they name. Does not decide about a call.

use banyan_model::PrincipalKind;
use config::Flaw;
use config::file::At;
use config::reading::FileReading;
use net_proto::role::{PathRule, RuleEffect};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::naming::{means, names_nobody};

/// Rules for some callers of a device, beside those of the device for everybody. The first role that names a caller holds; where a device has
/// roles, a caller that none names does nothing there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RoleSettings {
    /// Callers: principals of the gate by the names in its record, and controllers over TLS by the names in their certificates. A name that ends
    /// with `*` stands for all that begin so; `token:`, `certificate:`, `issuer:` and `local:` in front mean callers of that kind alone, `participant:`
    /// and `parent:` participants of rooms and gates above, which no other name means.
    #[schemars(example = &["ada", "noc-*"])]
    pub callers: Vec<String>,
    /// Groups and roles of the gate, one of which the caller has.
    #[schemars(example = &["noc"])]
    pub groups: Vec<String>,
    /// `true`: these callers change nothing.
    pub read_only: bool,
    /// First words of further commands; then other reads are refused.
    pub allow_commands: Vec<String>,
    /// First words of commands that are refused, however they are shortened.
    pub deny_commands: Vec<String>,
    /// First words of lines of a change; then other lines are refused.
    pub allow_lines: Vec<String>,
    /// First words of lines of a change that are refused.
    pub deny_lines: Vec<String>,
    /// YANG paths; then other paths are refused.
    pub allow_paths: Vec<String>,
    /// YANG paths that are neither read nor edited.
    pub deny_paths: Vec<String>,
    /// YANG paths that may be edited; then other paths are read only.
    pub allow_edit_paths: Vec<String>,
    /// YANG paths that are not edited.
    pub deny_edit_paths: Vec<String>,
}

impl RoleSettings {
    /// Is the caller named in the role? Groups do not count here.
    pub fn names(&self, kind: PrincipalKind, name: &str) -> bool {
        self.callers.iter().any(|pattern| means(pattern, kind, name))
    }

    /// Checks names and paths.
    pub(crate) fn check(&self, device: &At<String>, reading: &mut FileReading<'_>) {
        if self.callers.is_empty() && self.groups.is_empty() {
            let flaw = Flaw::new(device.span(), "a role of this device names nobody");
            reading.refuse(flaw.help("write `callers = [\"ada\"]` or `groups = [\"noc\"]` into it; `callers = [\"*\"]` is everybody else"));
        }
        for name in self.callers.iter().filter(|name| names_nobody(name)) {
            let flaw = Flaw::new(device.span(), format!("`{name}` in `callers` of a role can name no caller"));
            reading.refuse(flaw.help(
                "write the name from the gate's record, `participant:NAME`, `parent:HOST` for a gate above, or `certificate:dns:NAME`",
            ));
        }
        for path in [&self.allow_paths, &self.deny_paths, &self.allow_edit_paths, &self.deny_edit_paths].into_iter().flatten() {
            if path.contains(['[', ':']) || PathRule::new(RuleEffect::Deny, false, path).is_none() {
                let flaw = Flaw::new(device.span(), format!("`{path}` is no path for a rule"));
                reading.refuse(flaw.help("write names of nodes, without modules and keys, for example \"/interfaces/interface\""));
            }
        }
    }
}
