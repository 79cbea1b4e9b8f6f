//! Certificates and keys in files, and the names in a certificate. Does not verify one; rustls does.

use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::TrustError;
use call::words::party::Names;

/// Reads the names in a certificate; `None` for bytes of another kind.
pub fn names(certificate: &CertificateDer<'_>) -> Option<Names> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let alternative = parsed.subject_alternative_name().ok()?;
    let (mut dns, mut uris, mut ips) = (Vec::new(), Vec::new(), Vec::new());
    for name in alternative.iter().flat_map(|names| &names.value.general_names) {
        match name {
            GeneralName::DNSName(name) => dns.push((*name).to_owned()),
            GeneralName::URI(uri) => uris.push((*uri).to_owned()),
            GeneralName::IPAddress(bytes) => ips.extend(ip(bytes)),
            GeneralName::DirectoryName(_)
            | GeneralName::EDIPartyName(_)
            | GeneralName::Invalid(..)
            | GeneralName::OtherName(..)
            | GeneralName::RFC822Name(_)
            | GeneralName::RegisteredID(_)
            | GeneralName::X400Address(_) => {}
        }
    }
    let until = u64::try_from(parsed.validity().not_after.timestamp()).unwrap_or(0);
    let until = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(until)).unwrap_or(SystemTime::UNIX_EPOCH);
    Some(Names { dns, uris, ips, serial: hex(parsed.raw_serial()), until })
}

/// Reads the public key in a certificate: the DER of its `SubjectPublicKeyInfo`. `None` for bytes of another kind.
pub fn public_key(certificate: &CertificateDer<'_>) -> Option<Vec<u8>> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    Some(parsed.public_key().raw.to_vec())
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

/// Reads the certificates of a PEM file, at least one.
pub fn chain(file: &Path) -> Result<Vec<CertificateDer<'static>>, TrustError> {
    let bad = |why: String| TrustError::file(file, &why, "it has to hold certificates in PEM form (-----BEGIN CERTIFICATE-----)");
    let entries = CertificateDer::pem_file_iter(file).map_err(|error| bad(error.to_string()))?;
    let chain = entries.collect::<Result<Vec<_>, _>>().map_err(|error| bad(error.to_string()))?;
    if chain.is_empty() { Err(bad("there is no certificate in it".into())) } else { Ok(chain) }
}

/// Reads the private key of a PEM file.
pub fn key(file: &Path) -> Result<PrivateKeyDer<'static>, TrustError> {
    let fix = "it has to hold one private key in PEM form, readable by whoever runs the gate";
    PrivateKeyDer::from_pem_file(file).map_err(|error| TrustError::file(file, &error, fix))
}

/// Reads the authorities of a PEM file.
pub fn roots(file: &Path) -> Result<RootCertStore, TrustError> {
    let mut roots = RootCertStore::empty();
    for certificate in chain(file)? {
        let fix = "name the file of the authority, the one that signed the certificates";
        roots.add(certificate).map_err(|error| TrustError::file(file, &error, fix))?;
    }
    Ok(roots)
}

/// SHA-256 of a certificate.
pub fn fingerprint(certificate: &CertificateDer<'_>) -> [u8; 32] {
    Sha256::digest(certificate).into()
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
