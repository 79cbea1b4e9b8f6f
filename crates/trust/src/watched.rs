//! Files that are read again when they change: certificates, keys, and the ledger of our own authority; and one of others, for which a second
//! watch would be too much. What is in them is not known here.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use config::resolved::{Config, Keys};
use config::watch::Watch;

use crate::Trust;
use crate::ca::Ca;
use call::tree::gate::Gate;

/// How often the gate looks whether its own certificate ends soon.
const LOOK: Duration = Duration::from_secs(6 * 3600);

/// File of others that is watched beside those of trust.
pub struct Besides {
    /// Path, where there is a place for the file.
    pub file: Box<dyn Fn() -> Option<PathBuf> + Send + Sync>,
    /// Hears that the file has changed, or may have before it was watched.
    pub changed: Box<dyn Fn() + Send + Sync>,
}

/// Follows the files that the configuration in force names, until the gate ends.
pub async fn follow(trust: Arc<Trust>, gate: Arc<Gate>, besides: Besides) {
    let authority = Ca::dir(&trust.state_dir);
    loop {
        if let Err(error) = Ca::renew_own(&authority) {
            tracing::warn!(%error, "the certificate of this gate is not renewed");
        }
        let config = gate.config.load_full();
        let ledger = Ca::ledger_file(&authority);
        let looks = (besides.file)();
        let own = ledger.parent().filter(|dir| dir.is_dir()).map(|_| ledger.clone()).into_iter().chain(looks.clone());
        let mut watch = Watch::start(files(&config).chain(own).collect());
        // What changed before it was watched is seen here.
        trust.take_back(&authority);
        (besides.changed)();
        loop {
            tokio::select! {
                changed = watch.changed() => {
                    if changed.iter().flatten().any(|file| *file == ledger) {
                        trust.take_back(&authority);
                    }
                    if changed.iter().flatten().any(|file| looks.as_ref() == Some(file)) {
                        (besides.changed)();
                    }
                    if changed.iter().flatten().any(|file| *file != ledger && looks.as_ref() != Some(file)) {
                        trust.apply(&config);
                        break;
                    }
                }
                () = trust.changed.notified() => break,
                () = tokio::time::sleep(LOOK) => break,
                () = gate.stop.cancelled() => return,
            }
        }
    }
}

fn files(config: &Config) -> impl Iterator<Item = PathBuf> {
    let tls = config.trust.tls.iter().flat_map(|tls| [Some(&tls.certificate), Some(&tls.key), tls.client_ca.as_ref()]);
    let issuers = config.trust.issuers.iter().map(|issuer| &issuer.keys);
    let keys = issuers.chain(config.trust.authorities.iter().map(|authority| &authority.keys)).map(|keys| match keys {
        Keys::File(file) => Some(file),
        Keys::Url(_) => None,
    });
    tls.chain(keys).flatten().cloned()
}
