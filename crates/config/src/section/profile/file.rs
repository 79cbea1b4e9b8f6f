//! The sections `[profile.NAME]` and the key `names`, as people write them. Checks no text.

use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer};

use crate::file::At;

/// The keys of views.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct ProfileForm {
    /// Spelling of tool names for clients without a profile. Default: `safe`.
    pub names: Option<Names>,
    /// Views of particular clients. The first profile in the file with matching `clients` applies.
    pub profile: BTreeMap<At<String>, Profile>,
}

/// The view of particular clients.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Profile {
    /// Names of clients (`clientInfo.name`); `*` stands for any text. Empty: only holders of a token with this profile.
    #[schemars(example = ["claude-*"])]
    pub clients: Vec<At<String>>,
    /// Only these tools are shown, by dotted name; `*` stands for any text. Default: all.
    #[schemars(example = ["github.*", "files.read_*"])]
    pub include: Vec<At<String>>,
    /// These tools are hidden.
    #[schemars(example = ["*.delete_*"])]
    pub exclude: Vec<At<String>>,
    /// Other names for tools: dotted name to shown name.
    #[schemars(with = "BTreeMap<String, String>", example = BTreeMap::from([("github.create_issue", "new_issue")]))]
    pub rename: BTreeMap<At<String>, At<String>>,
    /// Spelling of names. Default: as at the top of the file.
    pub names: Option<Names>,
    /// Three tools for finding, describing and calling in place of all tools: `always`, `never`, or above a number of tools. Default: 128.
    pub search: Option<Search>,
    /// Tools are listed with their MCP-AX annotations (`x-mcpax-...` in `_meta`). Default: true.
    pub annotations: Option<bool>,
}

/// Spelling of tool names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Names {
    /// `mount.tool`.
    Dotted,
    /// `mount__tool`: letters, digits, `_` and `-`, at most 64, as most clients demand.
    Safe,
}

/// Use of three tools for finding the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    /// Above a number of tools.
    Above(usize),
    /// Always.
    Always,
    /// Never.
    Never,
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
