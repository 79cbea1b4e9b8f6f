//! DeviceSettings of a device, as handed to the server process. Holds no secret.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use std::path::PathBuf;

use crate::health::Health;
use crate::role::RoleSettings;

/// Longest window of a commit by default, in seconds.
const WINDOW: u64 = 300;

/// A device and the way to the device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceSettings {
    pub name: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    #[serde(default)]
    pub backend: Backend,
    /// Path space of FRR (`vtysh -N`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pathspace: Option<String>,
    /// Directory of `vtysh`, by default `/usr/bin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bindir: Option<String>,
    /// Host of the device, with a port or without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Name for the login.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// File of the private key for the login.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
    /// Login for changes; none: the one for reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer: Option<WriterSettings>,
    /// Accepted fingerprint of the host key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_key: Option<String>,
    /// Name of the dialect of the command line: one built in, `file:` with a path, or the name of `dialect_table`.
    #[serde(default = "dialect")]
    pub dialect: String,
    /// Dialect that stands in the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect_table: Option<serde_json::Value>,
    /// Seconds of a window by default.
    #[serde(default = "confirm_within")]
    pub confirm_within: u64,
    /// Longest window for callers, in seconds.
    #[serde(default = "window")]
    pub longest_window: u64,
    /// Origin of confirmations.
    #[serde(default)]
    pub confirmation: Confirmation,
    /// Control socket of a program on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
    /// Configuration file of a program on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Nothing is ever changed.
    #[serde(default)]
    pub read_only: bool,
    /// The operator accepts changes of a device that has no way back of its own.
    #[serde(default)]
    pub accept_no_rollback: bool,
    /// Rules on commands and on lines of the configuration, each the first words of a command.
    #[serde(default)]
    pub allow_commands: Vec<String>,
    #[serde(default)]
    pub deny_commands: Vec<String>,
    #[serde(default)]
    pub allow_lines: Vec<String>,
    #[serde(default)]
    pub deny_lines: Vec<String>,
    /// Rules on YANG paths, for all and for edits alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_paths: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny_paths: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_edit_paths: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny_edit_paths: Vec<String>,
    /// Rules for some callers; none: all callers are alike.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<RoleSettings>,
    /// Maintenance windows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<String>,
    /// Most commands or edits of a call.
    #[serde(default = "max_bulk_edit")]
    pub max_bulk_edit: usize,
    /// Seconds for a command of the device.
    #[serde(default = "command_timeout")]
    pub command_timeout: u64,
    /// Health checks after a change.
    #[serde(default)]
    pub health: Vec<Health>,
    #[serde(default, skip_serializing_if = "SnmpSettings::is_default")]
    pub snmp: SnmpSettings,
    #[serde(default, skip_serializing_if = "ListenSettings::is_default")]
    pub listen: ListenSettings,
}

/// Login over SSH for changes, without its password.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriterSettings {
    pub user: String,
    /// File of the private key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
}

/// SNMP of a device, without secrets. Without a user it is v2c, with one v3.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnmpSettings {
    #[serde(default)]
    pub auth: SnmpAuth,
    #[serde(default)]
    pub privacy: SnmpPrivacy,
    /// User for changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_user: Option<String>,
}

impl SnmpSettings {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Addresses at which messages of a device arrive, and those that they come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListenSettings {
    /// Address for SNMP notifications.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traps: Option<std::net::SocketAddr>,
    /// Address for syslog, over UDP and TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syslog: Option<std::net::SocketAddr>,
    /// Addresses of the device; none: the one that it is reached at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<std::net::IpAddr>,
}

impl ListenSettings {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Hash behind the signatures of a v3 user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SnmpAuth {
    /// SHA-1, which all devices have.
    #[default]
    Sha,
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

/// Cipher of a v3 user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SnmpPrivacy {
    /// AES with keys of 128 bits.
    #[default]
    Aes128,
    /// AES with keys of 256 bits, with SHA-256 or more.
    Aes256,
}

/// A group of devices, as handed to the server process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupSettings {
    pub name: String,
    /// Sentence for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Names of the devices, in order.
    pub devices: Vec<String>,
}

/// Bounds on sessions with devices, of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceLimits {
    pub connections: usize,
    /// Logins under way at a time.
    pub logins: usize,
}

impl Default for DeviceLimits {
    fn default() -> Self {
        Self { connections: 256, logins: 64 }
    }
}

/// The way to a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// FRR through `vtysh`, on this machine or on the one of the address.
    #[default]
    Frr,
    /// A command line over SSH.
    Ssh,
    /// BIRD on this machine, through `birdc`.
    Bird,
    /// Open vSwitch on this machine, through its database.
    Ovs,
    /// NETCONF over SSH.
    Netconf,
    /// SNMP v2c or v3.
    Snmp,
}

/// Origin of confirmations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Confirmation {
    /// A caller of the tool.
    #[default]
    Caller,
    /// Somebody at the command line only (`banyan device confirm`).
    Person,
}

fn dialect() -> String {
    "frr".to_owned()
}

const fn confirm_within() -> u64 {
    120
}

const fn window() -> u64 {
    WINDOW
}

const fn max_bulk_edit() -> usize {
    1000
}

const fn command_timeout() -> u64 {
    30
}

impl DeviceSettings {
    /// Says where rules on paths stand on a device that has no paths.
    pub(crate) fn notice(&self) -> Option<String> {
        let has_rules = |lists: [&Vec<String>; 4]| lists.iter().any(|list| !list.is_empty());
        let own = [&self.allow_paths, &self.deny_paths, &self.allow_edit_paths, &self.deny_edit_paths];
        let of_role = |role: &RoleSettings| has_rules([&role.allow_paths, &role.deny_paths, &role.allow_edit_paths, &role.deny_edit_paths]);
        if !has_rules(own) && !self.roles.iter().any(of_role) {
            return None;
        }
        let meaning = match self.backend {
            Backend::Netconf | Backend::Snmp => return None,
            Backend::Ovs | Backend::Bird => "what they could mean is refused as a whole",
            Backend::Frr | Backend::Ssh => "they do not hold for commands and lines",
        };
        let name = &self.name;
        Some(format!(
            "[device.{name}]: rules on paths stand here, and the device has no paths: {meaning}. Write `deny_lines` and `deny_commands` instead"
        ))
    }

    /// A device with all defaults.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            groups: Vec::new(),
            backend: Backend::default(),
            pathspace: None,
            bindir: None,
            address: None,
            user: None,
            key: None,
            writer: None,
            host_key: None,
            dialect: dialect(),
            dialect_table: None,
            confirm_within: confirm_within(),
            longest_window: window(),
            confirmation: Confirmation::default(),
            socket: None,
            file: None,
            read_only: false,
            accept_no_rollback: false,
            allow_commands: Vec::new(),
            deny_commands: Vec::new(),
            allow_lines: Vec::new(),
            deny_lines: Vec::new(),
            allow_paths: Vec::new(),
            deny_paths: Vec::new(),
            allow_edit_paths: Vec::new(),
            deny_edit_paths: Vec::new(),
            roles: Vec::new(),
            windows: Vec::new(),
            max_bulk_edit: max_bulk_edit(),
            command_timeout: command_timeout(),
            health: Vec::new(),
            snmp: SnmpSettings::default(),
            listen: ListenSettings::default(),
        }
    }

    /// The same device with the login for changes, where there is one.
    pub fn writing(&self) -> Option<Self> {
        let WriterSettings { user, key } = self.writer.clone()?;
        Some(Self { user: Some(user), key, writer: None, ..self.clone() })
    }

    /// Reads the argument of `banyan device serve`.
    ///
    /// # Errors
    /// The text is no JSON of settings.
    pub fn read(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| format!("these are no settings of a device: {error}"))
    }
}
