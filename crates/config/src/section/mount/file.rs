//! The sections `[mount.NAME]`, as people write them. Checks no text.

use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer};

use super::tool::Tool;
use crate::file::At;
use crate::section::trust::file::MountTls;

/// The keys of the servers.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct MountForm {
    /// Names of Banyan's own variables to pass on to every program, besides those of `pass_env` in its section; `*` stands for any text.
    #[schemars(example = ["AWS_*"])]
    pub pass_env: Vec<At<String>>,
    /// The servers behind the gate, by the name in front of their tools: 1 to 63 of a-z, 0-9, `_` and `-`.
    #[schemars(extend("propertyNames" = { "pattern": "^[a-z0-9_-]{1,63}$" }))]
    pub mount: BTreeMap<At<String>, Mount>,
}

/// A server behind the gate: a `command` to start, or a `url` to reach.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Mount {
    /// Program to start: a path, or a name in `PATH`.
    #[schemars(example = &"npx")]
    pub command: Option<At<String>>,
    /// Arguments of the program, with references to secrets where needed.
    #[schemars(example = ["-y", "@modelcontextprotocol/server-filesystem", "/srv"])]
    pub args: Option<At<Vec<At<String>>>>,
    /// Variables of the program. Values may hold references: `${env:NAME}`, `${file:/path}`, `${keyring:NAME}`.
    #[schemars(with = "Option<BTreeMap<String, String>>", example = BTreeMap::from([("GITHUB_TOKEN", "${keyring:github}")]))]
    pub env: Option<At<BTreeMap<At<String>, At<String>>>>,
    /// Names of Banyan's own variables to pass on; `*` stands for any text.
    #[schemars(example = ["AWS_*"])]
    pub pass_env: Option<At<Vec<At<String>>>>,
    /// Directory of the program: absolute, below the home directory (`~/`), or relative to this file.
    #[schemars(example = "~/projects")]
    pub cwd: Option<At<String>>,
    /// Address of a server over HTTP. May hold `${env:NAME}`; secrets belong into `headers`.
    #[schemars(example = "https://mcp.example.com/mcp")]
    pub url: Option<At<String>>,
    /// The transport behind `url`. Default: `http`.
    pub transport: Option<At<Transport>>,
    /// Headers sent with every request. Values may hold references to secrets.
    #[schemars(with = "Option<BTreeMap<String, String>>", example = BTreeMap::from([("Authorization", "Bearer ${env:TOKEN}")]))]
    pub headers: Option<At<BTreeMap<At<String>, At<String>>>>,
    /// Sign-in at a `url` with OAuth. `false` never signs in. Default: as the server asks, for `https` without an `Authorization` header.
    pub oauth: Option<At<OAuthSetting>>,
    /// The certificate to show to an `https` server, and the authorities to trust for the server's own.
    pub tls: Option<At<MountTls>>,
    /// `true` reaches another gate over plain `http`, or TLS before 1.3, on a network: a listener reads and changes every call.
    pub insecure: Option<At<bool>>,
    /// `true`: the server is another gate of yours. `[pins] gates` then holds for its definitions, and its word counts for the duration of
    /// calls and for the calls to hold. Without `gate`, a server that calls itself a gate is pinned as any other.
    pub gate: bool,
    /// The era of MCP to speak. Default: `auto`, by asking the server.
    pub era: Era,
    /// Sharing of a session or process among clients. Default: `auto`.
    pub sharing: Sharing,
    /// Longest silence of a call, without an answer or progress. Default: `5m`.
    #[schemars(example = "5m")]
    pub timeout: Option<At<String>>,
    /// Longest duration of a call, whatever progress the server tells. Default: `1d`.
    #[schemars(example = "1h")]
    pub longest: Option<At<String>>,
    /// Longest duration of the start and the first handshake. Default: `60s`.
    #[schemars(example = "60s")]
    pub start_timeout: Option<At<String>>,
    /// Time for which the tools of a server that is away stay listed. `0s`: none. Default: `5m`.
    #[schemars(example = "5m")]
    pub grace: Option<At<String>>,
    /// Time after which the lists of a server that tells of no changes are fetched again. Default: `60s`.
    #[schemars(example = "60s")]
    pub list_ttl: Option<At<String>>,
    /// Tools to take; `*` stands for any text. Default: all.
    #[schemars(example = ["read_*", "list_*"])]
    pub include: Vec<At<String>>,
    /// Tools to leave out.
    #[schemars(example = ["delete_*"])]
    pub exclude: Vec<At<String>>,
    /// Other names for tools: the server's name to the new name.
    #[schemars(with = "BTreeMap<String, String>", example = BTreeMap::from([("getUser", "user")]))]
    pub rename: BTreeMap<At<String>, At<String>>,
    /// Additions to the annotations of tools, by the server's name of a tool; `*` stands for any text.
    #[schemars(with = "BTreeMap<String, Tool>")]
    pub tools: BTreeMap<At<String>, Tool>,
    /// `true` leaves the server out.
    pub disabled: bool,
}

/// The transport behind a `url`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Transport {
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE of revision 2024-11-05.
    Sse,
    /// An agent that speaks A2A 1.0: its skills are tools.
    A2a,
}

/// The era of MCP to speak to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Era {
    /// Ask the server.
    #[default]
    Auto,
    /// Revisions up to 2025-11-25, with `initialize` at the beginning.
    Initialize,
    /// Revision 2026-07-28, where each request stands alone.
    Stateless,
}

/// Sharing of a server's session or process among clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Sharing {
    /// A single session, unless the server asks its client things.
    #[default]
    Auto,
    /// A single session.
    Always,
    /// A session for each client, with the client's own capabilities.
    Never,
}

/// Sign-in at a server, or `false` for never.
#[derive(Debug)]
pub(crate) enum OAuthSetting {
    /// `true`: as the server asks.
    Switch(bool),
    /// With these particulars.
    With(OAuth),
}

/// Particulars of signing in at a server by OAuth.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct OAuth {
    /// Client id, registered beforehand.
    pub client_id: Option<String>,
    /// Secret of the client; may hold references.
    #[schemars(example = "${keyring:example-client}")]
    pub client_secret: Option<At<String>>,
    /// URL of a client id metadata document, for servers with support.
    pub client_metadata_url: Option<At<String>>,
    /// Scopes to ask for when the server names none.
    pub scopes: Vec<String>,
    /// Port of the local redirect address. Default: any free port.
    #[schemars(range(min = 1))]
    pub redirect_port: Option<u16>,
    /// Owner of the token: a person with a browser, or Banyan itself by `client_id` and `client_secret`.
    pub grant: Option<At<Grant>>,
}

/// Owner of a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Grant {
    /// A person, by a browser.
    #[default]
    AuthorizationCode,
    /// Banyan itself.
    ClientCredentials,
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
