//! Devices that a process serves at present: connections to one device share its sessions. Serves none itself.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use equipment::{DeviceSecrets, DeviceSettings};

use crate::site::Site;

/// Devices that are served at present, by name.
#[derive(Clone, Default)]
pub(crate) struct ServedDevices(Arc<Mutex<BTreeMap<String, ServedDevice>>>);

struct ServedDevice {
    site: Arc<Site>,
    secrets: DeviceSecrets,
    connections: usize,
}

/// A device that counts as served until dropped.
pub(crate) struct DeviceEntry {
    pub(crate) site: Arc<Site>,
    served: ServedDevices,
}

impl Drop for DeviceEntry {
    fn drop(&mut self) {
        let mut all = self.served.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name = &self.site.settings.name;
        let Some(device) = all.get_mut(name).filter(|device| Arc::ptr_eq(&device.site, &self.site)) else { return };
        device.connections -= 1;
        if device.connections == 0 {
            all.remove(name);
        }
    }
}

impl ServedDevices {
    /// Finds a device that is served.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<Site>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(name).map(|device| Arc::clone(&device.site))
    }

    /// Opens a device, or the one that other connections have opened with the same settings and secrets.
    pub(crate) fn enter(&self, settings: DeviceSettings, secrets: DeviceSecrets, state: &Path) -> io::Result<DeviceEntry> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.get_mut(&settings.name).filter(|device| device.site.settings == settings && device.secrets == secrets);
        let site = match known {
            Some(device) => {
                device.connections += 1;
                Arc::clone(&device.site)
            }
            None => {
                let site = Arc::new(Site::open(settings, &secrets, state)?);
                let device = ServedDevice { site: Arc::clone(&site), secrets, connections: 1 };
                all.insert(site.settings.name.clone(), device);
                site
            }
        };
        Ok(DeviceEntry { site, served: self.clone() })
    }
}

/// Subject of tasks that work for a device.
pub(crate) fn device_subject(name: &str) -> String {
    format!("the device {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(name: &str) -> DeviceSettings {
        DeviceSettings { groups: vec!["edge".into()], ..DeviceSettings::new(name) }
    }

    #[test]
    fn connections_to_a_device_share_its_sessions() {
        let (dir, served) = (tempfile::tempdir().unwrap(), ServedDevices::default());
        let enter = |settings| served.enter(settings, DeviceSecrets::default(), dir.path()).unwrap();
        let (one, again) = (enter(settings("r1")), enter(settings("r1")));
        assert!(Arc::ptr_eq(&one.site, &again.site));
        let changed = enter(DeviceSettings { read_only: true, ..settings("r1") });
        drop((one, again));
        assert!(served.find("r1").is_some_and(|site| Arc::ptr_eq(&site, &changed.site)));
        drop(changed);
        assert!(served.find("r1").is_none());
    }
}
