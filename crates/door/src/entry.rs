//! Admission of requests: `Host` and `Origin` (against DNS rebinding), client certificates, bearer tokens, and the view of the caller.
//! Decides nothing about calls.

use std::net::IpAddr;
use std::sync::Arc;

use banyan_model::{Principal, PrincipalKind};
use config::resolved::{Config, Token};
use http::StatusCode;
use mcp_proto::http1::Fields;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use call::words::entered::{AdmittedCaller, By};
use call::words::party::{Party, VerifiedCertificate};
use runtime::wall;
use trust;
use trust::{Bearer, TokenRefusal, Trust, Wrong};

/// A refused request: status, remedy, and the challenge with the place to sign in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryRefusal {
    pub status: StatusCode,
    pub why: String,
    /// `WWW-Authenticate` of the answer.
    pub challenge: Option<String>,
}

/// Admits or refuses a request.
pub fn enter(config: &Config, trust: &Trust, party: Option<&Arc<Party>>, fields: &Fields) -> Result<AdmittedCaller, EntryRefusal> {
    let certified = outer(config, party, fields)?;
    let elsewhere = config.behind_proxy.then(|| Party::elsewhere(party));
    let party = elsewhere.as_ref().or(party);
    if !config.wants_credential() {
        if party.is_some_and(|party| !party.is_here()) {
            return Err(forbidden(ELSEWHERE.to_owned()));
        }
        let host = text(fields, "host").unwrap_or_default();
        if !host_allowed(config, host) {
            return Err(forbidden(format!("Host {host} is not allowed: use a loopback name, or add it to `allowed_hosts`")));
        }
        return Ok(AdmittedCaller { party: party.cloned(), by: By::Nothing, ..AdmittedCaller::local() });
    }
    let Some(sent) = bearer(config, fields)? else {
        let principal = certified.map(|certified| Principal::new(PrincipalKind::Certificate, Arc::clone(&certified.principal)));
        let missing = || unauthorized(config, if config.trust.issuers.is_empty() { MISSING } else { MISSING_ISSUED });
        return Ok(AdmittedCaller { principal: principal.ok_or_else(missing)?, party: party.cloned(), profile: None, by: By::Certificate });
    };
    if !config.trust.issuers.is_empty() && sent.split('.').count() == 3 {
        let Bearer { principal, issuer, profile, until, granted } = trust.bearer(sent).map_err(|why| denied(config, &why))?;
        return Ok(AdmittedCaller { principal, party: party.cloned(), profile, by: By::Issuer(issuer, until, granted) });
    }
    let token = find(config, sent)
        .ok_or_else(|| unauthorized(config, "the bearer token is not known: `banyan token list` shows whose there are"))?;
    Ok(AdmittedCaller {
        principal: Principal::new(PrincipalKind::Token, Arc::clone(&token.name)),
        party: party.cloned(),
        profile: token.profile.clone(),
        by: By::Token,
    })
}

/// Checks the requirements on every request: a page of this gate as `Origin`, if any, and a certificate where required.
pub fn outer<'a>(config: &Config, party: Option<&'a Arc<Party>>, fields: &Fields) -> Result<Option<&'a VerifiedCertificate>, EntryRefusal> {
    if let Some(origin) = text(fields, "origin")
        && !origin_allowed(config, origin)
    {
        return Err(forbidden(format!("Origin {origin} is not allowed: add its host to `allowed_hosts` if it should be")));
    }
    // The certificate may be from a time when an authority for it was configured.
    let takes = config.trust.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
    let certified = party.and_then(|party| party.certified()).filter(|_| takes);
    if certified.is_none() && config.trust.tls.as_ref().is_some_and(|tls| tls.required) {
        let why = "a client certificate is needed here, one with a DNS name or a spiffe:// URI among its alternative names";
        return Err(unauthorized(config, why));
    }
    Ok(certified)
}

/// Bearer token of a request, if any.
pub fn bearer<'a>(config: &Config, fields: &'a Fields) -> Result<Option<&'a str>, EntryRefusal> {
    let Some(sent) = text(fields, "authorization") else { return Ok(None) };
    let sent = sent.strip_prefix("Bearer ").or_else(|| sent.strip_prefix("bearer "));
    sent.map(|sent| Some(sent.trim())).ok_or_else(|| unauthorized(config, "only bearer tokens are taken"))
}

fn text<'a>(fields: &'a Fields, name: &str) -> Option<&'a str> {
    fields.get(name).map(|value| std::str::from_utf8(value).unwrap_or("?"))
}

fn unauthorized(config: &Config, why: &str) -> EntryRefusal {
    let challenge = trust::challenge(config, None).unwrap_or_else(|| "Bearer realm=\"banyan\"".into());
    EntryRefusal { status: StatusCode::UNAUTHORIZED, why: why.into(), challenge: Some(challenge) }
}

fn forbidden(why: String) -> EntryRefusal {
    EntryRefusal { status: StatusCode::FORBIDDEN, why, challenge: None }
}

const ELSEWHERE: &str = "this gate has no credential to ask for, so it lets in only callers on its own machine: \
     make a token there with `banyan token add NAME`";
const MISSING: &str = "a bearer token is needed: make one with `banyan token add NAME`";
const MISSING_ISSUED: &str =
    "a bearer token of one of this gate's authorization servers is needed: sign in there and send it with each request";

/// Refuses a credential that belongs to another principal by now.
pub fn another() -> EntryRefusal {
    let why = "this token or certificate is somebody else's by the configuration that came into force meanwhile: ask once more";
    EntryRefusal { status: StatusCode::UNAUTHORIZED, why: why.into(), challenge: Some("Bearer realm=\"banyan\"".into()) }
}

/// Refuses a token of an issuer.
pub fn denied(config: &Config, why: &TokenRefusal) -> EntryRefusal {
    let (status, error) = match why {
        TokenRefusal::Later => (StatusCode::SERVICE_UNAVAILABLE, None),
        TokenRefusal::Wrong(Wrong::Scope) => (StatusCode::FORBIDDEN, Some("insufficient_scope")),
        TokenRefusal::Wrong(_) => (StatusCode::UNAUTHORIZED, Some("invalid_token")),
    };
    let challenge = error.and_then(|error| trust::challenge(config, Some(error)));
    EntryRefusal { status, why: format!("the bearer token is not taken: {why}"), challenge }
}

/// Finds the configured token that was sent.
fn find<'a>(config: &'a Config, sent: &str) -> Option<&'a Token> {
    let digest: [u8; 32] = Sha256::digest(sent.as_bytes()).into();
    // Comparing every token keeps the time taken from telling anything.
    let mut found = None;
    for token in &config.tokens {
        if bool::from(token.sha256.ct_eq(&digest)) {
            found = Some(token);
        }
    }
    found
}

/// Completes when the credential ends by itself: the certificate of the connection, or the token.
pub async fn over(entered: &AdmittedCaller, trust: &Trust) {
    let certificate = async {
        match &entered.party {
            Some(party) => trust.ended(party).await,
            None => std::future::pending().await,
        }
    };
    let token = async {
        match entered.until() {
            Some(until) => wall::passed(until).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = certificate => {}
        () = token => {}
    }
}

fn origin_allowed(config: &Config, origin: &str) -> bool {
    let Some((scheme, host)) = origin.split_once("://") else { return false };
    matches!(scheme, "http" | "https") && host_allowed(config, host)
}

/// Checks that the gate may be called by this name.
pub fn host_allowed(config: &Config, host: &str) -> bool {
    let name = without_port(host);
    is_loopback(name) || config.allowed_hosts.iter().any(|a| a.eq_ignore_ascii_case(name) || a.eq_ignore_ascii_case(host))
}

fn without_port(host: &str) -> &str {
    if let Some(end) = host.strip_prefix('[').and_then(|rest| rest.find(']')) {
        return &host[..end + 2];
    }
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

fn is_loopback(name: &str) -> bool {
    let bare = name.trim_matches(['[', ']']);
    bare.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_names_are_hosts_by_default() {
        for good in ["localhost", "localhost:80", "127.0.0.1:9", "127.9.9.9", "[::1]:80", "LOCALHOST"] {
            assert!(is_loopback(without_port(good)), "{good}");
        }
        for bad in ["evil.example", "localhost.evil.example", "10.0.0.1:80", "[2001:db8::1]:80", "", "127.0.0.1.evil.example:80"] {
            assert!(!is_loopback(without_port(bad)), "{bad}");
        }
    }
}
