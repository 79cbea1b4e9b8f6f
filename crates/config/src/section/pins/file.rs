//! The form of `[pins]`: treatment of new definitions. Pins none.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::file::At;

/// The key of pinned definitions.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct PinsForm {
    /// Treatment of definitions that nobody has looked at.
    pub pins: Pins,
}

/// Treatment of definitions that nobody has looked at.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Pins {
    /// Mode for servers of this file and of clients' files. Default: `pin`.
    pub mode: Option<PinMode>,
    /// Mode for registered servers. Default: `pin`.
    pub registered: Option<PinMode>,
    /// Mode for other gates, mounted or registered; a gate pins its own servers. Default: `trust`.
    pub gates: Option<PinMode>,
    /// Mode for single resources, since resources come and go with a server's data. Default: as all else of their server.
    pub resources: Option<PinMode>,
    /// Other modes for single mounts, by name.
    #[schemars(with = "BTreeMap<String, PinMode>", example = BTreeMap::from([("notes", "trust")]))]
    pub mounts: BTreeMap<At<String>, PinMode>,
}

/// Treatment of a definition that nobody has looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PinMode {
    /// The first waits as well.
    Hold,
    /// The first is taken and remembered; another definition waits.
    Pin,
    /// All are taken, and none is remembered.
    Trust,
}
