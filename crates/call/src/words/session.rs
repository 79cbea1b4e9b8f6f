//! A session of the initialize era: the client's opening words, its open requests, and its streams.
//!
//! Holders of a message lock the session for microseconds and never across an `await`; a task and a channel for each of ten thousand idle
//! sessions would cost more than they protect.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use banyan_model::Segment;
use bytes::Bytes;
use config::resolved::Config;
use foldhash::fast::RandomState;
use mcp_proto::envelope::{self, Answer};
use mcp_proto::era::LogLevel;
use mcp_proto::projection::Style;
use runtime::clock;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::words::cancel::Cancel;
use crate::words::entered::{AboutClient, AdmittedCaller};
use crate::words::lane::{KEPT_BYTES, Lane, Weight};
use crate::words::shares::{Bound, Full, Resource, Share, TakenShare};
use crate::words::subscriptions::Subscriptions;
use crate::words::view_key::ViewKey;

/// Most finished streams kept for a resuming client. Together they hold `KEPT_BYTES` at most, or a single longer answer not yet read.
const KEPT_STREAMS: usize = 32;
/// Most questions of servers that wait for a client.
const MOST_QUESTIONS: usize = 256;
/// Name of the standing stream in event ids.
pub const STANDING: &str = "s";

/// Opening of a session.
#[derive(Debug)]
pub struct Opening {
    pub entered: AdmittedCaller,
    pub version: &'static str,
    pub capabilities: Bytes,
    pub info: Bytes,
    /// Mount of `/mcp/NAME`.
    pub mount: Option<Segment>,
    /// Spelling of names asked for by the URL.
    pub style: Option<Style>,
}

impl Opening {
    fn about(&self) -> AboutClient<'_> {
        AboutClient { info: &self.info, capabilities: &self.capabilities }
    }
}

/// Session of the initialize era.
#[derive(Debug)]
pub struct Session {
    pub id: Arc<str>,
    pub opening: Opening,
    /// View of the session.
    scope: ArcSwap<ViewKey>,
    /// Fires when the session ends.
    pub over: CancellationToken,
    log_level: AtomicU8,
    next_id: AtomicU64,
    state: Mutex<State>,
    /// Share charged for its streams, and their bound.
    share: Arc<Share>,
    streams: Bound,
    /// Longest time for a question to be answered.
    question: Duration,
}

#[derive(Debug)]
struct State {
    used: Instant,
    /// Notifications that belong to no request.
    standing: Option<Arc<Lane>>,
    streams: BTreeMap<u64, Arc<Lane>>,
    asks: HashMap<u64, oneshot::Sender<Answer>>,
    in_flight: HashMap<Bytes, Cancel, RandomState>,
    subscriptions: Subscriptions,
    /// Their part in the principal's share.
    subscribed: Option<TakenShare>,
}

impl Session {
    /// Makes a session under `id`, with the view that `config` gives it.
    pub fn new(id: Arc<str>, opening: Opening, share: Arc<Share>, config: &Config) -> Arc<Self> {
        let state = State {
            used: Instant::now(),
            standing: None,
            streams: BTreeMap::new(),
            asks: HashMap::new(),
            in_flight: HashMap::default(),
            subscriptions: Subscriptions::default(),
            subscribed: None,
        };
        Arc::new(Self {
            id,
            scope: ArcSwap::from_pointee(opening.entered.scope(config, opening.mount.clone(), opening.about(), opening.style)),
            opening,
            over: CancellationToken::new(),
            log_level: AtomicU8::new(LogLevel::Debug as u8),
            next_id: AtomicU64::new(1),
            state: Mutex::new(state),
            share,
            streams: Bound { most: config.limits.stream_bytes, percent: config.share() },
            question: config.limits.question,
        })
    }

    /// View of the session.
    pub fn scope(&self) -> ViewKey {
        ViewKey::clone(&self.scope.load())
    }

    /// Checks for an unchanged view.
    pub fn is_shown(&self, scope: &ViewKey) -> bool {
        **self.scope.load() == *scope
    }

    /// Updates the view to a changed configuration. Never from a profile to none, since the author of the change may not think of connected
    /// clients: such a session keeps the name of its profile, and is shown nothing once the profile is gone.
    pub fn follow(&self, config: &Config) {
        let Opening { entered, mount, style, .. } = &self.opening;
        let now = entered.under(config).scope(config, mount.clone(), self.opening.about(), *style);
        if self.scope.load().profile.is_empty() || !now.profile.is_empty() {
            self.scope.store(Arc::new(now));
        }
    }

    /// Numbers requests and streams from `first` on.
    pub fn number_from(&self, first: u32) {
        self.next_id.store(u64::from(first), Ordering::Relaxed);
    }

    /// Makes a request of ours to the client: the whole message, and its future answer, which is `None` if it takes too long or the client
    /// is gone. Returns `None` if too many answers are owed.
    pub fn ask(&self, method: &str, params: &Bytes) -> Option<(Bytes, impl Future<Output = Option<Answer>> + use<>)> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (tx, rx) = oneshot::channel();
        let mut state = self.lock();
        state.asks.retain(|_, waiting| !waiting.is_closed());
        if state.asks.len() >= MOST_QUESTIONS {
            return None;
        }
        state.asks.insert(id, tx);
        let longest = self.question;
        let answer = async move { tokio::time::timeout(longest, rx).await.ok()?.ok() };
        Some((envelope::request(itoa::Buffer::new().format(id).as_bytes(), method, params), answer))
    }

    /// Delivers the client's answer to a request of ours; `false` if nobody waits for it.
    pub fn answered(&self, id: &[u8], answer: Answer) -> bool {
        let id = std::str::from_utf8(id).ok().and_then(|t| t.trim_matches('"').parse().ok());
        let Some(waiting) = id.and_then(|id: u64| self.lock().asks.remove(&id)) else { return false };
        waiting.send(answer).is_ok()
    }

    /// Notes how to cancel request `id`; `false` for an id in use.
    pub fn begin(&self, id: &Bytes, cancel: &Cancel) -> bool {
        let mut state = self.lock();
        state.used = clock::now();
        match state.in_flight.entry(id.clone()) {
            // The holder of the id stays cancellable.
            Entry::Occupied(_) => false,
            Entry::Vacant(free) => {
                free.insert(cancel.clone());
                true
            }
        }
    }

    /// Frees the id of an answered request.
    pub fn finish(&self, id: &Bytes) {
        let mut state = self.lock();
        state.used = clock::now();
        state.in_flight.remove(id);
    }

    /// Cancels request `id`, by the client's wish.
    pub fn cancel(&self, id: &[u8]) {
        // The id stays in use until the request has ended.
        if let Some(cancel) = self.lock().in_flight.get(id) {
            cancel.cancel();
        }
    }

    /// Opens a stream for a request: its number and its lane.
    pub fn open_stream(&self, lane: Arc<Lane>) -> u64 {
        lane.charge_to(&self.share, self.streams);
        let number = self.next_id.fetch_add(1, Ordering::Relaxed);
        let mut state = self.lock();
        while state.streams.len() >= KEPT_STREAMS {
            let Some(oldest) = state.streams.iter().find(|(_, l)| l.is_ended()).map(|(n, _)| *n) else { break };
            state.streams.remove(&oldest);
        }
        state.streams.insert(number, lane);
        number
    }

    /// Keeps the stream of an answered request for a resuming client. Older streams give way, those already read first.
    pub fn keep_stream(&self, lane: &Arc<Lane>) {
        let is_other = |other: &&Arc<Lane>| !Arc::ptr_eq(other, lane) && other.is_ended();
        let mut others: Vec<_> = self.lock().streams.values().filter(is_other).cloned().collect();
        others.sort_by_key(|other| !other.is_sent());
        let mut bytes = lane.bytes() + others.iter().map(|other| other.bytes()).sum::<usize>();
        for other in others {
            if bytes <= KEPT_BYTES {
                break;
            }
            bytes = bytes.saturating_sub(other.bytes());
            other.forget();
        }
        lane.keep();
    }

    /// Stream of an event id (`STREAM:NUMBER`), and the number behind which to continue.
    pub fn resume(&self, last_event_id: &str) -> Option<(String, Arc<Lane>, u64)> {
        let (stream, after) = last_event_id.rsplit_once(':')?;
        let after = after.parse().ok()?;
        let lane = match stream {
            STANDING => self.standing(),
            number => self.lock().streams.get(&number.parse().ok()?).filter(|lane| !lane.is_forgotten()).cloned()?,
        };
        Some((stream.to_owned(), lane, after))
    }

    /// Lane of notifications that belong to no request.
    pub fn standing(&self) -> Arc<Lane> {
        let mut state = self.lock();
        Arc::clone(state.standing.get_or_insert_with(|| {
            let lane = Lane::keeping(64);
            lane.charge_to(&self.share, self.streams);
            lane
        }))
    }

    /// Makes `lane` the one for notifications that belong to no request.
    pub fn stand_on(&self, lane: &Arc<Lane>) {
        self.lock().standing = Some(Arc::clone(lane));
    }

    /// Sends a whole notification that belongs to no request.
    pub fn notify(&self, whole: Bytes, weight: Weight) {
        let lane = self.standing();
        // The stream was never read: keep promises, but not a log.
        if weight == Weight::Kept || lane.was_read() {
            lane.notify(whole, weight);
        }
    }

    /// Level from which log lines are wanted.
    pub fn log_level(&self) -> LogLevel {
        const LEVELS: [LogLevel; 8] = [
            LogLevel::Debug,
            LogLevel::Info,
            LogLevel::Notice,
            LogLevel::Warning,
            LogLevel::Error,
            LogLevel::Critical,
            LogLevel::Alert,
            LogLevel::Emergency,
        ];
        LEVELS.get(usize::from(self.log_level.load(Ordering::Relaxed))).copied().unwrap_or(LogLevel::Debug)
    }

    /// Sets the level from which log lines are wanted.
    pub fn set_log_level(&self, level: LogLevel) {
        self.log_level.store(level as u8, Ordering::Relaxed);
    }

    /// Reads the subscriptions.
    pub fn subscriptions<T>(&self, look: impl FnOnce(&Subscriptions) -> T) -> T {
        look(&self.lock().subscriptions)
    }

    /// Adds a subscription to a resource of a mount, by its name there and the client's own; `false` if present.
    pub fn subscribe(&self, (mount, uri, shown): (&Segment, &str, &str), bound: Bound) -> Result<bool, Full> {
        let state = &mut *self.lock();
        let mut place = self.share.take_amount(Resource::Subscriptions, 0, Bound { percent: 100, ..bound })?;
        let is_new = state.subscriptions.add(mount, uri, shown);
        if is_new {
            let taken = state.subscribed.as_mut().unwrap_or(&mut place);
            if let Err(full) = taken.grow(1, bound) {
                state.subscriptions.remove(mount, uri);
                return Err(full);
            }
            state.subscribed.get_or_insert(place);
        }
        Ok(is_new)
    }

    /// Ends a subscription; `false` without one.
    pub fn unsubscribe(&self, mount: &Segment, uri: &str) -> bool {
        let mut state = self.lock();
        let was_there = state.subscriptions.remove(mount, uri);
        if was_there && let Some(taken) = &mut state.subscribed {
            taken.shrink(1);
        }
        was_there
    }

    /// Ends all subscriptions.
    pub fn unsubscribe_all(&self) -> Subscriptions {
        let mut state = self.lock();
        state.subscribed = None;
        std::mem::take(&mut state.subscriptions)
    }

    /// Notes a sign of life of the client.
    pub fn touch(&self) {
        self.lock().used = Instant::now();
    }

    /// Checks that, at `now`, the session has not been used for `idle`. Open requests and a reader of the standing stream use it; messages
    /// without a reader do not.
    pub fn is_idle(&self, now: Instant, idle: Duration) -> bool {
        let mut state = self.lock();
        if !state.in_flight.is_empty() || state.standing.as_ref().is_some_and(|lane| lane.is_read()) {
            state.used = now;
        }
        now.saturating_duration_since(state.used) > idle
    }

    /// Ends the session: calls in flight are cancelled, streams end.
    pub fn end_session(&self) {
        self.over.cancel();
        let mut state = self.lock();
        state.in_flight.drain().for_each(|(_, cancel)| cancel.cancel());
        state.asks.clear();
        state.standing.iter().for_each(|lane| lane.end_lane());
        state.streams.values().for_each(|lane| lane.end_lane());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::task::{Context, Waker};

    use super::*;
    use config::{self, secret::SystemSources};

    const IDLE: Duration = Duration::from_secs(60);

    fn session() -> Arc<Session> {
        let config = config::parse("", Path::new("banyan.toml"), &SystemSources).unwrap();
        let object = Bytes::from_static(b"{}");
        let opening = Opening {
            entered: AdmittedCaller::local(),
            version: "2025-11-25",
            capabilities: object.clone(),
            info: object,
            mount: None,
            style: None,
        };
        let shares = Arc::new(crate::words::shares::Shares::new(Arc::new(store::memory::MemoryJournal::default())));
        Session::new("s".into(), opening, shares.of_principal(&"local".into()), &config)
    }

    #[test]
    fn messages_without_a_reader_do_not_keep_a_session() {
        let session = session();
        let later = Instant::now() + IDLE + Duration::from_secs(1);
        session.notify(Bytes::from_static(b"{}"), Weight::Kept);
        assert!(session.is_idle(later, IDLE));
        session.touch();
        assert!(!session.is_idle(Instant::now() + IDLE / 2, IDLE));
    }

    #[test]
    fn readers_and_open_requests_keep_a_session() {
        let session = session();
        let mut now = Instant::now() + 2 * IDLE;
        let reader = session.standing().read(0);
        assert!(!session.is_idle(now, IDLE));
        drop(reader);
        now += IDLE;
        assert!(!session.is_idle(now, IDLE));
        let id = Bytes::from_static(b"1");
        assert!(session.begin(&id, &Cancel::default()));
        now += IDLE;
        assert!(!session.is_idle(now, IDLE));
        session.finish(&id);
        now += IDLE + Duration::from_secs(1);
        assert!(session.is_idle(now, IDLE));
    }

    #[test]
    fn l4_a_second_request_of_an_id_leaves_the_first() {
        let (session, id) = (session(), Bytes::from_static(b"1"));
        let [first, second, third] = [(), (), ()].map(|()| Cancel::default());
        assert!(session.begin(&id, &first) && !session.begin(&id, &second));
        session.cancel(&id);
        assert!(first.is_cancelled() && !second.is_cancelled());
        assert!(!session.begin(&id, &third), "the first has not ended");
        session.finish(&id);
        assert!(session.begin(&id, &third));
        session.end_session();
        assert!(third.is_cancelled() && !second.is_cancelled());
    }

    #[test]
    fn m5_kept_streams_are_bounded_besides_the_newest_answer() {
        let session = session();
        let answered = |megabytes: usize| {
            let lane = Lane::keeping(1000);
            session.open_stream(Arc::clone(&lane));
            lane.push(Bytes::from(vec![b'x'; megabytes << 20]), Weight::Kept);
            lane.end_lane();
            session.keep_stream(&lane);
            lane
        };
        let lanes: Vec<_> = [3, 3, 3, 1].map(answered).into();
        assert_eq!(lanes.iter().map(|lane| lane.bytes() >> 20).collect::<Vec<_>>(), [0, 3, 3, 1]);
        assert_eq!(session.share.own(Resource::Streams), 7 << 20);
        let long = answered(40);
        assert_eq!((long.bytes() >> 20, lanes.iter().map(|lane| lane.bytes()).sum::<usize>()), (40, 0));
        let mut reader = long.read(0);
        assert!(reader.poll_next(&mut Context::from_waker(Waker::noop())).is_ready());
        assert_eq!((long.bytes(), session.share.own(Resource::Streams)), (0, 0), "once read, it is not kept");
    }

    #[test]
    fn m5_what_a_client_says_it_has_is_not_kept() {
        let session = session();
        let lane = Lane::keeping(1000);
        let number = session.open_stream(Arc::clone(&lane));
        for text in ["a", "b", "c"] {
            lane.push(Bytes::from_static(text.as_bytes()), Weight::Kept);
        }
        lane.end_lane();
        session.keep_stream(&lane);
        for (after, kept) in [(0, 3), (1, 2), (3, 0)] {
            let (_, lane, after) = session.resume(&format!("{number}:{after}")).unwrap();
            drop(lane.read(after));
            assert_eq!((lane.bytes(), session.share.own(Resource::Streams)), (kept, kept));
        }
    }
}
