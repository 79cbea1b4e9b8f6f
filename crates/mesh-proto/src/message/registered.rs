//! The result of `mcpax/register` (MCP-AX 6.2, AX-21). Makes no sessions.

use std::time::Duration;

use banyan_model::Segment;
use serde_json::{Map, Value};

use super::budget::Budget;
use super::limit::{MAX_ANCESTORS, MAX_BYTES};
use super::node_ids::{ID, id, list, session, write};
use crate::id::{NodeId, SessionId};
use crate::json::{Object, object};
use crate::refusal::Refusal;

/// Ancestors of a registration. The draft has none of these members: a silent parent is taken for a root.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ancestry {
    /// Ids of the parent and all its ancestors, nearest first (AX-24).
    pub ancestors: Vec<NodeId>,
    /// Characters, dots included, before the names shown by the parent (AX-10).
    pub prefix_length: usize,
}

impl Ancestry {
    pub(super) fn read(object: &Object) -> Result<Self, Refusal> {
        let length = |v: &Value| v.as_u64().and_then(|n| usize::try_from(n).ok()).filter(|n| *n <= 255);
        Ok(Self {
            ancestors: list(object, "x-mcpax-ancestor-ids", MAX_ANCESTORS)?.unwrap_or_default(),
            prefix_length: object.optional("prefix_length", length, "a number up to 255")?.unwrap_or_default(),
        })
    }

    pub(super) fn write(&self) -> Map<String, Value> {
        let mut members = Map::new();
        members.insert("x-mcpax-ancestor-ids".into(), write(&self.ancestors));
        members.insert("prefix_length".into(), self.prefix_length.into());
        members
    }
}

/// The result of `mcpax/register`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RegistrationResult {
    /// Segment of the shown tools.
    pub segment: Segment,
    pub session: SessionId,
    /// Time within which a heartbeat must arrive: three intervals; zero: no heartbeats needed.
    pub deadline: Duration,
    pub budget: Budget,
    /// The parent's id; `None`: unknown.
    pub aggregator_id: Option<NodeId>,
    pub above: Ancestry,
}

impl RegistrationResult {
    /// Reads a result.
    ///
    /// # Errors
    /// Any fault of the result.
    pub fn decode(result: &[u8]) -> Result<Self, Refusal> {
        let result = object(result, MAX_BYTES)?;
        let deadline = result.optional("heartbeat_deadline_ms", Value::as_u64, "a whole number")?.unwrap_or_default();
        Ok(Self {
            segment: result.required("assigned_segment", |v| Segment::new(v.as_str()?).ok(), "a segment")?,
            session: session(&result)?,
            deadline: Duration::from_millis(deadline),
            budget: result.object("budget")?.map(|budget| Budget::read(&budget)).transpose()?.unwrap_or_default(),
            aggregator_id: result.optional("aggregator_id", id, ID)?,
            above: Ancestry::read(&result)?,
        })
    }

    /// Writes the JSON.
    pub fn encode(&self) -> String {
        let mut members = Map::new();
        members.insert("status".into(), "registered".into());
        members.insert("assigned_segment".into(), self.segment.as_str().into());
        members.insert("session_id".into(), self.session.as_str().into());
        members.insert("heartbeat_deadline_ms".into(), u64::try_from(self.deadline.as_millis()).unwrap_or(u64::MAX).into());
        members.insert("budget".into(), self.budget.write());
        if let Some(id) = self.aggregator_id {
            members.insert("aggregator_id".into(), id.to_string().into());
        }
        members.extend(self.above.write());
        Value::Object(members).to_string()
    }
}
