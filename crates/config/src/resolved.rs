//! What the rest of the gateway reads: every value checked, every default filled in. Does not read files.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

mod audit;
mod gate;
mod hosts;
mod join;
mod pins;
mod policy;
mod room;
mod trust;

use banyan_model::Segment;
use mesh_proto::annotation::{self, Wishes};
pub use mesh_proto::parent::{Demand, SegmentPolicy};

use super::secret::SecretRef;

pub use audit::Audit;
pub use audit::{AT_LEAST, FULL};
pub use gate::{ApprovalService, Gate, Webhook};
pub use hosts::Hosts;
pub use join::{Join, Parent};
pub use pins::Pins;
pub use policy::{Budget, Group, Policy};
pub use room::{Participant, ROOM_SEGMENT, Room, Rooms, Seats, TokenKey, gate_seat};
pub use trust::{AuthorityKeys, ClientTls, Issuer, Keys, Tls, Trust};

/// One whole, valid configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where the gate listens.
    pub listen: SocketAddr,
    /// `Host` (and `Origin` host) names accepted besides loopback ones.
    pub allowed_hosts: Vec<String>,
    /// Set if a proxy stands in front, so that whoever comes from this machine may be anybody.
    pub behind_proxy: bool,
    /// Who may call. Empty: anybody who reaches a loopback listener.
    pub tokens: Vec<Token>,
    /// Who else is known, and by what.
    pub trust: Trust,
    /// Callers need a credential although none is configured: the last one was taken away by a file that is not in force.
    pub shut: bool,
    /// Who may call what; `None`: everybody whatever is shown.
    pub policy: Option<Policy>,
    /// Callers that rules speak of as one.
    pub groups: Vec<Group>,
    /// How much callers may do.
    pub budgets: Vec<Budget>,
    /// Bounds on what a caller may ask for.
    pub limits: Limits,
    /// The servers, by the segment they are mounted under.
    pub mounts: BTreeMap<Segment, Arc<Mount>>,
    /// Which calls wait for somebody to agree; `None`: none by the word of this gate.
    pub gate: Option<Arc<Gate>>,
    /// Who may register servers here; `None`: nobody.
    pub registry: Option<Registry>,
    /// Its rooms, and who may come into them.
    pub rooms: Arc<Rooms>,
    /// Whom it registers with; `None`: nobody.
    pub join: Option<Join>,
    /// What particular clients are shown. The first whose `clients` match applies.
    pub profiles: Vec<Arc<Profile>>,
    /// Where spans go.
    pub telemetry: Telemetry,
    /// Whether an unmatched client is shown dotted names.
    pub names: NameStyle,
    /// What is done with definitions that nobody has looked at.
    pub pins: Pins,
    /// What is recorded.
    pub audit: Audit,
}

impl Config {
    /// Where the gate listens unless told otherwise.
    pub const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7411);

    /// What is mounted and is no room.
    pub fn servers(&self) -> impl Iterator<Item = &Arc<Mount>> {
        self.mounts.values().filter(|mount| !matches!(mount.transport, Transport::Rooms))
    }

    /// Checks whether all that come are one principal: nobody is asked who it is, and nobody comes over a link or into a room.
    pub fn is_for_one(&self) -> bool {
        !self.wants_credential() && self.join.is_none() && !self.rooms.are_served()
    }

    /// Share of one principal in what is free and what the principal holds, in percent: all, where there can't be another principal.
    pub fn share(&self) -> usize {
        let is_alone = self.tokens.len() <= 1 && !self.trust.wants_credential() && self.join.is_none() && !self.rooms.are_served();
        if is_alone { 100 } else { self.limits.share }
    }

    /// Whether nobody comes in without a credential.
    pub fn wants_credential(&self) -> bool {
        self.shut || !self.tokens.is_empty() || self.trust.wants_credential()
    }
}

/// No servers, nobody needs a token, loopback only.
impl Default for Config {
    fn default() -> Self {
        Self {
            listen: Self::DEFAULT_LISTEN,
            allowed_hosts: Vec::new(),
            behind_proxy: false,
            tokens: Vec::new(),
            trust: Trust::default(),
            shut: false,
            policy: None,
            groups: Vec::new(),
            budgets: Vec::new(),
            limits: Limits::default(),
            mounts: BTreeMap::new(),
            gate: None,
            registry: None,
            rooms: Arc::default(),
            join: None,
            profiles: Vec::new(),
            telemetry: Telemetry::default(),
            names: NameStyle::Safe,
            pins: Pins::default(),
            audit: Audit::default(),
        }
    }
}

/// A bearer token, kept as a hash.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    /// The principal it stands for.
    pub name: Arc<str>,
    /// SHA-256 of the token.
    pub sha256: [u8; 32],
    /// The profile this principal always gets.
    pub profile: Option<Arc<str>>,
    /// Set if its holder may read the metrics.
    pub metrics: bool,
}

/// Bounds on what a caller may ask for.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Longest request body, in bytes.
    pub request_bytes: usize,
    /// Longest answer taken from an upstream, in bytes.
    pub response_bytes: usize,
    /// Calls in flight over all upstreams.
    pub calls: usize,
    /// Calls in flight to one upstream.
    pub calls_per_mount: usize,
    /// How long what is ready may wait for its turn before requests are refused.
    pub wait: Duration,
    /// Initialize-era sessions kept.
    pub sessions: usize,
    /// How long an idle session is kept.
    pub session_idle: Duration,
    /// Tools taken from one upstream; the rest is reported and left out.
    pub tools_per_mount: usize,
    /// Share of one principal in what is free and what the principal holds, in percent.
    pub share: usize,
    /// Connections of clients.
    pub connections: usize,
    /// Connections from one address; `None`: a share of them, where the gate listens on a network.
    pub connections_per_address: Option<usize>,
    /// Bytes in bodies of requests, as far as these are long.
    pub body_bytes: usize,
    /// Bytes in event streams: what waits for its reader, and answers that are kept for whoever comes back for them.
    pub stream_bytes: usize,
    /// Calls that wait for their caller to come back with an answer.
    pub parked: usize,
    /// Open `subscriptions/listen` requests.
    pub listeners: usize,
    /// Resources that are subscribed to.
    pub subscriptions: usize,
    /// Longest time for which a question of a server is left without an answer.
    pub question: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request_bytes: 16 << 20,
            response_bytes: 64 << 20,
            calls: 4096,
            calls_per_mount: 512,
            wait: Duration::from_millis(10),
            sessions: 100_000,
            session_idle: Duration::from_secs(30 * 60),
            tools_per_mount: 200_000,
            share: 50,
            connections: 32_768,
            connections_per_address: None,
            body_bytes: 512 << 20,
            stream_bytes: 256 << 20,
            parked: 10_000,
            listeners: 10_000,
            subscriptions: 100_000,
            question: Duration::from_secs(60 * 60),
        }
    }
}

/// Who may register servers, and on which terms (MCP-AX 4.2, 6).
#[derive(Clone, Debug, PartialEq)]
pub struct Registry {
    /// Globs over the names of principals who may; `None`: whoever proves an authority.
    pub principals: Option<Vec<String>>,
    /// The hosts, besides loopback ones, whose URLs may be registered: the gate will dial them.
    pub hosts: Hosts,
    /// What holds for segments that have no policy of their own.
    pub policy: SegmentPolicy,
    /// Segments with a policy of their own.
    pub policies: BTreeMap<Segment, SegmentPolicy>,
    /// How long the tools of a lost server stay listed; zero: not at all.
    pub grace: Duration,
    /// How many may be registered at once.
    pub registrations: usize,
    /// Whether gates may register, and be dialled, where others can listen in (AX-42).
    pub insecure: bool,
    /// Set if whoever registers as a gate is taken for one, though it proves no authority.
    pub trust_gates: bool,
    /// How `https` addresses that were registered and the gate know each other.
    pub tls: Option<ClientTls>,
}

impl Default for Registry {
    fn default() -> Self {
        Self {
            principals: None,
            hosts: Hosts::default(),
            policy: SegmentPolicy::default(),
            policies: BTreeMap::new(),
            grace: Duration::from_secs(300),
            registrations: 20_000,
            insecure: false,
            trust_gates: false,
            tls: None,
        }
    }
}

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

/// What particular clients are shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Its name.
    pub name: Arc<str>,
    /// Globs over `clientInfo.name`.
    pub clients: Vec<String>,
    /// Globs over dotted names; empty: all.
    pub include: Vec<String>,
    /// Globs over dotted names.
    pub exclude: Vec<String>,
    /// Dotted name to the name shown.
    pub rename: BTreeMap<String, String>,
    /// Spelling of names.
    pub names: Option<NameStyle>,
    /// Whether tools are shown, or three tools that find them.
    pub search: Search,
}

/// How a qualified name is spelled for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameStyle {
    /// `mount.tool`.
    Dotted,
    /// `[a-zA-Z0-9_-]{1,64}`: `mount__tool`.
    Safe,
}

/// When a client is shown search, describe and call in place of the tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// When it would see more tools than this.
    Above(usize),
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Default for Search {
    /// Above 128 tools: the most that widespread clients take.
    fn default() -> Self {
        Self::Above(128)
    }
}

/// Where spans go, and how much is logged.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Telemetry {
    /// OTLP/HTTP endpoint, e.g. `http://localhost:4318`.
    pub otlp: Option<url::Url>,
}
