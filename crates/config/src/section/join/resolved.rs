//! The tree that this gate joins: all checked, nobody dialled.

use std::time::Duration;

use banyan_model::Segment;
use mesh_proto::authority::Authority;

use crate::secret::SecretRef;
use crate::section::trust::resolved::ClientTls;

/// What this gate is in somebody else's tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Join {
    /// What stands before its tools there.
    pub segment: Segment,
    /// How often it says that it lives.
    pub heartbeat: Duration,
    /// The DNS name that owns the segment.
    pub authority: Option<Authority>,
    /// What proves that name.
    pub authority_proof: Option<SecretRef>,
    /// Where parents dial it; `None`: it is called over the link that it dials.
    pub public_url: Option<url::Url>,
    /// Whom it registers with, the preferred one first; never empty.
    pub parents: Vec<Parent>,
}

/// A gate to register with.
#[derive(Clone, Debug, PartialEq)]
pub struct Parent {
    /// `http` or `https`, with or without `/mcp` at its end.
    pub url: url::Url,
    /// The bearer token to show there.
    pub token: Option<SecretRef>,
    /// The certificate to show to it, and the authorities to trust for it; `None`: those of this machine.
    pub tls: Option<ClientTls>,
    /// Whether plain `http` is taken on a network as well.
    pub insecure: bool,
}
