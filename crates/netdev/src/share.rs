//! Bytes of answers of devices under way: the share of a call, and the room of the process for all calls together. Reads no answer.

use std::sync::{Arc, Mutex, PoisonError};

use mcp_server::subject;
use net_proto::fault::Trouble;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinHandle;

use crate::room::is_settling;

/// Bytes of a piece of the room.
const PIECE: usize = 1 << 20;
/// Pieces of the room of a process.
const PIECES: usize = 256;

/// Room of the process for long answers.
static ROOM: Semaphore = Semaphore::const_new(PIECES);

tokio::task_local! {
    static SHARE: usize;
    static ACCOUNT: Arc<CallAccount>;
    static UNCOUNTED: ();
}

/// Bytes of a call: of its answers that are being read, and the pieces of the room for them. The first piece of a call is free, so that short
/// answers find room beside long ones.
#[derive(Debug)]
struct CallAccount {
    room: &'static Semaphore,
    /// Bytes of the answers being read, and pieces taken so far.
    bytes: Mutex<(usize, Option<SemaphorePermit<'static>>)>,
}

/// Count of the bytes of one answer, until it is read.
#[derive(Debug)]
pub(crate) struct AnswerBytes {
    account: Option<Arc<CallAccount>>,
    total: usize,
}

/// Does some work whose answers have at most `bytes`.
pub(crate) async fn within_share<T>(bytes: usize, work: impl Future<Output = T>) -> T {
    SHARE.scope(bytes, work).await
}

/// Answers a call: the room of its longest answers is free again once the call is answered.
pub(crate) async fn within_call<T>(work: impl Future<Output = T>) -> T {
    // On the heap: the work of a device is long, and each layer around would have a copy on the stack.
    ACCOUNT.scope(Arc::new(CallAccount::new(&ROOM)), Box::pin(work)).await
}

/// Begins a task for the subject and the call of the present one.
pub(crate) fn spawn<F>(work: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    match ACCOUNT.try_with(Arc::clone) {
        Ok(account) => subject::spawn(ACCOUNT.scope(account, work)),
        Err(_) => subject::spawn(work),
    }
}

/// Does a step of a change, which is never broken off for want of room.
pub(crate) async fn uncounted<T>(work: impl Future<Output = T>) -> T {
    UNCOUNTED.scope((), Box::pin(work)).await
}

/// Most bytes of an answer: its bound, or the share of the call where that is less.
pub(crate) fn at_most(bound: usize) -> usize {
    SHARE.try_with(|share| bound.min(*share)).unwrap_or(bound)
}

/// Begins the count of an answer.
pub(crate) fn answer() -> AnswerBytes {
    let is_free = is_settling() || UNCOUNTED.try_with(|()| ()).is_ok();
    let of_call = || ACCOUNT.try_with(Arc::clone).unwrap_or_else(|_| Arc::new(CallAccount::new(&ROOM)));
    AnswerBytes { account: (!is_free).then(of_call), total: 0 }
}

impl AnswerBytes {
    /// Counts further bytes of the answer.
    ///
    /// # Errors
    /// The answers under way leave no room in this process.
    pub(crate) fn count(&mut self, bytes: usize) -> Result<(), Trouble> {
        self.total += bytes;
        self.account.as_ref().map_or(Ok(()), |account| account.count(bytes))
    }
}

impl Drop for AnswerBytes {
    fn drop(&mut self) {
        if let Some(account) = &self.account {
            account.bytes.lock().unwrap_or_else(PoisonError::into_inner).0 -= self.total;
        }
    }
}

impl CallAccount {
    fn new(room: &'static Semaphore) -> Self {
        Self { room, bytes: Mutex::default() }
    }

    fn count(&self, bytes: usize) -> Result<(), Trouble> {
        let mut taken = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        taken.0 += bytes;
        let (wanted, held) = (taken.0 / PIECE, taken.1.as_ref().map_or(0, SemaphorePermit::num_permits));
        if wanted <= held {
            return Ok(());
        }
        let more = u32::try_from(wanted - held).ok().and_then(|more| self.room.try_acquire_many(more).ok());
        let more = more.ok_or(Trouble::Crowded { room: PIECES * PIECE })?;
        match &mut taken.1 {
            Some(held) => held.merge(more),
            none => *none = Some(more),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(pieces: usize) -> &'static Semaphore {
        Box::leak(Box::new(Semaphore::new(pieces)))
    }

    async fn called<T>(room: &'static Semaphore, work: impl Future<Output = T>) -> T {
        ACCOUNT.scope(Arc::new(CallAccount::new(room)), work).await
    }

    #[tokio::test]
    async fn a_share_bounds_only_the_work_within() {
        assert_eq!(within_share(10, async { (at_most(100), at_most(5)) }).await, (10, 5));
        assert_eq!(at_most(100), 100);
    }

    #[tokio::test]
    async fn long_answers_of_all_calls_share_one_room() {
        let room = room(3);
        called(room, async {
            let mut long = answer();
            (0..6).for_each(|_| long.count(PIECE / 2).unwrap());
            drop(long);
            assert_eq!(room.available_permits(), 0, "the call holds the text until its end");
            let refused = called(room, async { answer().count(PIECE) }).await;
            assert_eq!(refused, Err(Trouble::Crowded { room: PIECES * PIECE }));
            assert_eq!(called(room, async { answer().count(PIECE - 1) }).await, Ok(()), "a short answer finds room");
        })
        .await;
        assert_eq!(room.available_permits(), 3);
    }

    #[tokio::test]
    async fn answers_in_turn_take_the_room_of_the_longest() {
        called(room(2), async {
            for _ in 0..10 {
                answer().count(2 * PIECE).unwrap();
            }
            let _one = (answer().count(PIECE), answer().count(PIECE));
            let (mut one, mut other) = (answer(), answer());
            assert!(one.count(2 * PIECE).is_ok() && other.count(PIECE).is_err(), "both at once take the room of both");
        })
        .await;
    }

    #[tokio::test]
    async fn nm_09_steps_of_a_change_find_room_always() {
        called(room(0), async {
            assert!(answer().count(PIECE).is_err());
            assert!(uncounted(async { answer().count(100 * PIECE) }).await.is_ok());
            assert!(crate::room::settling(async { answer().count(100 * PIECE) }).await.is_ok());
        })
        .await;
    }
}
