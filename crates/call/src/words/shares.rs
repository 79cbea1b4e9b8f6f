//! Fair shares: the amount of each limited resource that a principal holds, and the amount it may hold. Does not identify principals, or
//! answer requests without room.
//!
//! A principal may hold a percentage of the free part and its own, half by default. So a principal that takes all it can leaves as much
//! free as it has, two leave a third, and nothing has to be set aside for those who never come.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

pub use policy::share::{Bound, Full};
use store::{Journal, Part};

use crate::words::lane::Lane;

/// A limited resource of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Bytes in bodies of requests.
    Bodies,
    /// Calls under way.
    Calls,
    /// Open `subscriptions/listen` requests.
    Listeners,
    /// Calls that wait for their caller to return with an answer.
    Parked,
    Sessions,
    /// Bytes in event streams: unread messages, and answers kept for a resuming client.
    Streams,
    /// Resources subscribed to.
    Subscriptions,
}

const RESOURCES: usize = 7;

/// Amounts held by all principals.
#[derive(Debug)]
pub struct Shares {
    taken: [AtomicUsize; RESOURCES],
    journal: Arc<dyn Journal>,
    principals: Mutex<Principals>,
}

/// Principals that hold something, or may at any time. Each has a number of its own meanwhile.
#[derive(Debug, Default)]
struct Principals {
    known: HashMap<Arc<str>, Weak<Share>>,
    numbers: usize,
    unused: Vec<usize>,
}

/// Amounts held by a principal.
#[derive(Debug)]
pub struct Share {
    all: Arc<Shares>,
    principal: Arc<str>,
    number: usize,
    own: [AtomicUsize; RESOURCES],
    /// Part of the record held by the principal.
    pub part: Arc<Part>,
    shelf: Mutex<Shelf>,
}

/// Streams kept for a principal, the oldest first.
#[derive(Debug, Default)]
struct Shelf {
    last: u64,
    lanes: BTreeMap<u64, Weak<Lane>>,
}

impl Shares {
    /// Makes the shares of a gate with this record.
    pub fn new(journal: Arc<dyn Journal>) -> Self {
        Self { taken: Default::default(), journal, principals: Mutex::default() }
    }

    /// Amount taken by all principals.
    pub fn taken(&self, of: Resource) -> usize {
        self.taken[of as usize].load(Ordering::Relaxed)
    }

    /// Share of a principal.
    pub fn of_principal(self: &Arc<Self>, principal: &Arc<str>) -> Arc<Share> {
        let mut principals = self.principals();
        if let Some(known) = principals.known.get(principal).and_then(Weak::upgrade) {
            return known;
        }
        let number = principals.unused.pop().unwrap_or_else(|| {
            principals.numbers += 1;
            principals.numbers - 1
        });
        let (principal, own, part) = (Arc::clone(principal), Default::default(), self.journal.part(principal));
        let share = Share { all: Arc::clone(self), principal: Arc::clone(&principal), number, own, part, shelf: Mutex::default() };
        let share = Arc::new(share);
        principals.known.insert(principal, Arc::downgrade(&share));
        share
    }

    fn principals(&self) -> MutexGuard<'_, Principals> {
        self.principals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut principals = self.all.principals();
        principals.unused.push(self.number);
        // Another share may have taken its place already.
        if principals.known.get(&self.principal).is_some_and(|known| known.strong_count() == 0) {
            principals.known.remove(&self.principal);
        }
    }
}

impl Share {
    /// Takes an amount of a resource, unless it exceeds the total, or the principal's share.
    pub fn take_amount(self: &Arc<Self>, of: Resource, amount: usize, bound: Bound) -> Result<TakenShare, Full> {
        let more = |taken: usize| taken.checked_add(amount).filter(|taken| *taken <= bound.most);
        let before = self.all.taken[of as usize].fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).map_err(|_| Full::All)?;
        // Without sharing, this spares a call a second counter.
        let is_counted = bound.is_shared() || of != Resource::Calls;
        let taken = TakenShare { share: Arc::clone(self), of, amount, is_counted };
        if is_counted {
            let own = self.own[of as usize].fetch_add(amount, Ordering::Relaxed) + amount;
            bound.holds(own, before + amount)?;
        }
        Ok(taken)
    }

    /// Amount of a resource held by the principal.
    #[cfg(test)]
    pub fn own(&self, of: Resource) -> usize {
        self.own[of as usize].load(Ordering::Relaxed)
    }

    /// Keeps an ended stream for a resuming client; returns its number among those of this principal.
    pub fn shelve(&self, lane: Weak<Lane>) -> u64 {
        let mut shelf = self.shelf();
        shelf.last += 1;
        let number = shelf.last;
        shelf.lanes.insert(number, lane);
        number
    }

    /// Stops keeping a stream.
    pub fn unshelve(&self, number: u64) {
        self.shelf().lanes.remove(&number);
    }

    /// Forgets the oldest kept stream; `false` without any.
    pub fn forget_oldest(&self) -> bool {
        let oldest = self.shelf().lanes.pop_first();
        if let Some(lane) = oldest.as_ref().and_then(|(_, lane)| lane.upgrade()) {
            lane.forget();
        }
        oldest.is_some()
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Amount of a resource, given back when dropped.
#[derive(Debug)]
pub struct TakenShare {
    pub share: Arc<Share>,
    of: Resource,
    amount: usize,
    /// Counted for the principal, too.
    is_counted: bool,
}

impl Drop for TakenShare {
    fn drop(&mut self) {
        self.share.all.taken[self.of as usize].fetch_sub(self.amount, Ordering::Relaxed);
        if self.is_counted {
            self.share.own[self.of as usize].fetch_sub(self.amount, Ordering::Relaxed);
        }
    }
}

impl TakenShare {
    /// Takes more of the same resource, if there is room. Not for calls.
    pub fn grow(&mut self, more: usize, bound: Bound) -> Result<(), Full> {
        let mut other = self.share.take_amount(self.of, more, bound)?;
        self.amount += std::mem::take(&mut other.amount);
        Ok(())
    }

    /// Gives back a part.
    pub fn shrink(&mut self, less: usize) {
        let less = less.min(self.amount);
        self.amount -= less;
        drop(Self { share: Arc::clone(&self.share), of: self.of, amount: less, is_counted: self.is_counted });
    }
}

/// Places for calls at a server.
#[derive(Debug, Default)]
pub struct Places {
    taken: AtomicUsize,
    own: Tally,
}

/// Place of a call in the gate and at a server, until dropped.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    /// Counted at the server for the principal, too.
    is_shared: bool,
    in_gate: TakenShare,
}

impl TakenShare {
    /// Takes a place at a server besides, unless all are taken there, or the principal has its share.
    pub fn at(self, places: &Arc<Places>, bound: Bound) -> Result<Place, Full> {
        let one_more = |taken| (taken < bound.most).then_some(taken + 1);
        let before = places.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).map_err(|_| Full::All)?;
        let place = Place { places: Arc::clone(places), is_shared: bound.is_shared(), in_gate: self };
        if place.is_shared {
            let own = place.own().fetch_add(1, Ordering::Relaxed) + 1;
            bound.holds(own as usize, before + 1)?;
        }
        Ok(place)
    }
}

impl Place {
    fn own(&self) -> &AtomicU32 {
        self.places.own.of_number(self.in_gate.share.number)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken.fetch_sub(1, Ordering::Relaxed);
        if self.is_shared {
            self.own().fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Count for each principal, by number. Rows are made on demand, each twice as long as the one before, and stay.
#[derive(Debug, Default)]
struct Tally([OnceLock<Box<[AtomicU32]>>; 32]);

impl Tally {
    fn of_number(&self, number: usize) -> &AtomicU32 {
        let row = (number + 1).ilog2();
        let counts = self.0[row as usize].get_or_init(|| std::iter::repeat_with(AtomicU32::default).take(1 << row).collect());
        &counts[number + 1 - (1 << row)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: Bound = Bound { most: 12, percent: 50 };

    fn shares<const N: usize>(names: [&str; N]) -> (Arc<Shares>, [Arc<Share>; N]) {
        let all = Arc::new(Shares::new(Arc::new(store::memory::MemoryJournal::default())));
        let of = names.map(|name| all.of_principal(&name.into()));
        (all, of)
    }

    #[test]
    fn each_principal_gets_half_of_the_rest() {
        let (all, [ann, bob]) = shares(["ann", "bob"]);
        let take = |share: &Arc<Share>| std::iter::from_fn(|| share.take_amount(Resource::Calls, 1, HALF).ok()).collect::<Vec<_>>();
        let first = take(&ann);
        assert_eq!((first.len(), take(&bob).len()), (6, 3));
        assert_eq!(ann.take_amount(Resource::Calls, 1, HALF).unwrap_err(), Full::Share(6));
        drop(first);
        let (both, third) = (take(&bob), take(&ann));
        assert_eq!((both.len(), third.len(), all.taken(Resource::Calls)), (6, 3, 9));
        drop((both, third));
        assert_eq!((all.taken(Resource::Calls), ann.own(Resource::Calls), bob.own(Resource::Calls)), (0, 0, 0));
    }

    #[test]
    fn without_sharing_one_principal_gets_all() {
        let (_all, [ann]) = shares(["ann"]);
        let take = |most, percent| {
            std::iter::from_fn(|| ann.take_amount(Resource::Sessions, 1, Bound { most, percent }).ok()).collect::<Vec<_>>().len()
        };
        assert_eq!([take(12, 100), take(1, 50), take(2, 50), take(3, 50), take(10, 10)], [12, 1, 1, 2, 1]);
        assert_eq!(ann.take_amount(Resource::Bodies, 13, Bound { most: 12, percent: 100 }).unwrap_err(), Full::All);
    }

    #[test]
    fn a_server_counts_for_any_number_of_principals() {
        let all = Arc::new(Shares::new(Arc::new(store::memory::MemoryJournal::default())));
        let many: Vec<_> = (0..100).map(|n| all.of_principal(&format!("p{n}").into())).collect();
        let places = Arc::new(Places::default());
        let bound = Bound { most: 1000, percent: 50 };
        let take =
            |share: &Arc<Share>| share.take_amount(Resource::Calls, 1, Bound { most: 1000, percent: 100 }).unwrap().at(&places, bound);
        let _taken: Vec<_> = many.iter().map(|share| take(share).unwrap()).collect();
        let own = |share: &Arc<Share>| places.own.of_number(share.number).load(Ordering::Relaxed);
        assert!(many.iter().all(|share| own(share) == 1));
        let first: Vec<_> = std::iter::from_fn(|| take(&many[0]).ok()).collect();
        assert_eq!((own(&many[0]), own(&many[1])), (451, 1));
        drop(first);
        assert_eq!(own(&many[0]), 1);
    }

    #[test]
    fn a_principal_leaves_its_number_to_the_next() {
        let (all, [ann, bob]) = shares(["ann", "bob"]);
        let number = ann.number;
        let taken = ann.take_amount(Resource::Parked, 1, HALF).unwrap();
        drop(ann);
        let again = all.of_principal(&"ann".into());
        assert_eq!((again.number, again.own(Resource::Parked)), (number, 1), "what it holds keeps it");
        drop((again, taken));
        let carl = all.of_principal(&"carl".into());
        assert_eq!((carl.number, carl.own(Resource::Parked), all.principals().known.len()), (number, 0, 2));
        drop((bob, carl));
        assert!(all.principals().known.is_empty());
    }
}
