//! Who of this process writes to a store next: whoever came first. SQLite keeps no order among those who wait for it, and one that writes batch
//! after batch would keep the others out until it is done. Between processes there is none still: `store` says what is done there.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};

/// The tickets of one store.
#[derive(Default)]
pub struct Tickets {
    drawn: Mutex<Drawn>,
    moved: Condvar,
}

#[derive(Default)]
struct Drawn {
    /// The number of the next ticket.
    next: u64,
    /// The one whose turn it is.
    current: u64,
}

/// As long as it is held, it is its holder's turn.
pub(crate) struct Ticket(Arc<Tickets>);

impl Tickets {
    /// Those of the store in `dir`, the same for everybody in this process.
    pub fn of(dir: &Path) -> Arc<Self> {
        static ALL: Mutex<Option<HashMap<PathBuf, Weak<Tickets>>>> = Mutex::new(None);
        let place = std::fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        let all = all.get_or_insert_default();
        if let Some(known) = all.get(&place).and_then(Weak::upgrade) {
            return known;
        }
        all.retain(|_, one| one.strong_count() > 0);
        let new = Arc::default();
        all.insert(place, Arc::downgrade(&new));
        new
    }

    /// Draws one, and waits until it is its turn.
    pub(crate) fn draw(self: &Arc<Self>) -> Ticket {
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        let own = drawn.next;
        drawn.next += 1;
        drop(self.moved.wait_while(drawn, |drawn| drawn.current != own));
        Ticket(Arc::clone(self))
    }

    /// Number of writers that wait for their turn.
    pub fn waiting(&self) -> u64 {
        let drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        (drawn.next - drawn.current).saturating_sub(1)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.drawn.lock().unwrap_or_else(PoisonError::into_inner).current += 1;
        self.0.moved.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_came_first_writes_first() {
        let dir = tempfile::tempdir().unwrap();
        let (tickets, order) = (Tickets::of(dir.path()), Mutex::new(Vec::new()));
        let held = tickets.draw();
        std::thread::scope(|scope| {
            for n in 0..8 {
                let (order, dir) = (&order, dir.path());
                scope.spawn(move || {
                    let _own = Tickets::of(dir).draw();
                    order.lock().unwrap().push(n);
                });
                let has_come = (0..10_000_000).any(|_| {
                    std::thread::yield_now();
                    tickets.waiting() > n
                });
                assert!(has_come);
            }
            drop(held);
        });
        assert_eq!(order.into_inner().unwrap(), (0..8).collect::<Vec<_>>());
    }
}
