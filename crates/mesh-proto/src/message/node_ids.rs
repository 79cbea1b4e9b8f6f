//! Lists of ids in messages. Does not know their meaning.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::id::{NodeId, SessionId};
use crate::json::{Object, invalid};
use crate::refusal::Refusal;

pub(super) const ID: &str = "a UUID, like 550e8400-e29b-41d4-a716-446655440000";

/// Reads an id.
pub(super) fn id(value: &Value) -> Option<NodeId> {
    value.as_str().and_then(NodeId::parse)
}

/// Reads the session of a request.
pub(super) fn session(object: &Object) -> Result<SessionId, Refusal> {
    object.required("session_id", |v| v.as_str().and_then(SessionId::parse), "the text that the registration was answered with")
}

/// Reads a list of at most `most` ids, in order; `None`: the member is absent.
pub(super) fn list(object: &Object, member: &'static str, most: usize) -> Result<Option<Vec<NodeId>>, Refusal> {
    let Some(values) = object.optional(member, Value::as_array, "a list of UUIDs")? else { return Ok(None) };
    if values.len() > most {
        return Err(Refusal::SubtreeTooLarge { most });
    }
    let ids: Option<Vec<NodeId>> = values.iter().map(id).collect();
    ids.map(Some).ok_or_else(|| invalid(member, "must be a list of UUIDs".into()))
}

/// Reads the same list as a set.
pub(super) fn set(object: &Object, member: &'static str, most: usize) -> Result<Option<BTreeSet<NodeId>>, Refusal> {
    Ok(list(object, member, most)?.map(|ids| ids.into_iter().collect()))
}

/// Writes ids.
pub(super) fn write<'a>(ids: impl IntoIterator<Item = &'a NodeId>) -> Value {
    ids.into_iter().map(|id| Value::String(id.to_string())).collect()
}
