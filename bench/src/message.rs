//! Requests in their wire form, with a place for the id that can be overwritten.
//!
//! Does not know what answers look like.

/// What a run asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Era {
    /// `initialize`, a session, then calls.
    Legacy,
    /// Each request by itself.
    Modern,
}

/// Ids have ten digits, so that one is written over another.
const FIRST_ID: u64 = 1_000_000_000;

/// A request whose id can be replaced in place.
pub(crate) struct Template {
    bytes: Vec<u8>,
    id_at: usize,
}

impl Template {
    /// A `tools/call` of `name`, or `tools/list` where there is no name.
    pub(crate) fn new(target: &Target, session: Option<&str>, name: Option<&str>) -> Self {
        let method = if name.is_some() { "tools/call" } else { "tools/list" };
        let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}}"#;
        let meta = if target.era == Era::Modern { meta } else { "" };
        let comma = if meta.is_empty() || name.is_none() { "" } else { "," };
        let call = name.map(|n| format!(r#""name":"{n}","arguments":{{"path":"/tmp","depth":3}}"#)).unwrap_or_default();
        let body = format!(r#"{{"jsonrpc":"2.0","id":{FIRST_ID},"method":"{method}","params":{{{call}{comma}{meta}}}}}"#);
        let mirrored = match (target.era, name) {
            (Era::Legacy, _) => String::new(),
            (Era::Modern, Some(name)) => format!("mcp-method: {method}\r\nmcp-name: {name}\r\n"),
            (Era::Modern, None) => format!("mcp-method: {method}\r\n"),
        };
        let bytes = target.request(session, &mirrored, &body);
        let id_at = memchr::memmem::find(&bytes, FIRST_ID.to_string().as_bytes()).unwrap_or_default();
        Self { bytes, id_at }
    }

    /// The request with the `n`th id.
    pub(crate) fn numbered(&mut self, n: u64) -> &[u8] {
        let digits = (FIRST_ID + n % FIRST_ID).to_string();
        self.bytes[self.id_at..self.id_at + digits.len()].copy_from_slice(digits.as_bytes());
        &self.bytes
    }
}

/// Where requests go and in which era they speak.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) host: String,
    pub(crate) path: String,
    pub(crate) era: Era,
}

impl Target {
    /// A POST with the headers that the era wants.
    pub(crate) fn request(&self, session: Option<&str>, more: &str, body: &str) -> Vec<u8> {
        let version = if self.era == Era::Modern { "2026-07-28" } else { "2025-11-25" };
        let session = session.map(|s| format!("mcp-session-id: {s}\r\n")).unwrap_or_default();
        let (path, host, length) = (&self.path, &self.host, body.len());
        format!(
            "POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n\
             mcp-protocol-version: {version}\r\n{session}{more}content-length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    }

    /// The session's GET stream.
    pub(crate) fn stream(&self, session: Option<&str>) -> Vec<u8> {
        let session = session.map(|s| format!("mcp-session-id: {s}\r\n")).unwrap_or_default();
        let (path, host) = (&self.path, &self.host);
        format!("GET {path} HTTP/1.1\r\nhost: {host}\r\naccept: text/event-stream\r\nmcp-protocol-version: 2025-11-25\r\n{session}\r\n")
            .into_bytes()
    }

    /// `initialize`.
    pub(crate) fn hello(&self) -> Vec<u8> {
        let params = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}"#;
        self.request(None, "", &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}}}"#))
    }

    /// `notifications/initialized`.
    pub(crate) fn ready(&self, session: Option<&str>) -> Vec<u8> {
        self.request(session, "", r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
    }
}
