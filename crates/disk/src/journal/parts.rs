//! Each principal's part of the record, and its share: where nothing may be removed yet, a principal must leave room to the others.
//!
//! Only entries too young to be removed count, since all others make room on demand. A call adds to a counter of its own principal and
//! looks at one number. The rest is done by the keeper's thread whenever a file is full. Files from before the start are counted once,
//! beside the keeper's other work. Reads no file.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use audit::entry::Entry;
use audit::record::{Asked, Record, Registration};
use audit::shape::LEFT_OUT;
use config::resolved::Audit;
use policy::share::Bound;
use store::{OverShare, Part};

use super::layout::{Segment, lines};

/// Principals told apart. All others have one part together.
const MOST_PRINCIPALS: usize = 4096;
/// Fraction of a file below which a principal's bytes are not counted, so that the tally of a file is bounded.
const LEAST_OF_FILE: u64 = 256;
/// Most principals over their share that are reported, those with the most bytes first.
const MOST_TOLD: usize = 16;
/// Parts of all principals.
#[derive(Debug)]
pub(super) struct Parts {
    known: Mutex<PartTable>,
    /// Share of a principal, as a percentage of the free bytes and its own.
    percent: AtomicUsize,
    /// Age at which entries may be removed.
    least: Duration,
    /// Set while a principal is over its share.
    is_over: AtomicBool,
}

#[derive(Debug)]
struct PartTable {
    parts: HashMap<Arc<str>, Arc<Part>>,
    /// Part of all principals not told apart.
    others: Arc<Part>,
    /// Bytes of each principal in files too young to be removed, by the first entry of the file.
    tallies: BTreeMap<u64, Tally>,
    /// First entry of the file being written.
    open: u64,
    /// Files from before the start, still to be counted.
    unread: VecDeque<UnreadFile>,
    over: Vec<OverShare>,
}

type Tally = HashMap<Arc<str>, u64>;

/// A file written before the start, at least in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnreadFile {
    pub(super) first: u64,
    /// Length at the start, in bytes.
    pub(super) bytes: u64,
}

impl Default for Parts {
    fn default() -> Self {
        Self::new(&Audit::default())
    }
}

impl Parts {
    /// Makes the parts of a record. A principal may fill the record until [`Parts::share_by`] says otherwise.
    pub(super) fn new(audit: &Audit) -> Self {
        let known = PartTable {
            parts: HashMap::new(),
            others: Part::empty(&LEFT_OUT.into()),
            tallies: BTreeMap::new(),
            open: 0,
            unread: VecDeque::new(),
            over: Vec::new(),
        };
        Self { known: Mutex::new(known), percent: AtomicUsize::new(100), least: audit.keep_at_least, is_over: AtomicBool::new(false) }
    }

    /// Sets the share of a principal, as a percentage of the free bytes and its own.
    pub(super) fn share_by(&self, percent: usize) {
        self.percent.store(percent, Relaxed);
    }

    /// Part of a principal.
    pub(super) fn of_principal(&self, principal: &str) -> Arc<Part> {
        self.lock().part(principal)
    }

    /// Principals over their share, those with the most bytes first.
    pub(super) fn over(&self) -> Vec<OverShare> {
        self.lock().over.clone()
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Relaxed)
    }

    /// Begins anew with the files of a record just opened, which are still to be counted.
    pub(super) fn open(&self, files: &[Segment], now: SystemTime) {
        let mut known = self.lock();
        known.tallies.clear();
        known.open = files.last().map_or(0, |file| file.first);
        let young = files.iter().filter(|file| self.is_young(file, now));
        known.unread = young.map(|file| UnreadFile { first: file.first, bytes: file.bytes }).collect();
    }

    /// Next file to count. The newest come first, since they count for the longest time.
    pub(super) fn unread(&self) -> Option<UnreadFile> {
        self.lock().unread.pop_back()
    }

    /// Counts the content of a file from before the start; `true` for the last.
    pub(super) fn read(&self, unread: &UnreadFile, content: &[u8]) -> bool {
        let length = usize::try_from(unread.bytes).unwrap_or(usize::MAX).min(content.len());
        let mut tally = HashMap::<String, u64>::new();
        for line in lines(&content[..length]) {
            let Ok(entry) = Entry::decode(line) else { continue };
            let Some(principal) = principal(&entry.record) else { continue };
            match tally.get_mut(principal) {
                Some(bytes) => *bytes += line.len() as u64,
                None => _ = tally.insert(principal.to_owned(), line.len() as u64),
            }
        }
        tally.retain(|_, bytes| *bytes >= unread.bytes / LEAST_OF_FILE);
        let mut known = self.lock();
        for (principal, bytes) in tally {
            let principal = Arc::clone(known.part(&principal).principal());
            *known.tallies.entry(unread.first).or_default().entry(principal).or_default() += bytes;
        }
        known.unread.is_empty()
    }

    /// Updates the files, and judges which principals are over their share of a record that is full with `most` bytes.
    pub(super) fn judge(&self, files: &[Segment], most: u64, now: SystemTime) {
        let mut known = self.lock();
        known.close(files);
        let young: Vec<&Segment> = files.iter().filter(|file| self.is_young(file, now)).collect();
        known.tallies.retain(|first, _| young.iter().any(|file| file.first == *first));
        known.forget();
        let bound = Bound { most: as_usize(most), percent: self.percent.load(Relaxed) };
        let (owned, taken) = (known.owned(), young.iter().map(|file| file.bytes).sum());
        let mut over = Vec::new();
        for part in known.parts.values().chain([&known.others]) {
            let bytes = part.fresh() + owned.get(part.principal()).copied().unwrap_or(0);
            let until = (!is_within(bytes, taken, bound)).then(|| self.until(&known, part, (&young, taken), bound, now));
            let was = part.refuse_until(until);
            if let Some(until) = until {
                over.push(OverShare { principal: Arc::clone(part.principal()), bytes, until });
            }
            tell(part, bytes, was.is_some(), until.is_some());
        }
        over.sort_by_key(|over| std::cmp::Reverse(over.bytes));
        over.truncate(MOST_TOLD);
        self.is_over.store(!over.is_empty(), Relaxed);
        known.over = over;
    }

    /// Time from which enough entries are old that the principal is within its share again, in seconds since 1970.
    fn until(&self, known: &PartTable, part: &Part, (young, taken): (&[&Segment], u64), bound: Bound, now: SystemTime) -> u64 {
        let (mut own, mut taken) = (known.bytes(part), taken);
        let last = young.split_last().map_or(&[][..], |(_, older)| older).iter().find(|file| {
            own = own.saturating_sub(known.of_file(part, file));
            taken = taken.saturating_sub(file.bytes);
            is_within(own, taken, bound)
        });
        let last = last.map_or(now, |file| file.written);
        let at = last.checked_add(self.least).and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        at.map_or(u64::MAX, |at| at.as_secs() + 1)
    }

    /// Checks for a file too young to be removed.
    fn is_young(&self, file: &Segment, now: SystemTime) -> bool {
        !self.least.is_zero() && now.duration_since(file.written).is_ok_and(|age| age <= self.least)
    }

    fn lock(&self) -> MutexGuard<'_, PartTable> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PartTable {
    fn part(&mut self, principal: &str) -> Arc<Part> {
        if let Some(part) = self.parts.get(principal) {
            return Arc::clone(part);
        }
        if self.parts.len() >= MOST_PRINCIPALS {
            return Arc::clone(&self.others);
        }
        let name: Arc<str> = principal.into();
        let part = Part::empty(&name);
        self.parts.insert(name, Arc::clone(&part));
        part
    }

    /// Moves the counts since the last full file to the tally of the file now full.
    fn close(&mut self, files: &[Segment]) {
        let [.., full, open] = files else { return };
        if open.first == self.open {
            return;
        }
        self.open = open.first;
        let tally = self.tallies.entry(full.first).or_default();
        for part in self.parts.values().chain([&self.others]) {
            let bytes = part.take_fresh();
            if bytes > 0 && bytes >= full.bytes / LEAST_OF_FILE {
                *tally.entry(Arc::clone(part.principal())).or_default() += bytes;
            }
        }
    }

    /// Forgets principals without a user and without a young file.
    fn forget(&mut self) {
        let Self { parts, tallies, .. } = self;
        parts
            .retain(|name, part| Arc::strong_count(part) > 1 || part.fresh() > 0 || tallies.values().any(|tally| tally.contains_key(name)));
    }

    fn bytes(&self, part: &Part) -> u64 {
        part.fresh() + self.tallies.values().filter_map(|tally| tally.get(part.principal())).sum::<u64>()
    }

    fn of_file(&self, part: &Part, file: &Segment) -> u64 {
        self.tallies.get(&file.first).and_then(|tally| tally.get(part.principal())).copied().unwrap_or(0)
    }

    /// Bytes of all principals in full files.
    fn owned(&self) -> HashMap<Arc<str>, u64> {
        let mut owned = HashMap::new();
        for (principal, bytes) in self.tallies.values().flatten() {
            *owned.entry(Arc::clone(principal)).or_default() += bytes;
        }
        owned
    }
}

/// Tells if a principal with so many bytes is within its share where so many are taken.
fn is_within(own: u64, taken: u64, bound: Bound) -> bool {
    // Where the record is full nobody makes a call, and who has taken how much matters still.
    bound.holds(as_usize(own), as_usize(taken).min(bound.most)).is_ok()
}

/// The principal for whom an entry was written, where the entry says so.
fn principal<'a>(record: &'a Record<'_>) -> Option<&'a str> {
    if let Record::ApprovalAsked(Asked { principal, .. }) | Record::Registration(Registration { principal, .. }) = record {
        return Some(principal);
    }
    record.intent().map(|intent| &*intent.principal)
}

fn tell(part: &Part, bytes: u64, was_over: bool, is_over: bool) {
    let principal = &**part.principal();
    if is_over && !was_over {
        tracing::warn!(
            principal,
            bytes,
            "the record holds the share of this principal, and nothing of it is old enough to be taken away: calls of this principal are \
             refused until some of it is; raise `full_size` in [audit] or `share` in [limits], or lower `keep_at_least`"
        );
    }
    if was_over && !is_over {
        tracing::warn!(principal, bytes, "the record has room for this principal again: calls are made");
    }
}

fn as_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Size of a full record.
    const FULL: u64 = 1000;
    const HOUR: Duration = Duration::from_secs(3600);

    /// Makes parts with shares of half, of a record in which entries are kept for an hour.
    fn parts() -> Parts {
        let parts = Parts::new(&Audit { keep_at_least: HOUR, ..Audit::default() });
        parts.share_by(50);
        parts
    }

    fn file(first: u64, bytes: u64, written: SystemTime) -> Segment {
        Segment { first, path: format!("{first}").into(), bytes, written }
    }

    #[test]
    fn a_principal_over_its_share_waits_for_old_entries() {
        let (parts, now) = (parts(), SystemTime::now());
        let [ann, bob] = ["ann", "bob"].map(|name| parts.of_principal(name));
        let [first, second] = [now - HOUR / 2, now - HOUR / 4];
        parts.open(&[file(0, 0, first)], now);
        ann.add(300);
        parts.judge(&[file(0, 300, first), file(10, 0, now)], FULL, now);
        ann.add(300);
        assert!(!parts.is_over() && ann.refused_until().is_none());
        bob.add(200);
        parts.judge(&[file(0, 300, first), file(10, 300, second), file(20, 200, now)], FULL, now);
        let until = (first + HOUR).duration_since(UNIX_EPOCH).unwrap().as_secs() + 1;
        assert_eq!((ann.refused_until(), bob.refused_until()), (Some(until), None));
        assert_eq!(parts.over(), [OverShare { principal: "ann".into(), bytes: 600, until }]);
        let later = first + HOUR + Duration::from_secs(1);
        parts.judge(&[file(0, 300, first), file(10, 300, second), file(20, 200, later)], FULL, later);
        assert!(!parts.is_over() && ann.refused_until().is_none());
        parts.share_by(100);
        ann.add(400);
        parts.judge(&[file(10, 300, second), file(20, 600, later)], FULL, later);
        assert!(!parts.is_over(), "where nobody else can come, one has all of it");
    }

    #[test]
    fn young_files_from_before_the_start_are_counted() {
        let (parts, now) = (parts(), SystemTime::now());
        let line = |principal: &str| {
            let registration = Registration { principal: principal.into(), what: "ended".into(), ..Registration::default() };
            let mut text = Vec::new();
            audit::chain::Chain::new().append(1, &Record::Registration(registration), &mut text).unwrap();
            text
        };
        let content = [line("ann"), line("ann"), line("bob"), line("ann")].concat();
        let own = line("ann").len() as u64 - 1;
        let length = (content.len() - line("ann").len()) as u64;
        parts.open(&[file(0, 700, now - 2 * HOUR), file(10, length, now)], now);
        let unread = parts.unread().unwrap();
        assert_eq!((&unread, parts.unread()), (&UnreadFile { first: 10, bytes: length }, None));
        assert!(parts.read(&unread, &content));
        let known = parts.lock();
        assert_eq!(["ann", "bob"].map(|name| known.bytes(&known.parts[name])), [2 * own, own]);
    }

    #[test]
    fn principals_are_bounded_and_forgotten_with_their_entries() {
        let (parts, now) = (parts(), SystemTime::now());
        for number in 0..2 * MOST_PRINCIPALS {
            parts.of_principal(&number.to_string()).add(1);
        }
        assert_eq!(parts.lock().parts.len(), MOST_PRINCIPALS);
        assert!(Arc::ptr_eq(&parts.of_principal("one more"), &parts.of_principal("and one more")), "they have one part together");
        parts.judge(&[file(0, 1 << 20, now), file(10, 0, now)], FULL, now);
        assert!(parts.lock().parts.is_empty(), "less than a small part of a file counts for nobody");
    }
}
