//! The trusted certificate authorities. Does not check a certificate itself: the platform's verifier does.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;

use super::RootsError;

/// Makes a configuration that trusts as `verifier` does, and resumes sessions.
pub(super) fn client_config(verifier: Arc<Verifier>) -> Result<Arc<ClientConfig>, RootsError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let failed = |source| RootsError::Platform { source: Arc::new(source) };
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(failed)?;
    Ok(Arc::new(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()))
}

/// Makes the verifier that trusts the platform's authorities and those in `extra` (PEM).
pub(super) fn verifier(extra: Option<&Path>) -> Result<Arc<Verifier>, RootsError> {
    super::install_crypto();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let extra = match extra {
        Some(file) => read(file)?,
        None => Vec::new(),
    };
    let failed = |source| RootsError::Platform { source: Arc::new(source) };
    Ok(Arc::new(Verifier::new_with_extra_roots(extra, provider).map_err(failed)?))
}

/// Reads the certificates of a PEM file. Single ones unfit as an authority are left out, as the platform does with its own.
fn read(file: &Path) -> Result<Vec<CertificateDer<'static>>, RootsError> {
    let bad = |why: String| RootsError::File { file: file.into(), why };
    let entries = CertificateDer::pem_file_iter(file).map_err(|error| bad(error.to_string()))?;
    let mut usable = Vec::new();
    for entry in entries {
        let certificate = entry.map_err(|error| bad(error.to_string()))?;
        if RootCertStore::empty().add(certificate.clone()).is_ok() {
            usable.push(certificate);
        }
    }
    if usable.is_empty() {
        return Err(bad("it holds no certificate of an authority in PEM form".into()));
    }
    Ok(usable)
}
