//! `mcpax/heartbeat` and `mcpax/deregister` (MCP-AX 6.3). Does not know their time.

use serde_json::{Value, json};

use super::limit::MAX_BYTES;
use super::node_ids::session;
use super::registered::Ancestry;
use crate::id::SessionId;
use crate::json::object;
use crate::refusal::Refusal;

/// The params of `mcpax/heartbeat`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Heartbeat {
    pub session: SessionId,
}

impl Heartbeat {
    pub(super) fn decode(params: &[u8]) -> Result<Self, Refusal> {
        Ok(Self { session: session(&object(params, MAX_BYTES)?)? })
    }

    pub(super) fn encode(&self) -> String {
        json!({ "session_id": self.session.as_str() }).to_string()
    }
}

/// The result of `mcpax/heartbeat`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HeartbeatAnswer {
    /// Current ancestry.
    pub above: Ancestry,
    /// Number of listed tools hidden from everybody, for reasons visible to the aggregator's operator.
    pub withheld: u64,
}

impl HeartbeatAnswer {
    /// Reads a result.
    ///
    /// # Errors
    /// Any fault of the result.
    pub fn decode(result: &[u8]) -> Result<Self, Refusal> {
        let result = object(result, MAX_BYTES)?;
        let withheld = result.optional("withheld", Value::as_u64, "a whole number")?.unwrap_or_default();
        Ok(Self { above: Ancestry::read(&result)?, withheld })
    }

    /// Writes the JSON.
    pub fn encode(&self) -> String {
        let mut members = self.above.write();
        members.insert("status".into(), "alive".into());
        if self.withheld > 0 {
            members.insert("withheld".into(), self.withheld.into());
        }
        Value::Object(members).to_string()
    }
}

/// The params of `mcpax/deregister`. Any object is a result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Deregister {
    pub session: SessionId,
}

impl Deregister {
    /// The result of a deregistration.
    pub const RESULT: &'static str = r#"{"status":"deregistered"}"#;

    pub(super) fn decode(params: &[u8]) -> Result<Self, Refusal> {
        Ok(Self { session: session(&object(params, MAX_BYTES)?)? })
    }

    pub(super) fn encode(&self) -> String {
        json!({ "session_id": self.session.as_str() }).to_string()
    }
}
