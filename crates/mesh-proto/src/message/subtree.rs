//! `mcpax/subtree`: changes of the aggregators below (AX-24, ours). Does not look for cycles.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::limit::{MAX_BYTES, MAX_SUBTREE_IDS};
use super::node_ids::{session, set, write};
use crate::id::{NodeId, SessionId};
use crate::json::{invalid, object};
use crate::refusal::Refusal;

/// The params of `mcpax/subtree`. Any object is a result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Subtree {
    pub session: SessionId,
    /// Counts the changes of a session from 1.
    pub version: u64,
    pub change: SubtreeChange,
}

/// A change of the set of aggregators below, the sender included.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SubtreeChange {
    /// The whole set.
    All(BTreeSet<NodeId>),
    /// The difference from the version before.
    Step { joined: BTreeSet<NodeId>, left: BTreeSet<NodeId> },
}

impl Subtree {
    /// The result of an accepted change.
    pub const RESULT: &'static str = r#"{"status":"accepted"}"#;

    pub(super) fn decode(params: &[u8]) -> Result<Self, Refusal> {
        let params = object(params, MAX_BYTES)?;
        let ids = |member| set(&params, member, MAX_SUBTREE_IDS);
        let change = match (ids("ids")?, ids("joined")?, ids("left")?) {
            (Some(all), None, None) => SubtreeChange::All(all),
            (None, None, None) => return Err(invalid("ids", "is missing; send `ids`, or `joined` and `left`".into())),
            (None, joined, left) => SubtreeChange::Step { joined: joined.unwrap_or_default(), left: left.unwrap_or_default() },
            (Some(_), ..) => return Err(invalid("ids", "must not stand beside `joined` or `left`".into())),
        };
        let version = params.required("version", Value::as_u64, "a whole number that counts the changes from 1")?;
        Ok(Self { session: session(&params)?, version, change })
    }

    pub(super) fn encode(&self) -> String {
        let mut members = Map::new();
        members.insert("session_id".into(), self.session.as_str().into());
        members.insert("version".into(), self.version.into());
        match &self.change {
            SubtreeChange::All(ids) => _ = members.insert("ids".into(), write(ids)),
            SubtreeChange::Step { joined, left } => {
                members.insert("joined".into(), write(joined));
                members.insert("left".into(), write(left));
            }
        }
        Value::Object(members).to_string()
    }
}
