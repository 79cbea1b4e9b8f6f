//! Spending limits of a session (MCP-AX 6.2 and 11.4). Counts nothing.

use serde_json::{Map, Value};

use crate::json::Object;
use crate::refusal::Refusal;

/// Limits of a session; `None`: unlimited.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Budget {
    pub calls_per_minute: Option<u64>,
    /// Calls that change something, for the whole session.
    pub mutable_calls_per_session: Option<u64>,
    /// Cost units, for the whole session.
    pub cost_units_per_session: Option<u64>,
}

impl Budget {
    const CALLS: &str = "max_calls_per_minute";
    const MUTABLE: &str = "max_mutable_calls_per_session";
    const COST: &str = "max_cost_units_per_session";

    pub(super) fn read(object: &Object) -> Result<Self, Refusal> {
        let count = |member| object.optional(member, Value::as_u64, "a whole number");
        Ok(Self {
            calls_per_minute: count(Self::CALLS)?,
            mutable_calls_per_session: count(Self::MUTABLE)?,
            cost_units_per_session: count(Self::COST)?,
        })
    }

    /// Lists the limits by name.
    pub fn limits(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
        let members = [
            (Self::CALLS, self.calls_per_minute),
            (Self::MUTABLE, self.mutable_calls_per_session),
            (Self::COST, self.cost_units_per_session),
        ];
        members.into_iter().filter_map(|(key, limit)| Some((key, limit?)))
    }

    pub(super) fn write(&self) -> Value {
        Value::Object(self.limits().map(|(key, limit)| (key.to_owned(), limit.into())).collect::<Map<_, _>>())
    }
}
