//! Renews a certificate made by another gate for this one, over a connection authenticated by the old certificate, long before it ends. The
//! key stays, so that only one file changes.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use config::resolved::ClientTls;
use rcgen::KeyPair;
use runtime::tls::Connector;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::ca::{CaError, write_private};
use crate::certificate::names;
use crate::join::{JoinError, Place, Renewal, request};
use crate::{Client, certificate};

/// Interval between checks.
const LOOK: Duration = Duration::from_secs(3600);
/// Remaining time below which a certificate is renewed: a third of its 90 days.
pub const EARLY: Duration = Duration::from_secs(30 * 86_400);

/// Renews the certificate of `tls` at the gate at `url` whenever due, until `stop` fires.
pub async fn keep(url: Url, tls: ClientTls, connector: Arc<Connector>, stop: CancellationToken) {
    loop {
        match renew_if_due(&url, &tls, &connector, EARLY).await {
            Ok(false) => {}
            Ok(true) => tracing::info!(%url, "the certificate for this gate's parent was renewed"),
            Err(error) => {
                tracing::warn!(%url, %error, "the certificate for this gate's parent is not renewed; it is tried again in an hour")
            }
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = stop.cancelled() => return,
        }
    }
}

/// Renews the certificate if less than `early` is left; returns `false` when not due.
pub async fn renew_if_due(url: &Url, tls: &ClientTls, connector: &Connector, early: Duration) -> Result<bool, JoinError> {
    let Some((file, key)) = &tls.own else { return Ok(false) };
    let unusable = |error: crate::TrustError| JoinError::Unreachable(error.to_string());
    let old = crate::first_certificate(file).map_err(unusable)?;
    let until = names(&old).map_or(SystemTime::UNIX_EPOCH, |names| names.until);
    if until.duration_since(SystemTime::now()).is_ok_and(|left| left > early) {
        return Ok(false);
    }
    let key = certificate::key(key).map_err(unusable)?;
    let key = KeyPair::try_from(&key).map_err(CaError::from)?;
    let body = Renewal { csr: request(&key)? };
    let config = Client::new(tls.clone()).config(connector).map_err(unusable)?;
    let given = Place::of_url(url)?.post("/-/renew", &body, config, connector).await?;
    write_private(file, &given.certificate)?;
    Ok(true)
}
