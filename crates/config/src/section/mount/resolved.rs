//! Servers of the configuration, checked. Reaches none.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use banyan_model::Segment;
use mesh_proto::annotation::{self, Wishes};

use crate::secret::SecretRef;
use crate::section::trust::resolved::ClientTls;

/// One server put in the tree by configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Mount {
    /// The segment in front of its tools.
    pub name: Segment,
    /// How it is reached.
    pub transport: Transport,
    /// Which era to speak to it; `None` probes.
    pub era: Option<banyan_model::Era>,
    /// Whether clients share one session or process of it.
    pub sharing: Sharing,
    /// Longest silence (no progress) of a request before it is cancelled. The latency class of a tool may say less.
    pub timeout: Duration,
    /// The same for tools whose path begins with this segment: what a room says of its own.
    pub timeouts: BTreeMap<String, Duration>,
    /// Longest time of any request, whatever the server says of its progress.
    pub longest: Duration,
    /// How long start and handshake may take.
    pub start_timeout: Duration,
    /// Set if it is another gate, by the word of whoever runs this one.
    pub is_gate: bool,
    /// Tools it may show (globs over its own names; empty: all), and those it may not.
    pub include: Vec<String>,
    /// Tools it may not show (globs over its own names).
    pub exclude: Vec<String>,
    /// Its own tool name to the name shown instead.
    pub rename: BTreeMap<String, String>,
    /// What is said of its tools: a glob over its own names, and what holds for those it matches. Later ones hold over earlier ones.
    pub tools: Vec<(String, Wishes)>,
    /// How its tools are reached, where they do not say (AX-33): as its server registered itself.
    pub reached: annotation::Transport,
    /// Where this mount came from, for people: `banyan.toml`, or a client's file.
    pub origin: String,
}

impl Mount {
    /// Longest silence of a request about a tool of this name: as long as its latency class allows (AX-31; `None`: it has
    /// none, or one that allows any time), and never longer than somebody said for its room or for the mount.
    pub fn limit(&self, tool: &str, class: Option<Duration>) -> Duration {
        let of_room = if self.timeouts.is_empty() { None } else { tool.split_once('.').and_then(|(room, _)| self.timeouts.get(room)) };
        let most = *of_room.unwrap_or(&self.timeout);
        class.map_or(most, |class| class.min(most))
    }

    /// A mount with every other setting at its default.
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
            is_gate: false,
            include: Vec::new(),
            exclude: Vec::new(),
            rename: BTreeMap::new(),
            tools: Vec::new(),
            reached: annotation::Transport::default(),
            origin: origin.into(),
        }
    }
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq)]
pub enum Transport {
    /// Streamable HTTP.
    Http(Remote),
    /// The rooms of this gate that are mounted: their participants are called there.
    Rooms,
    /// The HTTP+SSE transport of revision 2024-11-05.
    Sse(Remote),
    /// A child process that speaks on its standard input and output.
    Stdio(Process),
}

/// A server behind a URL.
#[derive(Clone, Debug, PartialEq)]
pub struct Remote {
    /// `http://` or `https://`, with path.
    pub url: url::Url,
    /// Sent with every request; values may come from secrets.
    pub headers: BTreeMap<String, SecretRef>,
    /// Whether to sign in by OAuth when the server answers 401.
    pub oauth: Option<OAuth>,
    /// How it and the gate know each other, where that is not left to this machine's certificates.
    pub tls: Option<ClientTls>,
    /// Whether another gate may be reached in a way that others can listen in on.
    pub insecure: bool,
}

impl Remote {
    /// Whether to sign in at `url` when nothing is said about it: over https, unless a header already does.
    pub fn default_oauth(url: &url::Url, headers: &BTreeMap<String, SecretRef>) -> Option<OAuth> {
        let has_credential = headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
        (url.scheme() == "https" && !has_credential).then(OAuth::default)
    }
}

/// How to sign in at an upstream that wants OAuth. Present by default for `https` remotes without an `Authorization` header.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct OAuth {
    /// Pre-registered client id; otherwise CIMD, then dynamic registration.
    pub client_id: Option<String>,
    /// Its secret, where the authorization server wants one.
    pub client_secret: Option<SecretRef>,
    /// URL of our client id metadata document (CIMD).
    pub client_metadata_url: Option<String>,
    /// Scopes to ask for when the server names none.
    pub scopes: Vec<String>,
    /// Port of the loopback redirect; `None` takes any free one.
    pub redirect_port: Option<u16>,
    /// Who the token is for.
    pub grant: Grant,
}

/// Who a token is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grant {
    /// A person, who signs in with a browser.
    #[default]
    AuthorizationCode,
    /// Banyan itself, by its client id and secret.
    ClientCredentials,
}

/// A server that is a child process.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    /// Program: a path, or a name looked up in `PATH`.
    pub command: String,
    /// Its arguments; clients' files put references in them (`--api-key ${input:key}`).
    pub args: Vec<SecretRef>,
    /// Set in its environment, on top of the allow-list.
    pub env: BTreeMap<String, SecretRef>,
    /// Names (globs) of our own variables it may see, besides the built-in ones (PATH, HOME, LANG …).
    pub pass_env: Vec<String>,
    /// Its working directory.
    pub cwd: Option<PathBuf>,
}

/// Whether clients share one session or process of an upstream of the initialize era.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// One for all, until the server is seen to ask its client something; then one for each client that can answer.
    Auto,
    /// One for each client: a session, or in the stateless era whoever says the same about itself.
    Never,
    /// One for all.
    Always,
}
