//! Makes written lines last: syncs them, writes the tiles over them, signs for them, and removes old files. Works in a thread of its own,
//! so that a slow disk does not hold up writing, and in order: entries are synced before they are signed for, and the waiter for an entry
//! hears of it when everything before it is on the disk too. Decides neither what is written nor when.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, TryRecvError};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use audit::chain::Full;
use audit::checkpoint::Checkpoint;
use audit::hash::Hash;
use audit::key::Signer;
use audit::tile::Tile;
use runtime::whole::{self, Readers};
use store::JournalError;

use super::JournalState;
use super::ages::Ages;
use super::layout::{self, CHECKPOINT, ChainDir, DIRS, Segment};
use super::parts::UnreadFile;
use super::queue::Waiter;
use super::volume::Bounds;

/// Syncs a file, or the names in a directory.
pub(super) type Flush = Arc<dyn Fn(&File) -> io::Result<()> + Send + Sync>;

/// Writes a tile, to last or for now.
type Put = fn(&Path, &[u8], Readers) -> io::Result<()>;

/// Work for the keeper.
pub(super) struct Order {
    /// File with new lines.
    pub(super) file: Arc<File>,
    /// Waiters for the lines to be on the disk.
    pub(super) waiting: Vec<Waiter>,
    /// Size and root to sign for, once synced.
    pub(super) head: Option<Head>,
    /// The file is full, and another was begun.
    pub(super) is_full: bool,
}

/// Size and root of the chain, to be signed for.
pub(super) struct Head {
    /// Number of entries.
    pub(super) size: u64,
    /// Root over the entries.
    pub(super) root: Hash,
    /// Tiles completed since the head before.
    pub(super) full: Full,
    /// Tiles that grow.
    pub(super) growing: Full,
}

/// State of a chain after entries beyond its bounds were removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct BoundedChain {
    /// Size of all files, in bytes.
    pub(super) bytes: u64,
    /// Size at which the record is full, in bytes.
    pub(super) full: u64,
    /// Number of removed entries.
    pub(super) removed: u64,
    /// Remaining files of lines, the oldest first.
    pub(super) files: Vec<Segment>,
}

/// Pause between checks of a full record for entries grown old enough.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Files of a chain, with the key to sign for them.
pub(super) struct Keeper {
    place: ChainDir,
    signer: Signer,
    bounds: Bounds,
    flush: Flush,
    /// Number of entries under the last checkpoint.
    signed: u64,
    /// Full tiles not yet on the disk.
    due: Full,
    /// Growing tiles, as on the disk.
    grown: Vec<Tile>,
    ages: Ages,
}

impl Keeper {
    /// Begins with the chain in `place`, taken to be unsigned.
    pub(super) fn new(place: ChainDir, signer: Signer, bounds: Bounds, flush: Flush) -> Self {
        Self { place, signer, bounds, flush, signed: 0, due: Vec::new(), grown: Vec::new(), ages: Ages::default() }
    }

    /// Syncs a file of lines.
    pub(super) fn sync(&self, file: &File) -> io::Result<()> {
        (self.flush)(file)
    }

    /// Syncs the names of all files of lines. A file without its name is lost, whatever part of it is on the disk.
    fn sync_names(&self) -> io::Result<()> {
        (self.flush)(&File::open(self.place.entries())?)
    }

    /// Writes the tiles and the signature for all entries to the disk. The entries must be there before.
    pub(super) fn sign(&mut self, head: &mut Head) -> io::Result<()> {
        self.due.append(&mut head.full);
        for (tile, content) in &self.due {
            self.put(tile, content, whole::replace)?;
        }
        for (tile, content) in &head.growing {
            self.put(tile, content, whole::replace_for_now)?;
        }
        let checkpoint = Checkpoint { origin: self.signer.name().to_owned(), size: head.size, root: head.root };
        let text = checkpoint.sign(&self.signer).map_err(io::Error::other)?;
        whole::replace(&self.place.path.join(CHECKPOINT), text.as_bytes(), Readers::Others)?;
        let grown: Vec<Tile> = head.growing.iter().map(|(tile, _)| *tile).collect();
        for tile in self.grown.iter().filter(|tile| !grown.contains(tile)) {
            let path = self.place.path_of(tile);
            remove(&path)?;
            // The completed tile replaces the growing one.
            _ = path.parent().map(fs::remove_dir);
        }
        (self.grown, self.signed) = (grown, head.size);
        self.due.clear();
        Ok(())
    }

    fn put(&self, tile: &Tile, content: &[u8], put: Put) -> io::Result<()> {
        let path = self.place.path_of(tile);
        path.parent().map_or(Ok(()), |dir| whole::make_dirs(dir, DIRS))?;
        put(&path, content, Readers::Others)
    }

    /// Removes files beyond the bounds: first those set aside, then the oldest lines. The tiles above stay, since they prove the rest.
    /// Files younger than the least age stay, whatever their size.
    pub(super) fn bound(&mut self) -> io::Result<BoundedChain> {
        let mut removed = 0;
        let (torn, mut segments) = (self.place.torn()?, self.segments()?);
        let mut bytes: u64 = torn.iter().chain(&segments).map(|file| file.bytes).sum();
        for file in torn {
            if self.may_go(&file, bytes) {
                remove(&file.path)?;
                bytes -= file.bytes;
                tracing::warn!(file = %file.path.display(), "lines that were set aside were taken away, as the record's bounds say");
            }
        }
        let mut gone = 0;
        for pair in segments.windows(2) {
            let [old, next] = pair else { continue };
            if !self.may_go(old, bytes) {
                break;
            }
            self.keep_upper_tiles()?;
            remove(&old.path)?;
            bytes -= old.bytes;
            gone += 1;
            removed += next.first - old.first;
            tracing::warn!(from = old.first, to = next.first, "old entries of the record were taken away, as its bounds say");
        }
        let full = self.bounds.full(bytes, layout::free(&self.place.path)?);
        Ok(BoundedChain { bytes, full, removed, files: segments.split_off(gone) })
    }

    /// Files of lines, the oldest first. A clock that is set while the gate runs makes none of them older.
    fn segments(&mut self) -> io::Result<Vec<Segment>> {
        let mut segments = self.place.segments()?;
        self.ages.correct(&mut segments, SystemTime::now(), Instant::now());
        Ok(segments)
    }

    /// Checks that a file may be removed while all files have `bytes` together. The last write of a file is as old as its youngest line.
    fn may_go(&self, file: &Segment, bytes: u64) -> bool {
        let since = || SystemTime::now().duration_since(file.written).ok();
        let is_over = |age: Duration| age.is_zero() || since().is_some_and(|since| since > age);
        (bytes > self.bounds.bytes && is_over(self.bounds.least)) || self.bounds.age.is_some_and(is_over)
    }

    // Without the lines, the hashes over them can't be made again.
    fn keep_upper_tiles(&self) -> io::Result<()> {
        for tile in Tile::all(self.signed).filter(|tile| tile.level != Some(0) && !tile.is_full()) {
            whole::keep(&self.place.path_of(&tile))?;
        }
        Ok(())
    }
}

/// Handle of a working keeper. Dropped, it waits for the work given so far.
pub(super) struct KeeperHandle {
    orders: Option<mpsc::Sender<Order>>,
    thread: Option<JoinHandle<()>>,
    told: Arc<KeeperStatus>,
}

/// State of the keeper for other threads.
struct KeeperStatus {
    /// Number of entries under the last checkpoint.
    signed: AtomicU64,
    /// Heads still to be signed.
    signing: AtomicU64,
    /// After a failed sync the system may have forgotten the unwritten part.
    is_torn: AtomicBool,
}

impl KeeperHandle {
    /// Starts the thread.
    pub(super) fn start(keeper: Keeper, shared: &Arc<JournalState>) -> io::Result<Self> {
        let (orders, given) = mpsc::channel();
        let told = KeeperStatus { signed: keeper.signed.into(), signing: AtomicU64::new(0), is_torn: AtomicBool::new(false) };
        let told = Arc::new(told);
        let mut work = Work { keeper, shared: Arc::clone(shared), told: Arc::clone(&told), is_signing_broken: false, looked: 0 };
        let thread = std::thread::Builder::new().name("journal-keeper".into()).spawn(move || work.run(&given))?;
        Ok(Self { orders: Some(orders), thread: Some(thread), told })
    }

    /// Gives the keeper an order.
    pub(super) fn give(&self, order: Order) {
        self.told.signing.fetch_add(u64::from(order.head.is_some()), Ordering::Relaxed);
        if let Some(orders) = &self.orders {
            // The thread ends only with the handle. If it died, waiters hear that the other end is gone.
            drop(orders.send(order));
        }
    }

    /// Number of entries under the last checkpoint; `None` while a checkpoint is being made.
    pub(super) fn signed(&self) -> Option<u64> {
        (self.told.signing.load(Ordering::Acquire) == 0).then(|| self.told.signed.load(Ordering::Acquire))
    }

    /// Checks for a failed sync, after which nothing is synced until the files are read again.
    pub(super) fn is_torn(&self) -> bool {
        self.told.is_torn.load(Ordering::Acquire)
    }
}

impl Drop for KeeperHandle {
    fn drop(&mut self) {
        self.orders = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that syncs the record died");
        }
    }
}

struct Work {
    keeper: Keeper,
    shared: Arc<JournalState>,
    told: Arc<KeeperStatus>,
    is_signing_broken: bool,
    /// Length of the current file at the last look.
    looked: u64,
}

impl Work {
    fn run(&mut self, given: &mpsc::Receiver<Order>) {
        while let Some(first) = self.next(given) {
            // These orders were all written before, so a single sync serves those of one file.
            let orders: Vec<Order> = std::iter::once(first).chain(given.try_iter()).collect();
            let mut synced: Option<Arc<File>> = None;
            for order in orders {
                let is_synced = synced.as_ref().is_some_and(|file| Arc::ptr_eq(file, &order.file));
                synced = Some(Arc::clone(&order.file));
                self.carry_out(order, is_synced);
            }
        }
    }

    /// Waits for the next order, and meanwhile reads files from before the start and checks a full record. `None`: no order will come.
    fn next(&mut self, given: &mpsc::Receiver<Order>) -> Option<Order> {
        while let Some(unread) = self.shared.parts.unread() {
            self.read(&unread);
            match given.try_recv() {
                Ok(order) => return Some(order),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => {}
            }
        }
        while self.is_short() {
            match given.recv_timeout(LOOK_AGAIN) {
                Ok(order) => return Some(order),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => self.look(),
            }
        }
        given.recv().ok()
    }

    /// Tells if there is no room for calls, of all principals or of some.
    fn is_short(&self) -> bool {
        self.shared.full.load(Ordering::Relaxed) || self.shared.queue.is_out() || self.shared.parts.is_over()
    }

    /// Counts the bytes of each principal in a file. A file that is gone counts for nobody.
    fn read(&mut self, unread: &UnreadFile) {
        let content = fs::read(self.keeper.place.segment(unread.first)).unwrap_or_default();
        if self.shared.parts.read(unread, &content) {
            self.look();
        }
    }

    /// Judges the principals' shares of the record, once enough was written since the last time.
    fn judge(&mut self, file: &File) -> io::Result<()> {
        let length = file.metadata()?.len();
        if length.saturating_sub(self.looked) < self.keeper.bounds.look_after() {
            self.looked = self.looked.min(length);
            return Ok(());
        }
        self.looked = length;
        self.bound()
    }

    fn look(&mut self) {
        if let Err(error) = self.bound() {
            self.shared.failed(&error);
        }
    }

    fn bound(&mut self) -> io::Result<()> {
        // Before the files are looked at: what is written meanwhile counts twice until the next look, and never not at all.
        let written = self.shared.written.load(Ordering::Acquire);
        self.shared.bounded(self.keeper.bound()?, written);
        Ok(())
    }

    fn carry_out(&mut self, mut order: Order, is_synced: bool) {
        let mut kept = if is_synced && !self.is_torn() { Ok(()) } else { self.sync(|keeper| keeper.sync(&order.file)) };
        if order.is_full && kept.is_ok() {
            // Before any waiter hears of lines in the next file.
            kept = self.sync(Keeper::sync_names);
            layout::release(&order.file);
        }
        // The waiter may be gone.
        order.waiting.drain(..).for_each(|waiting| _ = waiting.send(kept.clone()));
        let Some(mut head) = order.head else { return };
        if kept.is_ok() {
            let done = self
                .keeper
                .sign(&mut head)
                .and_then(|()| if order.is_full || self.shared.queue.is_out() { self.bound() } else { self.judge(&order.file) });
            self.is_signing_broken = done.is_err();
            match done {
                Ok(()) => self.shared.recovered(),
                Err(error) => drop(self.shared.failed(&error)),
            }
        }
        self.told.signed.store(self.keeper.signed, Ordering::Release);
        self.told.signing.fetch_sub(1, Ordering::Release);
    }

    fn sync(&self, sync: impl FnOnce(&Keeper) -> io::Result<()>) -> Result<(), JournalError> {
        if self.is_torn() {
            return Err(JournalError("the record has to be read again first".to_owned()));
        }
        match sync(&self.keeper) {
            Ok(()) if self.is_signing_broken => {}
            Ok(()) => self.shared.recovered(),
            Err(error) => {
                let told = self.shared.failed(&error);
                self.told.is_torn.store(true, Ordering::Release);
                return Err(told);
            }
        }
        Ok(())
    }

    fn is_torn(&self) -> bool {
        self.told.is_torn.load(Ordering::Acquire)
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
