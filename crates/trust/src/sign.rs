//! The certifying gate's half of joining and renewing: takes a request over TLS and asks the authority of this state directory. Decides
//! nothing about rights.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};

use crate::Trust;
use crate::ca::{Ca, CaError, SignedCertificate};
use crate::join::{Admission, AdmissionAnswer, Renewal};
use call::words::address::Address;
use call::words::party::{Party, VerifiedCertificate};
use call::words::refusal::Refusal;

/// Most tries to join from one address in a [`WINDOW`], and most addresses.
const TRIES: u32 = 30;
const ADDRESSES: usize = 1000;
const WINDOW: Duration = Duration::from_secs(60);

/// Reasons to refuse a certificate.
#[derive(Debug, thiserror::Error)]
pub enum NotSigned {
    #[error(transparent)]
    Authority(#[from] CaError),
    /// The request did not come over TLS.
    #[error("a certificate is asked for over TLS: let this gate listen with one (`banyan ca init`), and write https:// in the address")]
    NotOverTls,
    #[error("too many have tried to join: try again in a minute")]
    TooOften,
}

impl From<NotSigned> for Refusal {
    fn from(why: NotSigned) -> Self {
        match &why {
            NotSigned::Authority(CaError::Missing { .. }) => {
                Self::not_found("this gate has no authority: make one with `banyan ca init` on its machine")
            }
            NotSigned::Authority(CaError::Name { .. } | CaError::Request | CaError::Stranger | CaError::Taken { .. } | CaError::Token)
            | NotSigned::NotOverTls
            | NotSigned::TooOften => Self::refused(why.to_string()),
            // Trouble with our own files is for the operator, not for a stranger.
            NotSigned::Authority(error) => {
                tracing::error!(%error, "nobody can join");
                Self::failed("this gate's authority is broken: its log says how")
            }
        }
    }
}

/// Tries to join in the current window, by address.
#[derive(Debug, Default)]
pub struct Tries(Mutex<Window>);

#[derive(Debug, Default)]
struct Window {
    since: Option<Instant>,
    by_address: HashMap<Option<Address>, u32>,
}

impl Tries {
    /// Counts a try; `false` beyond the limit.
    fn count(&self, from: Option<Address>, now: Instant) -> bool {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if window.since.is_none_or(|since| now.saturating_duration_since(since) >= WINDOW) {
            *window = Window { since: Some(now), by_address: HashMap::new() };
        }
        if window.by_address.len() >= ADDRESSES && !window.by_address.contains_key(&from) {
            return false;
        }
        let tries = window.by_address.entry(from).or_default();
        *tries = tries.saturating_add(1);
        *tries <= TRIES
    }
}

/// Admits a try to join, before its body is read.
pub fn may_try(trust: &Trust, party: Option<&Arc<Party>>, from: Option<&Address>) -> Result<(), NotSigned> {
    over_tls(party)?;
    if trust.tries.count(from.copied(), Instant::now()) { Ok(()) } else { Err(NotSigned::TooOften) }
}

/// Returns the certificate that a peer shows for renewal.
pub fn may_renew(party: Option<&Arc<Party>>) -> Result<&VerifiedCertificate, NotSigned> {
    over_tls(party)?;
    Ok(party.and_then(|party| party.certified()).ok_or(CaError::Stranger)?)
}

/// Uses up a join token and answers with a certificate. [`may_try`] comes first.
pub async fn join(trust: &Trust, asked: Admission) -> Result<AdmissionAnswer, NotSigned> {
    let admitted = with_authority(trust, move |ca| {
        let signed = ca.admit(&asked.id, &asked.secret, &asked.name, &asked.csr)?;
        Ok(admitted(ca, signed))
    });
    admitted.await.inspect(|admitted| tracing::info!(name = admitted.name, "a gate has joined"))
}

/// Answers with a new certificate in place of the one shown.
pub async fn renew(trust: &Trust, shown: &VerifiedCertificate, asked: Renewal) -> Result<AdmissionAnswer, NotSigned> {
    let serial = shown.names.serial.clone();
    with_authority(trust, move |ca| Ok(admitted(ca, ca.renew(&serial, &asked.csr)?))).await
}

fn over_tls(party: Option<&Arc<Party>>) -> Result<(), NotSigned> {
    if party.is_some_and(|party| party.is_private()) { Ok(()) } else { Err(NotSigned::NotOverTls) }
}

// Files and signatures would hold up other clients of this thread.
async fn with_authority<T: Send + 'static>(
    trust: &Trust,
    ask: impl FnOnce(&Ca) -> Result<T, CaError> + Send + 'static,
) -> Result<T, NotSigned> {
    let dir = Ca::dir(&trust.state_dir);
    let asked = tokio::task::spawn_blocking(move || ask(&Ca::open(&dir)?)).await;
    Ok(asked.map_err(|error| CaError::Made(error.to_string()))??)
}

fn admitted(ca: &Ca, signed: SignedCertificate) -> AdmissionAnswer {
    let until = signed.until.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    AdmissionAnswer { certificate: signed.certificate, authority: ca.pem().to_owned(), name: signed.name, until }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    #[test]
    fn l5_too_many_tries_keep_nobody_else_from_joining() {
        let (tries, now) = (Tries::default(), Instant::now());
        let from = |last| Some(Address::from(IpAddr::from([192, 0, 2, last])));
        assert_eq!((0..100).filter(|_| tries.count(from(1), now)).count(), TRIES as usize);
        assert!(tries.count(from(2), now) && !tries.count(from(1), now + WINDOW / 2));
        assert!(tries.count(from(1), now + WINDOW));
        let others = (0..10_000u32).filter(|n| tries.count(Some(IpAddr::from(n.to_be_bytes()).into()), now + WINDOW));
        assert_eq!(others.count(), ADDRESSES - 1);
        assert_eq!(tries.0.lock().unwrap().by_address.len(), ADDRESSES);
    }
}
