//! Where lists wait to be judged: a thousand servers that come at the same time are judged by one thread, one after the other, over one
//! connection, and what is new of all that wait together is on the disk with one go. What a verdict is, is not known here.

use std::sync::{Arc, Mutex, PoisonError};

use store::{Pins, StoreError, Stores};
use tokio::sync::oneshot;

/// So many are judged with one go at most: nobody waits for long for those behind, and whoever else writes to the store, as an approval does, for
/// one go at most.
const MOST: usize = 64;
/// One go ends as well behind so many definitions. What one server lists is not taken apart.
const MOST_DEFINITIONS: usize = 4096;

/// What one server lists: how many definitions, and what takes them in without a look at the store.
struct Work(usize, Box<dyn FnOnce() -> Ready + Send>);
/// Reads and writes, unless there is nothing to write to, and gives what is said once that is on the disk.
type Ready = Box<dyn FnOnce(Option<&mut dyn Pins>) -> Said>;
/// Tells whoever waits.
type Said = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// The desk of one gate.
pub struct Desk {
    pub stores: Arc<dyn Stores>,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    work: Vec<Work>,
    /// Somebody sits at it.
    is_open: bool,
}

impl Desk {
    /// Over these stores.
    pub fn new(stores: &Arc<dyn Stores>) -> Arc<Self> {
        Arc::new(Self { stores: Arc::clone(stores), waiting: Mutex::default() })
    }

    /// What `work` makes of `count` definitions and of what is remembered, once what it remembers is on the disk. `take_in` comes before: as
    /// long as `work` lasts, nobody else writes.
    ///
    /// # Errors
    /// When that can't be read or written.
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

    /// What is judged with the next go; nothing: nobody sits here any more.
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

    /// Judges what waits until nothing does.
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
            // Whose turn did not come is told the same.
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
    async fn what_many_servers_list_at_once_is_all_kept_and_nobody_fails_for_another() {
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
        // What failed left nothing behind.
        assert_eq!(DiskStores::at(dir.path()).pins().unwrap().all(None).unwrap().len(), 990);
    }

    #[tokio::test]
    async fn where_nothing_can_be_kept_everybody_is_told_and_later_it_goes_on() {
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
    async fn an_approval_waits_for_one_go_at_most_of_a_thousand_servers_that_come_at_once() {
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
                            // The first go has begun. Now all the others are there, and an approval is to be written.
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
            // Each has come to the desk once it was looked at.
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
