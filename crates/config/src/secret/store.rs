//! `banyan secret set`, `list` and `rm`: Banyan's entries in the keyring, and the list of their names, since not every keyring lists names.
//! Does not write a value to any file.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::PathBuf;

use runtime::whole::{Readers, make_dirs, replace};

use super::keyring::{self, KeyringError};
use super::{BadSecretRef, Piece, Secret, SecretRef};

/// The secrets kept for Banyan in the keyring.
#[derive(Clone, Debug)]
pub struct SecretStore {
    index: PathBuf,
}

/// The failure to store, list or remove a secret.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The name could not be written as a reference.
    #[error(transparent)]
    BadName(#[from] BadSecretRef),
    /// The list of names can't be read or written.
    #[error("the list of secret names `{}` can't be used: {source}", path.display())]
    Index {
        /// The file.
        path: PathBuf,
        source: std::io::Error,
    },
    /// The keyring does not work.
    #[error("{0}\n  keep the secret in a file (${{file:/path}}) or in the environment (${{env:NAME}}) instead")]
    Keyring(#[from] KeyringError),
}

impl SecretStore {
    /// A store with its list of names in the file `secrets` of `state_dir`.
    pub fn in_dir(state_dir: &std::path::Path) -> Self {
        Self { index: state_dir.join("secrets") }
    }

    /// Makes or replaces the secret `name`, and answers with a reference.
    pub fn set(&self, name: &str, value: &Secret) -> Result<SecretRef, StoreError> {
        let reference = SecretRef::of(vec![Piece::Keyring(name.to_owned())])?;
        keyring::set(name, value.expose())?;
        let mut names = self.names()?;
        if names.insert(name.to_owned()) {
            self.write(&names)?;
        }
        Ok(reference)
    }

    /// The names of the secrets made by [`set`](Self::set), sorted.
    pub fn list(&self) -> Result<Vec<String>, StoreError> {
        Ok(self.names()?.into_iter().collect())
    }

    /// Removes the secret `name`; `false` where neither the keyring nor the list knew the name.
    pub fn remove(&self, name: &str) -> Result<bool, StoreError> {
        let was_kept = keyring::remove(name)?;
        let mut names = self.names()?;
        let was_listed = names.remove(name);
        if was_listed {
            self.write(&names)?;
        }
        Ok(was_kept || was_listed)
    }

    fn names(&self) -> Result<BTreeSet<String>, StoreError> {
        match std::fs::read_to_string(&self.index) {
            Ok(text) => Ok(text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(BTreeSet::new()),
            Err(source) => Err(self.failed(source)),
        }
    }

    fn write(&self, names: &BTreeSet<String>) -> Result<(), StoreError> {
        let text: String = names.iter().map(|name| format!("{name}\n")).collect();
        let dir = self.index.parent().unwrap_or(&self.index);
        make_dirs(dir, 0o700).and_then(|()| replace(&self.index, text.as_bytes(), Readers::Same)).map_err(|source| self.failed(source))
    }

    fn failed(&self, source: std::io::Error) -> StoreError {
        StoreError::Index { path: self.index.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_names_is_kept_sorted() {
        let dir = tempfile::tempdir().unwrap();
        let store = SecretStore::in_dir(&dir.path().join("state"));
        assert_eq!(store.list().unwrap(), Vec::<String>::new());
        store.write(&["b".to_owned(), "a".to_owned()].into()).unwrap();
        assert_eq!(store.list().unwrap(), ["a", "b"]);
    }

    #[test]
    fn a_name_that_no_reference_can_hold_is_refused() {
        let store = SecretStore::in_dir(std::path::Path::new("unused"));
        assert!(matches!(store.set("a}b", &Secret::new("v")), Err(StoreError::BadName(_))));
    }
}
