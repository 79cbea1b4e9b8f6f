//! `mcpax/parent`: which aggregator are you registered with? Asked by an aggregator of a subserver (AX-25, ours).
//! What follows from the answer is not decided here.

use serde_json::json;

use super::limit::MAX_BYTES;
use super::node_ids::{ID, id};
use crate::id::NodeId;
use crate::json::object;
use crate::refusal::Refusal;

/// The params of `mcpax/parent`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AskParent {
    /// Who asks.
    pub aggregator_id: NodeId,
    /// Who is asked: one link may carry the registrations of several subservers.
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
pub struct ParentIs {
    /// With whom it is registered; `None` with nobody.
    pub parent_id: Option<NodeId>,
}

impl ParentIs {
    /// Reads a result.
    ///
    /// # Errors
    /// Whatever is wrong with it.
    pub fn decode(result: &[u8]) -> Result<Self, Refusal> {
        Ok(Self { parent_id: object(result, MAX_BYTES)?.optional("parent_id", id, ID)? })
    }

    /// Its text.
    pub fn encode(&self) -> String {
        json!({ "parent_id": self.parent_id.map(|id| id.to_string()) }).to_string()
    }
}
