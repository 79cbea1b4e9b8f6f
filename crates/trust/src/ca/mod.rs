//! Our own certificate authority: its key, the certificates issued, and their holders. Stands in the state directory of the gate that
//! certifies its children. Speaks no protocol.

pub mod error;
pub mod files;
pub mod join_token;
pub mod ledger;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mesh_proto::authority::Authority;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PublicKeyData, SanType, SerialNumber,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::time::ASN1Time;

use crate::certificate::{fingerprint, hex, names};
use call::words::party::GATE_URI;

pub use crate::ca::error::CaError;
pub use crate::ca::files::{make_dir, write as write_private};
pub use crate::ca::join_token::JoinToken;
pub use crate::ca::ledger::RevokedSerials;
pub use crate::ca::ledger::{IssuedCertificate, Ledger};

const DAY: Duration = Duration::from_secs(86_400);
/// Validity of an authority.
const AUTHORITY_LASTS: Duration = Duration::from_secs(3650 * 86_400);
/// Validity of the gate's own certificate, which the gate renews.
const GATE_LASTS: Duration = Duration::from_secs(365 * 86_400);
/// Validity of a certificate for another gate, which renews it over its link.
const CHILD_LASTS: Duration = Duration::from_secs(90 * 86_400);

/// Our own certificate authority.
pub struct Ca {
    dir: PathBuf,
    /// Certificate of the authority, in PEM.
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate just issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedCertificate {
    /// Certificate, in PEM.
    pub certificate: String,
    /// DNS name in the certificate.
    pub name: String,
    pub until: SystemTime,
}

impl Ca {
    /// Directory of the authority below a state directory.
    pub fn dir(state_dir: &Path) -> PathBuf {
        state_dir.join("ca")
    }

    /// Makes an authority in `dir` and a certificate for its own gate, reached under `names`: DNS names and IP addresses.
    pub fn init(dir: &Path, names: &[String]) -> Result<Self, CaError> {
        if dir.join(AUTHORITY).exists() {
            return Err(CaError::Exists { dir: dir.to_owned() });
        }
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, format!("Banyan authority {}", &hex(&serial())[..8]));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        last(&mut params, AUTHORITY_LASTS)?;
        let certificate = params.self_signed(&key)?;
        make_dir(dir)?;
        // The certificate comes last: where it is, everything is.
        files::write(&dir.join(AUTHORITY_KEY), &key.serialize_pem())?;
        let ca = Self { dir: dir.to_owned(), pem: certificate.pem(), issuer: Issuer::new(params, key) };
        ca.certify_gate(names)?;
        files::write(&dir.join(AUTHORITY), &ca.pem)?;
        Ok(ca)
    }

    /// Opens the authority in `dir`.
    pub fn open(dir: &Path) -> Result<Self, CaError> {
        if !dir.join(AUTHORITY).exists() {
            return Err(CaError::Missing { dir: dir.to_owned() });
        }
        let pem = files::read(&dir.join(AUTHORITY))?;
        let key = KeyPair::from_pem(&files::read(&dir.join(AUTHORITY_KEY))?)?;
        let issuer = Issuer::from_ca_cert_pem(&pem, key)?;
        Ok(Self { dir: dir.to_owned(), pem, issuer })
    }

    /// File of the authority's certificate.
    pub fn authority_file(&self) -> PathBuf {
        self.dir.join(AUTHORITY)
    }

    /// File of the gate's own certificate, followed by the authority's.
    pub fn gate_file(&self) -> PathBuf {
        self.dir.join(GATE)
    }

    /// File of the gate's own key.
    pub fn gate_key_file(&self) -> PathBuf {
        self.dir.join(GATE_KEY)
    }

    /// File of the ledger.
    pub fn ledger_file(dir: &Path) -> PathBuf {
        dir.join(ledger::FILE)
    }

    /// The authority's certificate, in PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// SHA-256 of the authority's certificate.
    pub fn fingerprint(&self) -> Result<[u8; 32], CaError> {
        Ok(fingerprint(&first(&self.pem)?))
    }

    /// Makes a token that admits one gate within `lasts`, under `name` if given.
    pub fn invite(&self, name: Option<&str>, lasts: Duration) -> Result<JoinToken, CaError> {
        let name = name.map(dns_name).transpose()?;
        let token = JoinToken::new(self.fingerprint()?)?;
        let until = SystemTime::now();
        let until = until.checked_add(lasts).unwrap_or(until);
        Ledger::change(&self.dir, |ledger| {
            ledger.invite(&token, name.as_ref().map(Authority::dns_name), until);
            Ok(token.clone())
        })
    }

    /// Uses up a token and certifies the key of `csr` (PEM).
    pub fn admit(&self, id: &str, secret: &str, wanted: &str, csr: &str) -> Result<SignedCertificate, CaError> {
        let request = CertificateSigningRequestParams::from_pem(csr).map_err(|_| CaError::Request)?;
        let wanted = dns_name(wanted)?;
        let now = SystemTime::now();
        // A token is used up before a certificate is made: a crash in between costs a token, never two certificates.
        let name = Ledger::change(&self.dir, |ledger| ledger.use_up(id, secret, wanted.dns_name(), now))?;
        let signed = self.sign(&request.public_key, &[SanType::DnsName(name.as_str().try_into()?)], CHILD_LASTS)?;
        self.note(&name, &signed, now)
    }

    /// Certifies `csr` for the holder of an unrevoked certificate.
    pub fn renew(&self, serial: &str, csr: &str) -> Result<SignedCertificate, CaError> {
        let request = CertificateSigningRequestParams::from_pem(csr).map_err(|_| CaError::Request)?;
        let now = SystemTime::now();
        let name = Ledger::read(&self.dir)?.holder(serial, now).ok_or(CaError::Stranger)?;
        let signed = self.sign(&request.public_key, &[SanType::DnsName(name.as_str().try_into()?)], CHILD_LASTS)?;
        self.note(&name, &signed, now)
    }

    /// Renews the gate's own certificate when a third of its time is left. Does nothing without an authority.
    pub fn renew_own(dir: &Path) -> Result<(), CaError> {
        if !dir.join(AUTHORITY).exists() {
            return Ok(());
        }
        let old = first(&files::read(&dir.join(GATE))?)?;
        let names = names(&old).ok_or(CaError::Request)?;
        if names.until > SystemTime::now() + GATE_LASTS / 3 {
            return Ok(());
        }
        let ca = Self::open(dir)?;
        let key = KeyPair::from_pem(&files::read(&dir.join(GATE_KEY))?)?;
        let addresses = names.ips.iter().map(ToString::to_string);
        let sans = alternative_names(names.dns.into_iter().chain(addresses))?;
        let signed = ca.sign(&key, &sans, GATE_LASTS)?;
        files::write(&dir.join(GATE), &format!("{}{}", signed.pem(), ca.pem))
    }

    fn certify_gate(&self, names: &[String]) -> Result<(), CaError> {
        let key = KeyPair::generate()?;
        let certificate = self.sign(&key, &alternative_names(names.iter().cloned())?, GATE_LASTS)?;
        files::write(&self.dir.join(GATE_KEY), &key.serialize_pem())?;
        files::write(&self.dir.join(GATE), &format!("{}{}", certificate.pem(), self.pem))?;
        Ledger::change(&self.dir, |ledger| {
            ledger.reserve(names);
            Ok(())
        })
    }

    /// Signs a certificate. Only the key is taken over from a request.
    fn sign(&self, key: &impl PublicKeyData, names: &[SanType], lasts: Duration) -> Result<rcgen::Certificate, CaError> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.subject_alt_names = names.to_vec();
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        last(&mut params, lasts)?;
        Ok(params.signed_by(key, &self.issuer)?)
    }

    fn note(&self, name: &str, certificate: &rcgen::Certificate, now: SystemTime) -> Result<SignedCertificate, CaError> {
        let names = names(certificate.der()).ok_or(CaError::Request)?;
        Ledger::change(&self.dir, |ledger| {
            ledger.note(IssuedCertificate::new(name, &names, now));
            Ok(())
        })?;
        Ok(SignedCertificate { certificate: certificate.pem(), name: name.to_owned(), until: names.until })
    }
}

const AUTHORITY: &str = "ca.pem";
const AUTHORITY_KEY: &str = "ca.key";
const GATE: &str = "gate.pem";
const GATE_KEY: &str = "gate.key";

/// Alternative names of the authority's own gate, with the URI that marks it as such.
fn alternative_names(names: impl Iterator<Item = String>) -> Result<Vec<SanType>, CaError> {
    let mut found = Vec::new();
    for name in names {
        found.push(match name.parse() {
            Ok(ip) => SanType::IpAddress(ip),
            Err(_) => SanType::DnsName(dns_name(&name)?.dns_name().try_into()?),
        });
    }
    found.push(SanType::URI(GATE_URI.try_into()?));
    Ok(found)
}

fn dns_name(text: &str) -> Result<Authority, CaError> {
    Authority::of_dns_name(text.strip_prefix("dns:").unwrap_or(text)).ok_or_else(|| CaError::Name { name: text.to_owned() })
}

/// Sets the validity from a day ago, for clocks that are behind, until `lasts` from now.
fn last(params: &mut CertificateParams, lasts: Duration) -> Result<(), CaError> {
    let now = SystemTime::now();
    params.not_before = at(now - DAY)?.to_datetime();
    params.not_after = at(now.checked_add(lasts).ok_or(CaError::Clock)?)?.to_datetime();
    params.serial_number = Some(SerialNumber::from_slice(&serial()));
    Ok(())
}

fn at(time: SystemTime) -> Result<ASN1Time, CaError> {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    ASN1Time::from_timestamp(i64::try_from(seconds).unwrap_or(i64::MAX)).map_err(|_| CaError::Clock)
}

/// Draws 127 random bits, set so that the number is positive.
fn serial() -> [u8; 16] {
    let mut bytes = u128::from_str_radix(&runtime::random::token(), 16).unwrap_or_default().to_be_bytes();
    bytes[0] = bytes[0] & 0x3f | 0x40;
    bytes
}

fn first(pem: &str) -> Result<CertificateDer<'static>, CaError> {
    CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|error| CaError::Made(error.to_string()))
}

#[cfg(test)]
mod tests;
