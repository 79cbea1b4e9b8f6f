//! Readers of bytes from outside without another public name: doors for the checks of `sim`, which hold any bytes against them. Reads
//! nothing that is not read elsewhere too.

use std::path::Path;

use import::Client;
use rcgen::CertificateSigningRequestParams;
use rustls::pki_types::{CertificateDer, CertificateSigningRequestDer};

use mcp::upstream::oauth;
use trust;

/// Reads the DNS names and URIs of a certificate; `None` for other bytes.
pub fn certified(der: &[u8]) -> Option<Vec<String>> {
    let names = trust::names(&CertificateDer::from(der))?;
    Some(names.dns.into_iter().chain(names.uris).collect())
}

/// Checks that a joining gate could ask for a certificate with these bytes.
pub fn is_request(der: &[u8]) -> bool {
    CertificateSigningRequestParams::from_der(&CertificateSigningRequestDer::from(der)).is_ok()
}

/// Reads a message of a part behind a broker, and gives the message in CBOR; `None` for other texts.
pub fn part_message(text: &[u8]) -> Option<Vec<u8>> {
    stub::text::from_part(text)
}

/// Verifies a token by keys (a JWK set, or PEM), for an audience and an issuer; `None` when the keys are none.
pub fn token(token: &str, keys: &str, audience: &str, issuer: &str) -> Option<bool> {
    trust::is_good(token, keys, audience, issuer)
}

/// Reads groups, roles and scopes from the claims of a good token; `None` for other bytes.
pub fn claims(json: &[u8]) -> Option<Vec<String>> {
    trust::given(json)
}

/// Reads the scopes that a refusal asks for.
pub fn challenge(status: u16, header: &str) -> Vec<String> {
    let url = "https://example.com/mcp".parse();
    url.map(|url| oauth::asked(status, header, &url)).unwrap_or_default()
}

/// Gives a client's file with Banyan added, with Banyan removed, and as shown to people.
///
/// # Errors
/// The fault of the file.
pub fn connected(client: Client, file: &Path, text: &str) -> Result<[String; 3], String> {
    import::connect::on_text(client, file, text)
}

/// Lists the server names in a client's file.
///
/// # Errors
/// The fault of the file.
pub fn listed(client: Client, file: &Path, text: &str) -> Result<Vec<String>, String> {
    import::connect::names(client, file, text)
}
