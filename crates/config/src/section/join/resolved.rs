//! The gate's place in a larger tree, checked. Dials nobody.

use std::time::Duration;

use banyan_model::Segment;
use mesh_proto::annotation::AuthScope;
use mesh_proto::authority::Authority;

use crate::secret::SecretRef;
use crate::section::trust::resolved::ClientTls;

/// The gate's place in a larger tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Join {
    pub segment: Segment,
    /// Interval between two signs of life.
    pub heartbeat: Duration,
    /// The DNS name of the segment's owner.
    pub authority: Option<Authority>,
    pub authority_proof: Option<SecretRef>,
    /// Permission that parents are asked to keep to; `None`: all.
    pub auth_scope: Option<AuthScope>,
    /// `None`: parents call over the link of the gate.
    pub public_url: Option<url::Url>,
    /// In order of preference; never empty.
    pub parents: Vec<Parent>,
}

/// A gate to register with.
#[derive(Clone, Debug, PartialEq)]
pub struct Parent {
    /// `http` or `https`, with or without `/mcp` at the end.
    pub url: url::Url,
    pub token: Option<SecretRef>,
    /// `None`: no certificate, and the authorities of this machine.
    pub tls: Option<ClientTls>,
    /// Plain `http` is taken on a network, too.
    pub insecure: bool,
}
