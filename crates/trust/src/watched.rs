//! Watches files and rereads changed ones: certificates, keys, and the ledger of our own authority, besides one file of another part of the
//! gate, to spare a second watch. Does not know their contents.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use config::resolved::{Config, Keys};
use config::watch::Watch;

use crate::Trust;
use crate::ca::Ca;
use call::judge::gate::Gate;

/// Interval between checks for a certificate of our own that ends soon.
const LOOK: Duration = Duration::from_secs(6 * 3600);

/// File of another part of the gate, watched beside those of trust.
pub struct Besides {
    /// Path of the file, if any.
    pub file: Box<dyn Fn() -> Option<PathBuf> + Send + Sync>,
    /// Called after a change of the file, and after a change that may have come before the watch began.
    pub changed: Box<dyn Fn() + Send + Sync>,
}

/// Follows the files named by the configuration in force, until the gate ends.
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
        // Reading now catches a change from before the watch began.
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
