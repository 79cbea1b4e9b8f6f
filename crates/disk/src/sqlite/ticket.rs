//! Turns of the writers of a store within this process, in order of arrival. SQLite keeps no order among waiting writers, and a writer of
//! many batches would keep the others out until its end. Does not order processes; `store` says what is done for those.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};

/// Tickets of a store.
#[derive(Default)]
pub struct Tickets {
    drawn: Mutex<TicketNumbers>,
    moved: Condvar,
}

#[derive(Default)]
struct TicketNumbers {
    /// The number of the next ticket.
    next: u64,
    /// Number whose turn it is.
    current: u64,
}

/// A turn, until dropped.
pub(crate) struct Ticket(Arc<Tickets>);

impl Tickets {
    /// Tickets of the store in `dir`, shared by the whole process.
    pub fn of_store(dir: &Path) -> Arc<Self> {
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

    /// Draws a ticket, and waits for its turn.
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
        let (tickets, order) = (Tickets::of_store(dir.path()), Mutex::new(Vec::new()));
        let held = tickets.draw();
        std::thread::scope(|scope| {
            for n in 0..8 {
                let (order, dir) = (&order, dir.path());
                scope.spawn(move || {
                    let _own = Tickets::of_store(dir).draw();
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
