//! Keeps a certificate good that another gate has made for this one: asks for a new one over the connection that the old one opens, long
//! before it ends. The key stays, so that only one file changes.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use config::resolved::ClientTls;
use rcgen::KeyPair;
use runtime::tls::Connector;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::ca::{CaError, write_private};
use super::certificate::names;
use super::join::{JoinError, Place, Renewal, request};
use super::{Client, certificate};

/// How often it looks.
const LOOK: Duration = Duration::from_secs(3600);
/// A certificate with less time left than this is renewed: a third of the 90 days that it lasts.
const EARLY: Duration = Duration::from_secs(30 * 86_400);

/// Renews the certificate of `tls` at the gate at `url` whenever it is due, until `stop` fires.
pub(crate) async fn keep(url: Url, tls: ClientTls, connector: Arc<Connector>, stop: CancellationToken) {
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

/// Renews it if less than `early` is left of it; `false`: it was not due.
async fn renew_if_due(url: &Url, tls: &ClientTls, connector: &Connector, early: Duration) -> Result<bool, JoinError> {
    let Some((file, key)) = &tls.own else { return Ok(false) };
    let unusable = |error: super::TrustError| JoinError::Unreachable(error.to_string());
    let old = super::first_certificate(file).map_err(unusable)?;
    let until = names(&old).map_or(SystemTime::UNIX_EPOCH, |names| names.until);
    if until.duration_since(SystemTime::now()).is_ok_and(|left| left > early) {
        return Ok(false);
    }
    let key = certificate::key(key).map_err(unusable)?;
    let key = KeyPair::try_from(&key).map_err(CaError::from)?;
    let body = Renewal { csr: request(&key)? };
    let config = Client::new(tls.clone()).config(connector).map_err(unusable)?;
    let given = Place::of(url)?.post("/-/renew", &body, config, connector).await?;
    write_private(file, &given.certificate)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tokio::net::TcpListener;

    use super::*;
    use crate::trust::ca::{Ca, Ledger};
    use crate::trust::join::enrol;
    use config::secret::SystemSources;
    use runtime::worker::Workers;

    use crate::Gateway;

    #[tokio::test]
    async fn a_certificate_is_renewed_when_little_is_left_of_it_and_its_key_stays() {
        let (state, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let ca = Ca::init(&Ca::dir(state.path()), &["localhost".into()]).unwrap();
        let (certificate, key, client_ca) = (ca.gate_file(), ca.gate_key_file(), ca.authority_file());
        let toml = format!("[tls]\ncertificate = {certificate:?}\nkey = {key:?}\nclient_ca = {client_ca:?}\n");
        let config = config::parse(&toml, Path::new("banyan.toml"), &SystemSources).unwrap();
        let gate = Gateway::start(config, state.path().to_owned());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url: Url = format!("https://{}", listener.local_addr().unwrap()).parse().unwrap();
        let stop = CancellationToken::new();
        let until = stop.clone();
        let serving = tokio::spawn(gate.serve_http(listener, until, Workers::default()));

        let token = ca.invite(None, Duration::from_secs(60)).unwrap();
        let joined = enrol(own.path(), &url, &token, Some("edge")).await.unwrap();
        let read = || (std::fs::read(&joined.certificate).unwrap(), std::fs::read(&joined.key).unwrap());
        let before = read();
        let tls = ClientTls { own: Some((joined.certificate.clone(), joined.key.clone())), ca: Some(joined.ca.clone()) };
        let connector = Connector::with_extra_roots(None);
        assert!(!renew_if_due(&url, &tls, &connector, EARLY).await.unwrap());
        assert_eq!(read(), before);
        assert!(renew_if_due(&url, &tls, &connector, EARLY * 4).await.unwrap());
        let after = read();
        assert!(after.0 != before.0 && after.1 == before.1);
        // The new one opens connections, too.
        assert!(renew_if_due(&url, &tls, &connector, EARLY * 4).await.unwrap());

        Ledger::revoke(&Ca::dir(state.path()), "edge").unwrap();
        assert!(renew_if_due(&url, &tls, &connector, EARLY * 4).await.is_err());
        stop.cancel();
        serving.await.unwrap();
    }
}
