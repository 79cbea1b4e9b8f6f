//! Who a party is: certificates, tokens and proofs, checked at this hop and for this hop only.
//!
//! What somebody may do is not decided here, and no credential that comes in is kept or sent on.

mod certificate;
mod client;
mod error;
mod listener;
mod party;
mod verifier;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use mesh_proto::authority::Identity;
use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use tokio::sync::Notify;

use crate::Inner;
use crate::call::caller::Caller;
use crate::config::resolved::Config;
use crate::config::watch::Watch;

pub(crate) use client::{Client, anonymous};
pub use error::TrustError;
pub(crate) use listener::accept;
pub(crate) use party::Party;
pub(crate) use verifier::Wanted;

/// What this gate knows others by.
pub(crate) struct Trust {
    /// Whether the listener speaks TLS; it does not change while the gate runs.
    tls: bool,
    /// What it speaks TLS with; `None` where the files are of no use, and then nobody is let in.
    listener: ArcSwapOption<ServerConfig>,
    /// Wakes whoever watches the files that are named.
    changed: Notify,
}

/// Looks whether the files that `config` names for the listener can be used.
pub fn check(config: &Config) -> Result<(), TrustError> {
    config.trust.tls.as_ref().map_or(Ok(()), |tls| listener::server_config(tls).map(drop))
}

/// The first certificate of a PEM file: its holder's own.
pub(crate) fn first_certificate(file: &Path) -> Result<CertificateDer<'static>, TrustError> {
    let mut chain = certificate::chain(file)?;
    Ok(chain.swap_remove(0))
}

/// Who makes a call, as far as its connection proves it.
#[expect(dead_code, reason = "the registry asks, which lands beside this")]
pub(crate) fn identity(caller: &Caller) -> Identity {
    let proven = caller.party.as_ref().map(|party| party.proven().clone()).unwrap_or_default();
    Identity { principal: Arc::clone(&caller.principal.name), proven }
}

/// Whether nobody can listen in on a caller: it speaks TLS, or from this machine (AX-42).
#[expect(dead_code, reason = "the registry asks, which lands beside this")]
pub(crate) fn is_private(caller: &Caller) -> bool {
    caller.party.as_ref().is_none_or(|party| party.is_private())
}

impl Trust {
    /// What `config` says.
    pub(crate) fn new(config: &Config) -> Self {
        let trust = Self { tls: config.trust.tls.is_some(), listener: ArcSwapOption::empty(), changed: Notify::new() };
        trust.apply(config);
        trust
    }

    /// Reads again what `config` names. What can't be used changes nothing, and is told.
    pub(crate) fn apply(&self, config: &Config) {
        self.changed.notify_one();
        let Some(tls) = config.trust.tls.as_ref().filter(|_| self.tls) else { return };
        match listener::server_config(tls) {
            Ok(server) => self.listener.store(Some(server)),
            Err(error) => tracing::warn!(%error, "the listener keeps the certificate that it has"),
        }
    }

    /// Whether the listener speaks TLS.
    pub(crate) fn speaks_tls(&self) -> bool {
        self.tls
    }

    /// What the listener speaks TLS with from now on.
    pub(crate) fn server(&self) -> Option<Arc<ServerConfig>> {
        self.listener.load_full()
    }
}

/// Reads the files that the configuration in force names again when they change, until the gate ends.
pub(crate) async fn follow(gateway: Arc<Inner>) {
    loop {
        let config = gateway.config.load_full();
        let files: Vec<PathBuf> = config
            .trust
            .tls
            .iter()
            .flat_map(|tls| [Some(&tls.certificate), Some(&tls.key), tls.client_ca.as_ref()])
            .flatten()
            .cloned()
            .collect();
        let mut watch = Watch::start(files);
        tokio::select! {
            _ = watch.changed() => gateway.trust.apply(&config),
            () = gateway.trust.changed.notified() => {}
            () = gateway.stop.cancelled() => return,
        }
    }
}
