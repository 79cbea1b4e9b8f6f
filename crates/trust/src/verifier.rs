//! Verifies a server by one certificate or by the gate of one authority, where this machine's authorities do not decide. Clients are
//! verified by the listener.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::certificate::{fingerprint, names};
use call::words::party::GATE_URI;

/// Server that a client accepts.
#[derive(Debug)]
pub enum AcceptedServer {
    /// Holder of exactly this certificate.
    Certificate(CertificateDer<'static>),
    /// Gate that holds the key of the authority with this SHA-256, under any name.
    GateOf([u8; 32]),
    /// Server certified by one of these authorities for the name under which it is reached, or as the authority's own gate.
    CertifiedBy(RootCertStore),
}

/// Accepts one server only.
pub struct Verifier {
    wanted: AcceptedServer,
    provider: CryptoProvider,
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verifier")
    }
}

impl Verifier {
    /// Makes a verifier of the wanted certificates.
    pub fn new(wanted: AcceptedServer) -> Arc<Self> {
        Arc::new(Self { wanted, provider: aws_lc_rs::default_provider() })
    }

    fn chain(&self, chain: Chain<'_>, roots: &RootCertStore) -> Result<(), Error> {
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&chain.parsed()?, roots, chain.between, chain.now, algorithms)
    }
}

/// Certificates shown by a server, and the time.
#[derive(Clone, Copy)]
struct Chain<'a> {
    own: &'a CertificateDer<'a>,
    between: &'a [CertificateDer<'a>],
    now: UnixTime,
}

impl Chain<'_> {
    fn parsed(&self) -> Result<ParsedCertificate<'_>, Error> {
        ParsedCertificate::try_from(self.own)
    }

    /// Checks for the certificate of the gate that holds the authority's key.
    fn is_of_gate(&self) -> bool {
        names(self.own).is_some_and(|names| names.uris.iter().any(|uri| uri == GATE_URI))
    }

    /// Finds the authority with this fingerprint among the certificates shown.
    fn root(&self, wanted: &[u8; 32]) -> Result<RootCertStore, Error> {
        let found = self.between.iter().find(|certificate| fingerprint(certificate) == *wanted);
        let root = found.ok_or(Error::InvalidCertificate(CertificateError::UnknownIssuer))?;
        let mut roots = RootCertStore::empty();
        roots.add(root.clone())?;
        Ok(roots)
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let chain = Chain { own, between, now };
        match &self.wanted {
            AcceptedServer::Certificate(wanted) if wanted == own => {}
            AcceptedServer::Certificate(_) => return Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)),
            AcceptedServer::GateOf(authority) => {
                self.chain(chain, &chain.root(authority)?)?;
                if !chain.is_of_gate() {
                    return Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure));
                }
            }
            AcceptedServer::CertifiedBy(roots) => {
                self.chain(chain, roots)?;
                if !chain.is_of_gate() {
                    verify_server_name(&chain.parsed()?, name)?;
                }
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
