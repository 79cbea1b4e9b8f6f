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
    /// Where the id stands: in front, and where one was asked for, in the progress token.
    ids_at: Vec<usize>,
}

/// What a `tools/call` holds besides its name.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Load {
    /// Bytes of text among the arguments.
    pub(crate) argument_bytes: usize,
    /// Whether progress is asked for.
    pub(crate) progress: bool,
}

impl Template {
    /// A `tools/call` of `name`.
    pub(crate) fn call(target: &Target, session: Option<&str>, name: &str, load: Load) -> Self {
        let text = if load.argument_bytes == 0 { String::new() } else { format!(r#","text":"{}""#, "x".repeat(load.argument_bytes)) };
        let arguments = format!(r#""name":"{name}","arguments":{{"path":"/tmp","depth":3{text}}}"#);
        let token = load.progress.then(|| format!(r#""progressToken":{FIRST_ID}"#));
        Self::new(target, session, "tools/call", [Some(arguments), target.meta(token)], &format!("mcp-name: {name}\r\n"))
    }

    /// A `tools/list`.
    pub(crate) fn list(target: &Target, session: Option<&str>) -> Self {
        Self::new(target, session, "tools/list", [None, target.meta(None)], "")
    }

    fn new(target: &Target, session: Option<&str>, method: &str, params: [Option<String>; 2], mirrored: &str) -> Self {
        let params = params.into_iter().flatten().collect::<Vec<_>>().join(",");
        let body = format!(r#"{{"jsonrpc":"2.0","id":{FIRST_ID},"method":"{method}","params":{{{params}}}}}"#);
        let mirrored = match target.era {
            Era::Legacy => String::new(),
            Era::Modern => format!("mcp-method: {method}\r\n{mirrored}"),
        };
        let bytes = target.request(session, &mirrored, &body);
        let ids_at = memchr::memmem::find_iter(&bytes, FIRST_ID.to_string().as_bytes()).collect();
        Self { bytes, ids_at }
    }

    /// The request with the `n`th id.
    pub(crate) fn numbered(&mut self, n: u64) -> &[u8] {
        let digits = (FIRST_ID + n % FIRST_ID).to_string();
        for at in &self.ids_at {
            self.bytes[*at..*at + digits.len()].copy_from_slice(digits.as_bytes());
        }
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
    fn request(&self, session: Option<&str>, more: &str, body: &str) -> Vec<u8> {
        let version = if self.era == Era::Modern { "2026-07-28" } else { "2025-11-25" };
        let session = session.map(|s| format!("mcp-session-id: {s}\r\n")).unwrap_or_default();
        let (path, host, length) = (&self.path, &self.host, body.len());
        format!(
            "POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n\
             mcp-protocol-version: {version}\r\n{session}{more}content-length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    }

    /// A request of the stateless era with these members of `params`.
    pub(crate) fn ask(&self, method: &str, members: &str) -> Vec<u8> {
        let meta = self.meta(None).map(|meta| format!(",{meta}")).unwrap_or_default();
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{members}{meta}}}}}"#);
        self.request(None, &format!("mcp-method: {method}\r\n"), &body)
    }

    /// `_meta`, if the era or a progress token wants one.
    fn meta(&self, token: Option<String>) -> Option<String> {
        let own = (self.era == Era::Modern).then(|| {
            let key = "io.modelcontextprotocol";
            format!(r#""{key}/protocolVersion":"2026-07-28","{key}/clientCapabilities":{{}},"{key}/clientInfo":{{"name":"bench","version":"1"}}"#)
        });
        let members: Vec<String> = own.into_iter().chain(token).collect();
        (!members.is_empty()).then(|| format!(r#""_meta":{{{}}}"#, members.join(",")))
    }

    /// The session's GET stream.
    pub(crate) fn stream(&self, session: Option<&str>) -> Vec<u8> {
        self.bare("GET", "accept: text/event-stream\r\n", session)
    }

    /// Ends the session.
    pub(crate) fn goodbye(&self, session: &str) -> Vec<u8> {
        self.bare("DELETE", "", Some(session))
    }

    fn bare(&self, method: &str, more: &str, session: Option<&str>) -> Vec<u8> {
        let session = session.map(|s| format!("mcp-session-id: {s}\r\n")).unwrap_or_default();
        let (path, host) = (&self.path, &self.host);
        format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\n{more}mcp-protocol-version: 2025-11-25\r\n{session}\r\n").into_bytes()
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
