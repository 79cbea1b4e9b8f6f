//! Who a peer is: certificates, tokens and proofs, checked at this hop and for this hop only.
//!
//! What somebody may do is not decided here, and no credential that comes in is kept or sent on.

pub mod ca;
pub mod certificate;
pub mod client;
pub mod error;
pub mod issuers;
pub mod join;
pub mod keys;
pub mod listener;
pub mod renewal;
pub mod sign;
pub mod source;
pub mod symmetric;
pub mod token;
pub mod verifier;
pub mod watched;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use config::resolved::Config;
use mesh_proto::authority::{Authority, Identity};
use mesh_proto::message::Proof;
use policy::decide::Kind;
use runtime::tls::Connector;
use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use tokio::sync::{Notify, watch};

use call::words::caller::Caller;

pub use crate::certificate::names;
pub use crate::client::{Client, anonymous};
pub use crate::error::TrustError;
pub use crate::issuers::{Bearer, Denied, METADATA, Unproven, challenge, challenge_for, metadata};
pub use crate::listener::accept;
pub use crate::renewal::keep;
pub use crate::sign::{NotSigned, join as admit, may_renew, may_try, renew};
pub use crate::symmetric::{is_shared, shared};
pub use crate::token::{Wrong, given, is_good};
pub use crate::verifier::Wanted;
pub use crate::watched::{Besides, follow};
pub use call::words::granted::Place;
pub use call::words::party::{Certified, Party};

use crate::ca::Revoked;
use crate::issuers::Issuers;
use crate::sign::Tries;

/// What this gate knows others by.
#[derive(Default)]
pub struct Trust {
    /// Whether the listener speaks TLS; it does not change while the gate runs.
    tls: bool,
    /// What it speaks TLS with; `None` where the files are of no use, and then nobody is let in.
    listener: ArcSwapOption<ServerConfig>,
    issuers: ArcSwap<Issuers>,
    /// The certificates of our own making that are no longer taken.
    revoked: watch::Sender<Revoked>,
    /// Tells whoever was let in for long that the configuration is another one.
    applied: watch::Sender<()>,
    connector: Arc<Connector>,
    tries: Tries,
    /// Where our own authority is.
    state_dir: PathBuf,
    /// Wakes whoever watches the files that are named.
    changed: Notify,
}

/// Looks whether the files that `config` names for the listener can be used.
pub fn check(config: &Config) -> Result<(), TrustError> {
    config.trust.tls.as_ref().map_or(Ok(()), |tls| listener::server_config(tls).map(drop))
}

/// The first certificate of a PEM file: its holder's own.
pub fn first_certificate(file: &Path) -> Result<CertificateDer<'static>, TrustError> {
    let mut chain = certificate::chain(file)?;
    Ok(chain.swap_remove(0))
}

/// Who makes a call, as far as its connection proves it.
pub fn identity(caller: &Caller) -> Identity {
    let proven = caller.party.as_ref().map(|party| party.proven().clone()).unwrap_or_default();
    Identity { principal: Arc::clone(&caller.principal.name), proven }
}

/// Whether nobody can listen in on a caller: it speaks TLS, or from this machine (AX-42).
pub fn is_private(caller: &Caller) -> bool {
    caller.party.as_ref().is_none_or(|party| party.is_private())
}

/// Whether a caller is on this machine.
pub fn is_here(caller: &Caller) -> bool {
    let is_elsewhere = matches!(caller.subject.kind, Kind::Parent | Kind::Participant);
    !is_elsewhere && caller.party.as_ref().is_none_or(|party| party.is_here())
}

impl Trust {
    /// What `config` says.
    pub fn new(config: &Config, connector: Arc<Connector>, state_dir: &Path) -> Self {
        let trust = Self { tls: config.trust.tls.is_some(), connector, state_dir: state_dir.to_owned(), ..Self::default() };
        trust.apply(config);
        trust
    }

    /// Reads again what `config` names. What can't be used changes nothing, and is told.
    pub fn apply(&self, config: &Config) {
        let issuers = Issuers::new(&config.trust, &self.issuers.load(), &self.connector);
        issuers.sources().for_each(|source| source.read());
        self.issuers.store(Arc::new(issuers));
        self.changed.notify_one();
        let Some(tls) = config.trust.tls.as_ref().filter(|_| self.tls) else { return };
        match listener::server_config(tls) {
            Ok(server) => self.listener.store(Some(server)),
            Err(error) => tracing::warn!(%error, "the listener keeps the certificate that it has"),
        }
    }

    /// A configuration that was applied is in force.
    pub fn in_force(&self) {
        self.applied.send_replace(());
    }

    /// Hears of each configuration that comes into force.
    pub fn reapplied(&self) -> watch::Receiver<()> {
        self.applied.subscribe()
    }

    /// Whether the listener speaks TLS.
    pub fn speaks_tls(&self) -> bool {
        self.tls
    }

    /// What the listener speaks TLS with from now on.
    pub fn server(&self) -> Option<Arc<ServerConfig>> {
        self.listener.load_full()
    }

    /// Who holds a token of an issuer.
    pub fn bearer(&self, token: &str) -> Result<Bearer, Denied> {
        self.issuers.load().bearer(token)
    }

    /// Which authority a proof proves, at this gate (AX-13).
    pub fn prove(&self, proof: &Proof) -> Result<Authority, Unproven> {
        self.issuers.load().prove(proof)
    }

    /// Reads which certificates of our own making are no longer taken. A ledger that can't be read changes nothing, and is told.
    fn take_back(&self, authority: &Path) {
        match Revoked::read(authority) {
            Ok(revoked) => drop(self.revoked.send_replace(revoked)),
            Err(error) => tracing::warn!(%error, "which certificates were revoked since is not known"),
        }
    }

    /// Ready when the certificate that somebody has shown is no longer taken; never where there is none.
    pub async fn ended(&self, party: &Party) {
        let Some(certified) = party.certified() else { return std::future::pending().await };
        let mut revoked = self.revoked.subscribe();
        let taken_back = async {
            // The sender lives as long as the gate.
            drop(revoked.wait_for(|revoked| revoked.holds(&certified.names.serial)).await);
        };
        tokio::select! {
            () = taken_back => {}
            () = party.ended() => {}
        }
    }
}
