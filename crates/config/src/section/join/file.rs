//! The form of `[node]` and `[[parent]]`: the gate's name in a larger tree, and its parents. Dials nobody.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::file::At;
use crate::section::mount::tool::AuthScope;
use crate::section::trust::file::MountTls;

/// The keys of the larger tree.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct JoinForm {
    /// This gate, as known in its tree.
    pub node: Option<At<Node>>,
    /// Parents of this gate, in order of preference. `banyan join URL` adds a parent.
    pub parent: Vec<At<Parent>>,
}

/// This gate, as known in its tree. Of use only with a `[[parent]]`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Node {
    /// The name before the gate's tools at the parent: 1 to 63 of a-z, 0-9, `_` and `-`.
    #[schemars(example = &"factory")]
    pub segment: At<String>,
    /// Interval between two signs of life: a parent gives the gate up after three intervals without. Default: `5s`.
    #[schemars(example = "5s")]
    pub heartbeat: Option<At<String>>,
    /// The DNS name of the segment's owner, for whom the segment is kept while the gate is away.
    #[schemars(example = "dns:edge01.factory.example.com")]
    pub authority: Option<At<String>>,
    /// A signed token with the authority as its subject, where no client certificate proves the name. A reference to a secret, as a rule.
    #[schemars(example = "${file:/etc/banyan/authority.jwt}")]
    pub authority_proof: Option<At<String>>,
    /// Most that parents may call here: `read` asks them for no call that changes anything. Default: `admin`.
    pub auth_scope: Option<AuthScope>,
    /// Address at which parents may reach the gate. Default: parents call over the link of the gate, even behind NAT.
    #[schemars(example = "https://edge01.factory.example.com/mcp")]
    pub public_url: Option<At<String>>,
}

/// A parent of this gate. The first in the file is preferred, the others take over in its absence.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parent {
    /// Address of the parent.
    #[schemars(example = "https://root.example.com")]
    pub url: At<String>,
    /// The bearer token for the parent. A reference to a secret, as a rule.
    #[schemars(example = "${keyring:root.example.com}")]
    pub token: Option<At<String>>,
    /// The certificate to show to the parent, and the authorities to trust for the parent's own.
    pub tls: Option<At<MountTls>>,
    /// `true` joins over plain `http` on a network: a listener reads and changes every call.
    #[serde(default)]
    pub insecure: bool,
}
