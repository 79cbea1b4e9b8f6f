//! Origin of a call in a room, and its proposal there, if any: a proposed call goes out only after a person has agreed and the room has
//! seen that. A room adds a reason to wait, and removes none. Decides nothing.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use mcp_proto::json::quote;
use tokio::sync::oneshot;

use crate::words::cancel::Cancel;

/// Origin of a call in a room.
pub struct RoomOrigin {
    /// Name of the room.
    pub room: Arc<str>,
    proposal: Option<Mutex<Option<ProposalHandle>>>,
    /// Reason why the call is no longer wanted.
    over: OnceLock<String>,
}

/// Approval or grant by which a proposed call goes out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomAgreement {
    /// Id of the approval or grant.
    pub id: String,
    /// People who agreed.
    pub by: Vec<String>,
}

impl RoomAgreement {
    /// Raw object for everybody in the room.
    pub fn object(&self) -> String {
        let by: Vec<String> = self.by.iter().map(|person| quote(person)).collect();
        format!("{{\"id\":{},\"by\":[{}]}}", quote(&self.id), by.join(","))
    }
}

/// The call's end of a proposal.
struct ProposalHandle {
    agreed: oneshot::Sender<RoomAgreement>,
    fulfilled: oneshot::Receiver<()>,
}

/// The room's end of a proposal.
pub struct RoomProposal {
    /// Receives the agreement; closed once the call can't go out any more.
    pub agreed: oneshot::Receiver<RoomAgreement>,
    /// Lets the call go out as the fulfilment of the proposal.
    pub fulfilled: oneshot::Sender<()>,
}

/// Refusal of a proposal without a waiting call, or fulfilled before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotFulfilled;

impl fmt::Debug for RoomOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RoomOrigin({})", self.room)
    }
}

impl RoomOrigin {
    /// Makes the origin of a call asked for in a room.
    pub fn asked(room: Arc<str>) -> Arc<Self> {
        Arc::new(Self { room, proposal: None, over: OnceLock::new() })
    }

    /// Makes the origin of a call proposed in a room, and the room's end.
    pub fn proposed(room: Arc<str>) -> (Arc<Self>, RoomProposal) {
        let ((agreed, is_agreed), (fulfilled, is_fulfilled)) = (oneshot::channel(), oneshot::channel());
        let waiting = ProposalHandle { agreed, fulfilled: is_fulfilled };
        let seated = Self { room, proposal: Some(Mutex::new(Some(waiting))), over: OnceLock::new() };
        (Arc::new(seated), RoomProposal { agreed: is_agreed, fulfilled })
    }

    /// Checks for a proposal, which waits for a person whatever the rules say.
    pub fn is_proposed(&self) -> bool {
        self.proposal.is_some()
    }

    /// Announces the agreement, and waits until the room has seen the proposal fulfilled by it.
    ///
    /// # Errors
    /// If the room settled the proposal before.
    pub async fn fulfil(&self, by: RoomAgreement, cancel: &Cancel) -> Result<(), NotFulfilled> {
        let Some(proposal) = &self.proposal else { return Ok(()) };
        let waiting = proposal.lock().unwrap_or_else(PoisonError::into_inner).take();
        let ProposalHandle { agreed, fulfilled } = waiting.ok_or(NotFulfilled)?;
        agreed.send(by).map_err(|_| NotFulfilled)?;
        tokio::select! {
            biased;
            is_fulfilled = fulfilled => is_fulfilled.map_err(|_| NotFulfilled),
            () = cancel.cancelled() => Err(NotFulfilled),
        }
    }

    /// Notes why the call is no longer wanted. The first reason stays.
    pub fn end_proposal(&self, why: String) {
        // A reason may have been given before.
        drop(self.over.set(why));
    }

    /// Reason why the call is no longer wanted, if known.
    pub fn why(&self) -> Option<&str> {
        self.over.get().map(String::as_str)
    }
}
