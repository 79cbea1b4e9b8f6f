//! What `banyan.toml` may say about who is at the other end: certificates, issuers of tokens, keys that prove authorities.
//! Does not read the files that it names.

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
    /// The address by which tokens name this gate: their `aud` (RFC 8707). Needed beside `issuer` and `authority`.
    #[schemars(example = "https://gate.example.com/mcp")]
    pub resource: Option<At<String>>,
    /// Authorization servers whose tokens are taken, by the name behind their holders' in logs and records.
    pub issuer: BTreeMap<At<String>, Issuer>,
    /// Whose word proves which DNS names, for whoever registers with an authority.
    pub authority: BTreeMap<At<String>, Authority>,
}

/// TLS 1.3 on the listener. `banyan ca init` makes the files.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tls {
    /// PEM file with the gate's certificate and those between it and its authority. Read again when it changes.
    #[schemars(example = "gate.pem")]
    pub certificate: At<String>,
    /// PEM file with its private key.
    #[schemars(example = "gate.key")]
    pub key: At<String>,
    /// PEM file with the authorities whose client certificates are taken. Without it nobody is asked for one.
    #[schemars(example = "ca.pem")]
    pub client_ca: Option<At<String>>,
    /// Whether everybody needs a client certificate, or a token does as well. Default: `optional`.
    pub clients: Option<At<Clients>>,
}

/// Who needs a client certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Clients {
    /// Whoever shows no token.
    Optional,
    /// Everybody.
    Required,
}

/// An authorization server whose tokens (JWT) are taken as bearer tokens.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Issuer {
    /// Its name for itself: the `iss` of its tokens, to the letter.
    #[schemars(example = "https://login.example.com")]
    pub issuer: At<String>,
    /// Its public keys: the address of a JWK set, or a file with one or with PEM keys. EdDSA, ES256 and RS256.
    #[schemars(example = "https://login.example.com/jwks.json")]
    pub keys: At<String>,
    /// Scopes that a token must have, all of them.
    #[serde(default)]
    #[schemars(example = ["tools"])]
    pub scopes: Vec<String>,
    /// The profile that holders of its tokens always get.
    pub profile: Option<At<String>>,
}

/// Keys that sign proofs of authority (MCP-AX 4.2): tokens whose `sub` is a DNS name.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Authority {
    /// The public keys: the address of a JWK set, or a file with one or with PEM keys. EdDSA, ES256 and RS256.
    #[schemars(example = "factory.jwks")]
    pub keys: At<String>,
    /// The DNS names that these keys may prove; `*` stands for any text.
    #[schemars(example = ["*.factory.example.com"])]
    pub names: Vec<At<String>>,
}

/// How the gate and one server know each other over TLS.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct MountTls {
    /// PEM file with the certificate to show, and those between it and its authority. Read again when it changes.
    #[schemars(example = "gate.pem")]
    pub certificate: Option<At<String>>,
    /// PEM file with its private key.
    #[schemars(example = "gate.key")]
    pub key: Option<At<String>>,
    /// PEM file with the authorities that the server's certificate may come from. Default: those of this machine.
    #[schemars(example = "ca.pem")]
    pub ca: Option<At<String>>,
}
