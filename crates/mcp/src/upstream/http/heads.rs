//! Heads of HTTP requests to one server: constant parts are written once. Does not choose the fields of a request.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::upstream::connection::Pieces;

/// Fields about the carriage of the message itself, not open to configuration.
const OURS: [&str; 8] =
    ["accept", "connection", "content-length", "content-type", "host", "mcp-protocol-version", "mcp-session-id", "transfer-encoding"];

/// Common parts of all heads to one URL.
pub struct Heads {
    /// Text between the method and the value of `accept`.
    begin: String,
    host: String,
    /// Configured fields, with secrets resolved.
    configured: HeaderMap,
    /// `authorization` is configured.
    authorized: bool,
}

impl std::fmt::Debug for Heads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Heads({})", self.host)
    }
}

impl Heads {
    /// Makes the heads of requests to `url`, with `configured` fields.
    pub fn new(url: &url::Url, configured: &HeaderMap) -> Self {
        let target = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        let host = url.host_str().unwrap_or_default();
        let host = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let kept = |(name, value): (&HeaderName, &HeaderValue)| (name.clone(), value.clone());
        let configured: HeaderMap = configured.iter().filter(|(n, _)| !OURS.contains(&n.as_str())).map(kept).collect();
        let begin = format!(" {target} HTTP/1.1\r\nhost: {host}\r\naccept: ");
        Self { begin, host, authorized: configured.contains_key("authorization"), configured }
    }

    /// Makes heads with the same fields for another URL of the same origin.
    pub fn to(&self, url: &url::Url) -> Self {
        Self::new(url, &self.configured)
    }

    /// Begins a head. `token` is a bearer token that overrides a configured one.
    pub fn begin(&self, method: &str, accept: &str, token: Option<&str>) -> Fields {
        let mut out = Vec::with_capacity(1024);
        for part in [method, &self.begin, accept, "\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
        for (name, value) in &self.configured {
            if token.is_none() || !self.authorized || name != http::header::AUTHORIZATION {
                raw(&mut out, name.as_str(), value.as_bytes());
            }
        }
        let mut fields = Fields(out);
        if let Some(token) = token {
            fields.put("authorization", &format!("Bearer {token}"));
        }
        fields
    }
}

/// A head being written.
pub struct Fields(Vec<u8>);

impl Fields {
    /// Adds a field; leaves out a value illegal in a head. `name` must be a legal name.
    pub fn put(&mut self, name: &str, value: &str) {
        // Without an early exit, the compiler compares sixteen bytes at a time.
        if value.bytes().fold(true, |legal, b| legal & matches!(b, b'\t' | b' '..=b'~')) {
            raw(&mut self.0, name, value.as_bytes());
        }
    }

    /// Ends the head of a request with `body`; returns both, a small body in one piece with the head.
    pub fn end_head(mut self, body: &Body<'_>) -> Pieces {
        let length = body.before.len() + body.value.len() + body.after.len();
        if length > 0 {
            self.0.extend_from_slice(b"content-type: application/json\r\n");
        }
        raw(&mut self.0, "content-length", itoa::Buffer::new().format(length).as_bytes());
        self.0.extend_from_slice(b"\r\n");
        self.0.extend_from_slice(body.before);
        if length > COPIED {
            return Pieces { head: self.0, value: body.value.clone(), after: body.after };
        }
        self.0.extend_from_slice(body.value);
        self.0.extend_from_slice(body.after);
        Pieces { head: self.0, ..Pieces::default() }
    }
}

/// Longest body in bytes that is copied behind its head; longer ones are sent from their own buffer.
const COPIED: usize = 4 << 10;

/// Body of a request: a value, and the text around it.
#[derive(Clone, Copy)]
pub struct Body<'a> {
    pub before: &'a [u8],
    pub value: &'a Bytes,
    pub after: &'static [u8],
}

impl<'a> Body<'a> {
    /// Wraps a whole body.
    pub fn whole(value: &'a Bytes) -> Self {
        Self { before: b"", value, after: b"" }
    }

    /// Makes an empty body.
    pub fn none() -> Self {
        static NONE: Bytes = Bytes::new();
        Self::whole(&NONE)
    }
}

fn raw(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    for part in [name.as_bytes(), b": ", value, b"\r\n"] {
        out.extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heads(configured: &[(&'static str, &'static str)]) -> Heads {
        let fields = configured.iter().map(|(n, v)| (HeaderName::from_static(n), HeaderValue::from_static(v))).collect();
        Heads::new(&url::Url::parse("http://a.example:81/mcp?x=1").unwrap(), &fields)
    }

    #[test]
    fn a_small_body_follows_a_whole_head() {
        let value = Bytes::from_static(b"{}");
        let Pieces { head, value: body, after } = heads(&[("x-key", "k")]).begin("POST", "a/b", None).end_head(&Body::whole(&value));
        let wanted = "POST /mcp?x=1 HTTP/1.1\r\nhost: a.example:81\r\naccept: a/b\r\nx-key: k\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
        assert_eq!((std::str::from_utf8(&head).unwrap(), &body[..], after), (wanted, &b""[..], &b""[..]));
        let large = Bytes::from(vec![b' '; 5000]);
        let Pieces { head, value: body, after } =
            heads(&[]).begin("POST", "a/b", None).end_head(&Body { before: b"[", value: &large, after: b"]" });
        assert_eq!((body.as_ptr(), after), (large.as_ptr(), &b"]"[..]));
        assert!(head.ends_with(b"content-length: 5002\r\n\r\n["));
    }

    #[test]
    fn configured_fields_cannot_change_how_a_message_is_carried() {
        let tricky = [("transfer-encoding", "chunked"), ("content-length", "7"), ("host", "evil.example"), ("connection", "close")];
        let Pieces { head, .. } = heads(&tricky).begin("GET", "a/b", None).end_head(&Body::none());
        assert_eq!(
            std::str::from_utf8(&head).unwrap(),
            "GET /mcp?x=1 HTTP/1.1\r\nhost: a.example:81\r\naccept: a/b\r\ncontent-length: 0\r\n\r\n"
        );
    }

    #[test]
    fn a_value_can_not_begin_another_field() {
        let mut fields = heads(&[]).begin("GET", "a/b", None);
        for evil in ["a\r\nx-evil: 1", "a\nb", "a\0", "\u{e9}"] {
            fields.put("mcp-method", evil);
        }
        assert!(!String::from_utf8_lossy(&fields.end_head(&Body::none()).head).contains("mcp-method"));
    }

    #[test]
    fn a_token_stands_in_for_a_configured_one() {
        let Pieces { head, .. } = heads(&[("authorization", "Basic x")]).begin("GET", "a/b", Some("t")).end_head(&Body::none());
        let text = String::from_utf8_lossy(&head).into_owned();
        assert!(text.contains("authorization: Bearer t\r\n") && !text.contains("Basic"), "{text}");
    }
}
