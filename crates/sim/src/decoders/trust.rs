//! Checks of a peer's identity: certificates, tokens, keys for verifying them, and a server's demand for more scopes. The
//! presentation of a token is not known here.

use gateway::outside;
use policy::approval::PublicKey;
use telemetry::trace_context::TraceContext;

/// A key that has signed nothing here.
const KEYS: &str = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","use":"sig","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;

/// A certificate, or a request for one. No name in it is longer than the whole.
pub(super) fn certificate(data: &[u8]) {
    if let Some(names) = outside::certified(data) {
        assert!(names.iter().map(String::len).sum::<usize>() <= data.len());
    }
    outside::is_request(data);
}

/// A status in two bytes, and a header. The demanded scopes stand in the header.
pub(super) fn challenge(data: &[u8]) {
    let [high, low, header @ ..] = data else { return };
    let header = String::from_utf8_lossy(header);
    for scope in outside::challenge(u16::from_be_bytes([*high, *low]), &header) {
        assert!(!scope.is_empty() && !scope.contains(char::is_whitespace), "{scope:?}");
    }
}

/// A token, a line end, claims, a line end, and keys. Nothing is good that nobody signed, and keys are of use or refused.
pub(super) fn token(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut parts = text.splitn(3, '\n');
    let (token, claims, keys) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    assert_eq!(outside::token(token, KEYS, "gate", "issuer"), Some(false), "{token}");
    outside::token(token, keys, "gate", "issuer");
    if let Some(given) = outside::claims(claims.as_bytes()) {
        assert!(given.iter().all(|one| !one.is_empty()) && serde_json::from_str::<serde_json::Value>(claims).is_ok());
    }
}

/// A public key in any spelling is written and read again as the same.
pub(super) fn key(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let json = serde_json::from_slice(data).ok();
    let jwk = json.and_then(|jwk| PublicKey::of_jwk(&jwk).ok()).map(|(_, key)| key);
    let read = [PublicKey::parse(&text).ok(), PublicKey::of_spki(data).ok(), PublicKey::of_ssh(data).ok(), jwk];
    for key in read.into_iter().flatten() {
        assert_eq!(PublicKey::parse(&key.line()).as_ref(), Ok(&key));
        assert!(key.fingerprint().starts_with("SHA256:"));
    }
}

/// `traceparent`, a line end, and `tracestate`: what is taken is fit for a header, and is taken again.
pub(super) fn trace(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (parent, state) = text.split_once('\n').map_or((&*text, None), |(parent, state)| (parent, Some(state)));
    let Some(context) = TraceContext::parse(parent, state) else { return };
    assert_eq!(context.traceparent(), parent);
    assert!(context.tracestate().is_none_or(|state| state.bytes().all(|b| (b' '..=b'~').contains(&b))));
    assert_eq!(TraceContext::parse(context.traceparent(), context.tracestate()), Some(context));
}
