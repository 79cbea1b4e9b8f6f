//! A bounded queue of whole messages on their way to one caller, and the response body that sends them as events.
//!
//! Who writes never waits: a lane that is full takes no more of what may be dropped (progress, log lines), and counts it.
//! It does not know sessions or eras.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use mcp_proto::sse;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::DropGuard;

use super::pour::Pouring;
use crate::call::pour::BrokenOff;

/// How long a stream may be silent before a comment is sent, so that proxies in between keep it open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Whether a message may be dropped when its receiver is too slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// Progress and log lines.
    Droppable,
    /// Responses, requests, and notifications that were promised.
    Kept,
}

/// The queue.
#[derive(Debug)]
pub(crate) struct Lane {
    state: Mutex<State>,
    /// Whether messages wait, for whoever asks while nobody writes.
    has_some: AtomicBool,
    keep: usize,
}

#[derive(Debug, Default)]
struct State {
    events: VecDeque<Bytes>,
    /// Number of the first event in `events`.
    first: u64,
    bytes: usize,
    ended: bool,
    dropped: u64,
    readers: u64,
    /// The last reader is still there.
    is_read: bool,
    waker: Option<Waker>,
    /// The last message, which is still coming.
    last: Option<Box<Pouring>>,
}

/// A lane holds at most this many events and bytes beyond what can't be dropped.
const MOST_EVENTS: usize = 4096;
const MOST_BYTES: usize = 8 << 20;
/// Among so many is looked for what is to be said again: to look through all of them would cost more than a flood.
const SAID_LAST: usize = 64;

impl Lane {
    /// A lane that forgets an event once it is sent.
    pub(crate) fn new() -> Arc<Self> {
        Self::keeping(0)
    }

    /// A lane that keeps the last `keep` sent events for whoever comes back for them.
    pub(crate) fn keeping(keep: usize) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), has_some: AtomicBool::new(false), keep })
    }

    /// Appends a message. Nothing is appended behind the end.
    pub(crate) fn push(&self, message: Bytes, weight: Weight) {
        let mut state = self.lock();
        if state.ended {
            return;
        }
        if weight == Weight::Droppable && (state.events.len() >= MOST_EVENTS || state.bytes >= MOST_BYTES) {
            state.dropped += 1;
            return;
        }
        state.bytes += message.len();
        state.events.push_back(message);
        self.has_some.store(true, Ordering::Release);
        state.wake();
    }

    /// Appends a notification that nobody waits for. Where much waits already, what waits is not said twice, which costs nobody anything: a list
    /// has changed, however often. Where twice as much does, a server says more than its reader will ever take, and no more of it is kept.
    pub(crate) fn notify(&self, message: Bytes, weight: Weight) {
        {
            let mut state = self.lock();
            let much = |most: usize| state.events.len() >= most * MOST_EVENTS || state.bytes >= most * MOST_BYTES;
            // Those in front may be sent already, and stay for whoever comes back.
            let waits = || state.events.iter().skip(self.keep).rev().take(SAID_LAST).any(|one| *one == message);
            if much(2) || (much(1) && waits()) {
                state.dropped += 1;
                return;
            }
        }
        self.push(message, weight);
    }

    /// Says that nothing more will come.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        state.wake();
    }

    /// Says that nothing more will come but a response that has begun to.
    pub(crate) fn end_with(&self, last: Pouring) {
        let mut state = self.lock();
        state.last = Some(Box::new(last));
        state.ended = true;
        state.wake();
    }

    /// Whether nobody reads at present.
    pub(crate) fn is_ended(&self) -> bool {
        self.lock().ended
    }

    /// Whether somebody has ever read from it.
    pub(crate) fn was_read(&self) -> bool {
        self.lock().readers > 0
    }

    /// Whether somebody reads from it now.
    pub(crate) fn is_read(&self) -> bool {
        self.lock().is_read
    }

    /// Whether no message waits in it.
    pub(crate) fn is_empty(&self) -> bool {
        !self.has_some.load(Ordering::Acquire)
    }

    /// Ready as soon as there is a message, or the end.
    pub(crate) fn poll_any(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if !state.events.is_empty() || state.ended {
            return Poll::Ready(());
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Wakes whoever waits: there is something that does not go down here.
    pub(crate) fn ring(&self) {
        self.lock().wake();
    }

    /// A reader that begins behind event number `after`; a reader before it gets no more.
    pub(crate) fn read(self: &Arc<Self>, after: u64) -> Reader {
        let mut state = self.lock();
        state.readers += 1;
        state.is_read = true;
        state.wake();
        Reader { number: state.readers, next: after, lane: Arc::clone(self) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// Reads a lane in order.
#[derive(Debug)]
pub(crate) struct Reader {
    lane: Arc<Lane>,
    number: u64,
    next: u64,
}

impl Reader {
    /// The next message and its number, counted from 1; `None` at the end, or when another reader has taken over.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<(u64, Bytes)>> {
        let mut state = self.lane.lock();
        if state.readers != self.number {
            return Poll::Ready(None);
        }
        self.next = self.next.max(state.first);
        if let Some(message) = usize::try_from(self.next - state.first).ok().and_then(|i| state.events.get(i)) {
            let message = message.clone();
            self.next += 1;
            let sent = usize::try_from(self.next - state.first).unwrap_or(0);
            for _ in self.lane.keep..sent {
                if let Some(old) = state.events.pop_front() {
                    state.bytes -= old.len();
                    state.first += 1;
                }
            }
            self.lane.has_some.store(!state.events.is_empty(), Ordering::Release);
            return Poll::Ready(Some((self.next, message)));
        }
        if state.ended {
            return Poll::Ready(None);
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = self.lane.lock();
        state.is_read &= state.readers != self.number;
    }
}

impl Reader {
    /// The response behind the last message, if one is still coming.
    fn take_last(&mut self) -> Option<Box<Pouring>> {
        let mut state = self.lane.lock();
        if state.readers == self.number { state.last.take() } else { None }
    }
}

/// The event of a response that is still coming.
enum Last {
    None,
    Coming(Box<Pouring>),
    Over,
}

/// What ends a stream before its lane does.
enum Bound {
    None,
    /// When this is ready, with this comment.
    Until(Pin<Box<dyn Future<Output = ()> + Send>>, &'static str),
    Over,
}

/// A lane as the body of an event stream.
pub(crate) struct Events {
    reader: Reader,
    /// What stands before the number in event ids; `None` sends no ids.
    stream: Option<String>,
    opening: Option<Bytes>,
    silence: Pin<Box<Sleep>>,
    /// The last event, while it goes out.
    last: Last,
    bound: Bound,
    /// Fires when the body is dropped, which is how a lost connection shows.
    _gone: Option<DropGuard>,
}

impl Events {
    /// Sends what `reader` reads. `gone` fires when the connection is lost or the stream is over.
    pub(crate) fn new(reader: Reader, stream: Option<String>, gone: Option<DropGuard>) -> Self {
        Self {
            reader,
            stream,
            opening: None,
            silence: Box::pin(tokio::time::sleep(KEEP_ALIVE)),
            last: Last::None,
            bound: Bound::None,
            _gone: gone,
        }
    }

    /// Opens the stream with an event that lets a client come back (revision 2025-11-25).
    pub(crate) fn primed(mut self, retry_ms: u64) -> Self {
        if let Some(stream) = &self.stream {
            let mut out = Vec::new();
            sse::encode_priming(&format!("{stream}:0"), retry_ms, &mut out);
            self.opening = Some(Bytes::from(out));
        }
        self
    }

    /// Ends the stream when `over` is ready, with a comment that says why. What was not sent by then stays in the lane for whoever comes
    /// back.
    pub(crate) fn until(mut self, over: impl Future<Output = ()> + Send + 'static, why: &'static str) -> Self {
        self.bound = Bound::Until(Box::pin(over), why);
        self
    }
}

impl Bound {
    /// Ready with the last word when it ends the stream, and then with nothing.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match self {
            Self::None => Poll::Pending,
            Self::Until(over, why) => {
                std::task::ready!(over.as_mut().poll(cx));
                let comment = format!(": {why}\n\n");
                *self = Self::Over;
                Poll::Ready(Some(comment.into()))
            }
            Self::Over => Poll::Ready(None),
        }
    }
}

impl http_body::Body for Events {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        if let Poll::Ready(end) = this.bound.poll_end(cx) {
            return Poll::Ready(end.map(|comment| Ok(Frame::data(comment))));
        }
        if !matches!(this.last, Last::None) {
            return this.last.poll_data(cx).map_ok(Frame::data);
        }
        if let Some(opening) = this.opening.take() {
            return Poll::Ready(Some(Ok(Frame::data(opening))));
        }
        let mut out = Vec::new();
        loop {
            match this.reader.poll_next(cx) {
                Poll::Ready(Some((number, message))) => {
                    let id = this.stream.as_ref().map(|s| format!("{s}:{number}"));
                    sse::encode(id.as_deref(), &message, &mut out);
                    if out.len() >= 64 << 10 {
                        break;
                    }
                }
                Poll::Ready(None) if out.is_empty() => {
                    let Some(last) = this.reader.take_last() else { return Poll::Ready(None) };
                    this.last = Last::Coming(last);
                    out.extend_from_slice(sse::BEGIN);
                    break;
                }
                Poll::Pending if out.is_empty() => {
                    std::task::ready!(this.silence.as_mut().poll(cx));
                    out.extend_from_slice(b": keep-alive\n\n");
                    break;
                }
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        this.silence.as_mut().reset(Instant::now() + KEEP_ALIVE);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(out)))))
    }
}

impl Last {
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BrokenOff>>> {
        let Self::Coming(pouring) = self else { return Poll::Ready(None) };
        let piece = std::task::ready!(pouring.poll_piece(cx));
        if piece.is_none() {
            *self = Self::Over;
            return Poll::Ready(Some(Ok(Bytes::from_static(b"\n\n"))));
        }
        Poll::Ready(piece.map(|piece| piece.map(sse::encode_piece)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(reader: &mut Reader) -> Vec<(u64, Bytes)> {
        let mut cx = Context::from_waker(Waker::noop());
        let mut out = Vec::new();
        while let Poll::Ready(Some(event)) = reader.poll_next(&mut cx) {
            out.push(event);
        }
        out
    }

    #[test]
    fn a_reader_that_comes_back_gets_what_it_missed() {
        let lane = Lane::keeping(10);
        for text in ["a", "b", "c"] {
            lane.push(Bytes::from_static(text.as_bytes()), Weight::Kept);
        }
        assert_eq!(read_all(&mut lane.read(0)).len(), 3);
        let again = read_all(&mut lane.read(1));
        assert_eq!(again, [(2, Bytes::from_static(b"b")), (3, Bytes::from_static(b"c"))]);
    }

    #[test]
    fn an_older_reader_ends_when_a_newer_one_begins() {
        let lane = Lane::new();
        let mut old = lane.read(0);
        let mut new = lane.read(0);
        lane.push(Bytes::from_static(b"x"), Weight::Kept);
        assert!(read_all(&mut old).is_empty());
        assert_eq!(read_all(&mut new).len(), 1);
        drop(old);
        assert!(lane.is_read());
        drop(new);
        assert!(!lane.is_read() && lane.was_read());
    }

    #[test]
    fn a_flood_costs_bounded_memory_and_no_promised_message() {
        let lane = Lane::new();
        lane.push(Bytes::from_static(b"promised"), Weight::Kept);
        for _ in 0..20_000 {
            lane.push(Bytes::from_static(b"progress"), Weight::Droppable);
        }
        lane.push(Bytes::from_static(b"answer"), Weight::Kept);
        assert!(lane.lock().events.len() <= MOST_EVENTS + 2);
        let all = read_all(&mut lane.read(0));
        assert_eq!(all.first().map(|e| &e.1[..]), Some(&b"promised"[..]));
        assert_eq!(all.last().map(|e| &e.1[..]), Some(&b"answer"[..]));
        assert!(lane.lock().dropped > 10_000);
    }

    #[test]
    fn a_flood_of_what_is_not_to_be_lost_is_bounded_too_and_what_waits_is_said_once() {
        let lane = Lane::keeping(64);
        let say = |text: &str| lane.notify(Bytes::copy_from_slice(text.as_bytes()), Weight::Kept);
        say("sent");
        let mut reader = lane.read(0);
        assert_eq!(read_all(&mut reader).len(), 1);
        for n in 0..MOST_EVENTS {
            say(&n.to_string());
        }
        say("sent");
        (0..20_000).for_each(|_| say("sent"));
        let all = read_all(&mut reader);
        assert_eq!(all.iter().filter(|(_, message)| *message == "sent").count(), 1, "it is sent once more, and waits once");
        assert_eq!(all.len(), MOST_EVENTS + 1);
        for n in 0..20_000 {
            say(&format!("other {n}"));
        }
        assert!(lane.lock().events.len() <= 2 * MOST_EVENTS);
        lane.push(Bytes::from_static(b"answer"), Weight::Kept);
        assert_eq!(read_all(&mut reader).last().map(|(_, message)| message.clone()), Some(Bytes::from_static(b"answer")));
    }
}
