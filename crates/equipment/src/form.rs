//! The forms of `[device.NAME]`, `[device_template.NAME]` and `[device_group.NAME]`, as people write the sections. Does not try to reach a
//! device.

use std::collections::{BTreeMap, BTreeSet};

use config::Flaw;
use config::file::At;
use config::reading::FileReading;
use config::secret::SecretRef;
use jiff::tz::TimeZone;
use net_proto::role::{PathRule, RuleEffect, Window};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::dialect::DialectForm;
use crate::health::Health;
use crate::role::RoleSettings;
use crate::settings::{Backend, Confirmation, DeviceSettings, ListenSettings, SnmpAuth, SnmpPrivacy, SnmpSettings, WriterSettings};

/// The keys of network devices.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DeviceForm {
    /// Network devices, by the name in front of their tools: 1 to 63 of a-z, 0-9, `_` and `-`.
    pub(crate) device: BTreeMap<At<String>, Device>,
    /// Settings that devices share, by the name that their `template` says.
    pub(crate) device_template: BTreeMap<At<String>, Device>,
    /// Dialects of command lines, by the name that `dialect` of the devices says.
    pub(crate) dialect: BTreeMap<At<String>, DialectForm>,
    /// Bounds on the sessions with all devices that stand in groups.
    pub(crate) device_limits: LimitsForm,
    /// Groups of devices, by the name that `groups` of the devices says.
    pub(crate) device_group: BTreeMap<At<String>, DeviceGroup>,
}

/// Bounds on sessions with devices.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LimitsForm {
    /// Connections at a time over SSH, NETCONF included. Default: 256.
    #[schemars(range(min = 1, max = 60_000))]
    pub(crate) connections: Option<usize>,
    /// Logins under way at a time; a quarter of them is for devices that failed the last time. Default: 64.
    #[schemars(range(min = 1, max = 60_000))]
    pub(crate) logins: Option<usize>,
}

/// A group of devices.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DeviceGroup {
    /// A sentence about the group, for people.
    #[schemars(example = &"Routers at the edge")]
    pub(crate) description: Option<String>,
}

/// A network device, served by a process of Banyan, or a template for devices.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Device {
    /// Template with the settings that the device does not have itself.
    #[schemars(example = &"edge")]
    pub(crate) template: Option<At<String>>,
    /// Groups of the device, each with a section `[device_group.NAME]`.
    #[schemars(example = &["edge"])]
    pub(crate) groups: Vec<At<String>>,
    /// Way to the device. Default: `frr`, an FRR on this machine, or with `address` on a machine behind SSH.
    backend: Option<Backend>,
    /// Path space of FRR, as `vtysh -N` takes it.
    #[schemars(example = &"r1")]
    pathspace: Option<String>,
    /// Directory of `vtysh`. Default: `/usr/bin`.
    #[schemars(example = &"/usr/bin")]
    bindir: Option<String>,
    /// Control socket of BIRD, or socket of the database of Open vSwitch. Default: `/run/bird/bird.ctl` or `/run/openvswitch/db.sock`.
    #[schemars(example = &"/run/bird/bird.ctl")]
    socket: Option<String>,
    /// Configuration file of BIRD. Default: `/etc/bird/bird.conf`.
    #[schemars(example = &"/etc/bird/bird.conf")]
    file: Option<At<String>>,
    /// Host of a device that is reached over the network, with a port or without: 22 for `ssh` and `frr`, 830 for `netconf`, 161 for `snmp`.
    #[schemars(example = &"10.0.0.1")]
    address: Option<At<String>>,
    /// Name for the login; over SNMP the user of v3.
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
    /// Community of SNMP v2c, as a reference.
    #[schemars(example = &"${keyring:sw1}")]
    community: Option<At<String>>,
    /// Hash of the user of SNMP v3. Default: `sha`.
    auth: Option<SnmpAuth>,
    /// Password for the encryption of SNMP v3, as a reference. Without one, messages are signed only.
    #[schemars(example = &"${keyring:sw1-privacy}")]
    privacy_password: Option<At<String>>,
    /// Cipher of the user of SNMP v3. Default: `aes128`.
    privacy: Option<At<SnmpPrivacy>>,
    /// Community for changes, as a reference. Default: `community`.
    #[schemars(example = &"${keyring:sw1-write}")]
    write_community: Option<At<String>>,
    /// Name for the login that makes changes; over SNMP the user of v3. Default: `user`.
    #[schemars(example = &"netadm-write")]
    write_user: Option<String>,
    /// File of the private key for the login that makes changes, without a passphrase.
    #[schemars(example = &"~/.ssh/id_ed25519_write")]
    write_key: Option<At<String>>,
    /// Password of the user for changes, as a reference.
    #[schemars(example = &"${keyring:sw1-write}")]
    write_password: Option<At<String>>,
    /// Password for the encryption of changes, as a reference.
    #[schemars(example = &"${keyring:sw1-write-privacy}")]
    write_privacy_password: Option<At<String>>,
    /// Address of this machine that the device sends SNMP notifications to. They are taken with `community`, or from the v3 user.
    #[schemars(example = &"0.0.0.0:162")]
    traps: Option<At<String>>,
    /// Address of this machine that the device sends syslog to, over UDP and TCP.
    #[schemars(example = &"0.0.0.0:514")]
    syslog: Option<At<String>>,
    /// Addresses that the device sends from. Default: the one that it is reached at.
    #[schemars(example = &["10.0.0.1"])]
    sources: Vec<At<String>>,
    /// Dialect of a command line over SSH: `frr`, `ios`, `junos`, `vrp`, the name of a section `[dialect.NAME]`, or `file:` with the path of a
    /// file. Default: `frr`.
    #[schemars(example = &"ios")]
    pub(crate) dialect: Option<At<String>>,
    /// Time until the rollback of an unconfirmed change, unless the caller names a time. Default: `2m`.
    #[schemars(example = &"2m")]
    confirm_within: Option<At<String>>,
    /// Longest time that a caller may name. Default: `5m`.
    #[schemars(example = &"5m")]
    longest_window: Option<At<String>>,
    /// Origin of confirmations. Default: `caller`.
    confirmation: Option<Confirmation>,
    /// `true`: nothing is ever changed. Default: `false`.
    read_only: Option<bool>,
    /// `true`: the device is changed although nothing on the device would bring the old configuration back. Then only the deadline of Banyan
    /// restores the device, by sending the old configuration again, which needs Banyan alive and the device reachable. Default: `false`.
    accept_no_rollback: Option<bool>,
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
    /// YANG paths, by names of nodes without modules and keys. Where any is named, other paths are neither read nor edited.
    #[schemars(example = &["/interfaces"])]
    allow_paths: Vec<At<String>>,
    /// YANG paths that are neither read nor edited, nor is what stands above them as a whole.
    #[schemars(example = &["/system/radius"])]
    deny_paths: Vec<At<String>>,
    /// YANG paths. Where any is named, other paths are not edited.
    #[schemars(example = &["/interfaces/interface/description"])]
    allow_edit_paths: Vec<At<String>>,
    /// YANG paths that are not edited, nor is what stands above them as a whole.
    #[schemars(example = &["/interfaces/interface/enabled"])]
    deny_edit_paths: Vec<At<String>>,
    /// Maintenance windows: days, times and a time zone, which is UTC where none is named. Where any is named, changes begin in a window only.
    #[schemars(example = &["Sat 02:00-04:00 Europe/Vienna"])]
    windows: Vec<At<String>>,
    /// Rules for some callers, beside those above for everybody.
    roles: Vec<RoleSettings>,
    /// Most commands of a call. Default: 1000.
    #[schemars(range(min = 1))]
    max_bulk_edit: Option<usize>,
    /// Longest time for a command of the device. Default: `30s`.
    #[schemars(example = &"30s")]
    command_timeout: Option<At<String>>,
    /// Health checks: a healthy device passes them after a change, or the change is rolled back, and again before a confirmation.
    health: Vec<Health>,
}

impl Device {
    /// The device with what `template` says, where the device says nothing itself. Groups and denying rules of both hold.
    pub(crate) fn over(&self, template: &Self) -> Self {
        let own = self.clone();
        let both = |own: Vec<String>, shared: &[String]| [own, shared.to_vec()].concat();
        let either = |own: Vec<String>, shared: &[String]| if own.is_empty() { shared.to_vec() } else { own };
        let placed = |own: Vec<At<String>>, shared: Vec<At<String>>| if own.is_empty() { shared } else { own };
        let shared = template.clone();
        let groups: BTreeSet<At<String>> = own.groups.into_iter().chain(shared.groups).collect();
        Self {
            template: own.template,
            groups: groups.into_iter().collect(),
            backend: own.backend.or(shared.backend),
            pathspace: own.pathspace.or(shared.pathspace),
            bindir: own.bindir.or(shared.bindir),
            socket: own.socket.or(shared.socket),
            file: own.file.or(shared.file),
            address: own.address.or(shared.address),
            user: own.user.or(shared.user),
            password: own.password.or(shared.password),
            key: own.key.or(shared.key),
            host_key: own.host_key.or(shared.host_key),
            community: own.community.or(shared.community),
            auth: own.auth.or(shared.auth),
            privacy_password: own.privacy_password.or(shared.privacy_password),
            privacy: own.privacy.or(shared.privacy),
            write_community: own.write_community.or(shared.write_community),
            traps: own.traps.or(shared.traps),
            syslog: own.syslog.or(shared.syslog),
            sources: if own.sources.is_empty() { shared.sources } else { own.sources },
            write_user: own.write_user.or(shared.write_user),
            write_key: own.write_key.or(shared.write_key),
            write_password: own.write_password.or(shared.write_password),
            write_privacy_password: own.write_privacy_password.or(shared.write_privacy_password),
            dialect: own.dialect.or(shared.dialect),
            confirm_within: own.confirm_within.or(shared.confirm_within),
            longest_window: own.longest_window.or(shared.longest_window),
            confirmation: own.confirmation.or(shared.confirmation),
            read_only: own.read_only.or(shared.read_only),
            accept_no_rollback: own.accept_no_rollback.or(shared.accept_no_rollback),
            allow_commands: either(own.allow_commands, &shared.allow_commands),
            deny_commands: both(own.deny_commands, &shared.deny_commands),
            allow_lines: either(own.allow_lines, &shared.allow_lines),
            deny_lines: both(own.deny_lines, &shared.deny_lines),
            allow_paths: placed(own.allow_paths, shared.allow_paths),
            deny_paths: [own.deny_paths, shared.deny_paths].concat(),
            allow_edit_paths: placed(own.allow_edit_paths, shared.allow_edit_paths),
            deny_edit_paths: [own.deny_edit_paths, shared.deny_edit_paths].concat(),
            roles: [own.roles, shared.roles].concat(),
            windows: placed(own.windows, shared.windows),
            max_bulk_edit: own.max_bulk_edit.or(shared.max_bulk_edit),
            command_timeout: own.command_timeout.or(shared.command_timeout),
            health: if own.health.is_empty() { shared.health } else { own.health },
        }
    }

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
        self.roles.iter().for_each(|role| role.check(name, reading));
        self.check_health(confirm_within, name, reading);
        let backend = self.backend.unwrap_or_default();
        if backend == Backend::Snmp {
            self.check_snmp(name, reading);
        } else if !matches!(backend, Backend::Frr | Backend::Bird | Backend::Ovs) || self.address.is_some() {
            self.check_login(name, reading);
        }
        self.check_writers(backend, name, reading);
        DeviceSettings {
            backend,
            address: self.address.as_ref().map(|address| address.get().clone()),
            user: self.user.clone(),
            key: self.key.as_ref().map(|key| reading.path(key)),
            writer: self
                .write_user
                .clone()
                .filter(|_| backend != Backend::Snmp)
                .map(|user| WriterSettings { user, key: self.write_key.as_ref().map(|key| reading.path(key)) }),
            host_key: self.host_key.clone(),
            dialect: match (&self.dialect, backend) {
                (_, Backend::Bird) => "bird".to_owned(),
                (_, Backend::Ovs) => "ovs".to_owned(),
                (Some(dialect), _) => dialect.get().clone(),
                (None, _) => defaults.dialect,
            },
            pathspace: self.pathspace.clone(),
            bindir: self.bindir.clone(),
            socket: self.socket.clone(),
            file: self.file.as_ref().map(|file| reading.path(file)),
            confirm_within,
            longest_window,
            confirmation: self.confirmation.unwrap_or_default(),
            read_only: self.read_only.unwrap_or_default(),
            groups: self.groups.iter().map(|group| group.get().clone()).collect(),
            accept_no_rollback: self.accept_no_rollback.unwrap_or_default(),
            allow_commands: self.allow_commands.clone(),
            deny_commands: self.deny_commands.clone(),
            allow_lines: self.allow_lines.clone(),
            deny_lines: self.deny_lines.clone(),
            allow_paths: paths(&self.allow_paths, reading),
            deny_paths: paths(&self.deny_paths, reading),
            allow_edit_paths: paths(&self.allow_edit_paths, reading),
            deny_edit_paths: paths(&self.deny_edit_paths, reading),
            roles: self.roles.clone(),
            windows: windows(&self.windows, reading),
            max_bulk_edit: self.max_bulk_edit.unwrap_or(defaults.max_bulk_edit),
            command_timeout,
            health: self.health.clone(),
            snmp: SnmpSettings {
                auth: self.auth.unwrap_or_default(),
                privacy: self.privacy.as_ref().map(|privacy| *privacy.get()).unwrap_or_default(),
                write_user: self.write_user.clone().filter(|_| backend == Backend::Snmp),
            },
            listen: self.listening(name, reading),
            ..defaults
        }
    }

    /// References to the secrets, by their keys.
    pub(crate) fn secrets(&self, name: &str, reading: &mut FileReading<'_>) -> Vec<(&'static str, SecretRef)> {
        let given = [
            ("password", &self.password),
            ("privacy_password", &self.privacy_password),
            ("community", &self.community),
            ("write_password", &self.write_password),
            ("write_privacy_password", &self.write_privacy_password),
            ("write_community", &self.write_community),
        ];
        let given = given.into_iter().filter_map(|(key, secret)| secret.as_ref().map(|secret| (key, secret)));
        given.map(|(key, secret)| (key, reading.secret(secret, &format!("device.{name}.{key}")))).collect()
    }

    fn listening(&self, name: &At<String>, reading: &mut FileReading<'_>) -> ListenSettings {
        let mut address = |given: &Option<At<String>>| {
            let given = given.as_ref()?;
            let read = given.get().parse().ok();
            if read.is_none() {
                let flaw = Flaw::new(given.span(), format!("`{}` is no address with a port", given.get()));
                reading.refuse(flaw.help("for example \"0.0.0.0:162\""));
            }
            read
        };
        let (traps, syslog) = (address(&self.traps), address(&self.syslog));
        let mut sources = Vec::new();
        for source in &self.sources {
            match source.get().parse() {
                Ok(address) => sources.push(address),
                Err(_) => {
                    reading.refuse(Flaw::new(source.span(), format!("`{}` is no address", source.get())).help("for example \"10.0.0.1\""))
                }
            }
        }
        let has_user = self.backend == Some(Backend::Snmp) && self.user.is_some();
        if traps.is_some() && self.community.is_none() && !has_user {
            let flaw = Flaw::new(name.span(), "notifications are taken with a community only, or from the user of a device over SNMP");
            reading.refuse(flaw.help("add `community`"));
        }
        ListenSettings { traps, syslog, sources }
    }

    fn check_health(&self, confirm_within: u64, name: &At<String>, reading: &mut FileReading<'_>) {
        for health in &self.health {
            if let Some(flaw) = health.flaw() {
                reading.refuse(Flaw::new(name.span(), flaw));
            }
            if health.within >= confirm_within {
                let (command, within) = (&health.command, health.within);
                let flaw = format!("the health check `{command}` may take {within} s, and a change is taken back after {confirm_within} s");
                reading.refuse(Flaw::new(name.span(), flaw).help("shorten `within`, or raise `confirm_within`"));
            }
        }
    }

    fn check_snmp(&self, name: &At<String>, reading: &mut FileReading<'_>) {
        let is_v3 = self.user.is_some();
        let missing = [
            ("address", self.address.is_none()),
            ("community", !is_v3 && self.community.is_none()),
            ("password", is_v3 && self.password.is_none()),
            ("write_password", self.write_user.is_some() && self.write_password.is_none()),
        ];
        for (key, _) in missing.into_iter().filter(|(_, is_missing)| *is_missing) {
            let flaw = Flaw::new(name.span(), format!("a device that is reached over SNMP needs `{key}`"));
            reading.refuse(flaw.help(if key == "community" {
                "for v2c, or `user` and `password` for v3"
            } else {
                "add it to this section"
            }));
        }
        if let Some(privacy) = &self.privacy
            && *privacy.get() == SnmpPrivacy::Aes256
            && self.auth.unwrap_or_default() == SnmpAuth::Sha
        {
            let flaw = Flaw::new(privacy.span(), "a key for `aes256` is longer than a hash of `sha`");
            reading.refuse(flaw.help("write `auth = \"sha256\"`, or `privacy = \"aes128\"`"));
        }
    }

    /// Refuses credentials for changes that nothing would use: whoever wrote them takes reads and changes for separated.
    fn check_writers(&self, backend: Backend, name: &At<String>, reading: &mut FileReading<'_>) {
        let given = [
            ("write_user", self.write_user.is_some()),
            ("write_key", self.write_key.is_some()),
            ("write_password", self.write_password.is_some()),
            ("write_privacy_password", self.write_privacy_password.is_some()),
            ("write_community", self.write_community.is_some()),
        ];
        let named = |keys: &[&str]| {
            let all = given.iter().filter(|(key, is_given)| *is_given && keys.contains(key)).map(|(key, _)| format!("`{key}`"));
            Some(all.collect::<Vec<_>>().join(", ")).filter(|keys| !keys.is_empty())
        };
        let has_login = matches!(backend, Backend::Ssh | Backend::Netconf) || backend == Backend::Frr && self.address.is_some();
        let (useless, help) = if backend == Backend::Snmp {
            self.useless_over_snmp(named)
        } else if !has_login {
            let all = ["write_user", "write_key", "write_password", "write_privacy_password", "write_community"];
            (named(&all), "nobody logs in to a device on this machine: remove them")
        } else if let Some(keys) = named(&["write_privacy_password", "write_community"]) {
            (Some(keys), "only a device over SNMP has them: write `write_user` with `write_password` or `write_key`")
        } else if self.write_user.is_none() {
            (named(&["write_key", "write_password"]), "add `write_user`, or remove them")
        } else {
            (None, "")
        };
        if let Some(keys) = useless {
            let flaw = Flaw::new(name.span(), format!("credentials for changes would do nothing on this device: {keys}"));
            reading.refuse(flaw.help(help));
        }
    }

    /// Credentials for changes that a device over SNMP does not use, with advice.
    fn useless_over_snmp(&self, named: impl Fn(&[&str]) -> Option<String>) -> (Option<String>, &'static str) {
        if let Some(keys) = named(&["write_key"]) {
            return (Some(keys), "a device over SNMP has no keys: write `write_password`");
        }
        if self.write_user.is_some() {
            return (named(&["write_community"]), "changes go by `write_user`: remove one of both");
        }
        let without_user = named(&["write_password", "write_privacy_password"]);
        let beside_user = named(&["write_community"]).filter(|_| self.user.is_some());
        let help = if without_user.is_some() { "add `write_user`, or remove them" } else { "`user` is of v3: write `write_user`" };
        (without_user.or(beside_user), help)
    }

    fn check_login(&self, name: &At<String>, reading: &mut FileReading<'_>) {
        let missing = [
            ("address", self.address.is_none()),
            ("user", self.user.is_none()),
            ("password", self.password.is_none() && self.key.is_none()),
            ("write_password", self.write_user.is_some() && self.write_password.is_none() && self.write_key.is_none()),
        ];
        for (key, _) in missing.into_iter().filter(|(_, is_missing)| *is_missing) {
            let flaw = Flaw::new(name.span(), format!("a device that is reached over SSH needs `{key}`"));
            reading.refuse(flaw.help(match key {
                "password" => "or `key`, the file of a private key",
                "write_password" => "or `write_key`, the file of a private key for `write_user`",
                _ => "add it to this section",
            }));
        }
    }
}

/// Reads rules on YANG paths.
fn paths(texts: &[At<String>], reading: &mut FileReading<'_>) -> Vec<String> {
    for text in texts {
        // A rule that seems to speak of one entry or one module, and holds for all of them, would allow more than it says.
        if text.get().contains(['[', ':']) || PathRule::new(RuleEffect::Deny, false, text.get()).is_none() {
            let flaw = Flaw::new(text.span(), format!("`{}` is no path for a rule", text.get()));
            reading.refuse(flaw.help("write names of nodes, without modules and keys, for example \"/interfaces/interface\""));
        }
    }
    texts.iter().map(|text| text.get().clone()).collect()
}

/// Reads maintenance windows.
fn windows(texts: &[At<String>], reading: &mut FileReading<'_>) -> Vec<String> {
    for text in texts {
        let read = Window::read(text.get()).and_then(|window| {
            TimeZone::get(&window.zone).map_err(|_| format!("`{}` is no time zone that this machine knows", window.zone))
        });
        if let Err(why) = read {
            reading.refuse(Flaw::new(text.span(), why).help("for example \"Sat 02:00-04:00 Europe/Vienna\""));
        }
    }
    texts.iter().map(|text| text.get().clone()).collect()
}
