//! Record of a sign-in between runs: in the system's keyring, or else in a file that only its owner can read. Does not refresh tokens.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use config::secret::{Secret, keyring};
use oauth2::TokenResponse;
use rmcp::transport::auth::StoredCredentials;
use runtime::whole::{Readers, make_dirs, replace};
use serde::{Deserialize, Serialize};

use crate::upstream::oauth::{AuthError, EARLY, Token};

/// Longest life of a token, whatever its server says.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A successful sign-in.
#[derive(Clone, Serialize, Deserialize)]
pub struct Record {
    /// URL of the server; a mount that moves has to sign in again.
    url: String,
    pub credentials: StoredCredentials,
    /// Secret of a client registered by the authorization server.
    pub client_secret: Option<String>,
    /// Redirect as registered.
    pub redirect: Option<String>,
    /// Scopes asked for, granted or not.
    pub asked_scopes: Vec<String>,
}

impl Record {
    /// Makes a record of credentials for the server at `url`.
    pub fn new(url: &str, credentials: StoredCredentials) -> Self {
        Self { url: url.into(), credentials, client_secret: None, redirect: None, asked_scopes: Vec::new() }
    }

    /// Token, even if it has ended.
    pub(super) fn token(&self) -> Option<Token> {
        let response = self.credentials.token_response.as_ref()?;
        let until = response.expires_in().zip(self.credentials.token_received_at).map(|(lasts, received)| {
            let lasts = lasts.min(LONGEST);
            let ends = UNIX_EPOCH.checked_add(Duration::from_secs(received)).and_then(|received| received.checked_add(lasts));
            let left = ends.and_then(|ends| ends.duration_since(SystemTime::now()).ok()).unwrap_or_default().min(LONGEST);
            // A token that never lived longer than the margin is used until its very end.
            let margin = if lasts > EARLY * 2 { EARLY } else { Duration::ZERO };
            // A year at most, which every clock can hold.
            Instant::now() + left.saturating_sub(margin)
        });
        Some(Token { secret: Secret::new(response.access_token().secret().as_str()), until })
    }

    /// Checks for a refresh token.
    pub fn can_refresh(&self) -> bool {
        self.credentials.token_response.as_ref().is_some_and(|response| response.refresh_token().is_some())
    }

    /// Issuer of the credentials.
    pub fn issuer(&self) -> Option<&str> {
        self.credentials.issuer.as_deref()
    }

    /// Compares the times at which the tokens were received.
    pub fn is_newer_than(&self, other: &Self) -> bool {
        self.credentials.token_received_at > other.credentials.token_received_at
    }

    /// Keeps only the registration.
    pub fn without_token(mut self) -> Self {
        self.credentials.token_response = None;
        self
    }
}

/// Place of a mount's record.
pub struct Store {
    url: String,
    /// Entry in the keyring; `None`: the keyring is not used.
    entry: Option<String>,
    file: PathBuf,
}

impl Store {
    /// Makes the store of a mount's record.
    pub fn new(mount: &str, url: &str, state_dir: &Path) -> Self {
        let file = state_dir.join("oauth").join(format!("{mount}.json"));
        Self { url: url.into(), entry: Some(format!("oauth:{mount}")), file }
    }

    /// Leaves out the keyring.
    #[cfg(test)]
    pub fn in_file(self) -> Self {
        Self { entry: None, ..self }
    }

    /// Loads the record of this server, if any. An unreadable record counts as missing, and is made again.
    pub async fn load(&self) -> Option<Record> {
        let (entry, file) = (self.entry.clone(), self.file.clone());
        let text = apart(move || match std::fs::read_to_string(&file) {
            Ok(text) => Some(text),
            Err(_) => keyring::get(&entry?).ok().flatten(),
        });
        let record: Record = serde_json::from_str(&text.await.flatten()?).ok()?;
        (record.url == self.url).then_some(record)
    }

    /// Saves the record in the keyring, or without a keyring in a file.
    pub async fn save(&self, record: &Record) -> Result<(), AuthError> {
        let text = serde_json::to_string(record).map_err(|error| self.failed(io::Error::other(error)))?;
        let (entry, file) = (self.entry.clone(), self.file.clone());
        let saved = apart(move || match entry.map(|entry| keyring::set(&entry, &text)) {
            // The file is read first, so an old one must not stay.
            Some(Ok(())) => absent(std::fs::remove_file(&file)),
            Some(Err(_)) | None => write_private(&file, &text),
        });
        saved.await.unwrap_or_else(|| Err(io::Error::other("its writer failed"))).map_err(|source| self.failed(source))
    }

    /// Removes the record from the keyring and the disk.
    pub async fn clear(&self) -> Result<(), AuthError> {
        let (entry, file) = (self.entry.clone(), self.file.clone());
        let cleared = apart(move || {
            // Without a keyring there is no entry.
            let _was_kept = entry.map(|entry| keyring::remove(&entry));
            absent(std::fs::remove_file(&file))
        });
        cleared.await.unwrap_or_else(|| Err(io::Error::other("its writer failed"))).map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> AuthError {
        AuthError::Store { path: self.file.clone(), source }
    }
}

/// Runs work on files and keyrings, which may block, on a thread of its own.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}

fn absent(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Replaces the file; only its owner may look into its directory.
fn write_private(file: &Path, text: &str) -> io::Result<()> {
    let dir = file.parent().ok_or(io::ErrorKind::InvalidInput)?;
    make_dirs(dir, 0o700)?;
    std::fs::set_permissions(dir, Permissions::from_mode(0o700))?;
    replace(file, text.as_bytes(), Readers::Owner)
}
