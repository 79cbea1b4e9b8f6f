//! Threads that serve connections, each with a runtime of its own. A connection stays on one core, with upstream connections
//! of its own, and ready work there has its turn in order.
//!
//! The service itself is not known here.

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::runtime::{Builder, Handle};
use tokio_util::sync::CancellationToken;

use crate::alarm;

thread_local! {
    static INDEX: Cell<usize> = const { Cell::new(0) };
}

static COUNT: AtomicUsize = AtomicUsize::new(1);

/// Gives the index of the current worker. Any other thread counts as the first worker.
pub fn index() -> usize {
    INDEX.get()
}

/// Counts the workers, the first included.
pub fn count() -> usize {
    COUNT.load(Ordering::Relaxed)
}

/// The serving threads: the calling thread, and the threads beside it, which end when this is dropped.
#[derive(Default)]
pub struct Workers {
    here: Arc<AtomicUsize>,
    beside: Vec<Worker>,
    stop: CancellationToken,
}

struct Worker {
    runtime: Handle,
    open: Arc<AtomicUsize>,
}

/// A connection's place with a worker, until dropped.
pub struct Seat {
    open: Arc<AtomicUsize>,
    /// The worker's runtime; `None`: the current runtime.
    pub runtime: Option<Handle>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Workers {
    /// Starts the threads for `count` workers, the calling thread being one of them. To be called before any gate starts.
    pub fn start(count: usize) -> io::Result<Self> {
        let mut workers = Self::default();
        alarm::sole(true);
        for index in 1..count {
            workers.beside.push(worker(index, workers.stop.clone())?);
        }
        COUNT.store(count.max(1), Ordering::Relaxed);
        Ok(workers)
    }

    /// Takes a place with the worker that has the fewest connections.
    pub fn seat(&self) -> Seat {
        let here = (&self.here, None);
        let all = std::iter::once(here).chain(self.beside.iter().map(|worker| (&worker.open, Some(&worker.runtime))));
        let (open, runtime) = all.min_by_key(|(open, _)| open.load(Ordering::Relaxed)).unwrap_or(here);
        open.fetch_add(1, Ordering::Relaxed);
        Seat { open: Arc::clone(open), runtime: runtime.cloned() }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop.cancel();
        alarm::sole(false);
    }
}

fn worker(index: usize, stop: CancellationToken) -> io::Result<Worker> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let serve = move || {
        INDEX.set(index);
        alarm::sole(true);
        runtime.block_on(stop.cancelled());
        runtime.shutdown_background();
    };
    std::thread::Builder::new().name(format!("worker-{index}")).spawn(serve)?;
    Ok(Worker { runtime: handle, open: Arc::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn connections_are_spread_evenly_and_each_worker_knows_which_it_is() {
        let workers = Workers::start(3).unwrap();
        let seats: Vec<_> = (0..9).map(|_| workers.seat()).collect();
        let mut found = Vec::new();
        for seat in &seats {
            let runtime = seat.runtime.clone().unwrap_or_else(Handle::current);
            found.push(runtime.spawn(async { index() }).await.unwrap());
        }
        found.sort_unstable();
        assert_eq!(found, [0, 0, 0, 1, 1, 1, 2, 2, 2]);
        drop(seats);
        let open = |seat: &Seat| seat.open.load(Ordering::Relaxed);
        assert_eq!(open(&workers.seat()), 1);
    }

    #[tokio::test]
    async fn workers_end_with_their_owner() {
        let workers = Workers::start(2).unwrap();
        let runtime = workers.beside[0].runtime.clone();
        let endless = runtime.spawn(std::future::pending::<()>());
        drop(workers);
        assert!(endless.await.unwrap_err().is_cancelled());
    }
}
