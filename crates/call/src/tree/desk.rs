//! Queue of lists to be judged: a thousand servers that come at once are judged by one thread, one after the other, over one connection,
//! and new definitions of all that wait are committed together. Knows no verdicts.

use std::sync::{Arc, Mutex, PoisonError};

use store::{Pins, StoreError, Stores};
use tokio::sync::oneshot;

/// Most lists in one commit, so that later lists and other writers of the store, such as approvals, wait for one commit at most.
const MOST: usize = 64;
/// Number of definitions that ends a commit early. The list of a server is never split.
const MOST_DEFINITIONS: usize = 4096;

/// List of a server: its number of definitions, and a closure that takes them in without the store.
struct Work(usize, Box<dyn FnOnce() -> Ready + Send>);
/// Reads and writes the store, if there is one, and returns the answer to give once that is on the disk.
type Ready = Box<dyn FnOnce(Option<&mut dyn Pins>) -> TellResult>;
/// Tells the waiter.
type TellResult = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// Queue of lists of a gate.
pub struct Desk {
    pub stores: Arc<dyn Stores>,
    waiting: Mutex<WorkQueue>,
}

#[derive(Default)]
struct WorkQueue {
    work: Vec<Work>,
    /// A thread is at work.
    is_open: bool,
}

impl Desk {
    /// Makes the queue before these stores.
    pub fn new(stores: &Arc<dyn Stores>) -> Arc<Self> {
        Arc::new(Self { stores: Arc::clone(stores), waiting: Mutex::default() })
    }

    /// Judges `count` definitions by `work`, with the store; returns once its writes are on the disk. `take_in` comes before, since nobody
    /// else can write during `work`.
    ///
    /// # Errors
    /// If the store can't be read or written.
    pub async fn judged<D: 'static, T: Send + 'static>(
        self: &Arc<Self>,
        count: usize,
        take_in: impl FnOnce() -> D + Send + 'static,
        work: impl FnOnce(&mut dyn Pins, D) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (tell, told) = oneshot::channel();
        let take_in = move || -> Ready {
            let taken_in = take_in();
            Box::new(move |pins| {
                let judged = pins.map(|pins| pins.apart_with(|pins| work(pins, taken_in)));
                Box::new(move |kept: Result<(), StoreError>| drop(tell.send(kept.and_then(|()| judged.unwrap_or_else(|| Err(ending()))))))
            })
        };
        self.add(Work(count, Box::new(take_in)));
        told.await.unwrap_or_else(|_| Err(ending()))
    }

    fn add(self: &Arc<Self>, work: Work) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.work.push(work);
        if !std::mem::replace(&mut waiting.is_open, true) {
            let desk = Arc::clone(self);
            tokio::task::spawn_blocking(move || desk.sit());
        }
    }

    /// Takes the lists of the next commit; empty when the thread may end.
    fn next(&self) -> Vec<Work> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut definitions = 0;
        let fits = |Work(count, _): &&Work| {
            let is_open = definitions < MOST_DEFINITIONS;
            definitions += count;
            is_open
        };
        let some = waiting.work.iter().take(MOST).take_while(fits).count();
        waiting.is_open = some > 0;
        waiting.work.drain(..some).collect()
    }

    /// Judges lists until none waits.
    fn sit(&self) {
        let mut pins = None;
        loop {
            let work = self.next();
            if work.is_empty() {
                return;
            }
            let ready: Vec<Ready> = work.into_iter().map(|Work(_, take_in)| take_in()).collect();
            let (mut said, mut work) = (Vec::with_capacity(ready.len()), ready.into_iter());
            let opened = pins.take().map_or_else(|| self.stores.pins(), Ok);
            let kept = opened.and_then(|mut opened| {
                opened.together(&mut |pins| said.extend(work.by_ref().map(|work| work(Some(&mut *pins)))))?;
                pins = Some(opened);
                Ok(())
            });
            // Lists whose turn did not come get the same error.
            said.extend(work.map(|work| work(None)));
            said.into_iter().for_each(|say| say(kept.clone()));
        }
    }
}

fn ending() -> StoreError {
    StoreError::Failed("the gate is ending".to_owned())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use policy::pin::{Definition, Kind, Standing, Why};

    use super::*;
    use disk::{DiskStores, Tickets};
    use store::pins::{Pin, Source};

    fn desk(dir: &Path) -> Arc<Desk> {
        let stores: Arc<dyn Stores> = DiskStores::at(dir);
        Desk::new(&stores)
    }

    fn pin(n: usize) -> Pin {
        let source = Source { mount: format!("m{n}"), server: "s".into() };
        let definition = Definition::of_text("{}".to_owned());
        Pin { source, kind: Kind::Tool, name: "t".into(), standing: Standing::Accepted, why: Why::New, since: 0, definition }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn lists_of_many_servers_are_kept_despite_one_failure() {
        let dir = tempfile::tempdir().unwrap();
        let desk = desk(dir.path());
        let asked = (0..1000).map(|n| {
            desk.judged(
                1,
                || (),
                move |pins, ()| {
                    pins.add(&pin(n).source, Kind::Tool, &[pin(n)])?;
                    if n % 100 == 7 { Err(StoreError::Failed("its own fault".to_owned())) } else { Ok(n) }
                },
            )
        });
        let told = futures_util::future::join_all(asked).await;
        for (n, told) in told.into_iter().enumerate() {
            match told {
                Ok(found) => assert!(found == n && n % 100 != 7),
                Err(error) => assert!(n % 100 == 7 && error.to_string().contains("its own fault"), "{n}: {error}"),
            }
        }
        // The failed work left nothing behind.
        assert_eq!(DiskStores::at(dir.path()).pins().unwrap().all(None).unwrap().len(), 990);
    }

    #[tokio::test]
    async fn a_failing_store_fails_all_and_later_recovers() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("state");
        std::fs::write(&place, "in the way").unwrap();
        let desk = desk(&place);
        let asked = futures_util::future::join_all((0..3).map(|_| desk.judged(0, || (), |_, ()| Ok(())))).await;
        assert!(asked.iter().all(Result::is_err));
        std::fs::remove_file(&place).unwrap();
        desk.judged(0, || (), |_, ()| Ok(())).await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_approval_waits_for_one_commit_at_most() {
        for (servers, each, most) in [(1000, 1, MOST), (200, MOST_DEFINITIONS / 8, 8), (20, MOST_DEFINITIONS * 2, 1)] {
            let dir = tempfile::tempdir().unwrap();
            let (desk, tickets) = (desk(dir.path()), Tickets::of_store(dir.path()));
            let order = Arc::new(Mutex::new(Vec::new()));
            let (all_are_there, hear) = std::sync::mpsc::channel();
            let mut first = Some(hear);
            let asked: Vec<_> = (0..servers)
                .map(|n| {
                    let (order, tickets, hear, dir) = (Arc::clone(&order), Arc::clone(&tickets), first.take(), dir.path().to_owned());
                    let work = move |pins: &mut dyn Pins, ()| {
                        if let Some(hear) = hear {
                            // The first commit has begun. Now all the others are there, and an approval is to be written.
                            hear.recv().unwrap();
                            let (order, before) = (Arc::clone(&order), tickets.waiting());
                            std::thread::spawn(move || {
                                let mut kept = DiskStores::at(&dir).pending("gate", 0).unwrap();
                                let turn = kept.begin().unwrap();
                                order.lock().unwrap().push(None);
                                turn.write(&[]).unwrap();
                            });
                            let _has_come = (0..1_000_000).any(|_| {
                                std::thread::yield_now();
                                tickets.waiting() > before
                            });
                        }
                        order.lock().unwrap().push(Some(n));
                        pins.add(&pin(n).source, Kind::Tool, &[pin(n)])
                    };
                    Box::pin(desk.judged(each, || (), work))
                })
                .collect();
            let mut all = Box::pin(futures_util::future::join_all(asked));
            // Each came to the queue once it was read.
            assert!(std::future::poll_fn(|cx| std::task::Poll::Ready(all.as_mut().poll(cx).is_pending())).await);
            all_are_there.send(()).unwrap();
            all.await.into_iter().for_each(|told| told.unwrap());
            let order = order.lock().unwrap();
            let before = order.iter().position(Option::is_none).unwrap();
            assert!(before <= most, "{before} servers were in front of it");
            let judged: Vec<usize> = order.iter().flatten().copied().collect();
            assert_eq!(judged, (0..servers).collect::<Vec<_>>(), "and the others had their turn");
        }
    }
}
