//! Peers and their identity: certificates, tokens and proofs, checked at this hop and for this hop only.
//!
//! Leaves rights to others, and neither keeps nor sends on an incoming credential.

pub mod ca;
pub mod certificate;
pub mod client;
pub mod ect;
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
use banyan_model::PrincipalKind;
use config::resolved::Config;
use mesh_proto::authority::{Authority, Identity};
use mesh_proto::message::Proof;
use runtime::tls::Connector;
use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use tokio::sync::{Notify, watch};

use call::tree::caller::Caller;

pub use crate::certificate::names;
pub use crate::client::{Client, anonymous};
pub use crate::error::TrustError;
pub use crate::issuers::{Bearer, METADATA, ProofRefusal, TokenRefusal, challenge, challenge_for, metadata};
pub use crate::listener::accept;
pub use crate::renewal::keep;
pub use crate::sign::{NotSigned, join as admit, may_renew, may_try, renew};
pub use crate::symmetric::{RoomClaims, is_shared, shared};
pub use crate::token::{Wrong, given, is_good};
pub use crate::verifier::AcceptedServer;
pub use crate::watched::{Besides, follow};
pub use call::words::granted::Place;
pub use call::words::party::{Party, VerifiedCertificate};

use crate::ca::RevokedSerials;
use crate::issuers::Issuers;
use crate::sign::Tries;

/// Credentials in force: TLS, signers, and revocations.
#[derive(Default)]
pub struct Trust {
    /// TLS on the listener; fixed while the gate runs.
    tls: bool,
    /// TLS configuration of the listener; `None` while the files are unusable, and nobody is let in.
    listener: ArcSwapOption<ServerConfig>,
    issuers: ArcSwap<Issuers>,
    /// Revoked certificates of our own authority.
    revoked: watch::Sender<RevokedSerials>,
    /// Signals a new configuration to those who judged by the old one for long.
    applied: watch::Sender<()>,
    connector: Arc<Connector>,
    tries: Tries,
    state_dir: PathBuf,
    /// Wakes the watch of the files when their paths change.
    changed: Notify,
}

/// Checks that the files for the listener in `config` are usable.
pub fn check(config: &Config) -> Result<(), TrustError> {
    config.trust.tls.as_ref().map_or(Ok(()), |tls| listener::server_config(tls).map(drop))
}

/// Reads the first certificate of a PEM file: its holder's own.
pub fn first_certificate(file: &Path) -> Result<CertificateDer<'static>, TrustError> {
    let mut chain = certificate::chain(file)?;
    Ok(chain.swap_remove(0))
}

/// Identity of a caller, as far as its connection proves one.
pub fn identity(caller: &Caller) -> Identity {
    let proven = caller.party.as_ref().map(|party| party.proven().clone()).unwrap_or_default();
    Identity { principal: Arc::clone(&caller.principal.name), proven }
}

/// Checks that a caller can't be overheard: by TLS, or on this machine (AX-42).
pub fn is_private(caller: &Caller) -> bool {
    caller.party.as_ref().is_none_or(|party| party.is_private())
}

/// Checks that a caller is on this machine.
pub fn is_here(caller: &Caller) -> bool {
    let is_elsewhere = matches!(caller.subject.kind, PrincipalKind::Parent | PrincipalKind::Participant);
    !is_elsewhere && caller.party.as_ref().is_none_or(|party| party.is_here())
}

impl Trust {
    /// Reads the credentials named by `config`.
    pub fn new(config: &Config, connector: Arc<Connector>, state_dir: &Path) -> Self {
        let trust = Self { tls: config.trust.tls.is_some(), connector, state_dir: state_dir.to_owned(), ..Self::default() };
        trust.apply(config);
        trust
    }

    /// Reads again the files named by `config`. An unusable file changes nothing and is logged.
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

    /// Signals that the configuration last applied is in force.
    pub fn in_force(&self) {
        self.applied.send_replace(());
    }

    /// Subscribes to configurations as they come into force.
    pub fn reapplied(&self) -> watch::Receiver<()> {
        self.applied.subscribe()
    }

    /// Checks that the listener speaks TLS.
    pub fn speaks_tls(&self) -> bool {
        self.tls
    }

    /// TLS configuration for new connections of the listener.
    pub fn server(&self) -> Option<Arc<ServerConfig>> {
        self.listener.load_full()
    }

    /// Verifies a token and returns its holder.
    pub fn bearer(&self, token: &str) -> Result<Bearer, TokenRefusal> {
        self.issuers.load().bearer(token)
    }

    /// Verifies a proof and returns the authority named in it (AX-13).
    pub fn prove(&self, proof: &Proof) -> Result<Authority, ProofRefusal> {
        self.issuers.load().prove(proof)
    }

    /// Reads revoked certificates from the ledger. An unreadable ledger changes nothing and is logged.
    fn take_back(&self, authority: &Path) {
        match RevokedSerials::read(authority) {
            Ok(revoked) => drop(self.revoked.send_replace(revoked)),
            Err(error) => tracing::warn!(%error, "which certificates were revoked since is not known"),
        }
    }

    /// Completes when the certificate of `party` is revoked or expires; never for a party without one.
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
