//! The section `[device.NAME]` of the configuration: a network device becomes a mount with a process for the device. Reaches no device,
//! so the gate needs no SSH to read a configuration.

mod dialect;
mod form;
mod health;
mod naming;
mod role;
mod secrets;
mod settings;

use std::collections::BTreeMap;
use std::sync::Arc;

use banyan_model::Segment;
use config::diff::Change;
use config::file::At;
use config::reading::FileReading;
use config::resolved::{Config, Mount, MountGroup, Process, Transport};
use config::secret::SecretRef;
use config::{Flaw, Section, suggest};
use form::{Device, DeviceForm};

pub use health::Health;
pub use naming::qualified;
pub use role::RoleSettings;
pub use secrets::DeviceSecrets;
pub use settings::{
    Backend, Confirmation, DeviceLimits, DeviceSettings, GroupSettings, ListenSettings, SnmpAuth, SnmpPrivacy, SnmpSettings,
};

/// Network devices: `[device.NAME]`.
#[derive(Debug)]
pub struct DeviceSection;

/// The devices of a configuration and their groups, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Devices {
    pub all: BTreeMap<String, DeviceSettings>,
    /// Groups, with a sentence for people.
    pub groups: BTreeMap<String, Option<String>>,
}

impl Section for DeviceSection {
    type Form = DeviceForm;

    fn resolve(&self, form: &Self::Form, reading: &mut FileReading<'_>, config: &mut Config) {
        let mut devices = Devices::default();
        let limits = limits(form);
        for (name, template) in &form.device_template {
            check_template(name, template, reading);
        }
        for (name, group) in &form.device_group {
            devices.groups.insert(name.get().clone(), group.description.clone());
        }
        let mut dialects = BTreeMap::new();
        for (name, dialect) in &form.dialect {
            match dialect.checked(name.get()) {
                Ok(table) => drop(dialects.insert(name.get().clone(), table)),
                Err(why) => reading.refuse(Flaw::new(name.span(), why).help("docs/devices.md says what a dialect holds")),
            }
        }
        for (name, device) in &form.device {
            let device = with_template(device, form, reading);
            for group in &device.groups {
                reading.known("device_group", group, "add a section [device_group.NAME] for the group");
            }
            let segment = segment(name, "device", reading);
            if config.mounts.contains_key(&segment) {
                let flaw = Flaw::new(name.span(), format!("there is a mount `{segment}` as well"));
                reading.refuse(flaw.help("give one of the two another name"));
                continue;
            }
            let mut settings = device.settings(name, reading);
            if let Some(dialect) = &device.dialect {
                dialect::choose(dialect, &mut settings, &dialects, reading);
            }
            mount(segment, process(&settings, device.secrets(name.get(), reading), limits), None, config);
            devices.all.insert(name.get().clone(), settings);
        }
        for (name, group) in &form.device_group {
            mount_group((name, group.description.clone()), (&devices, limits), reading, config);
        }
        config.values.set(devices);
    }

    fn check(&self, form: &Self::Form, config: &Config, reading: &mut FileReading<'_>) {
        let Some(devices) = config.values.get::<Devices>() else { return };
        for (name, settings) in form.device.keys().filter_map(|name| Some((name, devices.all.get(name.get())?))) {
            naming::check_tokens(name, settings.roles.iter().flat_map(|role| &role.callers), config, reading);
        }
    }

    fn notices(&self, config: &Config) -> Vec<String> {
        let devices = config.values.get::<Devices>().into_iter().flat_map(|devices| devices.all.values());
        devices.filter_map(DeviceSettings::notice).collect()
    }

    /// A changed device shows as a changed mount.
    fn compare(&self, _old: &Config, _new: &Config) -> Vec<Change> {
        Vec::new()
    }
}

fn segment(name: &At<String>, key: &str, reading: &mut FileReading<'_>) -> Segment {
    Segment::new(name.get()).unwrap_or_else(|bad| {
        let near = suggest::segment(name.get());
        reading.refuse(Flaw::new(name.span(), bad.to_string()).help(format!("for example [{key}.{near}]")));
        near
    })
}

/// Mounts the server that reads from all devices of a group.
fn mount_group(
    (name, description): (&At<String>, Option<String>),
    (devices, limits): (&Devices, DeviceLimits),
    reading: &mut FileReading<'_>,
    config: &mut Config,
) {
    let segment = segment(name, "device_group", reading);
    if config.mounts.contains_key(&segment) {
        let flaw = Flaw::new(name.span(), format!("there is a mount or device `{segment}` as well"));
        return reading.refuse(flaw.help("give one of the two another name"));
    }
    let members = devices.all.values().filter(|device| device.groups.contains(name.get())).map(|device| device.name.clone());
    let settings = GroupSettings { name: name.get().clone(), description, devices: members.collect() };
    let process = serving("--group", &serde_json::to_string(&settings).unwrap_or_default(), BTreeMap::new(), Some(limits));
    let members = settings.devices.iter().filter_map(|name| Segment::new(name).ok()).collect();
    mount(segment, process, Some(MountGroup { members, argument: "devices" }), config);
}

/// Mounts a server of ours, which learns from the gate who calls.
fn mount(segment: Segment, process: Process, stands_for: Option<MountGroup>, config: &mut Config) {
    let mount = Mount::new(segment.clone(), Transport::Stdio(process), "banyan.toml");
    config.mounts.insert(segment, Arc::new(Mount { stands_for, is_told_callers: true, ..mount }));
}

/// A device with what its template says.
fn with_template(device: &Device, form: &DeviceForm, reading: &mut FileReading<'_>) -> Device {
    let Some(name) = &device.template else { return device.clone() };
    if !reading.known("device_template", name, "add a section [device_template.NAME] for what the devices share") {
        return device.clone();
    }
    let template = form.device_template.iter().find(|(known, _)| known.get() == name.get());
    template.map_or_else(|| device.clone(), |(_, template)| device.over(template))
}

fn check_template(name: &At<String>, template: &Device, reading: &mut FileReading<'_>) {
    if let Some(other) = &template.template {
        let flaw = Flaw::new(other.span(), format!("the template `{}` has a template", name.get()));
        reading.refuse(flaw.help("write what it would bring into this template"));
    }
    for group in &template.groups {
        reading.known("device_group", group, "add a section [device_group.NAME] for the group");
    }
}

/// The server process of a device, or of all devices that stand in groups.
fn process(settings: &DeviceSettings, given: Vec<(&'static str, SecretRef)>, limits: DeviceLimits) -> Process {
    let text = serde_json::to_string(settings).unwrap_or_default();
    serving("--settings", &text, secrets::variables(given), Some(limits).filter(|_| !settings.groups.is_empty()))
}

fn limits(form: &DeviceForm) -> DeviceLimits {
    let (given, defaults) = (&form.device_limits, DeviceLimits::default());
    DeviceLimits { connections: given.connections.unwrap_or(defaults.connections), logins: given.logins.unwrap_or(defaults.logins) }
}

/// The same program again, for a device or a group; with `limits` in one process with the others.
fn serving(kind: &str, settings: &str, env: BTreeMap<String, SecretRef>, limits: Option<DeviceLimits>) -> Process {
    let program = std::env::current_exe().map_or_else(|_| "banyan".to_owned(), |path| path.display().to_string());
    let args = ["device", "serve", kind, settings].map(SecretRef::plain).into();
    let shared = limits.map(|DeviceLimits { connections, logins }| {
        vec!["device".to_owned(), "fleet".to_owned(), format!("--connections={connections}"), format!("--logins={logins}")]
    });
    Process { command: program, args, env, pass_env: Vec::new(), cwd: None, shared }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use config::Sections;
    use config::secret::SystemSources;

    use super::*;

    fn parsed(text: &str) -> Result<Config, String> {
        let sections = Sections::default().with(DeviceSection);
        sections.parse(text, Path::new("banyan.toml"), &SystemSources).map_err(|error| error.to_string())
    }

    /// Variables that the process of a device gets.
    fn handed<'a>(config: &'a Config, name: &str) -> &'a BTreeMap<String, SecretRef> {
        let Transport::Stdio(process) = &config.mounts[&Segment::new(name).unwrap()].transport else { panic!("no process") };
        &process.env
    }

    #[test]
    fn a_device_is_mounted_under_its_name() {
        let config = parsed("[device.r1]\npathspace = \"r1\"\nconfirm_within = \"90s\"\nread_only = true\n").unwrap();
        let settings = &config.values.get::<Devices>().unwrap().all["r1"];
        assert_eq!((settings.confirm_within, settings.read_only, settings.pathspace.as_deref()), (90, true, Some("r1")));
        assert!(matches!(&config.mounts[&Segment::new("r1").unwrap()].transport, Transport::Stdio(process) if process.args.len() == 4));
    }

    #[test]
    fn secrets_of_a_device_go_over_in_variables() {
        let text = "[device.sw]\nbackend = \"snmp\"\naddress = \"10.0.0.3\"\ncommunity = \"${env:RO}\"\nwrite_community = \"${env:RW}\"\n";
        let config = parsed(text).unwrap();
        assert_eq!(handed(&config, "sw").keys().collect::<Vec<_>>(), ["BANYAN_DEVICE_COMMUNITY", "BANYAN_DEVICE_WRITE_COMMUNITY"]);
        assert!(!config.values.get::<Devices>().unwrap().all["sw"].accept_no_rollback, "no risk is taken unasked");
    }

    #[test]
    fn addresses_to_listen_on_are_read() {
        let text = "[device.r1]\ntraps = \"0.0.0.0:162\"\ncommunity = \"${env:RO}\"\nsyslog = \"[::]:514\"\nsources = [\"10.0.0.1\"]\n";
        let listen = &parsed(text).unwrap().values.get::<Devices>().unwrap().all["r1"].listen.clone();
        assert_eq!((listen.traps.unwrap().port(), listen.syslog.unwrap().port(), listen.sources.len()), (162, 514, 1));
        assert!(parsed("[device.r1]\ntraps = \"162\"\n").unwrap_err().contains("no address with a port"));
        assert!(parsed("[device.r1]\ntraps = \"0.0.0.0:162\"\n").unwrap_err().contains("`community`"), "nobody is believed unasked");
        assert!(parsed("[device.r1]\nsources = [\"r1\"]\n").unwrap_err().contains("no address"));
    }

    #[test]
    fn what_a_device_over_snmp_lacks_is_told() {
        let section = |rest: &str| parsed(&format!("[device.sw]\nbackend = \"snmp\"\naddress = \"sw\"\n{rest}")).unwrap_err();
        assert!(section("").contains("`community`"), "{}", section(""));
        assert!(section("user = \"ro\"\n").contains("`password`"));
        let weak = "user = \"ro\"\npassword = \"${env:P}\"\nprivacy_password = \"${env:Q}\"\nprivacy = \"aes256\"\n";
        assert!(section(weak).contains("sha256"), "{}", section(weak));
    }

    #[test]
    fn nm_12_credentials_that_nothing_uses_are_refused() {
        let login = "address = \"10.0.0.1\"\nuser = \"ops\"\npassword = \"${env:P}\"\n";
        let write = "write_user = \"admin\"\nwrite_password = \"${env:W}\"\n";
        for backend in ["frr", "ssh", "netconf"] {
            let of = |rest: &str| parsed(&format!("[device.r1]\nbackend = \"{backend}\"\n{login}{rest}"));
            let config = of(write).unwrap();
            let (settings, handed) = (&config.values.get::<Devices>().unwrap().all["r1"], handed(&config, "r1"));
            let writing = settings.writing().unwrap();
            assert_eq!((settings.user.as_deref(), writing.user.as_deref(), writing.writer), (Some("ops"), Some("admin"), None));
            assert!(handed.contains_key("BANYAN_DEVICE_WRITE_PASSWORD"));
            assert!(of("write_key = \"k\"\n").unwrap_err().contains("would do nothing on this device: `write_key`"));
            assert!(of("write_user = \"admin\"\n").unwrap_err().contains("needs `write_password`"));
            assert!(of("write_community = \"${env:W}\"\n").unwrap_err().contains("only a device over SNMP"));
            assert!(of("").unwrap().values.get::<Devices>().unwrap().all["r1"].writing().is_none());
        }
        let here = parsed(&format!("[device.r1]\nbackend = \"bird\"\n{write}")).unwrap_err();
        assert!(here.contains("would do nothing on this device: `write_user`, `write_password`"), "{here}");
        let snmp = |rest: &str| parsed(&format!("[device.sw]\nbackend = \"snmp\"\n{login}{rest}"));
        snmp(write).unwrap();
        assert!(snmp("write_privacy_password = \"${env:W}\"\n").unwrap_err().contains("add `write_user`"));
        assert!(snmp("write_community = \"${env:W}\"\n").unwrap_err().contains("`user` is of v3"));
        assert!(snmp(&format!("{write}write_community = \"${{env:W}}\"\n")).unwrap_err().contains("remove one of both"));
        // A template holds for devices of any kind.
        let shared = format!("[device_template.t]\n{login}{write}[device.r1]\ntemplate = \"t\"\nbackend = \"ovs\"\n");
        assert!(parsed(&shared).unwrap_err().contains("`write_user`"));
    }

    #[test]
    fn an_unset_window_is_at_most_the_longest() {
        let config = parsed("[device.r1]\nlongest_window = \"60s\"\n").unwrap();
        assert_eq!(config.values.get::<Devices>().unwrap().all["r1"].confirm_within, 60);
    }

    const FLEET: &str = "[device_group.edge]\n[device_group.lab]\n[device_template.pe]\nbackend = \"netconf\"\nuser = \"ops\"\npassword = \"${keyring:pe}\"\n\
        read_only = true\ngroups = [\"edge\"]\ndeny_lines = [\"shutdown\"]\nallow_lines = [\"interface\"]\n";

    #[test]
    fn a_template_holds_where_a_device_is_silent() {
        let own = "[device.r1]\ntemplate = \"pe\"\naddress = \"10.0.0.1\"\nread_only = false\ngroups = [\"lab\"]\ndeny_lines = [\"router bgp\"]\nallow_lines = [\"vlan\"]\n\
            [device.r2]\ntemplate = \"pe\"\naddress = \"10.0.0.2\"\n";
        let config = parsed(&format!("{FLEET}{own}")).unwrap();
        let devices = config.values.get::<Devices>().unwrap();
        let (r1, r2) = (&devices.all["r1"], &devices.all["r2"]);
        assert_eq!((r1.read_only, r2.read_only, r2.user.as_deref(), r2.backend), (false, true, Some("ops"), Backend::Netconf));
        assert_eq!(
            (r1.groups.as_slice(), r2.groups.as_slice()),
            (["edge".to_owned(), "lab".to_owned()].as_slice(), ["edge".to_owned()].as_slice())
        );
        assert_eq!(
            (r1.deny_lines.as_slice(), r1.allow_lines.as_slice()),
            (["router bgp".to_owned(), "shutdown".to_owned()].as_slice(), ["vlan".to_owned()].as_slice())
        );
        assert_eq!(handed(&config, "r2")["BANYAN_DEVICE_PASSWORD"].to_string(), "${keyring:pe}");
    }

    #[test]
    fn unknown_templates_and_groups_are_told_with_the_nearest() {
        let unknown = parsed(&format!("{FLEET}[device.r1]\ntemplate = \"pee\"\ngroups = [\"egde\"]\n")).unwrap_err();
        assert!(unknown.contains("did you mean `pe`?") && unknown.contains("did you mean `edge`?"), "{unknown}");
        assert!(parsed("[device.r1]\ngroups = [\"edge\"]\n").unwrap_err().contains("[device_group.NAME]"));
        assert!(parsed("[device_template.a]\ntemplate = \"a\"\n").unwrap_err().contains("has a template"));
    }

    #[test]
    fn devices_in_groups_share_a_process() {
        let config =
            parsed("[device_group.edge]\n[device.r1]\ngroups = [\"edge\"]\n[device.r2]\ngroups = [\"edge\"]\n[device.r3]\n").unwrap();
        let process = |name: &str| match &config.mounts[&Segment::new(name).unwrap()].transport {
            Transport::Stdio(process) => process.clone(),
            other @ (Transport::Family(_) | Transport::Http(_) | Transport::Sse(_)) => panic!("{other:?}"),
        };
        let shared = Some(["device", "fleet", "--connections=256", "--logins=64"].map(str::to_owned).to_vec());
        assert_eq!(["edge", "r1", "r2", "r3"].map(|name| process(name).shared), [shared.clone(), shared.clone(), shared, None]);
        assert!(process("edge").args[3].to_string().contains("[\"r1\",\"r2\"]"));
        assert!(parsed("[device_group.r1]\n[device.r1]\n").unwrap_err().contains("mount or device `r1`"));
    }

    #[test]
    fn bounds_that_hold_nothing_or_no_bound_are_refused() {
        for (line, words) in [("connections = 0", "at least 1"), ("logins = 1000000000000", "at most 60000")] {
            let told = parsed(&format!("[device_limits]\n{line}\n")).unwrap_err();
            assert!(told.contains(words), "{told}");
        }
        assert!(parsed("[device_limits]\nconnections = 1\nlogins = 60000\n").is_ok());
    }

    #[test]
    fn nm_12_windows_and_paths_are_read_with_the_configuration() {
        let config = parsed("[device.r1]\nwindows = [\"Sat 02:00-04:00 Europe/Vienna\"]\ndeny_paths = [\"/system/radius\"]\n").unwrap();
        let settings = &config.values.get::<Devices>().unwrap().all["r1"];
        assert_eq!((settings.windows.len(), settings.deny_paths.as_slice()), (1, ["/system/radius".to_owned()].as_slice()));
        for (line, why) in [
            ("windows = [\"Sat 02:00-04:00 Europe/Wien\"]", "no time zone"),
            ("windows = [\"Caturday 02:00-04:00\"]", "no day"),
            ("allow_paths = [\"/interfaces/interface[name='eth0']\"]", "without modules and keys"),
            ("deny_edit_paths = [\"//enabled\"]", "no path for a rule"),
        ] {
            assert!(parsed(&format!("[device.r1]\n{line}\n")).unwrap_err().contains(why), "{line}");
        }
    }

    #[test]
    fn nm_12_callers_that_nobody_can_be_are_refused() {
        let role = |caller: &str| parsed(&format!("[device.r1]\nroles = [{{ callers = [\"{caller}\"] }}]\n"));
        for caller in [
            "",
            "parent:",
            "participant:",
            "parent root.example.com",
            "parent:parent root.example.com",
            "certificate:ops",
            "issuer:ada",
            "token:",
        ] {
            assert!(role(caller).unwrap_err().contains("can name no caller"), "{caller}");
        }
        for caller in
            ["*", "ada", "parent:*", "parent:root.example.com", "participant:ada", "token:ada", "certificate:dns:*", "certificate:*"]
        {
            assert!(role(caller).is_ok(), "{caller}");
        }
    }

    #[test]
    fn nm_12_a_name_of_two_kinds_is_refused_in_roles() {
        let hash = "0".repeat(64);
        let told = |caller: &str, token: &str| {
            let text = format!(
                "resource = \"https://gate.example.com/mcp\"\n[[token]]\nname = \"{token}\"\nsha256 = \"{hash}\"\n\
                 [issuer.login]\nissuer = \"https://login.example.com\"\nkeys = \"https://login.example.com/jwks.json\"\n"
            );
            parsed(&format!("{text}[device.r1]\nroles = [{{ callers = [\"{caller}\"] }}]\n")).map(drop)
        };
        for (caller, token) in [("local", "local"), ("token:a*", "token:a")] {
            let refused = told(caller, token).unwrap_err();
            assert!(refused.contains("token:") && refused.contains("alone"), "{refused}");
        }
        // Names of certificates and of issuers' callers are no token's to begin with.
        for name in ["dns:ops", "ada@login"] {
            let refused = told(name, name).unwrap_err();
            assert!(refused.contains(&format!("can't be named `{name}`")), "{refused}");
        }
        for (caller, token) in [("ops", "ops"), ("certificate:dns:ops", "ops"), ("ada@login", "ada"), ("*", "x")] {
            assert_eq!(told(caller, token), Ok(()), "{caller} {token}");
        }
    }

    #[test]
    fn nm_12_path_rules_without_paths_are_noticed() {
        let notices = |lines: &str| config::notices(&parsed(&format!("[device.s]\n{lines}\n")).unwrap());
        let role = "roles = [{ callers = [\"*\"], deny_edit_paths = [\"/interfaces\"] }]";
        for (lines, words) in [
            ("backend = \"ovs\"\ndeny_paths = [\"/interfaces\"]", "is refused"),
            (&format!("backend = \"bird\"\n{role}"), "is refused"),
            ("allow_edit_paths = [\"/interfaces\"]", "do not hold"),
        ] {
            let told = notices(lines);
            assert!(
                told.len() == 1 && told[0].contains("[device.s]") && told[0].contains(words) && told[0].contains("deny_lines"),
                "{told:?}"
            );
        }
        assert_eq!(notices("backend = \"ovs\"\ndeny_lines = [\"tag 30\"]"), Vec::<String>::new());
    }

    #[test]
    fn nm_02_a_dialect_of_the_configuration_reaches_its_device() {
        let login = "backend = \"ssh\"\naddress = \"10.0.0.1\"\nuser = \"ann\"\nkey = \"/k\"\n";
        let house = "[dialect.house]\nextends = \"ios\"\n[dialect.house.session]\nmore = \"y\"\n";
        let config = parsed(&format!("[device.r1]\n{login}dialect = \"house\"\n{house}")).unwrap();
        let settings = &config.values.get::<Devices>().unwrap().all["r1"];
        let handed = DeviceSettings::read(&serde_json::to_string(settings).unwrap()).unwrap();
        assert_eq!(handed.open_dialect().unwrap().name(), "house");
        for (text, words) in [
            (format!("[device.r1]\n{login}dialect = \"mouse\"\n{house}"), "mouse"),
            (format!("[device.r1]\n{login}dialect = \"ioss\"\n"), "did you mean `ios`?"),
            (format!("[device.r1]\n{login}dialect = \"file:/nonexistent/x.toml\"\n"), "/nonexistent/x.toml"),
            (format!("[device.r1]\n{login}dialect = \"file:x.toml\"\n"), "begins with"),
            (house.replace("more", "moor"), "moor"),
            (house.replace("\"ios\"", "\"iso\""), "built in"),
            ("[dialect.ios]\nextends = \"frr\"\n".to_owned(), "another name"),
        ] {
            let told = parsed(&text).unwrap_err();
            assert!(told.contains(words), "{told}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_device_is_told() {
        assert!(parsed("[device.R1]\n").unwrap_err().contains("[device.r1]"));
        assert!(parsed("[mount.r1]\ncommand = \"x\"\n[device.r1]\n").unwrap_err().contains("mount `r1`"));
        assert!(parsed("[device.r1]\nbackend = \"ssh\"\naddress = \"r1\"\nuser = \"ann\"\n").unwrap_err().contains("needs `password`"));
        assert!(parsed("[device.r1]\nconfirm_within = \"10m\"\nlongest_window = \"5m\"\n").unwrap_err().contains("longest_window"));
    }
}
