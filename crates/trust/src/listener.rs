//! TLS 1.3 on the listener: configuration and handshake. Does not read what comes over a connection.

use std::sync::Arc;
use std::time::Duration;

use config::resolved::Tls;
use rustls::crypto::aws_lc_rs;
use rustls::server::{NoClientAuth, WebPkiClientVerifier, danger::ClientCertVerifier};
use rustls::{AlertDescription, ServerConfig, version};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::TrustError;
use crate::certificate;
use call::words::party::Party;

/// Longest handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Reads the files anew. A session that began with other files is not resumed.
pub fn server_config(tls: &Tls) -> Result<Arc<ServerConfig>, TrustError> {
    runtime::tls::install_crypto();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let pair = |why: String| TrustError::Pair { certificate: tls.certificate.clone(), key: tls.key.clone(), why };
    let clients: Arc<dyn ClientCertVerifier> = match &tls.client_ca {
        None => Arc::new(NoClientAuth),
        Some(ca) => {
            let roots = Arc::new(certificate::roots(ca)?);
            // A joining gate has no certificate yet, so a missing one is for the door to refuse.
            let builder = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider)).allow_unauthenticated();
            builder.build().map_err(|error| TrustError::file(ca, &error, "name the PEM file of an authority"))?
        }
    };
    let builder = ServerConfig::builder_with_provider(provider).with_protocol_versions(&[&version::TLS13]);
    let builder = builder.map_err(|error| pair(error.to_string()))?.with_client_cert_verifier(clients);
    let (chain, key) = (certificate::chain(&tls.certificate)?, certificate::key(&tls.key)?);
    let mut config = builder.with_single_cert(chain, key).map_err(|error| pair(error.to_string()))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config.ticketer = aws_lc_rs::Ticketer::new().map_err(|error| pair(error.to_string()))?;
    Ok(Arc::new(config))
}

/// Shakes hands and returns the stream with the peer; `None` after a failed handshake, which is logged.
pub async fn accept(config: Arc<ServerConfig>, stream: TcpStream) -> Option<(Box<TlsStream<TcpStream>>, Arc<Party>)> {
    let shaken = tokio::time::timeout(HANDSHAKE, TlsAcceptor::from(config).accept(stream)).await;
    match shaken {
        Ok(Ok(stream)) => {
            let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
            let is_here = stream.get_ref().0.peer_addr().is_ok_and(|address| address.ip().to_canonical().is_loopback());
            let party = Party::tls(certificate.and_then(|certificate| certificate::names(certificate)), is_here);
            if certificate.is_some() && party.certified().is_none() {
                tracing::warn!(
                    "a client certificate names nobody: it needs a DNS name or a spiffe:// URI among its subject alternative names"
                );
            }
            Some((Box::new(stream), party))
        }
        Ok(Err(error)) => {
            log_failure(&error);
            None
        }
        Err(_) => None,
    }
}

/// Logs a failed handshake: a client without a connection can't be told, but the operator can.
fn log_failure(error: &std::io::Error) {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::PeerIncompatible(why)) => {
            tracing::warn!(?why, "a client was refused that does not speak TLS 1.3: let it use a newer TLS library");
        }
        Some(rustls::Error::InvalidCertificate(why)) => tracing::warn!(%why, "a client certificate was refused"),
        Some(rustls::Error::AlertReceived(AlertDescription::UnknownCA | AlertDescription::BadCertificate)) => {
            tracing::warn!("a client does not trust this gate's certificate: give it the file of the authority (`ca`)");
        }
        Some(rustls::Error::InvalidMessage(_)) => {
            tracing::debug!(%error, "somebody came who does not speak TLS: clients use https:// here")
        }
        Some(_) | None => tracing::debug!(%error, "a TLS handshake failed"),
    }
}
