//! The record that nobody can forge, on the disk: calls make their lines, a thread of its own writes many of them with one go, and another
//! one brings them to the disk and signs for them.
//!
//! What is awaited is on the disk when that returns; what is not is written within a moment, and what could not be written is counted and
//! leaves a gap that the record itself tells of. What is worth a record is not decided here, but where it happens: for calls in
//! `call/record.rs`.

pub mod archive;
mod broken;
mod draft;
pub mod examine;
pub mod index;
mod keeper;
mod layout;
mod parts;
mod queue;
mod recover;
mod refusal;
mod repeats;
mod running;
pub(crate) mod signing;
mod volume;
mod writer;

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use arc_swap::ArcSwap;
use audit::record::{Intent, Outcome, Record};
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;

use config::resolved::Audit;
use runtime::random;

pub(crate) use broken::BrokenChain;
pub(crate) use parts::{OverShare, Part, Parts};
pub(crate) use refusal::{REGISTRATION, Refusal};
pub(crate) use repeats::Way;
pub(crate) use running::Ticket;

use keeper::{Bounded, Flush};
use parts::AROUND;
use queue::Queue;
use recover::Home;
use repeats::Repeats;

/// How long the end of the gate waits for the last entries.
const LAST: Duration = Duration::from_secs(5);

/// A record that somebody waited for is not on the disk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it can't be recorded: {0}")]
pub(crate) struct JournalError(pub(crate) String);

/// The record of one gate. Clones are the same.
#[derive(Clone)]
pub(crate) struct Journal(Arc<Shared>);

struct Shared {
    settings: Settings,
    queue: Queue,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// The thread was started.
    awake: AtomicBool,
    status: ArcSwap<Standing>,
    /// Records that had room and could not be written since the gate began.
    unrecorded: AtomicU64,
    /// Set while there is no room for more calls, and nothing old enough to be taken away.
    full: AtomicBool,
    /// Entries that were taken away since the gate began.
    removed: AtomicU64,
    repeats: Mutex<Repeats>,
    parts: Arc<Parts>,
    calls: AtomicU64,
    /// Beginning of the ids of this run's calls.
    run: Box<str>,
}

struct Settings {
    audit: Audit,
    state_dir: PathBuf,
    home: Home,
    node: Arc<str>,
    /// How files are brought to the disk.
    flush: Flush,
}

/// Which call of this run it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallId {
    number: u64,
}

/// How it stands with the record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Where it is; `None`: nothing was recorded yet.
    pub(crate) dir: Option<PathBuf>,
    /// Why nothing can be written at present.
    pub(crate) failing: Option<String>,
    /// A part of it that is not what was written.
    pub(crate) broken: Option<BrokenChain>,
}

impl Shared {
    /// Says that nothing can be recorded, once.
    fn failed(&self, error: &io::Error) -> JournalError {
        let standing = self.status.load_full();
        if standing.failing.is_none() {
            tracing::error!(%error, "nothing can be recorded: calls that wait for the record are refused, all others go unrecorded");
        }
        self.status.store(Arc::new(Standing { failing: Some(error.to_string()), ..(*standing).clone() }));
        JournalError(error.to_string())
    }

    /// Takes in the state of the chain after old entries were taken away.
    fn bounded(&self, bounded: Bounded) {
        let Bounded { is_full, removed, files } = bounded;
        self.parts.judge(&files, SystemTime::now());
        self.removed.fetch_add(removed, Relaxed);
        let was_full = self.full.swap(is_full, Relaxed);
        if is_full && !was_full {
            let (size, age) = (self.settings.audit.full_bytes, self.settings.audit.keep_at_least);
            tracing::warn!(
                size,
                ?age,
                "the record is full, and nothing in it is old enough to be taken away: calls are refused until something is; raise \
                 `full_size` in [audit], or lower `keep_at_least`"
            );
        }
        if was_full && !is_full {
            tracing::warn!("the record has room again: calls are made");
        }
    }

    /// What was written is on the disk again.
    fn recovered(&self) {
        let standing = self.status.load_full();
        if standing.failing.is_some() {
            tracing::warn!("the record is written again");
            self.status.store(Arc::new(Standing { failing: None, ..(*standing).clone() }));
        }
    }
}

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Journal {
    /// The record of the gate `node`, as `audit` says. `place` tells gates of one state directory apart. Nothing is written, and no
    /// thread started, before the first record.
    pub(crate) fn new(audit: &Audit, state_dir: &Path, place: Option<&Path>, node: &Arc<str>) -> Self {
        Self::on(audit, state_dir, place, node, Arc::new(layout::flush))
    }

    /// The same on a disk that is synced like this.
    fn on(audit: &Audit, state_dir: &Path, place: Option<&Path>, node: &Arc<str>, flush: Flush) -> Self {
        let home = match (&audit.path, place) {
            (Some(path), _) => Home::At(path.clone()),
            (None, Some(place)) => Home::Named(named(place)),
            (None, None) => Home::Named("unnamed".to_owned()),
        };
        let settings = Settings { audit: audit.clone(), state_dir: state_dir.to_owned(), home, node: Arc::clone(node), flush };
        Self(Arc::new(Shared {
            settings,
            queue: Queue::default(),
            thread: Mutex::default(),
            awake: AtomicBool::new(false),
            status: ArcSwap::default(),
            unrecorded: AtomicU64::new(0),
            full: AtomicBool::new(false),
            removed: AtomicU64::new(0),
            repeats: Mutex::new(Repeats::new(audit.keep_bytes, Instant::now())),
            parts: Arc::new(Parts::new(audit)),
            calls: AtomicU64::new(0),
            run: random::token().get(..16).unwrap_or_default().into(),
        }))
    }

    /// What is recorded, and how.
    pub(crate) fn audit(&self) -> &Audit {
        &self.0.settings.audit
    }

    /// A number for a call that begins, and its id.
    pub(crate) fn call(&self) -> CallId {
        CallId { number: self.0.calls.fetch_add(1, Relaxed) }
    }

    /// The id as records spell it: that of the run, and its number.
    pub(crate) fn spelled(&self, call: CallId) -> String {
        let number = call.number;
        let digits = (u64::BITS - (number | 1).leading_zeros()).div_ceil(4);
        let mut id = String::with_capacity(40);
        id.push_str(&self.0.run);
        id.push('-');
        // By hand: every call has one, and a formatter takes as long as the rest of its record.
        id.extend((0..digits).rev().map(|place| char::from(b"0123456789abcdef"[usize::try_from(number >> (4 * place) & 15).unwrap_or(0)])));
        id
    }

    /// A W3C trace context for a call that came without one, so that gates below record it under one trace.
    pub(crate) fn traceparent(&self, call: CallId) -> String {
        format!("00-{}{:016x}-{:016x}-00", self.0.run, call.number + 1, call.number + 1)
    }

    /// The parts of the record that principals have.
    pub(crate) fn parts(&self) -> &Arc<Parts> {
        &self.0.parts
    }

    /// Records it without waiting.
    pub(crate) fn append(&self, record: &Record<'_>) {
        self.push(record, None);
    }

    /// Records without waiting what a principal had the gate do.
    pub(crate) fn append_for(&self, principal: &str, record: &Record<'_>) {
        let bytes = self.push(record, None);
        self.0.parts.of(principal).add(bytes as u64 + AROUND);
    }

    /// Records it for a principal. What comes back says when it is on the disk; the record itself is not needed until then.
    ///
    /// # Errors
    /// When it is not, and why. Nothing that needs the record may happen then.
    pub(crate) fn append_durable(&self, part: &Part, record: &Record<'_>) -> impl Future<Output = Result<(), JournalError>> + use<> {
        let (done, kept) = oneshot::channel();
        let is_on = self.audit().enabled;
        if is_on {
            part.add(self.push(record, Some(done)) as u64 + AROUND);
        }
        async move { if is_on { kept.await.unwrap_or_else(|_| Err(JournalError("the gate is ending".to_owned()))) } else { Ok(()) } }
    }

    /// Records that a call is about to leave, without waiting. The ticket takes its outcome.
    pub(crate) fn intend(&self, part: &Part, mut intent: Intent<'_>) -> Option<Ticket> {
        if !self.is_on() {
            return None;
        }
        intent.fit();
        SCRATCH.with_borrow_mut(|out| {
            out.clear();
            intent.write(out);
            part.add(out.len() as u64 + AROUND);
            let ticket = self.0.queue.intend(intent.began, out);
            self.wake();
            ticket
        })
    }

    /// Records how a call ended whose intent was recorded. Where that is not written yet, both become one entry.
    pub(crate) fn ended(&self, part: &Part, ticket: Option<Ticket>, call: impl FnOnce() -> String, mut outcome: Outcome<'_>) {
        outcome.fit();
        let is_joined = ticket.is_some_and(|ticket| {
            SCRATCH.with_borrow_mut(|out| {
                out.clear();
                outcome.write(out);
                part.add(out.len() as u64);
                self.0.queue.join(ticket, out)
            })
        });
        if !is_joined {
            part.add(AROUND);
            self.append(&Record::Ended(audit::record::Ended { call: call().into(), outcome }));
        }
    }

    /// How it stands with it.
    pub(crate) fn standing(&self) -> Arc<Standing> {
        self.0.status.load_full()
    }

    /// Records that could not be written since the gate began.
    pub(crate) fn unrecorded(&self) -> u64 {
        self.0.unrecorded.load(Relaxed) + self.0.queue.missed()
    }

    /// Tells if the record is full, so that calls are refused until something in it is old enough to be taken away.
    pub(crate) fn is_full(&self) -> bool {
        self.0.full.load(Relaxed)
    }

    /// Entries that were taken away since the gate began, as their bounds say.
    pub(crate) fn removed(&self) -> u64 {
        self.0.removed.load(Relaxed)
    }

    /// Counts a refusal of `principal` for `reason`; gives the way into the record, for [`Journal::refuse`].
    pub(crate) fn refusal(&self, principal: &str, reason: &str) -> Way {
        if self.is_on() { self.repeats().take(principal, reason, self.is_full(), Instant::now()) } else { Way::Counted }
    }

    /// Records a refusal, or keeps it to be counted.
    pub(crate) fn refuse(&self, way: Way, refusal: Refusal<'_>) {
        match way {
            Way::Alone => {
                let principal = refusal.principal().to_owned();
                let bytes = self.push(&refusal.into_record(), None);
                self.0.parts.of(&principal).add(bytes as u64 + AROUND);
                self.repeats().spend(&principal, bytes, Instant::now());
            }
            Way::First => self.repeats().keep(&refusal, Instant::now()),
            Way::Counted => {}
        }
    }

    /// Records the refusals that were counted and are due.
    pub(crate) fn sweep(&self) {
        self.tell_counted(false);
    }

    fn tell_counted(&self, is_end: bool) {
        let due = self.repeats().due(Instant::now(), is_end);
        due.iter().for_each(|record| self.append(record));
    }

    fn repeats(&self) -> MutexGuard<'_, Repeats> {
        self.0.repeats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what is left and says that the gate ends. Nothing is recorded from now on.
    pub(crate) async fn end(&self) {
        self.tell_counted(true);
        self.0.queue.end();
        let thread = self.0.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return };
        let ended = tokio::task::spawn_blocking(move || thread.join().is_ok());
        if !tokio::time::timeout(LAST, ended).await.is_ok_and(|joined| joined.is_ok_and(|sound| sound)) {
            tracing::error!("the last entries of the record could not be written in time");
        }
    }

    /// Puts it into the queue; gives the length of its facts, in bytes.
    fn push(&self, record: &Record<'_>, waiting: Option<queue::Waiting>) -> usize {
        // An event of a later version is only ever read.
        let Some(event) = record.known().filter(|_| self.is_on()) else { return 0 };
        let mut record = record.clone();
        record.fit();
        SCRATCH.with_borrow_mut(|out| {
            out.clear();
            if record.facts(out).is_ok() {
                self.0.queue.push(event, out, waiting);
                self.wake();
            }
            out.len()
        })
    }

    fn is_on(&self) -> bool {
        self.audit().enabled && !self.0.queue.is_ending()
    }

    fn wake(&self) {
        if !self.0.awake.load(Relaxed) {
            self.begin();
        }
    }

    /// Begins the record at once, so that it says when the gate started, whatever happens then.
    pub(crate) fn start(&self) {
        if self.audit().enabled {
            self.begin();
        }
    }

    /// Starts the thread, unless it runs.
    fn begin(&self) {
        let mut thread = self.0.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_some() || self.0.queue.is_ending() {
            return;
        }
        let shared = Arc::clone(&self.0);
        match std::thread::Builder::new().name("journal".into()).spawn(move || writer::run(&shared)) {
            Ok(started) => {
                *thread = Some(started);
                self.0.awake.store(true, Relaxed);
            }
            Err(error) => tracing::error!(%error, "no thread for the record can be started"),
        }
    }
}

/// The directory's name for a gate's place: the beginning of SHA-256 over it.
fn named(place: &Path) -> String {
    Sha256::digest(place.as_os_str().as_encoded_bytes()).iter().take(8).map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests;
