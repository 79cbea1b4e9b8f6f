//! Configuration in force. A new configuration is taken only where the gate stays shut to strangers at every bound address. A refused
//! configuration takes credentials away all the same, and its mistakes stay known until a good one comes.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use arc_swap::ArcSwapOption;
use config::diff::{Change, Subject};
use config::reload::{Reload, reload};
use config::resolved::Config;
use config::{OpenListen, check_listen, without_revoked};
use tokio::net::TcpListener;

use crate::gateway::Gateway;

/// A gate's knowledge about its configuration.
#[derive(Debug, Default)]
pub(super) struct Force {
    /// The addresses that are really bound. Held while a configuration comes into force.
    bound: Mutex<Vec<SocketAddr>>,
    refused: ArcSwapOption<NotInForce>,
}

/// A refused configuration.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct NotInForce {
    /// Time of the refusal, in seconds since 1970.
    pub since: u64,
    /// Reason; for the owner only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Outcome of reading a file again.
#[derive(Debug)]
pub enum ReloadOutcome {
    /// The new configuration is in force, with these differences.
    Applied(Vec<Change>),
    /// The old configuration stays in force.
    Kept {
        error: String,
        /// Credentials void all the same, because the file lacks them.
        revoked: Vec<Change>,
    },
    Unchanged,
}

impl Force {
    /// Notes the address of a served listener.
    pub(super) fn listens(&self, listener: &TcpListener) {
        // A listener that knows no address of its own accepts nothing.
        self.bound().extend(listener.local_addr().ok());
    }

    fn bound(&self) -> MutexGuard<'_, Vec<SocketAddr>> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gateway {
    /// Puts a configuration in force: only differing parts change, calls in flight finish on the configuration of their beginning.
    ///
    /// # Errors
    /// An address of the listener would be open to other machines without a credential. Then nothing is changed.
    pub fn apply(&self, config: Config) -> Result<Vec<Change>, OpenListen> {
        let bound = self.0.force.bound();
        bound.iter().try_for_each(|address| check_listen(*address, &config))?;
        Ok(self.change(config))
    }

    /// Reads the file at `path` again and puts it in force. `listen` overrides the address in the file.
    pub fn reload(&self, path: &Path, listen: Option<SocketAddr>) -> ReloadOutcome {
        let error = match reload(&self.config(), path, &*self.0.sources) {
            Reload::Unchanged => {
                self.0.force.refused.store(None);
                return ReloadOutcome::Unchanged;
            }
            Reload::Bad { error } => error.to_string(),
            Reload::Applied { mut config, .. } => {
                config.listen = listen.unwrap_or(config.listen);
                match self.apply(*config) {
                    Ok(changes) => {
                        self.0.force.refused.store(None);
                        return if changes.is_empty() { ReloadOutcome::Unchanged } else { ReloadOutcome::Applied(changes) };
                    }
                    Err(open) => open.to_string(),
                }
            }
        };
        let revoked = self.revoke(path);
        self.refuse(&error);
        ReloadOutcome::Kept { error, revoked }
    }

    /// Gives the refused configuration, if the last one was refused.
    pub fn not_in_force(&self) -> Option<Arc<NotInForce>> {
        self.0.force.refused.load_full()
    }

    /// Takes away credentials missing in a refused file.
    fn revoke(&self, path: &Path) -> Vec<Change> {
        let _bound = self.0.force.bound();
        // A file that is not UTF-8 is refused, and takes credentials away all the same.
        let text = std::fs::read(path).unwrap_or_default();
        let changes = without_revoked(&self.config(), &String::from_utf8_lossy(&text)).map(|left| self.change(left)).unwrap_or_default();
        changes.into_iter().filter(|change| change.subject != Subject::SHUT).collect()
    }

    fn refuse(&self, error: &str) {
        let known = self.not_in_force().filter(|known| known.error.as_deref() == Some(error));
        let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let since = known.map_or_else(now, |known| known.since);
        self.0.force.refused.store(Some(Arc::new(NotInForce { since, error: Some(error.to_owned()) })));
        self.0.gate.mounts.changed.notify_waiters();
    }
}
