//! The heads of HTTP requests to one server: what never changes is written once.
//! Which fields a request needs is decided by whoever sends it.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::upstream::connection::Pieces;

/// Fields that say how the message itself is carried; a configuration has no say in them.
const OURS: [&str; 8] =
    ["accept", "connection", "content-length", "content-type", "host", "mcp-protocol-version", "mcp-session-id", "transfer-encoding"];

/// What the heads of all requests to one URL have in common.
pub struct Heads {
    /// What stands between the method and the value of `accept`.
    begin: String,
    host: String,
    /// Configured fields, secrets resolved.
    configured: HeaderMap,
    /// Whether `authorization` is among them.
    authorized: bool,
}

impl std::fmt::Debug for Heads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Heads({})", self.host)
    }
}

impl Heads {
    /// The heads of requests to `url`, with `configured` fields.
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

    /// The same fields for another URL of the same origin.
    pub fn to(&self, url: &url::Url) -> Self {
        Self::new(url, &self.configured)
    }

    /// Begins a head. `token`: a bearer token that stands before a configured one.
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

/// A head that is being written.
pub struct Fields(Vec<u8>);

impl Fields {
    /// Adds a field; one whose value has no place in a head is left out. `name` must be a legal name.
    pub fn put(&mut self, name: &str, value: &str) {
        // Without a way out, sixteen bytes are looked at together.
        if value.bytes().fold(true, |legal, b| legal & matches!(b, b'\t' | b' '..=b'~')) {
            raw(&mut self.0, name, value.as_bytes());
        }
    }

    /// Ends the head of a request with `body`; gives both, small ones in one piece.
    pub fn end(mut self, body: &Body<'_>) -> Pieces {
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

/// Bodies up to this size are copied behind their head; longer ones are sent from where they lie, in bytes.
const COPIED: usize = 4 << 10;

/// The body of a request: a value, and what stands around it.
#[derive(Clone, Copy)]
pub struct Body<'a> {
    pub before: &'a [u8],
    pub value: &'a Bytes,
    pub after: &'static [u8],
}

impl<'a> Body<'a> {
    /// One that is there as a whole.
    pub fn whole(value: &'a Bytes) -> Self {
        Self { before: b"", value, after: b"" }
    }

    /// None.
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
    fn a_head_is_whole_and_a_small_body_follows_it() {
        let value = Bytes::from_static(b"{}");
        let Pieces { head, value: body, after } = heads(&[("x-key", "k")]).begin("POST", "a/b", None).end(&Body::whole(&value));
        let wanted = "POST /mcp?x=1 HTTP/1.1\r\nhost: a.example:81\r\naccept: a/b\r\nx-key: k\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
        assert_eq!((std::str::from_utf8(&head).unwrap(), &body[..], after), (wanted, &b""[..], &b""[..]));
        let large = Bytes::from(vec![b' '; 5000]);
        let Pieces { head, value: body, after } =
            heads(&[]).begin("POST", "a/b", None).end(&Body { before: b"[", value: &large, after: b"]" });
        assert_eq!((body.as_ptr(), after), (large.as_ptr(), &b"]"[..]));
        assert!(head.ends_with(b"content-length: 5002\r\n\r\n["));
    }

    #[test]
    fn a_configuration_can_not_change_how_a_message_is_carried() {
        let tricky = [("transfer-encoding", "chunked"), ("content-length", "7"), ("host", "evil.example"), ("connection", "close")];
        let Pieces { head, .. } = heads(&tricky).begin("GET", "a/b", None).end(&Body::none());
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
        assert!(!String::from_utf8_lossy(&fields.end(&Body::none()).head).contains("mcp-method"));
    }

    #[test]
    fn a_token_stands_in_for_a_configured_one() {
        let Pieces { head, .. } = heads(&[("authorization", "Basic x")]).begin("GET", "a/b", Some("t")).end(&Body::none());
        let text = String::from_utf8_lossy(&head).into_owned();
        assert!(text.contains("authorization: Bearer t\r\n") && !text.contains("Basic"), "{text}");
    }
}
