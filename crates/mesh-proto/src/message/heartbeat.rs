//! `mcpax/heartbeat` and `mcpax/deregister` (MCP-AX 6.3). When they are due is not known here.

use serde_json::{Value, json};

use super::limit::MAX_BYTES;
use super::node_ids::session;
use super::registered::Above;
use crate::id::SessionId;
use crate::json::object;
use crate::refusal::Refusal;

/// The params of `mcpax/heartbeat`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Heartbeat {
    /// Which session lives.
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
pub struct Alive {
    /// What stands above, which may have changed.
    pub above: Above,
    /// How many of the listed tools are not shown to anybody, for reasons that the aggregator's operator can see.
    pub withheld: u64,
}

impl Alive {
    /// Reads a result.
    ///
    /// # Errors
    /// Whatever is wrong with it.
    pub fn decode(result: &[u8]) -> Result<Self, Refusal> {
        let result = object(result, MAX_BYTES)?;
        let withheld = result.optional("withheld", Value::as_u64, "a whole number")?.unwrap_or_default();
        Ok(Self { above: Above::read(&result)?, withheld })
    }

    /// Its text.
    pub fn encode(&self) -> String {
        let mut members = self.above.write();
        members.insert("status".into(), "alive".into());
        if self.withheld > 0 {
            members.insert("withheld".into(), self.withheld.into());
        }
        Value::Object(members).to_string()
    }
}

/// The params of `mcpax/deregister`. Its result is any object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Deregister {
    /// Which session ends.
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
