//! Secrets that somebody typed for a new device: in the keyring, or where none works in files of their owner, and nowhere where the device was not
//! added. Does not ask for them.

use std::path::PathBuf;

use config::secret::{Secret, SecretStore, StoreError};

use crate::failure::Failure;
use crate::printable::printable;
use crate::{document, places, private};

/// Secrets of a device that is not in the configuration yet.
pub(super) struct TypedSecrets {
    device: String,
    store: SecretStore,
    directory: PathBuf,
    in_keyring: Vec<String>,
    in_files: Vec<PathBuf>,
}

impl TypedSecrets {
    pub(super) fn new(device: &str) -> Result<Self, Failure> {
        let (store, directory) = (SecretStore::in_dir(&places::state_dir()?), places::config_dir()?.join("secrets"));
        Ok(Self { device: device.to_owned(), store, directory, in_keyring: Vec::new(), in_files: Vec::new() })
    }

    /// Keeps a secret, and gives the reference to it. `ending` tells several secrets of a device apart.
    pub(super) fn keep(&mut self, ending: &str, value: &str) -> Result<String, Failure> {
        let name = format!("{}{ending}", self.device);
        if self.store.list()?.contains(&name) {
            return Err(Failure::Refused(format!(
                "a secret `{0}` is kept already\n  `--password '${{keyring:{0}}}'` uses it, `banyan secret rm {0}` removes it",
                printable(&name)
            )));
        }
        match self.store.set(&name, &Secret::new(value)) {
            Ok(reference) => {
                self.in_keyring.push(name);
                Ok(reference.to_string())
            }
            Err(StoreError::Keyring(_)) => self.write(&name, value),
            Err(other) => Err(other.into()),
        }
    }

    fn write(&mut self, name: &str, value: &str) -> Result<String, Failure> {
        let path = self.directory.join(name);
        if path.exists() {
            let shown = path.display();
            return Err(Failure::Refused(format!(
                "{shown} keeps a secret already\n  `--password '${{file:{shown}}}'` uses it; remove the file to type another one"
            )));
        }
        std::fs::create_dir_all(&self.directory).map_err(|error| document::failed(&self.directory, "made", &error))?;
        private::write_new(&path, value).map_err(|error| document::failed(&path, "written", &error))?;
        self.in_files.push(path.clone());
        Ok(format!("${{file:{}}}", path.display()))
    }

    /// Lets the secrets stay, as the device was added. Gives the files that hold secrets where no keyring took them.
    pub(super) fn settle(&mut self) -> Vec<PathBuf> {
        self.in_keyring.clear();
        std::mem::take(&mut self.in_files)
    }
}

impl Drop for TypedSecrets {
    fn drop(&mut self) {
        self.in_keyring.iter().for_each(|name| drop(self.store.remove(name)));
        self.in_files.iter().for_each(|path| drop(std::fs::remove_file(path)));
    }
}
