//! The section `[gate]`: which calls wait for somebody to agree, and who is told. What the texts say is not checked here.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::file::At;

/// The key of approvals.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct GateForm {
    /// Which calls wait for somebody to agree. Without this section, none does by the word of this gate.
    pub gate: Option<Gate>,
}

/// Which calls wait for somebody to agree, and who is told of them.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Gate {
    /// Which calls wait. Default: `off`.
    pub mode: GateMode,
    /// Other modes for single mounts, by name.
    #[schemars(with = "BTreeMap<String, GateMode>", example = BTreeMap::from([("notes", "off")]))]
    pub mounts: BTreeMap<At<String>, GateMode>,
    /// How many different people have to agree. Default: 1.
    #[schemars(range(min = 1, max = 9))]
    pub approvals: Option<At<u8>>,
    /// How long somebody may take to agree. Default: `5m`.
    #[schemars(example = "5m")]
    pub expires: Option<At<String>>,
    /// How long a caller that hears no progress is kept waiting before it is told to come back. Default: `0s`.
    #[schemars(example = "20s")]
    pub wait: Option<At<String>>,
    /// Where people approve: passkeys belong to its host. Default: the gate's own port on `localhost`.
    #[schemars(example = "https://gate.example.com")]
    pub url: Option<At<String>>,
    /// Approval services and policy engines whose signed tokens count, by name.
    #[schemars(with = "BTreeMap<String, GateService>")]
    pub service: BTreeMap<At<String>, GateService>,
    /// Whom to tell.
    pub webhook: Vec<Webhook>,
    /// Programs that tell somebody: by a notice on the desktop, by mail.
    pub command: Vec<GateCommand>,
}

/// Which calls wait for somebody to agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum GateMode {
    /// None.
    #[default]
    Off,
    /// Those that change something for good, as far as their tools say so.
    Irreversible,
    /// All that change something, as far as their tools say so.
    Mutable,
    /// All but those of tools that `[mount.NAME.tools]` calls `mutable = false`, whatever a server says of them.
    Unlisted,
}

/// An approval service, or a policy engine.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GateService {
    /// The `iss` of its tokens.
    #[schemars(example = &"https://desk.example.com")]
    pub issuer: String,
    /// File with its keys: a JWK, a JWK set or PEM, of Ed25519 or P-256. Relative to this file.
    #[schemars(example = &"desk.pem")]
    pub keys: At<String>,
    /// The `aud` of its tokens for this gate. Default: `resource`.
    pub audience: Option<String>,
}

/// A program that is started when something becomes of a call that waits; docs/approvals.md says what it is given.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GateCommand {
    /// The program: a path, or a name looked up in `PATH`.
    #[schemars(example = &"notify-send")]
    pub command: String,
    /// Its arguments.
    #[serde(default)]
    #[schemars(example = ["a call waits for approval"])]
    pub args: Vec<String>,
}

/// Whom to tell what becomes of calls that wait.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Webhook {
    /// Where to post.
    #[schemars(example = &"https://chat.example.com/hook")]
    pub url: At<String>,
    /// What each post is signed with (HMAC-SHA256); a reference to a secret.
    #[schemars(example = &"${env:HOOK_SECRET}")]
    pub secret: At<String>,
}
