//! The form of `[approvals]`: calls that wait for approval, and receivers of news. Checks no text.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::file::At;

/// The keys of approvals.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct GateForm {
    /// Calls that wait for somebody to agree. Without the section, no call waits by the word of this gate.
    pub approvals: Option<Gate>,
    /// The former name of `[approvals]`, which is still read.
    #[schemars(extend("deprecated" = true))]
    pub gate: Option<At<Gate>>,
}

/// Calls that wait for somebody to agree, and receivers of news about them.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Gate {
    /// Calls that wait. Default: `off`.
    pub mode: GateMode,
    /// Other modes for single mounts, by name.
    #[schemars(with = "BTreeMap<String, GateMode>", example = BTreeMap::from([("notes", "off")]))]
    pub mounts: BTreeMap<At<String>, GateMode>,
    /// Previews of calls that wait, by their own servers. Default: `offered`.
    pub preview: GatePreview,
    /// Other demands for single mounts, by name.
    #[schemars(with = "BTreeMap<String, GatePreview>", example = BTreeMap::from([("router", "required")]))]
    pub previews: BTreeMap<At<String>, GatePreview>,
    /// Number of different people who have to agree. Default: 1.
    #[schemars(range(min = 1, max = 9))]
    pub approvals: Option<At<u8>>,
    /// Time for agreeing. Default: `5m`.
    #[schemars(example = "5m")]
    pub expires: Option<At<String>>,
    /// Time for which a caller without progress is kept waiting, before the answer is to come back later. Default: `0s`.
    #[schemars(example = "20s")]
    pub wait: Option<At<String>>,
    /// Address at which people approve; passkeys belong to the host. Default: the gate's own port on `localhost`.
    #[schemars(example = "https://gate.example.com")]
    pub url: Option<At<String>>,
    /// Approval services and policy engines with trusted signatures, by name.
    #[schemars(with = "BTreeMap<String, GateService>")]
    pub service: BTreeMap<At<String>, GateService>,
    /// Whom to tell.
    pub webhook: Vec<Webhook>,
    /// Programs for news: by a notice on the desktop, by mail.
    pub command: Vec<GateCommand>,
}

/// Calls that wait for somebody to agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum GateMode {
    /// None.
    #[default]
    Off,
    /// Calls with lasting changes, as far as their tools say so.
    Irreversible,
    /// Calls with changes, as far as their tools say so.
    Mutable,
    /// All calls but of tools with `mutable = false` in `[mount.NAME.tools]`, whatever a server says.
    Unlisted,
}

/// Previews of calls that wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum GatePreview {
    /// No server is asked for any.
    Off,
    /// People see the preview of a tool that offers one.
    #[default]
    Offered,
    /// A call whose preview can't be had is refused.
    Required,
}

/// An approval service, or a policy engine.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GateService {
    /// The `iss` of the service's tokens.
    #[schemars(example = &"https://desk.example.com")]
    pub issuer: String,
    /// File with the service's keys: a JWK, a JWK set or PEM, of Ed25519 or P-256. Relative to this file.
    #[schemars(example = &"desk.pem")]
    pub keys: At<String>,
    /// The `aud` of the service's tokens for this gate. Default: `resource`.
    pub audience: Option<String>,
}

/// A program to start at news of a waiting call; docs/approvals.md describes the input.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GateCommand {
    /// The program: a path, or a name looked up in `PATH`.
    #[schemars(example = &"notify-send")]
    pub command: String,
    /// Arguments of the program.
    #[serde(default)]
    #[schemars(example = ["a call waits for approval"])]
    pub args: Vec<String>,
}

/// A receiver of news about waiting calls.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Webhook {
    /// Address to post to.
    #[schemars(example = &"https://chat.example.com/hook")]
    pub url: At<String>,
    /// Secret for the signature of each post (HMAC-SHA256); a reference.
    #[schemars(example = &"${env:HOOK_SECRET}")]
    pub secret: At<String>,
}
