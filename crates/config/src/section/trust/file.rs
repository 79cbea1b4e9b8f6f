//! The form of `tls`, `resource`, `[issuer.NAME]` and `[authority.NAME]`. Reads no certificate and no key.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::file::At;

/// The keys of certificates and signed tokens.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct TrustForm {
    /// TLS 1.3 on the listener.
    pub tls: Option<At<Tls>>,
    /// The gate's address in tokens: their `aud` (RFC 8707). Needed beside `issuer` and `authority`.
    #[schemars(example = "https://gate.example.com/mcp")]
    pub resource: Option<At<String>>,
    /// Authorization servers with accepted tokens, by the name behind the holder's in logs and records.
    pub issuer: BTreeMap<At<String>, Issuer>,
    /// Keys that prove DNS names, for registration with an authority.
    pub authority: BTreeMap<At<String>, Authority>,
}

/// TLS 1.3 on the listener. `banyan ca init` makes the files.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tls {
    /// PEM file with the gate's certificate and its chain. Read again after a change.
    #[schemars(example = "gate.pem")]
    pub certificate: At<String>,
    /// PEM file with the private key of the certificate.
    #[schemars(example = "gate.key")]
    pub key: At<String>,
    /// PEM file with the authorities of client certificates. Default: nobody is asked for a certificate.
    #[schemars(example = "ca.pem")]
    pub client_ca: Option<At<String>>,
    /// Callers in need of a client certificate. Default: `optional`.
    pub clients: Option<At<Clients>>,
}

/// Callers in need of a client certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Clients {
    /// Callers without a token.
    Optional,
    /// Everybody.
    Required,
}

/// An authorization server with accepted tokens (JWT).
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Issuer {
    /// The `iss` of the server's tokens, to the letter.
    #[schemars(example = "https://login.example.com")]
    pub issuer: At<String>,
    /// Public keys: the address of a JWK set, or a file with a JWK set or PEM keys. EdDSA, ES256 and RS256.
    #[schemars(example = "https://login.example.com/jwks.json")]
    pub keys: At<String>,
    /// Scopes to demand of a token, all of them.
    #[serde(default)]
    #[schemars(example = ["tools"])]
    pub scopes: Vec<String>,
    /// The profile of all holders.
    pub profile: Option<At<String>>,
}

/// Keys of proofs of authority (MCP-AX 4.2): tokens with a DNS name as `sub`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Authority {
    /// Public keys: the address of a JWK set, or a file with a JWK set or PEM keys. EdDSA, ES256 and RS256.
    #[schemars(example = "factory.jwks")]
    pub keys: At<String>,
    /// DNS names for the keys to prove; `*` stands for any text.
    #[schemars(example = ["*.factory.example.com"])]
    pub names: Vec<At<String>>,
}

/// Certificates between the gate and a server over TLS.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct MountTls {
    /// PEM file with the certificate to show and its chain. Read again after a change.
    #[schemars(example = "gate.pem")]
    pub certificate: Option<At<String>>,
    /// PEM file with the private key of the certificate.
    #[schemars(example = "gate.key")]
    pub key: Option<At<String>>,
    /// PEM file with the authorities of the server's certificate. Default: the authorities of this machine.
    #[schemars(example = "ca.pem")]
    pub ca: Option<At<String>>,
}
