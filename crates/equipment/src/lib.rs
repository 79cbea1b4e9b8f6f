//! The section `[device.NAME]` of the configuration: a network device becomes a mount with a process for the device. Reaches no device,
//! so the gate needs no SSH to read a configuration.

mod form;
mod settings;

use std::collections::BTreeMap;
use std::sync::Arc;

use banyan_model::Segment;
use config::diff::Change;
use config::reading::FileReading;
use config::resolved::{Config, Mount, Process, Transport};
use config::secret::SecretRef;
use config::{Flaw, Section, suggest};

pub use settings::{Backend, CommandLine, Confirmation, DeviceSettings, Health};

/// Variable with the password for the server process of a device.
pub const PASSWORD: &str = "BANYAN_DEVICE_PASSWORD";

/// Network devices: `[device.NAME]`.
#[derive(Debug)]
pub struct DeviceSection;

/// The devices of a configuration, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Devices(pub BTreeMap<String, DeviceSettings>);

impl Section for DeviceSection {
    type Form = form::DeviceForm;

    fn resolve(&self, form: &Self::Form, reading: &mut FileReading<'_>, config: &mut Config) {
        let mut devices = Devices::default();
        for (name, device) in &form.device {
            let segment = Segment::new(name.get()).unwrap_or_else(|bad| {
                let near = suggest::segment(name.get());
                reading.refuse(Flaw::new(name.span(), bad.to_string()).help(format!("for example [device.{near}]")));
                near
            });
            if config.mounts.contains_key(&segment) {
                let flaw = Flaw::new(name.span(), format!("there is a mount `{segment}` as well"));
                reading.refuse(flaw.help("give one of the two another name"));
                continue;
            }
            let settings = device.settings(name, reading);
            config.mounts.insert(
                segment.clone(),
                Arc::new(Mount::new(segment, Transport::Stdio(process(&settings, device.password(name.get(), reading))), "banyan.toml")),
            );
            devices.0.insert(name.get().clone(), settings);
        }
        config.values.set(devices);
    }

    /// A changed device shows as a changed mount.
    fn compare(&self, _old: &Config, _new: &Config) -> Vec<Change> {
        Vec::new()
    }
}

/// Reference to the password for a device.
pub fn password<'a>(config: &'a Config, name: &str) -> Option<&'a SecretRef> {
    let mount = config.mounts.get(&Segment::new(name).ok()?)?;
    let Transport::Stdio(process) = &mount.transport else { return None };
    process.env.get(PASSWORD)
}

/// The server process of a device: the same program again.
fn process(settings: &DeviceSettings, password: Option<SecretRef>) -> Process {
    let program = std::env::current_exe().map_or_else(|_| "banyan".to_owned(), |path| path.display().to_string());
    let settings = serde_json::to_string(settings).unwrap_or_default();
    let args = ["device", "serve", "--settings", &settings].map(SecretRef::plain).into();
    Process {
        command: program,
        args,
        env: password.map(|password| (PASSWORD.to_owned(), password)).into_iter().collect(),
        pass_env: Vec::new(),
        cwd: None,
    }
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

    #[test]
    fn a_device_is_mounted_under_its_name() {
        let config = parsed("[device.r1]\npathspace = \"r1\"\nconfirm_within = \"90s\"\nread_only = true\n").unwrap();
        let settings = &config.values.get::<Devices>().unwrap().0["r1"];
        assert_eq!((settings.confirm_within, settings.read_only, settings.pathspace.as_deref()), (90, true, Some("r1")));
        assert!(matches!(&config.mounts[&Segment::new("r1").unwrap()].transport, Transport::Stdio(process) if process.args.len() == 4));
    }

    #[test]
    fn an_unset_window_is_at_most_the_longest() {
        let config = parsed("[device.r1]\nlongest_window = \"60s\"\n").unwrap();
        assert_eq!(config.values.get::<Devices>().unwrap().0["r1"].confirm_within, 60);
    }

    #[test]
    fn what_is_wrong_with_a_device_is_told() {
        assert!(parsed("[device.R1]\n").unwrap_err().contains("[device.r1]"));
        assert!(parsed("[mount.r1]\ncommand = \"x\"\n[device.r1]\n").unwrap_err().contains("mount `r1`"));
        assert!(parsed("[device.r1]\nbackend = \"ssh\"\naddress = \"r1\"\nuser = \"ann\"\n").unwrap_err().contains("needs `password`"));
        assert!(parsed("[device.r1]\nconfirm_within = \"10m\"\nlongest_window = \"5m\"\n").unwrap_err().contains("longest_window"));
    }
}
