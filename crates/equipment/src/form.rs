//! The form of `[device.NAME]`, as people write the section. Does not try to reach a device.

use std::collections::BTreeMap;

use config::Flaw;
use config::file::At;
use config::reading::FileReading;
use config::secret::SecretRef;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::settings::{Backend, CommandLine, Confirmation, DeviceSettings, Health};

/// The key of network devices.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DeviceForm {
    /// Network devices, by the name in front of their tools: 1 to 63 of a-z, 0-9, `_` and `-`.
    pub(crate) device: BTreeMap<At<String>, Device>,
}

/// A network device, served by a process of Banyan.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Device {
    /// Way to the device. Default: `frr`, an FRR on this machine.
    backend: Option<Backend>,
    /// Path space of FRR, as `vtysh -N` takes it.
    #[schemars(example = &"r1")]
    pathspace: Option<String>,
    /// Directory of `vtysh`. Default: `/usr/bin`.
    #[schemars(example = &"/usr/bin")]
    bindir: Option<String>,
    /// Host of a device that is reached over SSH, with a port or without: 22 for `ssh`, 830 for `netconf`.
    #[schemars(example = &"10.0.0.1")]
    address: Option<At<String>>,
    /// Name for the login.
    #[schemars(example = &"netadm")]
    user: Option<String>,
    /// Password for the login, as a reference: `${file:…}`, `${env:…}` or `${keyring:…}`.
    #[schemars(example = &"${keyring:r1}")]
    password: Option<At<String>>,
    /// File of the private key for the login, without a passphrase.
    #[schemars(example = &"~/.ssh/id_ed25519")]
    key: Option<At<String>>,
    /// Accepted fingerprint of the host key, as `ssh-keygen -l` shows it. Without one, no key is accepted.
    #[schemars(example = &"SHA256:uNiVztksCsDhcc0u9e8BrrQXVUpHgvrLQHFjDIWVJrs")]
    host_key: Option<String>,
    /// Dialect of a command line over SSH. Default: `frr`.
    dialect: Option<CommandLine>,
    /// Time until the rollback of an unconfirmed change, unless the caller names a time. Default: `2m`.
    #[schemars(example = &"2m")]
    confirm_within: Option<At<String>>,
    /// Longest time that a caller may name. Default: `5m`.
    #[schemars(example = &"5m")]
    longest_window: Option<At<String>>,
    /// Origin of confirmations. Default: `caller`.
    confirmation: Option<Confirmation>,
    /// `true`: nothing is ever changed. Default: `false`.
    read_only: bool,
    /// `true`: the device is changed although nothing on the device would bring the old configuration back. Then only the deadline of Banyan
    /// restores the device, by sending the old configuration again, which needs Banyan alive and the device reachable. Default: `false`.
    accept_no_rollback: bool,
    /// First words of commands that may be run although they are no known reads, each word in full. Where any is named, reads that none names
    /// are refused.
    #[schemars(example = &["show ip route"])]
    allow_commands: Vec<String>,
    /// First words of commands that are refused, however they are shortened.
    #[schemars(example = &["show running-config"])]
    deny_commands: Vec<String>,
    /// First words of lines of the configuration. Where any is named, other lines are refused.
    #[schemars(example = &["interface", "description"])]
    allow_lines: Vec<String>,
    /// First words of lines of the configuration that are refused, however they are shortened.
    #[schemars(example = &["router bgp"])]
    deny_lines: Vec<String>,
    /// Most commands of a call. Default: 1000.
    #[schemars(range(min = 1))]
    max_bulk_edit: Option<usize>,
    /// Longest time for a command of the device. Default: `30s`.
    #[schemars(example = &"30s")]
    command_timeout: Option<At<String>>,
    /// Commands with a text that the output must hold after a change; otherwise the change is rolled back at once.
    health: Vec<Health>,
}

impl Device {
    pub(crate) fn settings(&self, name: &At<String>, reading: &mut FileReading<'_>) -> DeviceSettings {
        let defaults = DeviceSettings::new(name.get());
        let mut seconds =
            |text: &Option<At<String>>, default: u64| reading.duration(text.as_ref()).map_or(default, |time| time.as_secs().max(1));
        let longest_window = seconds(&self.longest_window, defaults.longest_window);
        let confirm_within = seconds(&self.confirm_within, defaults.confirm_within.min(longest_window));
        let command_timeout = seconds(&self.command_timeout, defaults.command_timeout);
        if let Some(within) = self.confirm_within.as_ref().filter(|_| confirm_within > longest_window) {
            let flaw = Flaw::new(within.span(), "`confirm_within` is longer than `longest_window`");
            reading.refuse(flaw.help("shorten it, or raise `longest_window`"));
        }
        let backend = self.backend.unwrap_or_default();
        if backend != Backend::Frr {
            self.check_login(name, reading);
        }
        DeviceSettings {
            backend,
            address: self.address.as_ref().map(|address| address.get().clone()),
            user: self.user.clone(),
            key: self.key.as_ref().map(|key| reading.path(key)),
            host_key: self.host_key.clone(),
            dialect: self.dialect.unwrap_or_default(),
            pathspace: self.pathspace.clone(),
            bindir: self.bindir.clone(),
            confirm_within,
            longest_window,
            confirmation: self.confirmation.unwrap_or_default(),
            read_only: self.read_only,
            accept_no_rollback: self.accept_no_rollback,
            allow_commands: self.allow_commands.clone(),
            deny_commands: self.deny_commands.clone(),
            allow_lines: self.allow_lines.clone(),
            deny_lines: self.deny_lines.clone(),
            max_bulk_edit: self.max_bulk_edit.unwrap_or(defaults.max_bulk_edit),
            command_timeout,
            health: self.health.clone(),
            ..defaults
        }
    }

    /// Reference to the password.
    pub(crate) fn password(&self, name: &str, reading: &mut FileReading<'_>) -> Option<SecretRef> {
        self.password.as_ref().map(|password| reading.secret(password, &format!("device.{name}.password")))
    }

    fn check_login(&self, name: &At<String>, reading: &mut FileReading<'_>) {
        let missing = [
            ("address", self.address.is_none()),
            ("user", self.user.is_none()),
            ("password", self.password.is_none() && self.key.is_none()),
        ];
        for (key, _) in missing.into_iter().filter(|(_, is_missing)| *is_missing) {
            let flaw = Flaw::new(name.span(), format!("a device that is reached over SSH needs `{key}`"));
            reading.refuse(flaw.help(if key == "password" { "or `key`, the file of a private key" } else { "add it to this section" }));
        }
    }
}
