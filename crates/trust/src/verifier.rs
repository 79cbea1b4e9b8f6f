//! Which server is the right one, where that is not left to this machine's authorities: one certificate, or the gate of one authority.
//! Who a client is, the listener's own verifier says.

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

/// Which server is the right one.
#[derive(Debug)]
pub enum Wanted {
    /// Whoever has this very certificate.
    Certificate(CertificateDer<'static>),
    /// The gate that holds the key of the authority with this SHA-256, under whatever name it is reached.
    GateOf([u8; 32]),
    /// Whoever one of these authorities has certified for the name by which it is reached, or as its own gate.
    CertifiedBy(RootCertStore),
}

/// Holds a server to what is wanted.
pub struct Verifier {
    wanted: Wanted,
    provider: CryptoProvider,
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verifier")
    }
}

impl Verifier {
    /// Makes a verifier of the wanted certificates.
    pub fn new(wanted: Wanted) -> Arc<Self> {
        Arc::new(Self { wanted, provider: aws_lc_rs::default_provider() })
    }

    fn chain(&self, chain: Chain<'_>, roots: &RootCertStore) -> Result<(), Error> {
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&chain.parsed()?, roots, chain.between, chain.now, algorithms)
    }
}

/// What a server has shown, and when.
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

    /// Whether it is the certificate of the gate that holds the authority's key.
    fn is_of_gate(&self) -> bool {
        names(self.own).is_some_and(|names| names.uris.iter().any(|uri| uri == GATE_URI))
    }

    /// The authority with this fingerprint, if it was shown with the rest.
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
            Wanted::Certificate(wanted) if wanted == own => {}
            Wanted::Certificate(_) => return Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)),
            Wanted::GateOf(authority) => {
                self.chain(chain, &chain.root(authority)?)?;
                if !chain.is_of_gate() {
                    return Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure));
                }
            }
            Wanted::CertifiedBy(roots) => {
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
