//! TLS towards servers: credentials shown, and servers accepted. Opens no connection.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use config::resolved::ClientTls;
use runtime::tls::Connector;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, version};

use crate::verifier::{AcceptedServer, Verifier};
use crate::{TrustError, certificate};

/// TLS towards one server: its files, and the configuration last made of them.
///
/// Changed files are read again with the next connection, so that replacing a certificate renews it.
#[derive(Debug)]
pub struct Client {
    files: ClientTls,
    made: Mutex<Option<(Stamps, Arc<ClientConfig>)>>,
}

/// Modification times of the files.
type Stamps = [Option<SystemTime>; 3];

impl Client {
    /// As `files` say.
    pub fn new(files: ClientTls) -> Self {
        Self { files, made: Mutex::new(None) }
    }

    /// Configuration for the next connection, without ALPN. TLS 1.3 only where a certificate is shown, since the server is a gate then
    /// (AX-42).
    pub fn config(&self, connector: &Connector) -> Result<Arc<ClientConfig>, TrustError> {
        let now = self.stamps();
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((then, config)) = &*made
            && *then == now
        {
            return Ok(Arc::clone(config));
        }
        let config = Arc::new(self.make(connector)?);
        *made = Some((now, Arc::clone(&config)));
        Ok(config)
    }

    fn make(&self, connector: &Connector) -> Result<ClientConfig, TrustError> {
        let verifier: Arc<dyn ServerCertVerifier> = match &self.files.ca {
            Some(ca) => Verifier::new(AcceptedServer::CertifiedBy(certificate::roots(ca)?)),
            None => connector.verifier().map_err(|error| TrustError::Roots(error.to_string()))?,
        };
        let provider = Arc::new(aws_lc_rs::default_provider());
        let versions = if self.files.own.is_some() { &[&version::TLS13][..] } else { rustls::ALL_VERSIONS };
        let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(versions);
        let builder = builder.map_err(|error| TrustError::Roots(error.to_string()))?;
        let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
        let Some((own, key)) = &self.files.own else { return Ok(builder.with_no_client_auth()) };
        let pair = |error: rustls::Error| TrustError::Pair { certificate: own.clone(), key: key.clone(), why: error.to_string() };
        builder.with_client_auth_cert(certificate::chain(own)?, certificate::key(key)?).map_err(pair)
    }

    fn stamps(&self) -> Stamps {
        let stamp = |file: &Path| fs::metadata(file).and_then(|file| file.modified()).ok();
        let own = self.files.own.as_ref();
        [own.and_then(|(own, _)| stamp(own)), own.and_then(|(_, key)| stamp(key)), self.files.ca.as_deref().and_then(stamp)]
    }
}

/// TLS 1.3 towards the server `wanted`, without a client certificate.
pub fn anonymous(wanted: AcceptedServer) -> Result<ClientConfig, rustls::Error> {
    let builder =
        ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider())).with_protocol_versions(&[&version::TLS13])?;
    Ok(builder.dangerous().with_custom_certificate_verifier(Verifier::new(wanted)).with_no_client_auth())
}
