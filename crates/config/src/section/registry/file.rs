//! The form of `[registry]`. Checks no text.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::file::At;
use crate::section::mount::tool::AuthScope;
use crate::section::trust::file::MountTls;

/// The key of registration.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct RegistryForm {
    /// Registration of servers. Without the section, nobody may register.
    pub registry: Option<Registry>,
}

/// Terms of registration.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Registry {
    /// Names of callers with the right to register; `*` stands for any text. Default: callers with a proven authority, by a certificate or
    /// a signed proof.
    #[schemars(example = ["edge-*"])]
    pub principals: Option<Vec<At<String>>>,
    /// Hosts in addresses of registered servers, besides loopback hosts for servers of this machine: names with `*` for any text,
    /// addresses, and networks.
    #[schemars(example = ["*.plant.example", "10.1.0.0/16"])]
    pub hosts: Vec<At<String>>,
    /// Servers that have to prove their authority. Default: `for_changes`.
    pub proof: Option<Demand>,
    /// Servers with a segment that belongs to their authority for good. Default: `for_changes`.
    pub sticky: Option<Demand>,
    /// Most that calls of a registered server may do, whatever the server asks for. Default: `admin`.
    pub auth_scope: Option<AuthScope>,
    /// Notifications of a registered server, or of a mount, passed on in a second. Default: 100.
    #[schemars(range(min = 1, max = 100_000))]
    pub notifications_per_second: Option<u32>,
    /// Notifications of a server in wait for their turn; the oldest goes for the next. Default: 1000.
    #[schemars(range(min = 1, max = 10_000))]
    pub notifications_held: Option<u32>,
    /// Time for which the tools of a lost server stay listed. Default: `5m`; `0s` takes them away at once.
    #[schemars(example = "5m")]
    pub grace: Option<At<String>>,
    /// Time after which the lists of a registered server that tells of no changes are fetched again. Default: `60s`.
    #[schemars(example = "60s")]
    pub list_ttl: Option<At<String>>,
    /// Servers registered at once. Default: 20000.
    #[schemars(range(min = 1))]
    pub registrations: Option<usize>,
    /// `true`: gates may register, and be called, in plain text on a network.
    pub insecure: bool,
    /// `true`: registered gates are trusted as gates, by `[pins] gates`, without a proven authority.
    pub trust_gates: bool,
    /// The certificate to show to registered servers with an `https` address, and the authorities to trust for them. Default: no
    /// certificate, and the authorities of this machine.
    pub tls: Option<At<MountTls>>,
    /// Terms for single segments.
    #[schemars(with = "BTreeMap<String, SegmentPolicy>")]
    #[schemars(extend("propertyNames" = { "pattern": "^[a-z0-9_-]{1,63}$" }))]
    pub segment: BTreeMap<At<String>, SegmentPolicy>,
}

/// Terms for a segment.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SegmentPolicy {
    /// Servers that have to prove their authority. Default: as in `[registry]`.
    pub proof: Option<Demand>,
    /// Servers with a segment that belongs to their authority for good. Default: as in `[registry]`.
    pub sticky: Option<Demand>,
    /// Most that calls of the server may do, whatever the server asks for. Default: as in `[registry]`.
    pub auth_scope: Option<AuthScope>,
    /// Notifications of the server, or of the mount of the same name, passed on in a second. Default: as in `[registry]`.
    #[schemars(range(min = 1, max = 100_000))]
    pub notifications_per_second: Option<u32>,
    /// Notifications of the server in wait for their turn; the oldest goes for the next. Default: as in `[registry]`.
    #[schemars(range(min = 1, max = 10_000))]
    pub notifications_held: Option<u32>,
}

/// A choice of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Demand {
    /// All.
    Always,
    /// Servers with tools that change something.
    ForChanges,
    /// None.
    Never,
}
