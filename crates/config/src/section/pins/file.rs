//! The section `[pins]`: what is done with definitions that nobody has looked at. What the texts say is not checked here.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::file::At;

/// The key of pinned definitions.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct PinsForm {
    /// What is done with definitions that nobody has looked at.
    pub pins: Pins,
}

/// What is done with definitions that nobody has looked at.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Pins {
    /// Of servers that this file and clients' files name. Default: `pin`.
    pub mode: Option<PinMode>,
    /// Of servers that register themselves. Default: `pin`.
    pub registered: Option<PinMode>,
    /// Of other gates, however they came: they pin what stands behind them. Default: `trust`.
    pub gates: Option<PinMode>,
    /// Of single resources, which come and go with a server's data. Default: as all else of their server.
    pub resources: Option<PinMode>,
    /// Other modes for single mounts, by name.
    #[schemars(with = "BTreeMap<String, PinMode>", example = BTreeMap::from([("notes", "trust")]))]
    pub mounts: BTreeMap<At<String>, PinMode>,
}

/// What is done with a definition that nobody has looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PinMode {
    /// The first waits as well.
    Hold,
    /// The first is taken and remembered; another one waits.
    Pin,
    /// All are taken, and none is remembered.
    Trust,
}
