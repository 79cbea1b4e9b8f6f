//! What `banyan.toml` may say about the tree that this gate joins: what it is called there, and whom it registers with.
//! Does not dial anybody.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::file::At;
use crate::section::trust::file::MountTls;

/// The keys of the tree that this gate joins.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct JoinForm {
    /// This gate as others of its tree know it.
    pub node: Option<At<Node>>,
    /// The gates that this one registers with, the preferred one first. `banyan join URL` adds one.
    pub parent: Vec<At<Parent>>,
}

/// This gate as others of its tree know it. Of use only with a `[[parent]]`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Node {
    /// The name that stands before its tools at the parent: 1 to 63 of a-z, 0-9, `_` and `-`.
    #[schemars(example = &"factory")]
    pub segment: At<String>,
    /// How often it says that it lives: the parent gives it up after three times that. Default: `5s`.
    #[schemars(example = "5s")]
    pub heartbeat: Option<At<String>>,
    /// The DNS name that owns the segment, and keeps it while the gate is away.
    #[schemars(example = "dns:edge01.factory.example.com")]
    pub authority: Option<At<String>>,
    /// A signed token whose subject is that name, where no client certificate proves it. A reference to a secret, as a rule.
    #[schemars(example = "${file:/etc/banyan/authority.jwt}")]
    pub authority_proof: Option<At<String>>,
    /// Where parents may reach it. Without this they call it over the link that it dials, which works from behind NAT.
    #[schemars(example = "https://edge01.factory.example.com/mcp")]
    pub public_url: Option<At<String>>,
}

/// A gate that this one registers with. The first in the file is preferred, the others take over while it is not there.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parent {
    /// Its address.
    #[schemars(example = "https://root.example.com")]
    pub url: At<String>,
    /// The bearer token to show there. A reference to a secret, as a rule.
    #[schemars(example = "${keyring:root.example.com}")]
    pub token: Option<At<String>>,
    /// The certificate to show to it, and the authorities to trust for it.
    pub tls: Option<At<MountTls>>,
    /// `true` joins over plain `http` on a network: whoever listens in reads and changes every call.
    #[serde(default)]
    pub insecure: bool,
}
