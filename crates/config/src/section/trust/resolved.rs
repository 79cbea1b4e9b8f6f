//! Who is known, and by what: files and addresses, all checked but unread. Does not know tokens that are kept as hashes.

use std::path::PathBuf;
use std::sync::Arc;

/// Who is known besides the holders of `[[token]]`s, and by what.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trust {
    /// TLS on the listener; `None`: plain.
    pub tls: Option<Tls>,
    /// The `aud` of tokens for this gate.
    pub resource: Option<Arc<str>>,
    /// Authorization servers whose tokens are taken.
    pub issuers: Vec<Issuer>,
    /// Whose word proves which DNS names.
    pub authorities: Vec<AuthorityKeys>,
}

impl Trust {
    /// Whether callers are known by certificates or tokens of issuers.
    pub fn wants_credential(&self) -> bool {
        !self.issuers.is_empty() || self.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some())
    }
}

/// TLS on the listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// PEM file of the certificate and those between it and its authority.
    pub certificate: PathBuf,
    /// PEM file of its private key.
    pub key: PathBuf,
    /// PEM file of the authorities whose client certificates are taken.
    pub client_ca: Option<PathBuf>,
    /// Whether everybody needs a client certificate.
    pub required: bool,
}

/// An authorization server.
#[derive(Clone, Debug, PartialEq)]
pub struct Issuer {
    /// What stands behind the names of its tokens' holders: `SUBJECT@NAME`.
    pub name: Arc<str>,
    /// The `iss` of its tokens.
    pub issuer: String,
    /// What its tokens are signed with.
    pub keys: Keys,
    /// Scopes that a token must have.
    pub scopes: Vec<String>,
    /// The profile that holders of its tokens always get.
    pub profile: Option<Arc<str>>,
}

/// Keys that prove authorities.
#[derive(Clone, Debug, PartialEq)]
pub struct AuthorityKeys {
    /// Their name in this configuration.
    pub name: Arc<str>,
    /// The keys.
    pub keys: Keys,
    /// The DNS names that they may prove, as globs.
    pub names: Vec<String>,
}

/// Where public keys are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Keys {
    /// A JWK set, or PEM keys.
    File(PathBuf),
    /// A JWK set.
    Url(url::Url),
}

/// How a server and the gate know each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClientTls {
    /// PEM files of the certificate to show and of its key.
    pub own: Option<(PathBuf, PathBuf)>,
    /// PEM file of the authorities to trust; `None`: those of this machine.
    pub ca: Option<PathBuf>,
}
