//! The sections `[policy]`, `[group]` and `[budget]`: who may do what, and how much. What the texts say is not checked here.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::file::At;

/// The keys of rules and budgets.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct PolicyForm {
    /// Rules that say who may call what. Without this section everybody may call whatever is shown.
    pub policy: Option<Policy>,
    /// Callers that rules speak of as one, by the name of the group.
    pub group: Groups,
    /// How much callers may do, by the name of the budget.
    pub budget: Budgets,
}

/// Rules that say who may call what. Without this section everybody may call whatever is shown.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Policy {
    /// The file with the rules, in Cedar: absolute, below the home directory (`~/`), or relative to this file. What no rule of it
    /// permits is refused. `banyan policy init` writes one to begin with.
    #[schemars(example = "policy.cedar")]
    pub file: At<String>,
    /// The time zone of `context.time`. Default: this machine's.
    #[schemars(example = "Europe/Paris")]
    pub time_zone: Option<At<String>>,
}

/// Callers that rules speak of as one: `principal in Group::"NAME"`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Group {
    /// Names of callers; `*` stands for any text.
    #[schemars(example = ["ci-*", "alice@corp"])]
    pub members: Vec<At<String>>,
}

/// How much callers may do. Of several budgets that concern a caller, all hold.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Budget {
    /// Names of the callers it is for, each by itself; `*` stands for any text. Default: everybody.
    #[schemars(example = ["agent-*"])]
    pub principals: Option<Vec<At<String>>>,
    /// Whose calls are counted together. Default: `principal`.
    pub per: Per,
    /// Calls in any minute.
    #[schemars(range(max = 100_000))]
    pub max_calls_per_minute: Option<u32>,
    /// Calls that change something, for the whole session.
    pub max_mutable_calls_per_session: Option<u64>,
    /// Cost units, for the whole session: a call of a `free` tool costs 0, of a `metered` one 1, of an `expensive` one 10.
    pub max_cost_units_per_session: Option<u64>,
    /// How long a caller without calls keeps what it has spent: its session ends then. Default: `limits.session_idle`.
    #[schemars(example = "8h")]
    pub idle: Option<At<String>>,
}

/// Whose calls are counted together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Per {
    /// All of one caller, whatever sessions it opens.
    #[default]
    Principal,
    /// Those of one session of a client that has one; whoever opens another begins anew.
    Session,
}

/// The sections by name.
pub(crate) type Budgets = BTreeMap<At<String>, Budget>;

/// The sections by name.
pub(crate) type Groups = BTreeMap<At<String>, Group>;
