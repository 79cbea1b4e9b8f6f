//! Makes what was written last: syncs it, writes the tiles over it, signs for it, and takes old files away. In a thread of its own, so that
//! a disk that is slow to sync keeps nobody from writing. What is to be done is done in order: what is signed for was synced before, and
//! whoever waits for an entry hears of it when everything before it is on the disk too. What is written is not decided here, nor when.

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

use super::Shared;
use super::ages::Ages;
use super::layout::{self, CHECKPOINT, ChainDir, DIRS, Segment};
use super::parts::Unread;
use super::queue::Waiting;
use super::volume::Bounds;

/// How a file is brought to the disk, and the names in a directory.
pub(super) type Flush = Arc<dyn Fn(&File) -> io::Result<()> + Send + Sync>;

/// How a tile is written: to last, or for now.
type Put = fn(&Path, &[u8], Readers) -> io::Result<()>;

/// What is to be made to last.
pub(super) struct Order {
    /// Where lines were written.
    pub(super) file: Arc<File>,
    /// Whoever waits until they are on the disk.
    pub(super) waiting: Vec<Waiting>,
    /// What is signed for then.
    pub(super) head: Option<Head>,
    /// The file is full, and another one was begun.
    pub(super) is_full: bool,
}

/// How far the chain is signed for.
pub(super) struct Head {
    /// How many entries.
    pub(super) size: u64,
    /// The root over them.
    pub(super) root: Hash,
    /// Tiles that are full since the head before.
    pub(super) full: Full,
    /// Tiles that grow.
    pub(super) growing: Full,
}

/// State of a chain after the entries beyond its bounds were taken away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Bounded {
    /// Size of all files, in bytes.
    pub(super) bytes: u64,
    /// Size at which the record is full, in bytes.
    pub(super) full: u64,
    /// Number of entries that were taken away.
    pub(super) removed: u64,
    /// Files of lines that are left, the oldest first.
    pub(super) files: Vec<Segment>,
}

/// Pause between two looks at a full record for entries that have become old enough.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What one chain on the disk is kept with.
pub(super) struct Keeper {
    place: ChainDir,
    signer: Signer,
    bounds: Bounds,
    flush: Flush,
    /// How many entries the last checkpoint has.
    signed: u64,
    /// Full tiles that are not on the disk yet.
    due: Full,
    /// Tiles that grow, as they are on the disk.
    grown: Vec<Tile>,
    ages: Ages,
}

impl Keeper {
    /// For the chain in `place`, of which nothing is signed for so far as is known here.
    pub(super) fn new(place: ChainDir, signer: Signer, bounds: Bounds, flush: Flush) -> Self {
        Self { place, signer, bounds, flush, signed: 0, due: Vec::new(), grown: Vec::new(), ages: Ages::default() }
    }

    /// Brings the lines of a file to the disk.
    pub(super) fn sync(&self, file: &File) -> io::Result<()> {
        (self.flush)(file)
    }

    /// Brings the names of all files of lines there. Without its name a file is lost, whatever of it is on the disk.
    fn sync_names(&self) -> io::Result<()> {
        (self.flush)(&File::open(self.place.entries())?)
    }

    /// Writes the tiles and signs for all entries; they are on the disk then. The entries themselves have to be there before.
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
            // Where the tile is full now, nothing else is in there.
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

    /// What is beyond the bounds is taken away: files that were set aside first, then the oldest lines. The tiles above them stay: with those
    /// everything that is left can be proved. What is younger than it may be at least stays, whatever its size.
    pub(super) fn bound(&mut self) -> io::Result<Bounded> {
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
        Ok(Bounded { bytes, full, removed, files: segments.split_off(gone) })
    }

    /// The files of lines, the oldest first. A clock that is set while the gate runs makes none of them older.
    fn segments(&mut self) -> io::Result<Vec<Segment>> {
        let mut segments = self.place.segments()?;
        self.ages.correct(&mut segments, SystemTime::now(), Instant::now());
        Ok(segments)
    }

    /// Tells if a file may be taken away while all files together have so many bytes. Its last write is as old as its youngest line.
    fn may_go(&self, file: &Segment, bytes: u64) -> bool {
        let since = || SystemTime::now().duration_since(file.written).ok();
        let is_over = |age: Duration| age.is_zero() || since().is_some_and(|since| since > age);
        (bytes > self.bounds.bytes && is_over(self.bounds.least)) || self.bounds.age.is_some_and(is_over)
    }

    /// Once the lines are gone, the hashes over them can't be made again.
    fn keep_upper_tiles(&self) -> io::Result<()> {
        for tile in Tile::all(self.signed).filter(|tile| tile.level != Some(0) && !tile.is_full()) {
            whole::keep(&self.place.path_of(&tile))?;
        }
        Ok(())
    }
}

/// A keeper at work. Dropped, it does what it was told so far, and then ends.
pub(super) struct Keeping {
    orders: Option<mpsc::Sender<Order>>,
    thread: Option<JoinHandle<()>>,
    told: Arc<Told>,
}

/// What others may know of it.
struct Told {
    /// How many entries the last checkpoint has.
    signed: AtomicU64,
    /// Heads that are to be signed.
    signing: AtomicU64,
    /// After a failure the system may have forgotten what it could not write.
    is_torn: AtomicBool,
}

impl Keeping {
    /// Starts its thread.
    pub(super) fn start(keeper: Keeper, shared: &Arc<Shared>) -> io::Result<Self> {
        let (orders, given) = mpsc::channel();
        let told = Told { signed: keeper.signed.into(), signing: AtomicU64::new(0), is_torn: AtomicBool::new(false) };
        let told = Arc::new(told);
        let mut work = Work { keeper, shared: Arc::clone(shared), told: Arc::clone(&told), is_signing_broken: false, looked: 0 };
        let thread = std::thread::Builder::new().name("journal-keeper".into()).spawn(move || work.run(&given))?;
        Ok(Self { orders: Some(orders), thread: Some(thread), told })
    }

    /// Has it done, soon.
    pub(super) fn give(&self, order: Order) {
        self.told.signing.fetch_add(u64::from(order.head.is_some()), Ordering::Relaxed);
        if let Some(orders) = &self.orders {
            // Its thread ends only with this. Where it died, whoever waits hears that the other end is gone.
            drop(orders.send(order));
        }
    }

    /// How many entries the last checkpoint has; `None`: one is being made.
    pub(super) fn signed(&self) -> Option<u64> {
        (self.told.signing.load(Ordering::Acquire) == 0).then(|| self.told.signed.load(Ordering::Acquire))
    }

    /// Something could not be synced: nothing more is, until the files were read again.
    pub(super) fn is_torn(&self) -> bool {
        self.told.is_torn.load(Ordering::Acquire)
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        self.orders = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that syncs the record died");
        }
    }
}

struct Work {
    keeper: Keeper,
    shared: Arc<Shared>,
    told: Arc<Told>,
    is_signing_broken: bool,
    /// Length of the file that is written, when it was last looked at.
    looked: u64,
}

impl Work {
    fn run(&mut self, given: &mpsc::Receiver<Order>) {
        while let Some(first) = self.next(given) {
            // All of these were written before: one sync is enough for those of one file.
            let orders: Vec<Order> = std::iter::once(first).chain(given.try_iter()).collect();
            let mut synced: Option<Arc<File>> = None;
            for order in orders {
                let is_synced = synced.as_ref().is_some_and(|file| Arc::ptr_eq(file, &order.file));
                synced = Some(Arc::clone(&order.file));
                self.carry_out(order, is_synced);
            }
        }
    }

    /// Waits for the next order, and meanwhile reads what was written before the start and looks after a full record. `None`: no order will
    /// come.
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

    /// Tells if there is no room for calls, of all or of some.
    fn is_short(&self) -> bool {
        self.shared.full.load(Ordering::Relaxed) || self.shared.queue.is_out() || self.shared.parts.is_over()
    }

    /// Counts what a file holds of whom. A file that is gone counts for nobody.
    fn read(&mut self, unread: &Unread) {
        let content = fs::read(self.keeper.place.segment(unread.first)).unwrap_or_default();
        if self.shared.parts.read(unread, &content) {
            self.look();
        }
    }

    /// Judges who has how much of the record, where enough was written since that was done last.
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
            // Before anybody hears of what is in the next file.
            kept = self.sync(Keeper::sync_names);
            layout::release(&order.file);
        }
        // Nobody may wait any more.
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
