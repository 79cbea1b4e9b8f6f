//! Readers of bytes from outside that no public name leads to: doors for the checks of `sim`, which hold any bytes against them. Nothing else
//! comes in here, and nothing is read that is not read elsewhere.

use std::path::Path;

use import::Client;
use rcgen::CertificateSigningRequestParams;
use rustls::pki_types::{CertificateDer, CertificateSigningRequestDer};

use mcp::upstream::oauth;
use trust;

/// What a certificate names, as DNS names and URIs; `None`: it is none.
pub fn certified(der: &[u8]) -> Option<Vec<String>> {
    let names = trust::names(&CertificateDer::from(der))?;
    Some(names.dns.into_iter().chain(names.uris).collect())
}

/// Whether a gate that wants to join could ask for a certificate with this.
pub fn is_request(der: &[u8]) -> bool {
    CertificateSigningRequestParams::from_der(&CertificateSigningRequestDer::from(der)).is_ok()
}

/// Whether a token is good by these keys (a JWK set, or PEM), for the audience and of the issuer that are named; `None`: they are no keys.
pub fn token(token: &str, keys: &str, audience: &str, issuer: &str) -> Option<bool> {
    trust::is_good(token, keys, audience, issuer)
}

/// The groups, roles and scopes that the claims of a good token give; `None`: they are none.
pub fn claims(json: &[u8]) -> Option<Vec<String>> {
    trust::given(json)
}

/// The scopes that a refusal asks for.
pub fn challenge(status: u16, header: &str) -> Vec<String> {
    let url = "https://example.com/mcp".parse();
    url.map(|url| oauth::asked(status, header, &url)).unwrap_or_default()
}

/// What becomes of a client's file when Banyan is put in, when it is taken out again, and when it is shown.
///
/// # Errors
/// What is wrong with the file.
pub fn connected(client: Client, file: &Path, text: &str) -> Result<[String; 3], String> {
    import::connect::on_text(client, file, text)
}

/// The names in the list of servers of a client's file.
///
/// # Errors
/// What is wrong with the file.
pub fn listed(client: Client, file: &Path, text: &str) -> Result<Vec<String>, String> {
    import::connect::names(client, file, text)
}
