//! Renewal of a joined gate's certificate by a running gate. Does not look into certificates.

use std::path::Path;

use tokio::net::TcpListener;

use std::time::Duration;

use config::resolved::ClientTls;
use config::secret::SystemSources;
use runtime::tls::Connector;
use runtime::worker::Workers;
use tokio_util::sync::CancellationToken;
use trust::ca::{Ca, Ledger};
use trust::join::enrol;
use trust::renewal::{EARLY, renew_if_due};
use url::Url;

use crate::Gateway;

#[tokio::test]
async fn an_ending_certificate_is_renewed_with_its_key() {
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
