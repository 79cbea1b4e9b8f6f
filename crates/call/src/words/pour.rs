//! A long result on its way from its owner to its caller: a bounded queue of bytes, filled while it is emptied.
//!
//! The filler waits while the queue is full, so that a slow caller slows its own server and nobody else. Does not know the bytes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;

/// Bytes at which the queue is full.
const MOST: usize = 128 << 10;
/// Longest time without progress of the caller.
const PATIENCE: Duration = Duration::from_secs(120);

/// Queue of a result's bytes.
#[derive(Debug)]
pub struct Pour {
    state: Mutex<State>,
    /// Time after which an idle caller is let go.
    patience: Duration,
}

#[derive(Debug, Default)]
struct State {
    pieces: VecDeque<Bytes>,
    bytes: usize,
    end: Option<End>,
    /// The taker has left.
    left: bool,
    filler: Option<Waker>,
    taker: Option<Waker>,
    /// Waits for the taker to leave.
    watcher: Option<Waker>,
}

/// End of a pour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The bytes so far are no result.
    Broken,
    /// The result is complete.
    Whole,
}

/// The result was broken off; the part passed on must not be taken for a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the result broke off")]
pub struct BrokenOff;

/// Nobody takes the bytes any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakerGone;

/// Members of a result kept for the gate or the record.
pub const KEPT: [&str; 6] = ["cacheScope", "isError", "resultType", "task", "taskId", "ttlMs"];

impl Pour {
    /// Makes an empty pour.
    pub fn new() -> Arc<Self> {
        Arc::new(Self::patient(PATIENCE))
    }

    fn patient(patience: Duration) -> Self {
        Self { state: Mutex::default(), patience }
    }

    /// Appends a piece once there is room.
    pub async fn push(&self, piece: Bytes) -> Result<(), TakerGone> {
        tokio::time::timeout(self.patience, std::future::poll_fn(|cx| self.poll_room(cx))).await.map_err(|_| TakerGone)??;
        let mut state = self.lock();
        state.bytes += piece.len();
        state.pieces.push_back(piece);
        wake(&mut state.taker);
        Ok(())
    }

    /// Takes the next piece; `None` behind the last.
    pub fn poll_piece(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BrokenOff>>> {
        let mut state = self.lock();
        if let Some(piece) = state.pieces.pop_front() {
            state.bytes -= piece.len();
            wake(&mut state.filler);
            return Poll::Ready(Some(Ok(piece)));
        }
        match state.end {
            Some(End::Broken) => Poll::Ready(Some(Err(BrokenOff))),
            Some(End::Whole) => Poll::Ready(None),
            None => {
                state.taker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Ends the pour, unless already ended.
    pub fn end_pour(&self, end: End) {
        let mut state = self.lock();
        state.end.get_or_insert(end);
        wake(&mut state.taker);
    }

    /// Notes that the taker has left.
    pub fn leave(&self) {
        let mut state = self.lock();
        state.left = true;
        state.pieces.clear();
        wake(&mut state.filler);
        wake(&mut state.watcher);
    }

    /// Waits until nobody takes anything more.
    pub async fn left(&self) {
        std::future::poll_fn(|cx| {
            let mut state = self.lock();
            if state.left {
                return Poll::Ready(());
            }
            state.watcher = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Checks that the caller is the slow one.
    pub fn is_full(&self) -> bool {
        self.lock().bytes >= MOST
    }

    fn poll_room(&self, cx: &mut Context<'_>) -> Poll<Result<(), TakerGone>> {
        let mut state = self.lock();
        if state.left {
            return Poll::Ready(Err(TakerGone));
        }
        if state.bytes < MOST {
            return Poll::Ready(Ok(()));
        }
        state.filler = Some(cx.waker().clone());
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}

/// Filler of a pour; dropping it early breaks the pour off.
#[derive(Debug)]
pub struct Filler(pub Arc<Pour>);

impl Drop for Filler {
    fn drop(&mut self) {
        self.0.end_pour(End::Broken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(length: usize) -> Bytes {
        Bytes::from(vec![b'x'; length])
    }

    #[tokio::test]
    async fn a_full_pour_waits_for_whoever_empties_it() {
        let pour = Pour::new();
        pour.push(piece(MOST)).await.unwrap();
        assert!(pour.is_full());
        let filling = tokio::spawn({
            let pour = Arc::clone(&pour);
            async move {
                pour.push(piece(7)).await?;
                pour.end_pour(End::Whole);
                Ok::<_, TakerGone>(())
            }
        });
        tokio::task::yield_now().await;
        let mut seen = Vec::new();
        while let Some(piece) = std::future::poll_fn(|cx| pour.poll_piece(cx)).await {
            seen.push(piece.unwrap().len());
        }
        assert_eq!((seen, filling.await.unwrap()), (vec![MOST, 7], Ok(())));
    }

    #[tokio::test]
    async fn who_takes_nothing_is_not_waited_for_for_ever() {
        let pour = Pour::patient(Duration::from_millis(20));
        pour.push(piece(MOST)).await.unwrap();
        assert_eq!(pour.push(piece(1)).await, Err(TakerGone));
        pour.leave();
        assert_eq!(pour.push(piece(1)).await, Err(TakerGone));
    }

    #[tokio::test]
    async fn what_came_before_a_break_is_still_taken() {
        let pour = Pour::new();
        pour.push(piece(3)).await.unwrap();
        drop(Filler(Arc::clone(&pour)));
        pour.end_pour(End::Whole);
        let next = async || std::future::poll_fn(|cx| pour.poll_piece(cx)).await;
        assert_eq!((next().await, next().await), (Some(Ok(piece(3))), Some(Err(BrokenOff))));
    }
}
