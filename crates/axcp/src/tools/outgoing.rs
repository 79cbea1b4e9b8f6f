//! Calls of a peer's tools on their way over one link. Reads no envelope: the link hands in words with their trace ids.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axcp_proto::message::{EnvelopePayload, ErrorMessage, ToolCancel, ToolInvoke};
use bytes::Bytes;
use call::tree::port::UpstreamError;
use runtime::random;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::answer::LinkAnswer;
use crate::room::{CallPlace, CallRoom};

/// Word of a peer about a call.
#[derive(Debug)]
pub(crate) enum PeerWord {
    Result(Bytes),
    Refused(ErrorMessage),
    /// The call waits for people there.
    Waits,
}

/// Calls under way over a link.
pub(crate) struct OutgoingCalls {
    peer: Arc<str>,
    answers: mpsc::Sender<LinkAnswer>,
    room: Arc<CallRoom>,
    /// Calls by their trace ids; `None`: the link has ended.
    pending: Mutex<Option<BTreeMap<String, AwaitedCall>>>,
    /// Answers to calls that nobody made, or that have ended.
    astray: AtomicU64,
}

/// Caller of a call under way.
struct AwaitedCall {
    last: oneshot::Sender<PeerWord>,
    news: Arc<Notify>,
}

/// A call under way. Withdrawn at the end of the value, unless the peer has said its last word.
pub(crate) struct PendingCall {
    trace_id: String,
    last: oneshot::Receiver<PeerWord>,
    news: Arc<Notify>,
    calls: Arc<OutgoingCalls>,
    is_over: bool,
    _place: CallPlace,
}

impl OutgoingCalls {
    pub(crate) fn new(peer: Arc<str>, answers: mpsc::Sender<LinkAnswer>, room: Arc<CallRoom>) -> Arc<Self> {
        Arc::new(Self { peer, answers, room, pending: Mutex::new(Some(BTreeMap::new())), astray: AtomicU64::default() })
    }

    /// Sends a call.
    pub(crate) fn begin(self: &Arc<Self>, invoke: ToolInvoke) -> Result<PendingCall, UpstreamError> {
        let crowded = || UpstreamError::Unreachable("too many calls to this peer are under way: try again shortly".into());
        let place = self.room.take_place(&self.peer, invoke.arguments.len()).ok_or_else(crowded)?;
        let ((tell, last), news, trace_id) = (oneshot::channel(), Arc::<Notify>::default(), random::token());
        let gone = || UpstreamError::Unreachable("the connection with the peer has ended".into());
        self.lock().as_mut().ok_or_else(gone)?.insert(trace_id.clone(), AwaitedCall { last: tell, news: Arc::clone(&news) });
        let mut call = PendingCall { trace_id: trace_id.clone(), last, news, calls: Arc::clone(self), is_over: false, _place: place };
        if self.answers.try_send(LinkAnswer::new(trace_id, EnvelopePayload::ToolInvoke(invoke))).is_err() {
            call.is_over = true;
            return Err(crowded());
        }
        Ok(call)
    }

    /// Hands a word of the peer to the call with its trace id. Tells if there is such a call.
    pub(crate) fn hear(&self, trace_id: &str, word: PeerWord) -> bool {
        let mut pending = self.lock();
        let Some(pending) = pending.as_mut() else { return false };
        match word {
            PeerWord::Waits => pending.get(trace_id).map(|call| call.news.notify_one()),
            // A caller that has just left hears nothing.
            PeerWord::Result(_) | PeerWord::Refused(_) => pending.remove(trace_id).map(|call| drop(call.last.send(word))),
        }
        .or_else(|| {
            self.astray.fetch_add(1, Ordering::Relaxed);
            None
        })
        .is_some()
    }

    /// Checks for a call under way.
    pub(crate) fn is_under_way(&self, trace_id: &str) -> bool {
        self.lock().as_ref().is_some_and(|pending| pending.contains_key(trace_id))
    }

    /// Gives the number of answers to calls that nobody made, or that have ended.
    pub(crate) fn astray(&self) -> u64 {
        self.astray.load(Ordering::Relaxed)
    }

    /// Ends all calls with the link.
    pub(crate) fn end_calls(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<BTreeMap<String, AwaitedCall>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingCall {
    /// Waits for the next word; `None`: the link has ended.
    pub(crate) async fn next(&mut self) -> Option<PeerWord> {
        tokio::select! {
            biased;
            last = &mut self.last => {
                self.is_over = true;
                last.ok()
            }
            () = self.news.notified() => Some(PeerWord::Waits),
        }
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        if let Some(pending) = self.calls.lock().as_mut() {
            pending.remove(&self.trace_id);
        }
        if !self.is_over {
            let cancel = EnvelopePayload::ToolCancel(ToolCancel { reason: "the caller wants no answer any more".into() });
            // A full queue: the peer reads nothing, and its answer will find nobody.
            drop(self.calls.answers.try_send(LinkAnswer::new(std::mem::take(&mut self.trace_id), cancel)));
        }
    }
}
