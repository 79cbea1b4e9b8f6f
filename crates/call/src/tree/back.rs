//! Way back to a call's caller: messages and questions of the owner before its answer.
//!
//! Does not encode for a transport, and does not choose the person asked.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use banyan_model::Era;
use bytes::Bytes;
use mcp_proto::envelope::{self, Answer};
use mcp_proto::era::{self, LogLevel};
use telemetry::trace_context::TraceContext;
use tokio::sync::{oneshot, watch};

use crate::tree::caller::Caller;
use crate::words::cancel::Cancel;
use crate::words::lane::{Lane, Weight};
use crate::words::pour::Pour;
use crate::words::seated::RoomOrigin;
use crate::words::witness::Witness;

/// Most open questions of a call, and their bytes.
const MOST_QUESTIONS: usize = 64;
const QUESTION_BYTES: usize = 16 << 20;

/// Receiver of messages to the caller.
#[derive(Debug, Clone)]
pub enum Sink {
    /// Event stream of the caller's request.
    Lane(Arc<Lane>),
    /// Nowhere: the call is Banyan's own.
    None,
    /// Banyan itself: the request only listens, and nobody waits for its answer.
    Standing(Arc<Lane>),
}

/// A caller's way to take a long result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Takes {
    /// Once complete.
    Whole,
    /// As it comes, if no message comes before.
    Alone,
    /// As it comes, behind earlier messages.
    Behind,
}

/// Way back of a call.
#[derive(Debug)]
pub struct Back {
    pub caller: Arc<Caller>,
    /// Fires when the caller no longer wants the answer.
    pub cancel: Cancel,
    /// Level from which log lines of this call are wanted; `None` for none (stateless era).
    pub log_level: Option<LogLevel>,
    /// The trace context of the HTTP headers.
    pub trace: Option<TraceContext>,
    /// The call only previews another, and may do nothing but read.
    pub is_preview: bool,
    /// Origin in a room, if any.
    pub seated: Option<Arc<RoomOrigin>>,
    /// Words for a caller that stays while people decide: for whom the call waits, and where they agree; `None` while it waits for nobody.
    pub attends: Option<watch::Sender<Option<Arc<str>>>>,
    /// Witness of the call, if any.
    pub witness: Option<Arc<dyn Witness>>,
    /// The caller's way to take a long result.
    takes: AtomicU8,
    /// A pour has begun, not picked up yet.
    has_pour: AtomicBool,
    /// Some questions are not picked up yet.
    has_fresh: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    sink: Sink,
    /// Questions nobody has picked up yet (stateless era).
    fresh: VecDeque<Question>,
    /// Open questions, by key, with their bytes.
    out: BTreeMap<String, (oneshot::Sender<Answer>, usize)>,
    asked: u64,
    /// Number of open questions for which this call waits.
    asking: usize,
    /// Capability that a question of the owner needed and the caller lacks.
    lacked: Option<&'static str>,
    waker: Option<Waker>,
    /// When the owner, or the caller, last gave a sign of life.
    stirred: Option<Instant>,
    /// Result of the answer, if poured.
    pour: Option<Arc<Pour>>,
}

/// A question of an owner to its caller.
#[derive(Debug, Clone)]
pub struct Question {
    /// Key among the questions of this call.
    pub key: String,
    /// `sampling/createMessage`, `elicitation/create` or `roots/list`.
    pub method: String,
    pub params: Bytes,
}

impl Back {
    /// Makes a way back over `sink`.
    pub fn new(caller: Arc<Caller>, sink: Sink, log_level: Option<LogLevel>, cancel: Cancel) -> Arc<Self> {
        let state = State {
            sink,
            fresh: VecDeque::new(),
            out: BTreeMap::new(),
            asked: 0,
            asking: 0,
            lacked: None,
            waker: None,
            stirred: None,
            pour: None,
        };
        let (takes, has_pour, has_fresh) = (AtomicU8::new(Takes::Whole as u8), AtomicBool::new(false), AtomicBool::new(false));
        Arc::new(Self {
            caller,
            cancel,
            log_level,
            trace: None,
            is_preview: false,
            seated: None,
            attends: None,
            witness: None,
            takes,
            has_pour,
            has_fresh,
            state: Mutex::new(state),
        })
    }

    /// The same with the trace context of the HTTP headers.
    pub fn traced(caller: Arc<Caller>, sink: Sink, log_level: Option<LogLevel>, trace: Option<TraceContext>) -> Arc<Self> {
        let mut back = Self::new(caller, sink, log_level, Cancel::default());
        if let Some(own) = Arc::get_mut(&mut back) {
            own.trace = trace;
        }
        back
    }

    /// Makes the way back of a preview, to nobody.
    pub fn previewing(caller: Arc<Caller>) -> Arc<Self> {
        let mut back = Self::new(caller, Sink::None, None, Cancel::default());
        if let Some(own) = Arc::get_mut(&mut back) {
            own.is_preview = true;
        }
        back
    }

    /// Makes the way back of a call from a room.
    pub fn seated(caller: Arc<Caller>, sink: Sink, cancel: Cancel, seated: Arc<RoomOrigin>) -> Arc<Self> {
        let mut back = Self::new(caller, sink, None, cancel);
        if let Some(own) = Arc::get_mut(&mut back) {
            own.seated = Some(seated);
        }
        back
    }

    /// Makes the way back of a call whose caller stays while people decide, and reads in `attends` what it waits for.
    pub fn attending(caller: Arc<Caller>, sink: Sink, cancel: Cancel, attends: watch::Sender<Option<Arc<str>>>) -> Arc<Self> {
        let mut back = Self::new(caller, sink, None, cancel);
        if let Some(own) = Arc::get_mut(&mut back) {
            own.attends = Some(attends);
        }
        back
    }

    /// Gives the call a witness. Without effect once the way back is shared.
    #[must_use]
    pub fn witnessed(mut self: Arc<Self>, witness: Option<Arc<dyn Witness>>) -> Arc<Self> {
        if let Some(own) = Arc::get_mut(&mut self) {
            own.witness = witness;
        }
        self
    }

    /// Passes a notification of the owner on: a whole message.
    pub fn notify(&self, method: &str, whole: &Bytes, level: Option<LogLevel>) {
        let mut state = self.lock();
        state.stirred = Some(Instant::now());
        if method == "notifications/message" && !self.wants(level) {
            return;
        }
        let weight = match method {
            "notifications/progress" | "notifications/message" => Weight::Droppable,
            _ => Weight::Kept,
        };
        if let Sink::Lane(lane) | Sink::Standing(lane) = &state.sink {
            lane.notify(whole.clone(), weight);
        }
    }

    /// Sends a whole message of ours to the caller.
    pub fn send(&self, message: Bytes) {
        if let Sink::Lane(lane) = &self.lock().sink {
            lane.push(message, Weight::Kept);
        }
    }

    /// Checks for a request that only listens, for which a server's messages in passing are never meant.
    pub fn stands(&self) -> bool {
        matches!(self.lock().sink, Sink::Standing(_))
    }

    /// Asks the caller and waits for the answer.
    pub async fn ask(&self, method: &str, params: &Bytes) -> Answer {
        if let Some(capability) = capability_for(method)
            && !era::declares(&self.caller.capabilities, capability)
        {
            self.lock().lacked = Some(capability);
            let text = format!("the client behind this call does not support {capability}");
            return Answer::Error(envelope::error_object(-32601, &text, None));
        }
        let asking = OpenQuestion::on(self);
        let answer = async {
            match (&self.caller.session, self.caller.era) {
                (Some(session), Era::Initialize) => match session.ask(method, params) {
                    Some((message, answer)) => {
                        self.send(message);
                        answer.await
                    }
                    None => Some(too_many()),
                },
                _ => match self.question(method, params) {
                    Some(answer) => answer.await.ok(),
                    None => Some(too_many()),
                },
            }
        };
        let answer = tokio::select! {
            answer = answer => answer,
            () = self.cancel.cancelled() => None,
        };
        drop(asking);
        answer.unwrap_or_else(|| Answer::Error(envelope::error_object(-32000, "the client went away, or took too long to answer", None)))
    }

    /// Takes questions not picked up yet; completes when there are some. With `rung`, the task is already woken by the lane, which rings
    /// for questions too.
    pub fn poll_questions(&self, rung: bool, cx: &mut Context<'_>) -> Poll<Vec<Question>> {
        if rung && !self.has_fresh.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        let mut state = self.lock();
        self.has_fresh.store(false, Ordering::Relaxed);
        if state.fresh.is_empty() {
            state.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(state.fresh.drain(..).collect())
    }

    /// Delivers an answer to the question `key`.
    pub fn reply(&self, key: &str, answer: Answer) {
        if let Some((waiting, _)) = self.lock().out.remove(key) {
            // The asker may have given up.
            drop(waiting.send(answer));
        }
    }

    /// Keys of open questions.
    pub fn open(&self) -> Vec<String> {
        self.lock().out.keys().cloned().collect()
    }

    /// From here on messages go to `sink`.
    pub fn redirect(&self, sink: Sink) {
        self.lock().sink = sink;
    }

    /// Sets the caller's way to take a long result.
    pub fn set_takes(&self, takes: Takes) {
        self.takes.store(takes as u8, Ordering::Relaxed);
    }

    /// Checks that the caller takes a result as it comes.
    pub fn takes_pour(&self) -> bool {
        self.takes.load(Ordering::Relaxed) != Takes::Whole as u8
    }

    /// Checks for messages that must go down before the result.
    pub fn is_behind(&self) -> bool {
        self.is_behind_in(&self.lock())
    }

    fn is_behind_in(&self, state: &State) -> bool {
        let is_alone = self.takes.load(Ordering::Relaxed) == Takes::Alone as u8;
        is_alone && matches!(&state.sink, Sink::Lane(lane) if !lane.is_empty())
    }

    /// Begins to pour the result; `None` if it must come whole.
    pub fn begin_pour(&self) -> Option<Arc<Pour>> {
        let mut state = self.lock();
        if self.is_behind_in(&state) || !self.takes_pour() {
            return None;
        }
        let pour = Pour::new();
        state.pour = Some(Arc::clone(&pour));
        self.has_pour.store(true, Ordering::Relaxed);
        Some(pour)
    }

    /// Checks that part of the answer may have gone down.
    pub fn has_poured(&self) -> bool {
        self.lock().pour.is_some()
    }

    /// Takes the pour just begun, once.
    pub fn take_pour(&self) -> Option<Arc<Pour>> {
        if !self.has_pour.load(Ordering::Relaxed) {
            return None;
        }
        self.has_pour.store(false, Ordering::Relaxed);
        self.lock().pour.clone()
    }

    /// The owner gave a sign of life.
    pub fn stir(&self) {
        self.lock().stirred = Some(Instant::now());
    }

    /// Capability of the caller missed by the owner.
    pub fn lacked(&self) -> Option<&'static str> {
        self.lock().lacked
    }

    /// Time of the last sign of life of owner or caller. While a slow caller takes its result, the present.
    pub fn stirred(&self) -> Option<Instant> {
        let state = self.lock();
        if state.pour.as_ref().is_some_and(|pour| pour.is_full()) { Some(Instant::now()) } else { state.stirred }
    }

    /// Checks that the owner waits for its caller's answer, so that the owner is not the slow one. Questions of other servers do not count.
    pub fn is_asking(&self) -> bool {
        self.lock().asking > 0
    }

    fn wants(&self, level: Option<LogLevel>) -> bool {
        let wanted = match &self.caller.session {
            Some(session) => Some(session.log_level()),
            None => self.log_level,
        };
        wanted.is_some_and(|from| level.is_none_or(|l| l >= from))
    }

    /// Leaves a question for the caller's server side; `None` if too many are open.
    fn question(&self, method: &str, params: &Bytes) -> Option<oneshot::Receiver<Answer>> {
        let (tx, rx) = oneshot::channel();
        let mut state = self.lock();
        let open: usize = state.out.values().map(|(_, bytes)| bytes).sum();
        if state.out.len() >= MOST_QUESTIONS || open.saturating_add(params.len()) > QUESTION_BYTES {
            return None;
        }
        state.asked += 1;
        let key = format!("ask-{}", state.asked);
        state.out.insert(key.clone(), (tx, params.len()));
        state.fresh.push_back(Question { key, method: method.to_owned(), params: params.clone() });
        self.has_fresh.store(true, Ordering::Release);
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
        if let Sink::Lane(lane) = &state.sink {
            lane.ring();
        }
        Some(rx)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open question for which a call waits, so that its time does not run.
#[derive(Debug)]
pub struct OpenQuestion<B: Deref<Target = Back>>(B);

impl<B: Deref<Target = Back>> OpenQuestion<B> {
    /// A question that is open until the value is dropped.
    pub fn on(back: B) -> Self {
        back.lock().asking += 1;
        Self(back)
    }
}

impl<B: Deref<Target = Back>> Drop for OpenQuestion<B> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.asking -= 1;
        state.stirred = Some(Instant::now());
    }
}

fn too_many() -> Answer {
    Answer::Error(envelope::error_object(-32000, "the client has too many questions to answer already", None))
}

/// Client capability needed by a question.
pub fn capability_for(method: &str) -> Option<&'static str> {
    match method {
        "elicitation/create" => Some("elicitation"),
        "roots/list" => Some("roots"),
        "sampling/createMessage" => Some("sampling"),
        _ => None,
    }
}
