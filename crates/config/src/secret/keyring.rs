//! The system's keyring: Secret Service, Keychain or Credential Manager. Does not keep the list of names.

use keyring::{Entry, Error};

/// The service name of Banyan's entries.
const SERVICE: &str = "banyan";

/// The reason for which the keyring gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyringError {
    /// Locked, or access denied.
    #[error("the keyring refused ({0}); unlock it if it is locked")]
    RefusedFile(String),
    /// No keyring, as in a container, over ssh or on a server without a desktop.
    #[error("no keyring can be reached here ({0})")]
    Unavailable(String),
}

/// Fetches the value of an entry.
pub fn get(name: &str) -> Result<Option<String>, KeyringError> {
    apart(|| match entry(name)?.get_password() {
        Ok(value) => Ok(Some(value)),
        Err(Error::NoEntry) => Ok(None),
        Err(error) => Err(explained(&error)),
    })
}

/// Makes or replaces an entry.
pub fn set(name: &str, value: &str) -> Result<(), KeyringError> {
    apart(|| entry(name)?.set_password(value).map_err(|error| explained(&error)))
}

/// Removes an entry; `false` where none existed.
pub fn remove(name: &str) -> Result<bool, KeyringError> {
    apart(|| match entry(name)?.delete_credential() {
        Ok(()) => Ok(true),
        Err(Error::NoEntry) => Ok(false),
        Err(error) => Err(explained(&error)),
    })
}

fn entry(name: &str) -> Result<Entry, KeyringError> {
    if let Err(error) = Entry::store_status() {
        return Err(KeyringError::Unavailable(error.to_string()));
    }
    Entry::new(SERVICE, name).map_err(|error| explained(&error))
}

fn explained(error: &Error) -> KeyringError {
    match error {
        Error::PlatformFailure(_) | Error::NoDefaultStore => KeyringError::Unavailable(error.to_string()),
        // These hold what was found: only their kind is told.
        Error::BadEncoding(_) | Error::BadDataFormat(..) => KeyringError::RefusedFile("the entry is not text".into()),
        Error::Ambiguous(_) => KeyringError::RefusedFile("several entries have this name".into()),
        Error::NoStorageAccess(_)
        | Error::NoEntry
        | Error::BadStoreFormat(_)
        | Error::TooLong(..)
        | Error::Invalid(..)
        | Error::NotSupportedByStore(_)
        | _ => KeyringError::RefusedFile(error.to_string()),
    }
}

/// Runs on a new thread: the Secret Service client blocks on an executor and would panic inside an async task.
fn apart<T: Send>(work: impl FnOnce() -> Result<T, KeyringError> + Send) -> Result<T, KeyringError> {
    std::thread::scope(|scope| scope.spawn(work).join()).unwrap_or_else(|_| Err(KeyringError::Unavailable("its client failed".into())))
}
