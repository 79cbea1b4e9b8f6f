//! Handshake of a WebSocket (RFC 6455, 4.2). Does not know the other end.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{CONNECTION, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Version};

/// Suffix of a key (1.3).
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Reasons for refusing a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadHandshake {
    #[error("`Sec-WebSocket-Key` is not 16 bytes in base64: let a WebSocket library connect")]
    Key,
    #[error("rooms are reached by WebSocket: connect with `GET /ws?topic=NAME` over HTTP/1.1 and `Upgrade: websocket`")]
    NotAsked,
    #[error("version 13 of WebSocket is spoken here: send `Sec-WebSocket-Version: 13`")]
    Version,
}

/// Checks a handshake; gives the value of `Sec-WebSocket-Accept`.
pub fn accept(parts: &Parts) -> Result<HeaderValue, BadHandshake> {
    let asks = names(parts, &UPGRADE, "websocket") && names(parts, &CONNECTION, "upgrade");
    if parts.method != Method::GET || parts.version != Version::HTTP_11 || !asks {
        return Err(BadHandshake::NotAsked);
    }
    if parts.headers.get(SEC_WEBSOCKET_VERSION).is_none_or(|version| version.as_bytes() != b"13") {
        return Err(BadHandshake::Version);
    }
    let mut keys = parts.headers.get_all(SEC_WEBSOCKET_KEY).iter();
    let (Some(key), None) = (keys.next(), keys.next()) else { return Err(BadHandshake::Key) };
    let key = key.to_str().map_err(|_| BadHandshake::Key)?.trim();
    if STANDARD.decode(key).is_ok_and(|nonce| nonce.len() == 16) {
        HeaderValue::from_str(&granted(key)).map_err(|_| BadHandshake::Key)
    } else {
        Err(BadHandshake::Key)
    }
}

/// Gives the value of `Sec-WebSocket-Accept` for a key.
pub fn granted(key: &str) -> String {
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{GUID}").as_bytes()))
}

/// Tells whether a header field lists a word.
fn names(parts: &Parts, field: &HeaderName, word: &str) -> bool {
    let values = parts.headers.get_all(field).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|listed| listed.trim().eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn asking(change: impl FnOnce(&mut Parts)) -> Result<HeaderValue, BadHandshake> {
        let request = Request::get("/ws?topic=x")
            .header("upgrade", "WebSocket")
            .header("connection", "keep-alive, Upgrade")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
        let mut parts = request.body(()).unwrap().into_parts().0;
        change(&mut parts);
        accept(&parts)
    }

    #[test]
    fn the_example_of_the_standard_is_granted() {
        assert_eq!(asking(|_| {}).unwrap(), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn what_is_no_handshake_is_told_apart() {
        use BadHandshake::{Key, NotAsked, Version};
        let changed = |name: &'static str, value: &'static str| {
            asking(|parts| drop(parts.headers.insert(name, HeaderValue::from_static(value)))).unwrap_err()
        };
        assert_eq!(changed("upgrade", "h2c"), NotAsked);
        assert_eq!(changed("connection", "close"), NotAsked);
        assert_eq!(changed("sec-websocket-version", "8"), Version);
        assert_eq!(["", "dGhl", "not base64!!"].map(|key| changed("sec-websocket-key", key)), [Key; 3]);
        assert_eq!(asking(|parts| parts.method = Method::POST).unwrap_err(), NotAsked);
        assert_eq!(asking(|parts| parts.version = http::Version::HTTP_2).unwrap_err(), NotAsked);
        let again = HeaderValue::from_static("AAAAAAAAAAAAAAAAAAAAAA==");
        let twice = asking(|parts| assert!(parts.headers.append("sec-websocket-key", again)));
        assert_eq!(twice.unwrap_err(), Key);
    }
}
