//! The gate's half of joining and renewing: takes a request for a certificate over TLS and asks the authority of this state directory.
//! Who may have one is not decided here.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};

use super::Party;
use super::ca::{Ca, CaError, Signed};
use super::join::{Admission, Admitted, Renewal};
use crate::Inner;

/// So many tries to join are taken in a [`WINDOW`], whoever makes them.
const TRIES: u32 = 30;
const WINDOW: Duration = Duration::from_secs(60);

/// Why nobody is given a certificate.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotSigned {
    /// The authority says no.
    #[error(transparent)]
    Authority(#[from] CaError),
    /// It did not come over TLS.
    #[error("a certificate is asked for over TLS: let this gate listen with one (`banyan ca init`), and write https:// in the address")]
    NotOverTls,
    /// Too many have tried.
    #[error("too many have tried to join: try again in a minute")]
    TooOften,
}

/// How often somebody has tried to join.
#[derive(Debug, Default)]
pub(super) struct Tries(Mutex<Option<(Instant, u32)>>);

impl Tries {
    /// Counts one more; `false`: it is one too many.
    fn count(&self) -> bool {
        let mut tries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, count) = tries.filter(|(since, _)| since.elapsed() < WINDOW).unwrap_or((Instant::now(), 0));
        *tries = Some((since, count.saturating_add(1)));
        count < TRIES
    }
}

/// Uses up a join token and answers with a certificate.
pub(crate) async fn join(gateway: &Arc<Inner>, party: Option<&Arc<Party>>, asked: Admission) -> Result<Admitted, NotSigned> {
    over_tls(party)?;
    if !gateway.trust.tries.count() {
        return Err(NotSigned::TooOften);
    }
    let admitted = with_authority(gateway, move |ca| {
        let signed = ca.admit(&asked.id, &asked.secret, &asked.name, &asked.csr)?;
        Ok(admitted(ca, signed))
    });
    admitted.await.inspect(|admitted| tracing::info!(name = admitted.name, "a gate has joined"))
}

/// Answers with a new certificate in place of the one that was shown.
pub(crate) async fn renew(gateway: &Arc<Inner>, party: Option<&Arc<Party>>, asked: Renewal) -> Result<Admitted, NotSigned> {
    over_tls(party)?;
    let certified = party.and_then(|party| party.certified()).ok_or(CaError::Stranger)?;
    let serial = certified.names.serial.clone();
    with_authority(gateway, move |ca| Ok(admitted(ca, ca.renew(&serial, &asked.csr)?))).await
}

fn over_tls(party: Option<&Arc<Party>>) -> Result<(), NotSigned> {
    if party.is_some_and(|party| party.is_private()) { Ok(()) } else { Err(NotSigned::NotOverTls) }
}

/// Files and signatures hold up whoever else is served on this thread.
async fn with_authority<T: Send + 'static>(
    gateway: &Inner,
    ask: impl FnOnce(&Ca) -> Result<T, CaError> + Send + 'static,
) -> Result<T, NotSigned> {
    let dir = Ca::dir(&gateway.state_dir);
    let asked = tokio::task::spawn_blocking(move || ask(&Ca::open(&dir)?)).await;
    Ok(asked.map_err(|error| CaError::Made(error.to_string()))??)
}

fn admitted(ca: &Ca, signed: Signed) -> Admitted {
    let until = signed.until.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    Admitted { certificate: signed.certificate, authority: ca.pem().to_owned(), name: signed.name, until }
}
