//! A participant's call on its way: caller, and errors. The call itself goes the way of all calls, not decided here.

use std::future::poll_fn;
use std::sync::{Arc, OnceLock};

use banyan_model::{Era, Segment};
use bytes::Bytes;
use mcp_proto::envelope::{Answer, Request};
use mcp_proto::era::INITIALIZE;
use room_proto::sitting::ServerCall;
use tokio::sync::{mpsc, oneshot};

use crate::Rooms;
use crate::table::seat::News;
use call::tree::back::{Back, Sink};
use call::tree::caller::{Caller, Last};
use call::way::error::{CallError, CallerError};
use call::way::serve;
use call::words::cancel::Cancel;
use call::words::entered::{AboutClient, AdmittedCaller};
use call::words::lane::Lane;
use call::words::seated::{RoomAgreement, RoomOrigin};
use call::words::view_key::ViewKey;

/// Description of a participant's program: none.
const INFO: &[u8] = b"{\"name\":\"mcpx\"}";

/// Result of a call.
pub type CallOutcome = Result<Answer, CallError>;

/// A call of a participant.
pub struct ParticipantCall {
    pub rooms: Arc<Rooms>,
    pub asked: ServerCall,
    pub caller: Arc<Caller>,
    pub seated: Arc<RoomOrigin>,
    pub cancel: Cancel,
    pub tell: mpsc::Sender<News>,
}

impl ParticipantCall {
    /// Makes the call, and passes on its news. `agreed`: the call waits for an approval.
    pub async fn run(self, agreed: Option<oneshot::Receiver<RoomAgreement>>) -> CallOutcome {
        let lane = Lane::new();
        let mut said = lane.read(0);
        let back = Back::seated(Arc::clone(&self.caller), Sink::Lane(Arc::clone(&lane)), self.cancel, self.seated);
        let ServerCall { call, method, params, id, .. } = self.asked;
        let request = Request { id, method: method.into(), params: params.into() };
        let served = serve(&self.rooms.gate, &request, &back);
        let agreed = async {
            match agreed {
                Some(agreed) => agreed.await.ok(),
                None => None,
            }
        };
        tokio::pin!(served, agreed);
        let mut waits = true;
        loop {
            tokio::select! {
                biased;
                by = &mut agreed, if waits => {
                    waits = false;
                    if let Some(by) = by {
                        // A seat that is gone has cancelled it.
                        drop(self.tell.send(News::Agreed(call, by)).await);
                    }
                }
                Some((_, message)) = poll_fn(|cx| said.poll_next(cx)) => drop(self.tell.send(News::Said(call, message)).await),
                ended = &mut served => return ended,
            }
        }
    }
}

/// Makes a caller of a participant: of the initialize era, so that answers pass unchanged, and without a way to ask back.
pub fn caller(rooms: &Rooms, entered: &AdmittedCaller, mount: Option<Segment>) -> Arc<Caller> {
    let config = rooms.gate.config.load();
    let entered = entered.under(&config);
    let scope = entered.scope(&config, mount, AboutClient { info: INFO, capabilities: b"{}" }, None);
    let scope = ViewKey { is_seated: true, ..scope };
    Arc::new(Caller {
        principal: entered.principal.clone(),
        is_owner: false,
        subject: Arc::new(entered.subject(INFO)),
        party: entered.party,
        era: Era::Initialize,
        version: INITIALIZE[0],
        capabilities: Bytes::from_static(b"{}"),
        info: Bytes::from_static(INFO),
        scope,
        session: None,
        shown: Last::default(),
        standing: Last::default(),
        share: OnceLock::new(),
    })
}

/// Writes an error for a participant. A refusal by rules looks like an absent tool; the operator finds the rule by the decision.
pub fn shown_error(error: &CallError) -> CallerError {
    let mut told = error.tell(Era::Initialize);
    if let CallError::NotApproved { why, .. } = error
        && !why.is_empty()
    {
        told.message += &format!(": {why}");
    }
    if let Some(by) = error.decided() {
        told.message += &format!(" (decision {0}: whoever runs the gate sees which rule with `banyan explain {0}`)", by.id);
    }
    told
}
