//! Certificates and signed tokens of others: files and addresses, checked but unread. Knows no bearer token.

use std::path::PathBuf;
use std::sync::Arc;

/// Credentials besides `[[token]]`s.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trust {
    /// TLS on the listener; `None`: plain.
    pub tls: Option<Tls>,
    /// The `aud` of tokens for the gate.
    pub resource: Option<Arc<str>>,
    pub issuers: Vec<Issuer>,
    pub authorities: Vec<AuthorityKeys>,
}

impl Trust {
    /// Checks whether certificates or tokens of issuers count.
    pub fn wants_credential(&self) -> bool {
        !self.issuers.is_empty() || self.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some())
    }
}

/// TLS on the listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// PEM file of the certificate and its chain.
    pub certificate: PathBuf,
    /// PEM file of the private key.
    pub key: PathBuf,
    /// PEM file of the authorities of client certificates.
    pub client_ca: Option<PathBuf>,
    /// Everybody needs a client certificate.
    pub required: bool,
}

/// An authorization server.
#[derive(Clone, Debug, PartialEq)]
pub struct Issuer {
    /// The part behind `@` in names of token holders: `SUBJECT@NAME`.
    pub name: Arc<str>,
    /// The `iss` of the service's tokens.
    pub issuer: String,
    pub keys: Keys,
    /// Scopes to demand of a token.
    pub scopes: Vec<String>,
    /// The profile of all holders.
    pub profile: Option<Arc<str>>,
}

/// Keys of proofs of authority.
#[derive(Clone, Debug, PartialEq)]
pub struct AuthorityKeys {
    pub name: Arc<str>,
    /// The keys.
    pub keys: Keys,
    /// Globs over DNS names to prove.
    pub names: Vec<String>,
}

/// The place of public keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Keys {
    /// A JWK set, or PEM keys.
    File(PathBuf),
    /// A JWK set.
    Url(url::Url),
}

/// Certificates between a server and the gate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClientTls {
    /// PEM files of the certificate to show and of the key.
    pub own: Option<(PathBuf, PathBuf)>,
    /// PEM file of the authorities to trust; `None`: the authorities of this machine.
    pub ca: Option<PathBuf>,
}
