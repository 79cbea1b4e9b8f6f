//! Whom `tools`, `call`, `names` and `tree` ask: the running gate. Does not print.

use bytes::Bytes;
use gateway::admin::client::AdminClient;
use gateway::admin::shapes::{CallRequest, Status, Tools};

use crate::arguments::Place;
use crate::failure::Failure;
use crate::gate;

/// Something that knows the tree.
pub(crate) enum Asked {
    /// A gate that was running already.
    Running(AdminClient),
}

impl Asked {
    /// The running gate.
    pub(crate) fn find(place: &Place) -> Result<Self, Failure> {
        Ok(Self::Running(gate::needed(place)?))
    }

    /// The tools as `client` is shown them.
    pub(crate) async fn tools(&self, client: Option<&str>) -> Result<Tools, Failure> {
        let query: Vec<(&str, &str)> = client.iter().map(|c| ("client", *c)).collect();
        match self {
            Self::Running(gate) => Ok(gate.get("/-/tools", &query).await?),
        }
    }

    /// The servers.
    pub(crate) async fn status(&self) -> Result<Status, Failure> {
        match self {
            Self::Running(gate) => Ok(gate.get("/-/status", &[]).await?),
        }
    }

    /// Calls a tool; its `result` as the server wrote it.
    pub(crate) async fn call(&self, request: &CallRequest) -> Result<Bytes, Failure> {
        match self {
            Self::Running(gate) => Ok(gate.post("/-/call", request).await?),
        }
    }
}
