//! A request under way, seen from downstream: its end, its messages before the end, and its questions.
//!
//! No request is dropped halfway. A dropped exchange goes on in a task of its own, with its call cancelled where losing the connection
//! means so.

use std::cell::RefCell;
use std::sync::Arc;
use std::task::{Context, Poll};

use mcp_proto::envelope::{Answer, Request};
use tokio_util::sync::ReusableBoxFuture;

use call::judge::gate::Gate;
use call::tree::back::{Back, Question, Takes};
use call::tree::snapshot::Sight;
use call::way::error::CallError;
use call::words::cancel::Guard;
use call::words::lane::Lane;
use call::words::pour::{End, Filler, Pour};

/// Outcome of a request.
pub type RequestOutcome = Result<Answer, CallError>;

/// A request under way.
pub struct Exchange {
    run: Option<Run>,
    /// Outcome, held back until earlier messages are picked up.
    ended: Option<RequestOutcome>,
    pub back: Arc<Back>,
    stop_when_lost: bool,
    /// The request runs in a task of its own.
    kept: bool,
}

/// Future that answers a request.
type Run = ReusableBoxFuture<'static, RequestOutcome>;

/// Most boxes for calls kept by a thread.
const SPARE: usize = 128;

thread_local! {
    /// Boxes of ended calls, used again because they are too large for the allocator's caches.
    static ROOM: RefCell<Vec<Run>> = const { RefCell::new(Vec::new()) };
}

/// Next event of a request.
pub enum Turn {
    Ended(RequestOutcome),
    /// A message waits in the lane.
    Message,
    /// A long result is on its way.
    Pour(Arc<Pour>),
    /// The owner wants to know something (stateless era).
    Questions(Vec<Question>),
}

impl Exchange {
    /// Begins to answer `request`. With `stop_when_lost`, losing the caller cancels the call.
    pub fn begin(gate: &Arc<Gate>, sight: Sight, request: Arc<Request>, back: &Arc<Back>, stop_when_lost: bool) -> Self {
        let (gate, to) = (Arc::clone(gate), Arc::clone(back));
        let run = async move { call::way::serve_by(&gate, &sight, &request, &to).await };
        let spare = ROOM.try_with(|room| room.try_borrow_mut().ok()?.pop()).ok().flatten();
        let run = match spare {
            Some(mut spare) => {
                spare.set(run);
                spare
            }
            None => Run::new(run),
        };
        Self { run: Some(run), ended: None, back: Arc::clone(back), stop_when_lost, kept: false }
    }

    /// Waits for the next event. Messages show in `lane`, the caller's own; `None` where messages are sent on as they come.
    pub async fn turn(&mut self, lane: Option<&Lane>) -> Turn {
        std::future::poll_fn(|cx| self.poll_turn(lane, cx)).await
    }

    fn poll_turn(&mut self, lane: Option<&Lane>, cx: &mut Context<'_>) -> Poll<Turn> {
        if let Some(run) = &mut self.run
            && let Poll::Ready(ended) = run.poll(cx)
        {
            self.ended = Some(ended);
            self.make_room();
        }
        if let Some(pour) = self.back.take_pour() {
            return Poll::Ready(Turn::Pour(pour));
        }
        // An answer must not overtake a message that the server sent before it.
        if let Some(ended) = self.ended.take_if(|_| lane.is_none_or(Lane::is_empty)) {
            return Poll::Ready(Turn::Ended(ended));
        }
        if lane.is_some_and(|l| l.poll_any(cx).is_ready()) {
            return Poll::Ready(Turn::Message);
        }
        self.back.poll_questions(lane.is_some(), cx).map(Turn::Questions)
    }

    /// Leaves the box of an ended call to the next.
    fn make_room(&mut self) {
        let run = self.run.take().filter(|_| !self.kept);
        // Fails only while the thread ends.
        let _full = ROOM.try_with(|room| {
            let mut room = room.try_borrow_mut().ok()?;
            if room.len() < SPARE {
                room.extend(run);
                return None;
            }
            run
        });
    }

    /// Allows the result to come as a pour, unless the request runs in a task of its own.
    pub fn take_pours(&self, takes: Takes) {
        if !self.kept {
            self.back.set_takes(takes);
        }
    }

    /// Fills `pour` in a task of its own. Dropping the guard tells the call of a lost caller, where losing the caller cancels.
    pub fn fill(mut self, pour: &Arc<Pour>) -> Option<Guard> {
        let filler = Filler(Arc::clone(pour));
        let end = |ended: &RequestOutcome| if matches!(ended, Ok(Answer::Result(_))) { End::Whole } else { End::Broken };
        if let Some(ended) = &self.ended {
            filler.0.end_pour(end(ended));
        } else if let Some(run) = self.run.take() {
            tokio::spawn(async move { filler.0.end_pour(end(&run.await)) });
        }
        self.stop_when_lost.then(|| self.back.cancel.clone().drop_guard())
    }

    /// Runs in a task of its own until taken up again.
    pub fn keep(&mut self) {
        self.stop_when_lost = false;
        self.kept = true;
        self.back.set_takes(Takes::Whole);
        if let Some(run) = self.run.take() {
            let task = tokio::spawn(run);
            self.run = Some(Run::new(async move {
                task.await.unwrap_or_else(|e| {
                    tracing::error!(error = %e, "a call ended in a panic");
                    Err(CallError::Cancelled)
                })
            }));
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let Some(run) = self.run.take() else { return };
        if self.stop_when_lost {
            self.back.cancel.cancel();
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(run);
        }
    }
}
