//! Where lists wait to be judged: a thousand servers that come at the same time are judged by one thread, one after the other, over one
//! connection, and what is new of all that wait together is on the disk with one go. What a verdict is, is not known here.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use crate::store::{Pins, StoreError};

/// So many are judged with one go at most: nobody waits for long for those behind.
const MOST: usize = 64;

/// Reads and writes, unless there is nothing to write to, and gives what is said once that is on the disk.
type Work = Box<dyn FnOnce(Option<&mut Pins>) -> Said + Send>;
/// Tells whoever waits.
type Said = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// The desk of one gate.
pub(crate) struct Desk {
    dir: PathBuf,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    work: Vec<Work>,
    /// Somebody sits at it.
    is_open: bool,
}

impl Desk {
    /// Over the files in `dir`.
    pub(crate) fn new(dir: &Path) -> Arc<Self> {
        Arc::new(Self { dir: dir.to_owned(), waiting: Mutex::default() })
    }

    /// What `work` makes of what is remembered, once what it remembers is on the disk.
    ///
    /// # Errors
    /// When that can't be read or written.
    pub(crate) async fn judged<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&mut Pins) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (tell, told) = oneshot::channel();
        self.add(Box::new(move |pins| {
            let judged = pins.map(|pins| pins.apart(work));
            Box::new(move |kept: Result<(), StoreError>| drop(tell.send(kept.and_then(|()| judged.unwrap_or_else(|| Err(ending()))))))
        }));
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

    /// Judges what waits until nothing does.
    fn sit(&self) {
        let mut pins = None;
        loop {
            let work: Vec<Work> = {
                let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
                let some = waiting.work.len().min(MOST);
                waiting.is_open = some > 0;
                waiting.work.drain(..some).collect()
            };
            if work.is_empty() {
                return;
            }
            let (mut said, mut work) = (Vec::with_capacity(work.len()), work.into_iter());
            let opened = pins.take().map_or_else(|| Pins::open(&self.dir), Ok);
            let kept = opened.and_then(|mut opened| {
                opened.together(|pins| said.extend(work.by_ref().map(|work| work(Some(&mut *pins)))))?;
                pins = Some(opened);
                Ok(())
            });
            // Whose turn did not come is told the same.
            said.extend(work.map(|work| work(None)));
            said.into_iter().for_each(|say| say(kept.as_ref().copied().map_err(StoreError::again)));
        }
    }
}

fn ending() -> StoreError {
    StoreError::Io(std::io::Error::other("the gate is ending"))
}

#[cfg(test)]
mod tests {
    use policy::pin::{Definition, Kind, Standing, Why};

    use super::*;
    use crate::store::{Pin, Source};

    fn pin(n: usize) -> Pin {
        let source = Source { mount: format!("m{n}"), server: "s".into() };
        let definition = Definition::of_text("{}".to_owned());
        Pin { source, kind: Kind::Tool, name: "t".into(), standing: Standing::Accepted, why: Why::New, since: 0, definition }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_many_servers_list_at_once_is_all_kept_and_nobody_fails_for_another() {
        let dir = tempfile::tempdir().unwrap();
        let desk = Desk::new(dir.path());
        let asked = (0..1000).map(|n| {
            desk.judged(move |pins| {
                pins.add(&pin(n).source, Kind::Tool, &[pin(n)])?;
                if n % 100 == 7 { Err(StoreError::Io(std::io::Error::other("its own fault"))) } else { Ok(n) }
            })
        });
        let told = futures_util::future::join_all(asked).await;
        for (n, told) in told.into_iter().enumerate() {
            match told {
                Ok(found) => assert!(found == n && n % 100 != 7),
                Err(error) => assert!(n % 100 == 7 && error.to_string().contains("its own fault"), "{n}: {error}"),
            }
        }
        // What failed left nothing behind.
        assert_eq!(Pins::open(dir.path()).unwrap().all(None).unwrap().len(), 990);
    }

    #[tokio::test]
    async fn where_nothing_can_be_kept_everybody_is_told_and_later_it_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("state");
        std::fs::write(&place, "in the way").unwrap();
        let desk = Desk::new(&place);
        let asked = futures_util::future::join_all((0..3).map(|_| desk.judged(|_| Ok(())))).await;
        assert!(asked.iter().all(Result::is_err));
        std::fs::remove_file(&place).unwrap();
        desk.judged(|_| Ok(())).await.unwrap();
    }
}
