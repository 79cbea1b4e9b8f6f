//! The tamper-evident record on the disk: calls make their lines, a thread writes many of them together, and another thread syncs and signs
//! for them.
//!
//! An awaited entry is on the disk when the wait ends; others are written within a moment, and those that could not be written are counted
//! and leave a gap named by the record itself. Does not decide what is recorded; calls do, in `call/record.rs`.

mod ages;
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
mod running;
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
use audit::arguments::ArgumentDetail;
use audit::record::{Ended, Intent, Outcome, Record};
use futures_util::future::BoxFuture;
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;

use config::file::RecordedArguments;
use config::resolved::Audit;
use runtime::random;
use store::{AROUND, CallIds, Journal, JournalError, OverShare, Part, Refusal, Repeats, Standing, Ticket, Way};

use keeper::{BoundedChain, Flush};
use parts::Parts;
use queue::Queue;
use recover::Home;

/// Longest wait for the last entries at the end of the gate.
const LAST: Duration = Duration::from_secs(5);

/// Record of a gate in files. Clones share it.
#[derive(Clone)]
pub struct DiskJournal(Arc<JournalState>);

struct JournalState {
    settings: Settings,
    queue: Queue,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// The thread was started.
    awake: AtomicBool,
    status: ArcSwap<Standing>,
    /// Records that had room and could not be written since the gate began.
    unrecorded: AtomicU64,
    /// Set while there is no room for more calls, and nothing old enough to be removed.
    full: AtomicBool,
    /// Entries removed since the gate began.
    removed: AtomicU64,
    /// Bytes that were written since the record was opened.
    written: AtomicU64,
    repeats: Mutex<Repeats>,
    parts: Arc<Parts>,
    ids: CallIds,
}

struct Settings {
    audit: Audit,
    state_dir: PathBuf,
    home: Home,
    node: Arc<str>,
    /// Way to sync files.
    flush: Flush,
}

impl JournalState {
    /// Notes that recording fails; logs the first failure.
    fn failed(&self, error: &io::Error) -> JournalError {
        let standing = self.status.load_full();
        if standing.failing.is_none() {
            tracing::error!(%error, "nothing can be recorded: calls that wait for the record are refused, all others go unrecorded");
        }
        self.status.store(Arc::new(Standing { failing: Some(error.to_string()), ..(*standing).clone() }));
        JournalError(error.to_string())
    }

    /// Notes the state of the chain after old entries were removed, as found when `written` bytes had been written since the record was
    /// opened.
    fn bounded(&self, bounded: BoundedChain, written: u64) {
        let BoundedChain { bytes, full, removed, files } = bounded;
        self.parts.judge(&files, full, SystemTime::now());
        // The last file is never removed: a record that has no other would stay full for good.
        let full = if files.len() > 1 { full } else { u64::MAX };
        self.queue.set_room(full.saturating_sub(bytes).saturating_add(written));
        let is_full = bytes >= full;
        self.removed.fetch_add(removed, Relaxed);
        let was_full = self.full.swap(is_full, Relaxed);
        if is_full && !was_full {
            let age = self.settings.audit.keep_at_least;
            tracing::warn!(
                size = full,
                ?age,
                "the record is full, and nothing in it is old enough to be taken away: calls are refused until something is; raise \
                 `full_size` in [audit], or lower `keep_at_least`"
            );
        }
        if was_full && !is_full {
            tracing::warn!("the record has room again: calls are made");
        }
    }

    /// Notes that lines reach the disk again.
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

impl DiskJournal {
    /// Makes the record of the gate `node` by `audit`; `place` tells gates of a state directory apart. Writes nothing and starts no thread
    /// before the first record.
    pub fn new(audit: &Audit, state_dir: &Path, place: Option<&Path>, node: &Arc<str>) -> Self {
        Self::on(audit, state_dir, place, node, Arc::new(layout::flush))
    }

    /// Makes the record with a way to sync files.
    fn on(audit: &Audit, state_dir: &Path, place: Option<&Path>, node: &Arc<str>, flush: Flush) -> Self {
        let home = match (&audit.path, place) {
            (Some(path), _) => Home::At(path.clone()),
            (None, Some(place)) => Home::Named(named(place)),
            (None, None) => Home::Named("unnamed".to_owned()),
        };
        let settings = Settings { audit: audit.clone(), state_dir: state_dir.to_owned(), home, node: Arc::clone(node), flush };
        Self(Arc::new(JournalState {
            settings,
            queue: Queue::default(),
            thread: Mutex::default(),
            awake: AtomicBool::new(false),
            status: ArcSwap::default(),
            unrecorded: AtomicU64::new(0),
            full: AtomicBool::new(false),
            removed: AtomicU64::new(0),
            written: AtomicU64::new(0),
            repeats: Mutex::new(Repeats::new(audit.keep_bytes, Instant::now())),
            parts: Arc::new(Parts::new(audit)),
            ids: CallIds::new(&random::token()),
        }))
    }

    fn audit(&self) -> &Audit {
        &self.0.settings.audit
    }

    fn tell_counted(&self, is_end: bool) {
        let due = self.repeats().due(Instant::now(), is_end);
        due.iter().for_each(|record| self.append(record));
    }

    fn repeats(&self) -> MutexGuard<'_, Repeats> {
        self.0.repeats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a record; returns the length of its facts, in bytes.
    fn push(&self, record: &Record<'_>, waiting: Option<queue::Waiter>) -> usize {
        // Events of later versions are read, never written.
        let Some(event) = record.known().filter(|_| self.takes()) else { return 0 };
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

    /// Checks that records are taken at present.
    fn takes(&self) -> bool {
        self.audit().enabled && !self.0.queue.is_ending()
    }

    fn wake(&self) {
        if !self.0.awake.load(Relaxed) {
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

impl Journal for DiskJournal {
    fn is_on(&self) -> bool {
        self.audit().enabled
    }

    fn wanted(&self) -> ArgumentDetail {
        match self.audit().arguments {
            RecordedArguments::Hash => ArgumentDetail::default(),
            RecordedArguments::Shape => ArgumentDetail { shape: true, value: false },
            RecordedArguments::Full => ArgumentDetail { shape: true, value: true },
        }
    }

    fn ids(&self) -> &CallIds {
        &self.0.ids
    }

    fn part(&self, principal: &str) -> Arc<Part> {
        self.0.parts.of_principal(principal)
    }

    fn share_by(&self, percent: usize) {
        self.0.parts.share_by(percent);
    }

    fn over_share(&self) -> Vec<OverShare> {
        self.0.parts.over()
    }

    fn append(&self, record: &Record<'_>) {
        self.push(record, None);
    }

    fn append_for(&self, principal: &str, record: &Record<'_>) {
        let bytes = self.push(record, None);
        self.0.parts.of_principal(principal).add(bytes as u64 + AROUND);
    }

    fn append_durable(&self, part: &Part, record: &Record<'_>) -> BoxFuture<'static, Result<(), JournalError>> {
        let (done, kept) = oneshot::channel();
        let is_on = self.is_on();
        if is_on {
            part.add(self.push(record, Some(done)) as u64 + AROUND);
        }
        Box::pin(
            async move { if is_on { kept.await.unwrap_or_else(|_| Err(JournalError("the gate is ending".to_owned()))) } else { Ok(()) } },
        )
    }

    fn intend(&self, part: &Part, mut intent: Intent<'_>) -> Option<Ticket> {
        if !self.takes() {
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

    fn ended(&self, part: &Part, ticket: Option<Ticket>, call: &dyn Fn() -> String, mut outcome: Outcome<'_>) {
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
            self.append(&Record::Ended(Ended { call: call().into(), outcome }));
        }
    }

    fn count_refusal(&self, principal: &str, reason: &str) -> Way {
        if self.takes() { self.repeats().count(principal, reason, self.is_full(), Instant::now()) } else { Way::Counted }
    }

    fn refuse(&self, way: Way, refusal: Refusal<'_>) {
        match way {
            Way::Alone => {
                let principal = refusal.principal().to_owned();
                let bytes = self.push(&refusal.into_record(), None);
                self.0.parts.of_principal(&principal).add(bytes as u64 + AROUND);
                self.repeats().spend(&principal, bytes, Instant::now());
            }
            Way::First => self.repeats().keep(&refusal, Instant::now()),
            Way::Counted => {}
        }
    }

    fn sweep(&self) {
        self.tell_counted(false);
    }

    fn standing(&self) -> Arc<Standing> {
        self.0.status.load_full()
    }

    fn unrecorded(&self) -> u64 {
        self.0.unrecorded.load(Relaxed) + self.0.queue.missed()
    }

    fn removed(&self) -> u64 {
        self.0.removed.load(Relaxed)
    }

    fn is_full(&self) -> bool {
        self.0.full.load(Relaxed) || self.0.queue.is_out()
    }

    fn start(&self) {
        if self.is_on() {
            self.begin();
        }
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.tell_counted(true);
            self.0.queue.end_queue();
            let thread = self.0.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
            let Some(thread) = thread else { return };
            let ended = tokio::task::spawn_blocking(move || thread.join().is_ok());
            if !tokio::time::timeout(LAST, ended).await.is_ok_and(|joined| joined.is_ok_and(|sound| sound)) {
                tracing::error!("the last entries of the record could not be written in time");
            }
        })
    }
}

impl std::fmt::Debug for DiskJournal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DiskJournal").field("node", &self.0.settings.node).finish_non_exhaustive()
    }
}

/// Name of the directory for a gate's place: the beginning of its SHA-256.
fn named(place: &Path) -> String {
    Sha256::digest(place.as_os_str().as_encoded_bytes()).iter().take(8).map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests;
