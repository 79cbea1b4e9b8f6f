//! The form of the listener's keys at the top of the file. Checks no address.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::file::At;

/// The keys of the listener.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct ListenForm {
    /// Address of the published schema, for editors.
    #[serde(rename = "$schema")]
    pub schema: Option<String>,
    /// Address and port to listen on. Anything but loopback needs a `[[token]]`. Default: `127.0.0.1:7411`.
    #[schemars(example = "127.0.0.1:7411")]
    pub listen: Option<At<String>>,
    /// Host names by which clients may reach the gate, besides the loopback ones: without scheme and port.
    #[schemars(example = ["gate.example.com"])]
    pub allowed_hosts: Vec<At<String>>,
    /// `true`: a proxy on this machine hands on requests of others, and nobody counts as a caller from this machine. Needs a credential of
    /// every caller.
    pub behind_proxy: Option<At<bool>>,
}
