//! `mcpax/parent`: an aggregator's question for a subserver's current registration (AX-25, ours). Draws no conclusions.

use serde_json::json;

use super::limit::MAX_BYTES;
use super::node_ids::{ID, id};
use crate::id::NodeId;
use crate::json::object;
use crate::refusal::Refusal;

/// The params of `mcpax/parent`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AskParent {
    /// The asking aggregator.
    pub aggregator_id: NodeId,
    /// The asked subserver: one link may carry the registrations of several.
    pub subserver_id: NodeId,
}

impl AskParent {
    pub(super) fn decode(params: &[u8]) -> Result<Self, Refusal> {
        let params = object(params, MAX_BYTES)?;
        Ok(Self { aggregator_id: params.required("aggregator_id", id, ID)?, subserver_id: params.required("subserver_id", id, ID)? })
    }

    pub(super) fn encode(&self) -> String {
        json!({ "aggregator_id": self.aggregator_id.to_string(), "subserver_id": self.subserver_id.to_string() }).to_string()
    }
}

/// The result of `mcpax/parent`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParentAnswer {
    /// Aggregator of the current registration, if any.
    pub parent_id: Option<NodeId>,
}

impl ParentAnswer {
    /// Reads a result.
    ///
    /// # Errors
    /// Any fault of the result.
    pub fn decode(result: &[u8]) -> Result<Self, Refusal> {
        Ok(Self { parent_id: object(result, MAX_BYTES)?.optional("parent_id", id, ID)? })
    }

    /// Writes the JSON.
    pub fn encode(&self) -> String {
        json!({ "parent_id": self.parent_id.map(|id| id.to_string()) }).to_string()
    }
}
