//! The form of `[policy]`, `[group]` and `[budget]`. Checks no text.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::file::At;

/// The keys of rules and budgets.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct PolicyForm {
    /// Rules about callers and calls. Without the section everybody may call all tools of a view.
    pub policy: Option<Policy>,
    /// Groups of callers for rules, by name.
    pub group: Groups,
    /// Budgets of callers, by name.
    pub budget: Budgets,
}

/// Rules about callers and calls. Without the section everybody may call all tools of a view.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Policy {
    /// The file with the rules, in Cedar: absolute, below the home directory (`~/`), or relative to this file. A call without a permitting
    /// rule is refused. `banyan policy init` writes a first file.
    #[schemars(example = "policy.cedar")]
    pub file: At<String>,
    /// The time zone of `context.time`. Default: this machine's.
    #[schemars(example = "Europe/Paris")]
    pub time_zone: Option<At<String>>,
}

/// A group of callers for rules: `principal in Group::"NAME"`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Group {
    /// Names of callers; `*` stands for any text.
    #[schemars(example = ["ci-*", "alice@corp"])]
    pub members: Vec<At<String>>,
}

/// A budget of callers. Of several budgets for a caller, all hold.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Budget {
    /// Names of callers, each with a budget of its own; `*` stands for any text. Default: everybody.
    #[schemars(example = ["agent-*"])]
    pub principals: Option<Vec<At<String>>>,
    /// Unit of counting. Default: `principal`.
    pub per: Per,
    /// Calls in any minute.
    #[schemars(range(max = 100_000))]
    pub max_calls_per_minute: Option<u32>,
    /// Calls with changes, for the whole session.
    pub max_mutable_calls_per_session: Option<u64>,
    /// Cost units, for the whole session: a call of a `free` tool costs 0, of a `metered` tool 1, of an `expensive` tool 10.
    pub max_cost_units_per_session: Option<u64>,
    /// Time without calls after which a caller's session ends, and its count. Default: `limits.session_idle`.
    #[schemars(example = "8h")]
    pub idle: Option<At<String>>,
}

/// Unit of counting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Per {
    /// All calls of a caller, over all sessions.
    #[default]
    Principal,
    /// Calls of a session; another session of the same client begins anew.
    Session,
}

/// The sections by name.
pub(crate) type Budgets = BTreeMap<At<String>, Budget>;

/// The sections by name.
pub(crate) type Groups = BTreeMap<At<String>, Group>;
