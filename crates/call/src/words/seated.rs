//! A call that comes from a room: from which, and whether it is proposed there, so that it goes out only when somebody has agreed and the room
//! has seen that. A room adds a reason to wait; it takes none away. Nothing is decided here.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use mcp_proto::json::quote;
use tokio::sync::oneshot;

use crate::words::cancel::Cancel;

/// Where a call comes from.
pub struct Seated {
    /// The name of the room.
    pub room: Arc<str>,
    proposal: Option<Mutex<Option<Waiting>>>,
    /// Why nobody wants it any more.
    over: OnceLock<String>,
}

/// By what a call goes out that is proposed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agreed {
    /// The approval, or the grant.
    pub id: String,
    /// The people who agreed to it.
    pub by: Vec<String>,
}

impl Agreed {
    /// As everybody in the room reads it: a raw object.
    pub fn object(&self) -> String {
        let by: Vec<String> = self.by.iter().map(|person| quote(person)).collect();
        format!("{{\"id\":{},\"by\":[{}]}}", quote(&self.id), by.join(","))
    }
}

/// The call's end of a proposal.
struct Waiting {
    agreed: oneshot::Sender<Agreed>,
    fulfilled: oneshot::Receiver<()>,
}

/// The room's end of it.
pub struct Proposed {
    /// Says that people have agreed; lost where that can't happen any more.
    pub agreed: oneshot::Receiver<Agreed>,
    /// Lets the call go out: it is the one by which the proposal is fulfilled.
    pub fulfilled: oneshot::Sender<()>,
}

/// A proposal that nobody waits for any more, or that something else has fulfilled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotFulfilled;

impl fmt::Debug for Seated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Seated({})", self.room)
    }
}

impl Seated {
    /// Somebody in the room asks for the call.
    pub fn asked(room: Arc<str>) -> Arc<Self> {
        Arc::new(Self { room, proposal: None, over: OnceLock::new() })
    }

    /// Somebody in the room proposes it.
    pub fn proposed(room: Arc<str>) -> (Arc<Self>, Proposed) {
        let ((agreed, is_agreed), (fulfilled, is_fulfilled)) = (oneshot::channel(), oneshot::channel());
        let waiting = Waiting { agreed, fulfilled: is_fulfilled };
        let seated = Self { room, proposal: Some(Mutex::new(Some(waiting))), over: OnceLock::new() };
        (Arc::new(seated), Proposed { agreed: is_agreed, fulfilled })
    }

    /// Whether it waits for somebody to agree, whatever the rules say.
    pub fn is_proposed(&self) -> bool {
        self.proposal.is_some()
    }

    /// People have agreed: waits until the room has seen the proposal fulfilled by that, and by nothing before.
    ///
    /// # Errors
    /// When something was before.
    pub async fn fulfil(&self, by: Agreed, cancel: &Cancel) -> Result<(), NotFulfilled> {
        let Some(proposal) = &self.proposal else { return Ok(()) };
        let waiting = proposal.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Waiting { agreed, fulfilled } = waiting.ok_or(NotFulfilled)?;
        agreed.send(by).map_err(|_| NotFulfilled)?;
        tokio::select! {
            biased;
            is_fulfilled = fulfilled => is_fulfilled.map_err(|_| NotFulfilled),
            () = cancel.cancelled() => Err(NotFulfilled),
        }
    }

    /// Says why nobody wants it any more. The first reason stays.
    pub fn end(&self, why: String) {
        // It may have been said before.
        drop(self.over.set(why));
    }

    /// Why nobody wants it any more, where that is known.
    pub fn why(&self) -> Option<&str> {
        self.over.get().map(String::as_str)
    }
}
