//! The shape of `banyan.toml`, as people write it, one type a section. Does not check what the texts say:
//! `resolve` does.

mod audit;
mod gate;
mod parent;
mod pins;
mod policy;
mod registry;
mod room;
mod tool;
mod trust;

use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

pub use audit::{Audit, RecordedArguments};
pub use gate::{Gate, GateCommand, GateMode, GateService, Webhook};
pub use parent::{Node, Parent};
pub use pins::{PinMode, Pins};
pub use policy::{Budget, Budgets, Group, Groups, Per, Policy};
pub use registry::{Demand, Registry, SegmentPolicy};
pub use room::{Participant, Room, RoomAccess, RoomLimits, RoomMount, RoomMounting, Rooms};
pub use tool::{AuthScope, Availability, Consistency, CostClass, LatencyClass, Tool};
pub use trust::{Authority, Clients, Issuer, MountTls, Tls};

/// The configuration of Banyan.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "banyan.toml")]
pub struct File {
    /// Where this schema is published, for editors that read it from here.
    #[serde(rename = "$schema")]
    pub schema: Option<String>,
    /// Address and port to listen on. Anything but loopback needs a `[[token]]`. Default: `127.0.0.1:7411`.
    #[schemars(example = "127.0.0.1:7411")]
    pub listen: Option<At<String>>,
    /// Host names by which clients may reach the gate, besides the loopback ones: without scheme and port.
    #[schemars(example = ["gate.example.com"])]
    pub allowed_hosts: Vec<At<String>>,
    /// `true`: a proxy on this machine hands requests of others on, so that nobody counts as being on this machine. Needs a credential of
    /// every caller.
    pub behind_proxy: Option<At<bool>>,
    /// TLS 1.3 on the listener.
    pub tls: Option<At<Tls>>,
    /// The address by which tokens name this gate: their `aud` (RFC 8707). Needed beside `issuer` and `authority`.
    #[schemars(example = "https://gate.example.com/mcp")]
    pub resource: Option<At<String>>,
    /// How the names of tools are spelled for clients that no profile matches. Default: `safe`.
    pub names: Option<Names>,
    /// Who may call: one entry for each bearer token. `banyan token add NAME` makes one.
    pub token: Vec<Token>,
    /// Authorization servers whose tokens are taken, by the name behind their holders' in logs and records.
    pub issuer: BTreeMap<At<String>, Issuer>,
    /// Whose word proves which DNS names, for whoever registers with an authority.
    pub authority: BTreeMap<At<String>, Authority>,
    /// Rules that say who may call what. Without this section everybody may call whatever is shown.
    pub policy: Option<Policy>,
    /// Callers that rules speak of as one, by the name of the group.
    pub group: Groups,
    /// How much callers may do, by the name of the budget.
    pub budget: Budgets,
    /// Bounds on what callers and servers may use.
    pub limits: Limits,
    /// The servers behind the gate, by the name in front of their tools: 1 to 63 of a-z, 0-9, `_` and `-`.
    pub mount: BTreeMap<At<String>, Mount>,
    /// Which calls wait for somebody to agree. Without this section, none does by the word of this gate.
    pub gate: Option<Gate>,
    /// What is done with definitions that nobody has looked at.
    pub pins: Pins,
    /// Servers that register themselves. Without this section, nobody may.
    pub registry: Option<Registry>,
    /// What holds for all rooms.
    pub rooms: Rooms,
    /// The rooms in which people and agents meet (MCPx), by name.
    pub room: BTreeMap<At<String>, Room>,
    /// Who comes into rooms by a token of its own, by the id that others see.
    pub participant: BTreeMap<At<String>, Participant>,
    /// This gate as others of its tree know it.
    pub node: Option<At<Node>>,
    /// The gates that this one registers with, the preferred one first. `banyan join URL` adds one.
    pub parent: Vec<At<Parent>>,
    /// What particular clients are shown. The first profile in the file whose `clients` match applies.
    pub profile: BTreeMap<At<String>, Profile>,
    /// Where traces go.
    pub telemetry: Telemetry,
    /// The record of what was called and decided.
    pub audit: Audit,
}

/// A bearer token, kept as its hash.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// The name under which its holder appears in logs and records.
    #[schemars(example = &"ci")]
    pub name: At<String>,
    /// SHA-256 of the token, as 64 hexadecimal digits. The token itself is written nowhere.
    pub sha256: At<String>,
    /// The profile that its holder always gets.
    pub profile: Option<At<String>>,
    /// Whether its holder may read `/metrics`. Default: `false`.
    #[serde(default)]
    pub metrics: bool,
}

/// Bounds on what callers and servers may use.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Longest request body. Default: `16MiB`.
    #[schemars(example = "16MiB")]
    pub request_size: Option<At<String>>,
    /// Longest answer taken from a server. Default: `64MiB`.
    #[schemars(example = "64MiB")]
    pub response_size: Option<At<String>>,
    /// Calls in flight over all servers. Default: 4096.
    #[schemars(range(min = 1))]
    pub calls: Option<usize>,
    /// Calls in flight to one server. Default: 512.
    #[schemars(range(min = 1))]
    pub calls_per_mount: Option<usize>,
    /// How long calls may wait for their turn while the gate has more to do than it can, before more are refused. Default: `10ms`.
    #[schemars(example = "10ms")]
    pub wait: Option<At<String>>,
    /// Sessions kept for clients that speak a revision before 2026-07-28. Default: 100000.
    #[schemars(range(min = 1))]
    pub sessions: Option<usize>,
    /// How long an idle session is kept. Default: `30m`.
    #[schemars(example = "30m")]
    pub session_idle: Option<At<String>>,
    /// Tools taken from one server; the rest is reported and left out. Default: 200000.
    #[schemars(range(min = 1))]
    pub tools_per_mount: Option<usize>,
    /// Share of each bound that one caller may have, in percent of what is free and of what the caller has; 100 shares nothing out. A caller
    /// that is the only one who can come has all. Default: 50.
    #[schemars(range(min = 1, max = 100))]
    pub share: Option<usize>,
    /// Connections of clients, at most three quarters of the files that the system lets the gate open. Those that lie idle longest are closed
    /// when it gets close. Default: 32768.
    #[schemars(range(min = 1))]
    pub connections: Option<usize>,
    /// Connections from one address (of IPv6: one network of 64 bits). Default: as `share` says, where the gate listens on a network.
    #[schemars(range(min = 1))]
    pub connections_per_address: Option<usize>,
    /// Bodies of requests over 64 KiB together, until they are answered. Default: `512MiB`.
    #[schemars(example = "512MiB")]
    pub bodies: Option<At<String>>,
    /// Messages in event streams that wait for clients, and answers that are kept there for clients that come back. Default: `256MiB`.
    #[schemars(example = "256MiB")]
    pub streams: Option<At<String>>,
    /// Calls that wait for their client to come back with an answer (revision 2026-07-28). Default: 10000.
    #[schemars(range(min = 1))]
    pub parked: Option<usize>,
    /// Open `subscriptions/listen` requests. Default: 10000.
    #[schemars(range(min = 1))]
    pub listeners: Option<usize>,
    /// Resources that are subscribed to, over all clients. Default: 100000.
    #[schemars(range(min = 1))]
    pub subscriptions: Option<usize>,
    /// Longest time for which a question of a server is left without an answer. Default: `1h`.
    #[schemars(example = "1h")]
    pub question: Option<At<String>>,
}

/// One server behind the gate: a `command` to start, or a `url` to reach.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Mount {
    /// Program to start: a path, or a name that is looked up in `PATH`.
    #[schemars(example = &"npx")]
    pub command: Option<At<String>>,
    /// Its arguments. They may hold references to secrets.
    #[schemars(example = ["-y", "@modelcontextprotocol/server-filesystem", "/srv"])]
    pub args: Option<At<Vec<At<String>>>>,
    /// Variables set for it. Values may hold references: `${env:NAME}`, `${file:/path}`, `${keyring:NAME}`.
    #[schemars(with = "Option<BTreeMap<String, String>>", example = BTreeMap::from([("GITHUB_TOKEN", "${keyring:github}")]))]
    pub env: Option<At<BTreeMap<At<String>, At<String>>>>,
    /// Names of Banyan's own variables that it may see as well; `*` stands for any text.
    #[schemars(example = ["AWS_*"])]
    pub pass_env: Option<At<Vec<At<String>>>>,
    /// Directory to start it in: absolute, below the home directory (`~/`), or relative to this file.
    #[schemars(example = "~/projects")]
    pub cwd: Option<At<String>>,
    /// Address of a server that is reached over HTTP. May hold `${env:NAME}`; secrets belong into `headers`.
    #[schemars(example = "https://mcp.example.com/mcp")]
    pub url: Option<At<String>>,
    /// The transport behind `url`. Default: `http`.
    pub transport: Option<At<Transport>>,
    /// Headers sent with every request. Values may hold references to secrets.
    #[schemars(with = "Option<BTreeMap<String, String>>", example = BTreeMap::from([("Authorization", "Bearer ${env:TOKEN}")]))]
    pub headers: Option<At<BTreeMap<At<String>, At<String>>>>,
    /// How to sign in at a `url` that wants OAuth. `false` never signs in. Default: as the server asks, for `https`
    /// without an `Authorization` header.
    pub oauth: Option<At<OAuthSetting>>,
    /// The certificate to show to an `https` server, and the authorities to trust for it.
    pub tls: Option<At<MountTls>>,
    /// `true` reaches another gate over plain `http`, or TLS before 1.3, on a network: whoever listens in reads and changes every call.
    pub insecure: Option<At<bool>>,
    /// `true`: the server is another gate of yours. Its definitions are then those of `[pins] gates`, and its word counts for how long
    /// its calls take and for which of them it holds. A server that calls itself a gate without this is pinned as any other.
    pub gate: bool,
    /// The era of MCP to speak. Default: `auto`, which asks the server.
    pub era: Era,
    /// Whether clients share one session or process. Default: `auto`.
    pub sharing: Sharing,
    /// How long a call may stay without an answer or progress. Default: `5m`.
    #[schemars(example = "5m")]
    pub timeout: Option<At<String>>,
    /// How long a call may take in all, whatever its server says of its progress. Default: `1d`.
    #[schemars(example = "1h")]
    pub longest: Option<At<String>>,
    /// How long starting and the first handshake may take. Default: `60s`.
    #[schemars(example = "60s")]
    pub start_timeout: Option<At<String>>,
    /// Only these of its tools are taken; `*` stands for any text. Default: all.
    #[schemars(example = ["read_*", "list_*"])]
    pub include: Vec<At<String>>,
    /// These of its tools are left out.
    #[schemars(example = ["delete_*"])]
    pub exclude: Vec<At<String>>,
    /// Other names for its tools: its own name to the new one.
    #[schemars(with = "BTreeMap<String, String>", example = BTreeMap::from([("getUser", "user")]))]
    pub rename: BTreeMap<At<String>, At<String>>,
    /// What is known of its tools beyond what they say themselves: by the server's own name of a tool; `*` stands for any text.
    #[schemars(with = "BTreeMap<String, Tool>")]
    pub tools: BTreeMap<At<String>, Tool>,
    /// `true` leaves the server out without forgetting it.
    pub disabled: bool,
}

/// The transport behind a `url`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE of revision 2024-11-05.
    Sse,
}

/// The era of MCP to speak to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// Ask the server.
    #[default]
    Auto,
    /// Revisions up to 2025-11-25, which begin with `initialize`.
    Initialize,
    /// Revision 2026-07-28, where each request stands alone.
    Stateless,
}

/// Whether clients share one session or process of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Sharing {
    /// One for all, unless the server asks its client things.
    #[default]
    Auto,
    /// One for all.
    Always,
    /// One for each client, which is told of that client's own capabilities.
    Never,
}

/// How to sign in at a server, or `false` for never.
#[derive(Debug)]
pub enum OAuthSetting {
    /// `true`: as the server asks.
    Switch(bool),
    /// With these particulars.
    With(OAuth),
}

/// Particulars of signing in at a server by OAuth.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OAuth {
    /// Client id that was registered beforehand.
    pub client_id: Option<String>,
    /// Its secret; may hold references.
    #[schemars(example = "${keyring:example-client}")]
    pub client_secret: Option<At<String>>,
    /// URL of a client id metadata document, for servers that take one.
    pub client_metadata_url: Option<At<String>>,
    /// Scopes to ask for when the server names none.
    pub scopes: Vec<String>,
    /// Port of the local redirect address. Default: any free one.
    #[schemars(range(min = 1))]
    pub redirect_port: Option<u16>,
    /// Who the token is for: a person who signs in, or Banyan itself by `client_id` and `client_secret`.
    pub grant: Option<At<Grant>>,
}

/// Who a token is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Grant {
    /// A person, who signs in with a browser.
    #[default]
    AuthorizationCode,
    /// Banyan itself.
    ClientCredentials,
}

/// What particular clients are shown.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Profile {
    /// Names by which clients introduce themselves (`clientInfo.name`); `*` stands for any text. Empty: only holders
    /// of a token that names this profile.
    #[schemars(example = ["claude-*"])]
    pub clients: Vec<At<String>>,
    /// Only these tools are shown, by dotted name; `*` stands for any text. Default: all.
    #[schemars(example = ["github.*", "files.read_*"])]
    pub include: Vec<At<String>>,
    /// These tools are hidden.
    #[schemars(example = ["*.delete_*"])]
    pub exclude: Vec<At<String>>,
    /// Other names for tools: dotted name to the one shown.
    #[schemars(with = "BTreeMap<String, String>", example = BTreeMap::from([("github.create_issue", "new_issue")]))]
    pub rename: BTreeMap<At<String>, At<String>>,
    /// How names are spelled. Default: as at the top of the file.
    pub names: Option<Names>,
    /// Whether tools are shown, or three tools that find, describe and call them: `always`, `never`, or a number
    /// of tools above which they are. Default: 128.
    pub search: Option<Search>,
}

/// How the names of tools are spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Names {
    /// `mount.tool`.
    Dotted,
    /// `mount__tool`: letters, digits, `_` and `-`, at most 64, as most clients demand.
    Safe,
}

/// When a client is shown three tools that find the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// When it would see more tools than this.
    Above(usize),
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Where traces go.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Telemetry {
    /// Address of an OTLP/HTTP collector.
    #[schemars(example = "http://localhost:4318")]
    pub otlp: Option<At<String>>,
}

/// A value with its place in the file.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(transparent)]
#[serde(bound = "T: Deserialize<'de>")]
pub struct At<T>(Spanned<T>);

impl<T> At<T> {
    /// The byte range of the value in the file.
    pub fn span(&self) -> std::ops::Range<usize> {
        self.0.span()
    }

    /// The value.
    pub fn get(&self) -> &T {
        self.0.get_ref()
    }
}

impl<T: JsonSchema> JsonSchema for At<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> std::borrow::Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

impl<'de> Deserialize<'de> for OAuthSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Setting;

        impl<'de> Visitor<'de> for Setting {
            type Value = OAuthSetting;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`false`, `true` or a table")
            }

            fn visit_bool<E>(self, on: bool) -> Result<OAuthSetting, E> {
                Ok(OAuthSetting::Switch(on))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<OAuthSetting, A::Error> {
                OAuth::deserialize(MapAccessDeserializer::new(map)).map(OAuthSetting::With)
            }
        }

        deserializer.deserialize_any(Setting)
    }
}

impl JsonSchema for OAuthSetting {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "OAuthSetting".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "anyOf": [{ "type": "boolean" }, generator.subschema_for::<OAuth>()] })
    }
}

impl<'de> Deserialize<'de> for Search {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct When;

        impl Visitor<'_> for When {
            type Value = Search;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"always\", \"never\" or a number of tools")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Search, E> {
                match text {
                    "always" => Ok(Search::Always),
                    "never" => Ok(Search::Never),
                    other => Err(E::unknown_variant(other, &["always", "never"])),
                }
            }

            fn visit_i64<E: serde::de::Error>(self, tools: i64) -> Result<Search, E> {
                usize::try_from(tools).map(Search::Above).map_err(|_| E::custom("a number of tools is not negative"))
            }
        }

        deserializer.deserialize_any(When)
    }
}

impl JsonSchema for Search {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Search".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "anyOf": [{ "type": "string", "enum": ["always", "never"] }, { "type": "integer", "minimum": 0 }] })
    }
}
