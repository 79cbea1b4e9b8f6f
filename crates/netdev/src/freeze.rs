//! Freezes of devices: files below the state directory, so that running processes see a freeze at their next look. Decides nothing.

use std::io;
use std::path::{Path, PathBuf};

use equipment::DeviceSettings;
use net_proto::fault::{Code, Fault};
use runtime::whole::{self, Readers};

pub use net_proto::role::Freeze;

use crate::clock::now;

/// Devices that a freeze is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FreezeScope {
    All,
    Group(String),
    Device(String),
}

impl FreezeScope {
    /// Names the devices for people.
    pub fn description(&self) -> String {
        match self {
            Self::All => "all devices".to_owned(),
            Self::Group(name) => format!("the group {name}"),
            Self::Device(name) => name.clone(),
        }
    }

    fn file(&self) -> String {
        match self {
            Self::All => "all.json".to_owned(),
            Self::Group(name) => format!("group.{name}.json"),
            Self::Device(name) => format!("device.{name}.json"),
        }
    }
}

/// Freezes of all devices.
#[derive(Clone, Debug)]
pub struct Freezes {
    dir: PathBuf,
}

impl Freezes {
    /// Names the freezes below the state directory.
    pub fn new(state: &Path) -> Self {
        Self { dir: state.join("device-freezes") }
    }

    /// Freezes devices from now on, until `seconds` have passed or somebody ends the freeze.
    ///
    /// # Errors
    /// The freeze can't be written.
    pub fn begin(&self, scope: &FreezeScope, by: &str, reason: Option<&str>, seconds: Option<u64>) -> io::Result<Freeze> {
        let from = now().wall / 1000;
        let until = seconds.map(|seconds| from.saturating_add(seconds));
        let freeze = Freeze { from, until, by: by.to_owned(), reason: reason.map(str::to_owned) };
        whole::make_dirs(&self.dir, 0o700)?;
        whole::replace(&self.dir.join(scope.file()), &serde_json::to_vec_pretty(&freeze)?, Readers::Owner)?;
        Ok(freeze)
    }

    /// Ends a freeze; false: there was none.
    ///
    /// # Errors
    /// The freeze can't be removed.
    pub fn remove(&self, scope: &FreezeScope) -> io::Result<bool> {
        match std::fs::remove_file(self.dir.join(scope.file())) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Freezes of a device that hold now, with the devices that each is about.
    ///
    /// # Errors
    /// -32083: a freeze can't be read, so the device counts as frozen.
    pub fn holding(&self, device: &DeviceSettings) -> Result<Vec<(FreezeScope, Freeze)>, Fault> {
        let groups = device.groups.iter().cloned().map(FreezeScope::Group);
        let scopes = [FreezeScope::All, FreezeScope::Device(device.name.clone())].into_iter().chain(groups);
        let now = now().wall / 1000;
        let found = scopes.filter_map(|scope| match self.read(&scope) {
            Ok(freeze) => freeze.filter(|freeze| freeze.holds(now)).map(|freeze| Ok((scope, freeze))),
            Err(error) => {
                let detail = format!("the freeze of {} can't be read, so nothing is changed: {error}", scope.description());
                Some(Err(Fault::new(Code::AccessDenied, detail)))
            }
        });
        found.collect()
    }

    fn read(&self, scope: &FreezeScope) -> io::Result<Option<Freeze>> {
        match std::fs::read(self.dir.join(scope.file())) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nm_12_a_freeze_holds_for_its_devices_until_it_ends() {
        let dir = tempfile::tempdir().unwrap();
        let freezes = Freezes::new(dir.path());
        let device = DeviceSettings { groups: vec!["edge".into()], ..DeviceSettings::new("r1") };
        let count = |device: &DeviceSettings| freezes.holding(device).map(|all| all.len()).ok();
        assert_eq!(count(&device), Some(0));
        freezes.begin(&FreezeScope::Group("edge".into()), "ann", Some("audit"), None).unwrap();
        freezes.begin(&FreezeScope::All, "ann", None, Some(0)).unwrap();
        assert_eq!((count(&device), count(&DeviceSettings::new("r2"))), (Some(1), Some(0)));
        std::fs::write(dir.path().join("device-freezes/device.r1.json"), "{").unwrap();
        assert_eq!(count(&device), None);
        freezes.remove(&FreezeScope::Device("r1".into())).unwrap();
        assert!(
            freezes.remove(&FreezeScope::Group("edge".into())).unwrap() && !freezes.remove(&FreezeScope::Group("edge".into())).unwrap()
        );
        assert_eq!(count(&device), Some(0));
    }
}
