//! One call of a participant on its way: as whom it is made, and how it is told. The call itself goes the way of every other, and is not
//! decided on here.

use std::future::poll_fn;
use std::sync::{Arc, OnceLock};

use banyan_model::{Era, Segment};
use bytes::Bytes;
use mcp_proto::envelope::{Answer, Request};
use mcp_proto::era::INITIALIZE;
use room_proto::sitting::Asked;
use tokio::sync::{mpsc, oneshot};

use crate::Rooms;
use crate::table::seat::News;
use call::way::error::{CallError, Told};
use call::way::seated::{Agreed, Seated};
use call::way::serve;
use call::words::back::{Back, Sink};
use call::words::caller::{Caller, Last, ViewKey};
use call::words::cancel::Cancel;
use call::words::entered::{AboutClient, Entered};
use call::words::lane::Lane;

/// What a participant says of its program: nothing.
const INFO: &[u8] = b"{\"name\":\"mcpx\"}";

/// How a call ended.
pub type Ended = Result<Answer, CallError>;

/// A call of a participant.
pub struct Asking {
    pub rooms: Arc<Rooms>,
    pub asked: Asked,
    pub caller: Arc<Caller>,
    pub seated: Arc<Seated>,
    pub cancel: Cancel,
    pub tell: mpsc::Sender<News>,
}

impl Asking {
    /// Makes it; what is said meanwhile is told. `agreed`: people may have to agree first, and have.
    pub async fn run(self, agreed: Option<oneshot::Receiver<Agreed>>) -> Ended {
        let lane = Lane::new();
        let mut said = lane.read(0);
        let back = Back::seated(Arc::clone(&self.caller), Sink::Lane(Arc::clone(&lane)), self.cancel, self.seated);
        let Asked { call, method, params, id, .. } = self.asked;
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

/// A participant as a caller. It is one of the initialize era, so that what an owner answers is not changed for it, and it can't be asked.
pub fn caller(rooms: &Rooms, entered: &Entered, mount: Option<Segment>) -> Arc<Caller> {
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

/// What a participant is told. What the rules refuse looks like what is not there; who runs the gate finds the rule by the decision.
pub fn told(error: &CallError) -> Told {
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
