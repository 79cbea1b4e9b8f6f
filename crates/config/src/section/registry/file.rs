//! The section `[registry]`: who may register servers, and on which terms. What the texts say is not checked here.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::file::At;
use crate::section::trust::file::MountTls;

/// The key of registration.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct RegistryForm {
    /// Servers that register themselves. Without this section, nobody may.
    pub registry: Option<Registry>,
}

/// Who may register servers here, and on which terms.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Registry {
    /// Names of the callers who may register; `*` stands for any text. Default: whoever proves an authority, by a certificate or a signed
    /// proof.
    #[schemars(example = ["edge-*"])]
    pub principals: Option<Vec<At<String>>>,
    /// Hosts, besides loopback ones (which only servers of this machine may name), at which a server may say that it is reached: names,
    /// in which `*` stands for any text, addresses, and networks.
    #[schemars(example = ["*.plant.example", "10.1.0.0/16"])]
    pub hosts: Vec<At<String>>,
    /// When a server has to prove its authority. Default: `for_changes`.
    pub proof: Option<Demand>,
    /// When a segment belongs to its authority for good. Default: `for_changes`.
    pub sticky: Option<Demand>,
    /// How long the tools of a lost server stay listed. Default: `5m`; `0s` takes them away at once.
    #[schemars(example = "5m")]
    pub grace: Option<At<String>>,
    /// Servers registered at once. Default: 20000.
    #[schemars(range(min = 1))]
    pub registrations: Option<usize>,
    /// `true`: gates may register, and be called, over connections on which others can listen in.
    pub insecure: bool,
    /// `true`: whoever registers as a gate is trusted as a gate, as `[pins] gates` says, though it proves no authority.
    pub trust_gates: bool,
    /// The certificate to show to servers that registered an `https` address, and the authorities to trust for them. Default: none is
    /// shown, and those of this machine are trusted.
    pub tls: Option<At<MountTls>>,
    /// What holds for single segments.
    #[schemars(with = "BTreeMap<String, SegmentPolicy>")]
    #[schemars(extend("propertyNames" = { "pattern": "^[a-z0-9_-]{1,63}$" }))]
    pub segment: BTreeMap<At<String>, SegmentPolicy>,
}

/// What holds for one segment.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SegmentPolicy {
    /// When a server has to prove its authority. Default: as in `[registry]`.
    pub proof: Option<Demand>,
    /// When the segment belongs to its authority for good. Default: as in `[registry]`.
    pub sticky: Option<Demand>,
}

/// For which servers something holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Demand {
    /// All.
    Always,
    /// Those with tools that change something.
    ForChanges,
    /// None.
    Never,
}
