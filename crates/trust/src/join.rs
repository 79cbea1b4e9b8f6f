//! The joining gate's half: asks for a certificate with a token, authenticates the other gate by the fingerprint in the token alone, and
//! keeps the certificate. Does not register anybody.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use mesh_proto::authority::Authority;
use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use runtime::tls::{ConnectError, Connector, Security, Target};
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::ca::{CaError, JoinToken, write_private};
use crate::certificate::fingerprint;
use crate::{AcceptedServer, anonymous};
use call::words::refusal::ErrorBody;

/// Longest wait for the other gate.
const PATIENCE: Duration = Duration::from_secs(20);
/// Longest answer, in bytes.
const MOST: usize = 256 << 10;

/// The body of `POST /-/join`.
#[derive(Serialize, Deserialize)]
pub struct Admission {
    pub id: String,
    pub secret: String,
    /// DNS name that the gate asks for.
    pub name: String,
    /// Certificate request (PKCS #10), in PEM.
    pub csr: String,
}

/// The body of `POST /-/renew`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Renewal {
    /// Certificate request (PKCS #10), in PEM.
    pub csr: String,
}

/// Answer to an [`Admission`] or a [`Renewal`].
#[derive(Debug, Serialize, Deserialize)]
pub struct AdmissionAnswer {
    /// Certificate, in PEM.
    pub certificate: String,
    /// The authority's certificate, in PEM.
    pub authority: String,
    /// DNS name in the certificate.
    pub name: String,
    /// End of the certificate, in seconds since 1970.
    pub until: u64,
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Admission({})", self.id)
    }
}

/// Files and name of a gate that has joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enrolment {
    /// DNS name in the certificate: the gate's authority at the other gate.
    pub name: String,
    /// Certificate, in PEM.
    pub certificate: PathBuf,
    /// Key of the certificate, in PEM.
    pub key: PathBuf,
    /// Authority of the other gate, in PEM.
    pub ca: PathBuf,
    /// End of the certificate.
    pub until: SystemTime,
}

/// Reasons why a gate has not joined.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    #[error("{url} is no https:// address of a gate: write it as `banyan ca init` printed it there")]
    Address {
        /// Address as given.
        url: String,
    },
    #[error("{host} did not answer as a gate does ({why}): is it one, and of this version?")]
    Answer { host: String, why: String },
    #[error(transparent)]
    Kept(#[from] CaError),
    #[error("{host} says no: {why}")]
    Refused {
        host: String,
        /// Text of the other gate.
        why: String,
    },
    /// The other gate does not hold the authority named by the token.
    #[error("{host} is not the gate that made this token, or somebody stands in between: check the address, and make a new token there")]
    Stranger { host: String },
    #[error("{0}")]
    Unreachable(String),
}

/// Joins the gate at `url`: makes a key, has it certified under `name` (by default this machine's), and keeps the results below
/// `state_dir`.
pub async fn enrol(state_dir: &Path, url: &Url, token: &JoinToken, name: Option<&str>) -> Result<Enrolment, JoinError> {
    runtime::tls::install_crypto();
    let place = Place::of_url(url)?;
    let key = KeyPair::generate().map_err(CaError::from)?;
    let name = name.map_or_else(own_name, Into::into);
    let body = Admission { id: token.id.clone(), secret: token.secret().to_owned(), name, csr: request(&key)? };
    let unusable = |error: rustls::Error| JoinError::Unreachable(error.to_string());
    let tls = anonymous(AcceptedServer::GateOf(token.authority)).map_err(unusable)?;
    let given = place.post("/-/join", &body, Arc::new(tls), &Connector::with_extra_roots(None)).await?;
    // The connection proved the gate; what it gives must be of the same authority.
    let authority = CertificateDer::from_pem_slice(given.authority.as_bytes());
    if authority.ok().is_none_or(|authority| fingerprint(&authority) != token.authority) {
        return Err(JoinError::Stranger { host: place.to_string() });
    }
    let until = UNIX_EPOCH.checked_add(Duration::from_secs(given.until)).ok_or_else(|| place.odd(&"its certificate never ends"))?;
    let dir = joined(state_dir).join(place.directory());
    crate::ca::make_dir(&dir)?;
    let (certificate, key_file, ca) = (dir.join("certificate.pem"), dir.join("key.pem"), dir.join("ca.pem"));
    write_private(&key_file, &key.serialize_pem())?;
    write_private(&ca, &given.authority)?;
    write_private(&certificate, &given.certificate)?;
    Ok(Enrolment { name: given.name, certificate, key: key_file, ca, until })
}

/// Checks that a certificate was given to this gate when it joined.
pub fn is_joined(state_dir: &Path, certificate: &Path) -> bool {
    certificate.starts_with(joined(state_dir))
}

fn joined(state_dir: &Path) -> PathBuf {
    state_dir.join("joined")
}

/// Makes a request to certify `key`. The authority chooses the name in the certificate.
pub fn request(key: &KeyPair) -> Result<String, CaError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    Ok(params.serialize_request(key)?.pem()?)
}

/// This machine's name, where it is a DNS name.
fn own_name() -> String {
    let uname = rustix::system::uname();
    let name = uname.nodename().to_string_lossy().to_ascii_lowercase();
    Authority::of_dns_name(&name).map_or_else(|| "gate".into(), |name| name.dns_name().to_owned())
}

/// Host and port of a listening gate.
pub struct Place {
    host: String,
    port: u16,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.parse() {
            Ok(IpAddr::V6(ip)) => write!(f, "[{ip}]:{}", self.port),
            Ok(IpAddr::V4(_)) | Err(_) => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl Place {
    /// Reads host and port of an `https` address.
    pub fn of_url(url: &Url) -> Result<Self, JoinError> {
        let host = url.host_str().filter(|_| url.scheme() == "https");
        let host = host.ok_or_else(|| JoinError::Address { url: url.origin().ascii_serialization() })?;
        Ok(Self { host: host.trim_matches(['[', ']']).to_owned(), port: url.port_or_known_default().unwrap_or(443) })
    }

    fn directory(&self) -> String {
        format!("{}-{}", self.host.replace(':', "_"), self.port)
    }

    /// Posts JSON, and reads the answer of a gate.
    pub async fn post(
        &self,
        path: &str,
        body: &impl Serialize,
        tls: Arc<ClientConfig>,
        connector: &Connector,
    ) -> Result<AdmissionAnswer, JoinError> {
        let asked = async {
            let to = Target { host: &self.host, port: self.port, security: Security::Tls };
            let io = connector.connect_as(to, Some(tls), PATIENCE).await.map_err(|error| {
                let stranger = matches!(error, ConnectError::Certificate { .. });
                if stranger { JoinError::Stranger { host: self.to_string() } } else { JoinError::Unreachable(error.to_string()) }
            })?;
            let body = serde_json::to_vec(body).map_err(|error| self.odd(&error))?;
            let request = Request::builder().method(Method::POST).uri(path).header(header::HOST, self.to_string());
            let request = request.header(header::CONTENT_TYPE, "application/json").body(Full::new(Bytes::from(body)));
            let (mut sender, connection) =
                hyper::client::conn::http1::handshake(TokioIo::new(io)).await.map_err(|error| self.odd(&error))?;
            tokio::spawn(connection);
            let answer = sender.send_request(request.map_err(|error| self.odd(&error))?).await.map_err(|error| self.odd(&error))?;
            let status = answer.status();
            let text = Limited::new(answer.into_body(), MOST).collect().await.map_err(|error| self.odd(&error))?.to_bytes();
            if status.is_success() {
                return serde_json::from_slice(&text).map_err(|error| self.odd(&error));
            }
            match serde_json::from_slice::<ErrorBody>(&text) {
                Ok(refusal) => Err(JoinError::Refused { host: self.to_string(), why: refusal.error.message }),
                Err(_) => Err(self.odd(&status)),
            }
        };
        tokio::time::timeout(PATIENCE, asked).await.unwrap_or_else(|_| Err(self.odd(&"no answer came in time")))
    }

    fn odd(&self, why: &dyn fmt::Display) -> JoinError {
        JoinError::Answer { host: self.to_string(), why: why.to_string() }
    }
}
