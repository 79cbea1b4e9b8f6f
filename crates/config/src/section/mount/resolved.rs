//! Servers of the configuration, checked. Reaches none.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use banyan_model::Segment;
use http::{HeaderMap, HeaderName, HeaderValue};
use mesh_proto::annotation::{self, Wishes};

use crate::diff::differing;
use crate::secret::{SecretRef, Sources};
use crate::section::mount::family::{FamilySettings, FamilyTransport};
use crate::section::trust::resolved::ClientTls;

/// A server put in the tree by configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Mount {
    pub name: Segment,
    pub transport: Transport,
    /// `None`: the server is asked.
    pub era: Option<banyan_model::Era>,
    pub sharing: Sharing,
    /// Longest silence (no progress) of a request before cancelling. The latency class of a tool may say less.
    pub timeout: Duration,
    /// Longest silence for tools below a first segment, from the settings of rooms.
    pub timeouts: BTreeMap<String, Duration>,
    /// Longest time of any request, whatever progress the server tells.
    pub longest: Duration,
    pub start_timeout: Duration,
    /// Time for which the tools of a server that is away stay listed; zero: none.
    pub grace: Duration,
    /// Time after which the lists of a server that tells of no changes are fetched again.
    pub list_ttl: Duration,
    /// Another gate, by the word of the operator.
    pub is_gate: bool,
    /// Tools to take: globs over the server's names; empty: all.
    pub include: Vec<String>,
    /// Tools to leave out: globs over the server's names.
    pub exclude: Vec<String>,
    /// The server's name of a tool to the shown name.
    pub rename: BTreeMap<String, String>,
    /// Additions to annotations: a glob over the server's names, and the wishes for matching tools. Later entries hold over earlier ones.
    pub tools: Vec<(String, Wishes)>,
    /// Transport of tools without a word about transport (AX-33): as the server registered itself.
    pub reached: annotation::Transport,
    /// Other mounts whose tools of the same names a call here calls; `None`: a call here is of this mount alone.
    pub stands_for: Option<MountGroup>,
    /// Tells the server who calls: only a server of ours, in a process of this gate, is told.
    pub is_told_callers: bool,
    /// Source of the mount, for people: `banyan.toml`, or a client's file.
    pub origin: String,
}

/// Mounts for which another mount stands: a caller reaches through it what it may call at each of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountGroup {
    pub members: Vec<Segment>,
    /// Argument of a call with the names of some members; a call without it is of all.
    pub argument: &'static str,
}

impl Mount {
    /// Longest silence of a request about a tool: as the latency class allows (AX-31; `None`: any time), and never longer than the settings
    /// of the tool's room or of the mount.
    pub fn limit(&self, tool: &str, class: Option<Duration>) -> Duration {
        let of_room = if self.timeouts.is_empty() { None } else { tool.split_once('.').and_then(|(room, _)| self.timeouts.get(room)) };
        let most = *of_room.unwrap_or(&self.timeout);
        class.map_or(most, |class| class.min(most))
    }

    /// Makes a mount with every other setting at its default.
    pub fn new(name: Segment, transport: Transport, origin: impl Into<String>) -> Self {
        Self {
            name,
            transport,
            era: None,
            sharing: Sharing::Auto,
            timeout: Duration::from_secs(300),
            timeouts: BTreeMap::new(),
            longest: Duration::from_secs(24 * 3600),
            start_timeout: Duration::from_secs(60),
            grace: Duration::from_secs(300),
            list_ttl: Duration::from_secs(60),
            is_gate: false,
            include: Vec::new(),
            exclude: Vec::new(),
            rename: BTreeMap::new(),
            tools: Vec::new(),
            reached: annotation::Transport::default(),
            stands_for: None,
            is_told_callers: false,
            origin: origin.into(),
        }
    }
}

/// The way to a server.
#[derive(Clone, Debug, PartialEq)]
pub enum Transport {
    /// A family of its own, such as the mounted rooms of this gate.
    Family(FamilyTransport),
    /// Streamable HTTP.
    Http(Remote),
    /// The HTTP+SSE transport of revision 2024-11-05.
    Sse(Remote),
    /// A child process, over standard input and output.
    Stdio(Process),
}

/// A server behind a URL.
#[derive(Clone, Debug, PartialEq)]
pub struct Remote {
    /// `http://` or `https://`, with path.
    pub url: url::Url,
    /// Sent with every request; values may come from secrets.
    pub headers: BTreeMap<String, SecretRef>,
    /// Sign-in by OAuth after a 401.
    pub oauth: Option<OAuth>,
    /// `None`: no certificate of the gate, and the authorities of this machine.
    pub tls: Option<ClientTls>,
    /// Others may listen in on the way to another gate.
    pub insecure: bool,
}

impl Remote {
    /// Resolves the headers of every request. Reads secrets; the error says which header can't be sent.
    pub fn header_map(&self, sources: &dyn Sources) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let secret = value.resolve(sources).map_err(|error| error.to_string())?;
            let bad = || format!("its configured header `{name}` is not a legal HTTP header");
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
            let mut value = HeaderValue::from_str(secret.expose()).map_err(|_| bad())?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(headers)
    }

    /// Decides about sign-in at `url` without a setting: over https, unless a header has a credential.
    pub fn default_oauth(url: &url::Url, headers: &BTreeMap<String, SecretRef>) -> Option<OAuth> {
        let has_credential = headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
        (url.scheme() == "https" && !has_credential).then(OAuth::default)
    }
}

/// An agent behind a URL, which speaks A2A.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteAgent(pub Remote);

impl FamilySettings for RemoteAgent {
    const FAMILY: &'static str = "a2a";

    fn description(&self) -> String {
        self.0.url.to_string()
    }

    fn differing(&self, old: &Self) -> Vec<&'static str> {
        differing([
            ("url", self.0.url != old.0.url),
            ("headers", self.0.headers != old.0.headers),
            ("tls", self.0.tls != old.0.tls),
            ("insecure", self.0.insecure != old.0.insecure),
        ])
    }
}

/// Sign-in at an upstream with OAuth. Present by default for `https` remotes without an `Authorization` header.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct OAuth {
    /// Pre-registered client id; otherwise CIMD, then dynamic registration.
    pub client_id: Option<String>,
    pub client_secret: Option<SecretRef>,
    /// URL of our client id metadata document (CIMD).
    pub client_metadata_url: Option<String>,
    /// Scopes to ask for when the server names none.
    pub scopes: Vec<String>,
    /// Port of the loopback redirect; `None`: any free port.
    pub redirect_port: Option<u16>,
    pub grant: Grant,
}

/// Owner of a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grant {
    /// A person, by a browser.
    #[default]
    AuthorizationCode,
    /// Banyan itself, by client id and secret.
    ClientCredentials,
}

/// A server in a child process.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    /// Program: a path, or a name looked up in `PATH`.
    pub command: String,
    /// References come from clients' files (`--api-key ${input:key}`).
    pub args: Vec<SecretRef>,
    /// Variables on top of the allow-list.
    pub env: BTreeMap<String, SecretRef>,
    /// Globs over names of our own variables to pass on, besides the built-in names (PATH, HOME, LANG …).
    pub pass_env: Vec<String>,
    pub cwd: Option<PathBuf>,
    /// Arguments of one process for this and other servers, which gets `args` and `env` of each over a socket; `None`: a process of its own.
    pub shared: Option<Vec<String>>,
}

/// Sharing of a session or process of an upstream among clients of the initialize era.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// A single session, until the server asks its client something; then a session for each client able to answer.
    Auto,
    /// A session for each client, or in the stateless era for all clients with the same capabilities.
    Never,
    /// A single session.
    Always,
}
