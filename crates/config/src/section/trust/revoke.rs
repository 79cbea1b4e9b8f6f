//! Revocation of issuers, authorities, and the authority of client certificates. Ends no session.

use toml::Value;

use super::resolved::{AuthorityKeys, Issuer, Trust};
use crate::revoked::{at, is_keys, is_path, lists};

/// Keeps entries of the refused file, unchanged ones only.
pub(super) fn keep(trust: &mut Trust, file: &Value) {
    trust.issuers.retain(|issuer| at(file, &["issuer", &issuer.name]).is_some_and(|entry| is_issuer(issuer, entry)));
    for authority in &mut trust.authorities {
        let names = at(file, &["authority", &authority.name]).filter(|entry| is_keys(&authority.keys, entry.get("keys")));
        authority.names.retain(|name| names.is_some_and(|entry| lists(entry.get("names"), name)));
    }
    trust.authorities.retain(|authority: &AuthorityKeys| !authority.names.is_empty());
    if let Some(tls) = &mut trust.tls {
        tls.client_ca = tls.client_ca.take().filter(|path| is_path(path, at(file, &["tls", "client_ca"])));
    }
}

fn is_issuer(issuer: &Issuer, entry: &Value) -> bool {
    entry.get("issuer").and_then(Value::as_str) == Some(&issuer.issuer) && is_keys(&issuer.keys, entry.get("keys"))
}
