//! The sections `[mount.NAME]`, as people write them. Checks no text.

use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer};

use super::tool::Tool;
use crate::file::At;
use crate::section::trust::file::MountTls;

/// The key of the servers.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct MountForm {
    /// The servers behind the gate, by the name in front of their tools: 1 to 63 of a-z, 0-9, `_` and `-`.
    #[schemars(extend("propertyNames" = { "pattern": "^[a-z0-9_-]{1,63}$" }))]
    pub mount: BTreeMap<At<String>, Mount>,
}

/// One server behind the gate: a `command` to start, or a `url` to reach.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Mount {
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
pub(crate) enum Transport {
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE of revision 2024-11-05.
    Sse,
}

/// The era of MCP to speak to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Era {
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
pub(crate) enum Sharing {
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
pub(crate) enum Grant {
    /// A person, who signs in with a browser.
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
