//! One request under way, seen from the downstream side: it ends, it has something to say first, or it asks.
//!
//! A request is never just dropped. Whoever lets go of an exchange leaves it running to its end, told to stop where that is what a lost
//! connection means.

use std::cell::RefCell;
use std::sync::Arc;
use std::task::{Context, Poll};

use mcp_proto::envelope::{Answer, Request};
use tokio_util::sync::ReusableBoxFuture;

use call::tree::gate::Gate;
use call::tree::snapshot::Sight;
use call::way::error::CallError;
use call::words::back::{Back, Question, Takes};
use call::words::cancel::Guard;
use call::words::lane::Lane;
use call::words::pour::{End, Filler, Pour};

/// How a request ended.
pub type Ended = Result<Answer, CallError>;

/// A request under way.
pub struct Exchange {
    run: Option<Run>,
    /// How it ended, while what was said before has not been picked up.
    ended: Option<Ended>,
    pub back: Arc<Back>,
    stop_when_lost: bool,
    /// It runs by itself.
    kept: bool,
}

/// What answers a request.
type Run = ReusableBoxFuture<'static, Ended>;

/// So much room for calls is kept by each thread.
const SPARE: usize = 128;

thread_local! {
    /// The room of calls that have ended. It is too large for what an allocator has at hand.
    static ROOM: RefCell<Vec<Run>> = const { RefCell::new(Vec::new()) };
}

/// What happened.
pub enum Turn {
    /// It is over.
    Ended(Ended),
    /// There is something in the lane.
    Message,
    /// Its result is coming, and is long.
    Pour(Arc<Pour>),
    /// The owner wants to know something (stateless era).
    Questions(Vec<Question>),
}

impl Exchange {
    /// Begins to answer `request`. `stop_when_lost`: a caller that goes away cancels it.
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

    /// Waits for what happens next. `lane`: the caller's own, where messages would show; `None` when they are sent on as they come.
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
        // A server may say something and answer in the same breath; the answer does not overtake.
        if let Some(ended) = self.ended.take_if(|_| lane.is_none_or(Lane::is_empty)) {
            return Poll::Ready(Turn::Ended(ended));
        }
        if lane.is_some_and(|l| l.poll_any(cx).is_ready()) {
            return Poll::Ready(Turn::Message);
        }
        self.back.poll_questions(lane.is_some(), cx).map(Turn::Questions)
    }

    /// Leaves the room of what has ended to the next call.
    fn make_room(&mut self) {
        let run = self.run.take().filter(|_| !self.kept);
        // Where it can't be left, the thread is ending.
        let _full = ROOM.try_with(|room| {
            let mut room = room.try_borrow_mut().ok()?;
            if room.len() < SPARE {
                room.extend(run);
                return None;
            }
            run
        });
    }

    /// From here on its result may come as a pour, unless it runs by itself.
    pub fn take_pours(&self, takes: Takes) {
        if !self.kept {
            self.back.set_takes(takes);
        }
    }

    /// Lets it fill `pour` by itself. What comes back, when dropped, tells it that its caller has gone, where that cancels it.
    pub fn fill(mut self, pour: &Arc<Pour>) -> Option<Guard> {
        let filler = Filler(Arc::clone(pour));
        let end = |ended: &Ended| if matches!(ended, Ok(Answer::Result(_))) { End::Whole } else { End::Broken };
        if let Some(ended) = &self.ended {
            filler.0.end(end(ended));
        } else if let Some(run) = self.run.take() {
            tokio::spawn(async move { filler.0.end(end(&run.await)) });
        }
        self.stop_when_lost.then(|| self.back.cancel.clone().drop_guard())
    }

    /// Lets it run by itself from here on, until somebody takes it up again.
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
