//! A bounded queue of whole messages on their way to a caller.
//!
//! The writer never waits: a full lane drops what may be dropped (progress, log lines), and counts it. Knows no sessions or eras.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use crate::words::pouring::PouringBody;
use crate::words::shares::{Bound, Resource, Share, TakenShare};

/// Importance of a message when its receiver is too slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Progress and log lines.
    Droppable,
    /// Responses, requests, and promised notifications.
    Kept,
}

/// Queue of messages to a caller.
#[derive(Debug)]
pub struct Lane {
    state: Mutex<State>,
    /// Messages wait; read without the lock while nobody writes.
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
    /// Last message, still coming.
    last: Option<Box<PouringBody>>,
    /// Number of messages sent at least once, and the bytes of those still here.
    sent: u64,
    sent_bytes: usize,
    /// Principal charged for the bytes.
    account: Option<Account>,
    /// Set when nothing is kept any more for a resuming client.
    is_forgotten: bool,
}

/// Bytes of a lane's messages in their principal's share.
#[derive(Debug)]
struct Account {
    taken: TakenShare,
    bound: Bound,
    /// Number among the kept streams.
    shelf: Option<u64>,
}

impl Drop for Account {
    fn drop(&mut self) {
        if let Some(number) = self.shelf {
            self.taken.share.unshelve(number);
        }
    }
}

/// Most events and bytes in a lane, besides those that can't be dropped.
const MOST_EVENTS: usize = 4096;
const MOST_BYTES: usize = 8 << 20;
/// Most bytes of sent messages kept.
pub const KEPT_BYTES: usize = 8 << 20;
/// Last messages searched for a repeated notification; searching all would cost more than a flood.
const SAID_LAST: usize = 64;

impl Lane {
    /// Makes a lane that forgets events once sent.
    pub fn new() -> Arc<Self> {
        Self::keeping(0)
    }

    /// Makes a lane that keeps the last `keep` sent events for a resuming client.
    pub fn keeping(keep: usize) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), has_some: AtomicBool::new(false), keep })
    }

    /// Appends a message. Nothing is appended behind the end.
    pub fn push(&self, message: Bytes, weight: Weight) {
        let mut state = self.lock();
        if weight == Weight::Droppable && (state.events.len() >= MOST_EVENTS || state.bytes >= MOST_BYTES) {
            state.dropped += 1;
            return;
        }
        self.append(state, message, weight == Weight::Droppable);
    }

    /// Charges a message to the principal and appends it. Without room, kept streams of the principal go first. If that is not enough, a
    /// droppable message is dropped, and any other is neither charged nor kept.
    fn append<'a>(&'a self, mut state: MutexGuard<'a, State>, message: Bytes, may_drop: bool) {
        loop {
            if state.ended {
                return;
            }
            let Some(Account { taken, bound, .. }) = &mut state.account else { break };
            if taken.grow(message.len(), *bound).is_ok() {
                break;
            }
            if may_drop {
                state.dropped += 1;
                return;
            }
            // Two lanes are never locked at once: the stream that goes is another lane, or this one.
            let share = Arc::clone(&taken.share);
            drop(state);
            let made_room = share.forget_oldest();
            state = self.lock();
            if !made_room {
                state.account = None;
            }
        }
        state.bytes += message.len();
        state.events.push_back(message);
        self.has_some.store(true, Ordering::Release);
        state.wake();
    }

    /// Charges the bytes of the lane to a principal from now on.
    pub fn charge_to(&self, share: &Arc<Share>, bound: Bound) {
        let mut state = self.lock();
        let taken = share.take_amount(Resource::Streams, state.bytes, bound).or_else(|_| share.take_amount(Resource::Streams, 0, bound));
        state.account = taken.ok().map(|taken| Account { taken, bound, shelf: None });
    }

    /// Bytes that wait or are kept.
    pub fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// Checks that every message here was sent at least once.
    pub fn is_sent(&self) -> bool {
        let state = self.lock();
        state.first + state.events.len() as u64 <= state.sent
    }

    /// Keeps the ended lane for a resuming client, as long as its principal has room.
    pub fn keep(self: &Arc<Self>) {
        let mut state = self.lock();
        match &mut state.account {
            Some(account) => account.shelf = Some(account.taken.share.shelve(Arc::downgrade(self))),
            None => state.forget(),
        }
    }

    /// Stops keeping messages; the present reader gets the rest.
    pub fn forget(&self) {
        self.lock().forget();
        self.has_some.store(!self.lock().events.is_empty(), Ordering::Release);
    }

    /// Checks that nothing is kept for a resuming client.
    pub fn is_forgotten(&self) -> bool {
        self.lock().is_forgotten
    }

    /// Appends a notification that nobody waits for. In a full lane, a repetition of a waiting notification is left out, which costs
    /// nothing: a list has changed, however often. Beyond twice that, a server says more than its reader will ever take, and the rest is
    /// dropped.
    pub fn notify(&self, message: Bytes, weight: Weight) {
        let mut state = self.lock();
        let is_full = |most: usize| state.events.len() >= most * MOST_EVENTS || state.bytes >= most * MOST_BYTES;
        // Messages at the front may be sent already, and stay for a resuming client.
        let waits = || state.events.iter().skip(self.keep).rev().take(SAID_LAST).any(|one| *one == message);
        if is_full(2) || is_full(1) && (weight == Weight::Droppable || waits()) {
            state.dropped += 1;
            return;
        }
        self.append(state, message, true);
    }

    /// Ends the lane.
    pub fn end_lane(&self) {
        let mut state = self.lock();
        state.ended = true;
        state.wake();
    }

    /// Ends the lane with a response that is still coming.
    pub fn end_with(&self, last: PouringBody) {
        let mut state = self.lock();
        state.last = Some(Box::new(last));
        state.ended = true;
        state.wake();
    }

    /// Checks that the lane has ended.
    pub fn is_ended(&self) -> bool {
        self.lock().ended
    }

    /// Checks that the lane was ever read.
    pub fn was_read(&self) -> bool {
        self.lock().readers > 0
    }

    /// Checks that the lane is being read.
    pub fn is_read(&self) -> bool {
        self.lock().is_read
    }

    /// Checks for no waiting messages.
    pub fn is_empty(&self) -> bool {
        !self.has_some.load(Ordering::Acquire)
    }

    /// Completes with a message, or the end.
    pub fn poll_any(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if !state.events.is_empty() || state.ended {
            return Poll::Ready(());
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Wakes the reader for something other than a message.
    pub fn ring(&self) {
        self.lock().wake();
    }

    /// Makes a reader behind event number `after`, up to which everything has arrived; an earlier reader gets no more.
    pub fn read(self: &Arc<Self>, after: u64) -> Reader {
        let mut state = self.lock();
        while state.first < after && !state.events.is_empty() {
            state.pop();
        }
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
    /// Removes the first message.
    fn pop(&mut self) {
        let Some(old) = self.events.pop_front() else { return };
        self.first += 1;
        self.bytes -= old.len();
        if self.first <= self.sent {
            self.sent_bytes = self.sent_bytes.saturating_sub(old.len());
        }
        if let Some(account) = &mut self.account {
            account.taken.shrink(old.len());
        }
    }

    fn forget(&mut self) {
        self.is_forgotten = true;
        self.account = None;
        while !self.events.is_empty() && (!self.is_read || self.first < self.sent) {
            self.pop();
        }
        self.wake();
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// Reads a lane in order.
#[derive(Debug)]
pub struct Reader {
    lane: Arc<Lane>,
    number: u64,
    next: u64,
}

impl Reader {
    /// Takes the next message and its number, counted from 1; `None` at the end, or once another reader has taken over.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<(u64, Bytes)>> {
        let mut state = self.lane.lock();
        if state.readers != self.number {
            return Poll::Ready(None);
        }
        self.next = self.next.max(state.first);
        if let Some(message) = usize::try_from(self.next - state.first).ok().and_then(|i| state.events.get(i)) {
            let message = message.clone();
            self.next += 1;
            if self.next > state.sent {
                state.sent = self.next;
                state.sent_bytes += message.len();
            }
            let keep = if state.is_forgotten { 0 } else { self.lane.keep };
            let sent = usize::try_from(self.next - state.first).unwrap_or(0);
            for kept in (0..sent).rev() {
                if kept < keep && state.sent_bytes <= KEPT_BYTES {
                    break;
                }
                state.pop();
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
    /// Takes the response behind the last message, if still coming.
    pub fn take_last(&mut self) -> Option<Box<PouringBody>> {
        let mut state = self.lane.lock();
        if state.readers == self.number { state.last.take() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::shares::Shares;

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
    fn streams_make_room_within_their_principals_share() {
        let (shares, bound) = (Arc::new(Shares::new(Arc::new(store::memory::MemoryJournal::default()))), Bound { most: 64, percent: 100 });
        let share = shares.of_principal(&"ann".into());
        let charged = || {
            let lane = Lane::keeping(10);
            lane.charge_to(&share, bound);
            lane
        };
        let own = charged();
        own.push(Bytes::from_static(&[b'x'; 40]), Weight::Kept);
        own.keep();
        own.push(Bytes::from_static(&[b'x'; 40]), Weight::Kept);
        assert_eq!((own.is_forgotten(), own.bytes(), share.own(Resource::Streams)), (true, 40, 0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        let lane = charged();
                        lane.push(Bytes::from_static(&[b'x'; 40]), Weight::Kept);
                        lane.keep();
                        lane.push(Bytes::from_static(&[b'x'; 20]), Weight::Kept);
                        lane.end_lane();
                    }
                });
            }
        });
        assert_eq!(share.own(Resource::Streams), 0);
    }

    #[test]
    fn a_flood_of_kept_messages_is_bounded() {
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
