//! A TCP connection that can leave its sends to a common turn of sending (`together.rs` says why). A posted text stays with
//! its connection until all ready work of this worker is done, and then leaves without its task: the posting task goes on
//! to wait for the answer. Knows no HTTP.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use crate::together;

/// A connection; dropped, it sends the posted text and closes.
pub struct Tcp {
    read: OwnedReadHalf,
    outlet: Arc<Outlet>,
}

/// The sending side.
struct Outlet {
    write: OwnedWriteHalf,
    state: AtomicU8,
    letter: Mutex<Letter>,
}

#[derive(Default)]
struct Letter {
    text: Vec<u8>,
    /// Bytes sent so far.
    sent: usize,
    /// The task to wake when sending was blocked.
    sender: Option<Waker>,
}

/// Nothing is posted, or all of it has left.
const FREE: u8 = 0;
/// A posted text waits for its turn.
const POSTED: u8 = 1;
/// The turn has passed, and some of the text is left.
const STUCK: u8 = 2;

thread_local! {
    /// Connections of this worker that wait for their turn to send.
    static WAITING: RefCell<Vec<Arc<Outlet>>> = const { RefCell::new(Vec::new()) };
}

impl Tcp {
    /// Splits a stream into a half to read and a half to write.
    pub fn new(stream: TcpStream) -> Self {
        let (read, write) = stream.into_split();
        Self { read, outlet: Arc::new(Outlet { write, state: AtomicU8::new(FREE), letter: Mutex::default() }) }
    }

    /// Ready when there may be something to read.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.read.as_ref().poll_read_ready(cx)
    }

    /// Posts `text` for the common turn. Given back where waiting is not worth it: the caller then sends.
    pub fn post(&self, text: Vec<u8>, cx: &Context<'_>) -> Result<(), Vec<u8>> {
        if !together::is_worth_it() || self.outlet.state() != FREE {
            return Err(text);
        }
        let mut letter = self.outlet.letter();
        (letter.text, letter.sent) = (text, 0);
        if !letter.sender.as_ref().is_some_and(|sender| sender.will_wake(cx.waker())) {
            letter.sender = Some(cx.waker().clone());
        }
        self.outlet.enter(POSTED);
        drop(letter);
        let is_first = WAITING.with_borrow_mut(|waiting| {
            waiting.push(Arc::clone(&self.outlet));
            waiting.len() == 1
        });
        if is_first {
            tokio::spawn(Turn);
        }
        Ok(())
    }

    /// Tells if the posted text was blocked in its turn. The posting task has been woken.
    pub fn is_stuck(&self) -> bool {
        self.outlet.state() == STUCK
    }

    /// Tells if no posted text is left here.
    pub fn is_sent(&self) -> bool {
        self.outlet.state() == FREE
    }

    /// Sends the posted text, before or after its turn. Ready when all has left.
    pub fn poll_sent(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.is_sent() {
            match self.outlet.leave() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready!(self.stream().poll_write_ready(cx))?,
                left => left?,
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Takes back the posted text and the number of its bytes sent. The rest will not be sent any more.
    pub fn take_back(&self) -> (Vec<u8>, usize) {
        let mut letter = self.outlet.letter();
        self.outlet.enter(FREE);
        (std::mem::take(&mut letter.text), letter.sent)
    }

    fn stream(&self) -> &TcpStream {
        self.outlet.write.as_ref()
    }

    /// Writes behind the posted text.
    fn poll_writing(&self, cx: &mut Context<'_>, write: impl Fn(&OwnedWriteHalf) -> io::Result<usize>) -> Poll<io::Result<usize>> {
        ready!(self.poll_sent(cx))?;
        loop {
            match write(&self.outlet.write) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready!(self.stream().poll_write_ready(cx))?,
                written => return Poll::Ready(written),
            }
        }
    }
}

impl Outlet {
    fn state(&self) -> u8 {
        self.state.load(Ordering::Acquire)
    }

    fn enter(&self, state: u8) {
        self.state.store(state, Ordering::Release);
    }

    fn letter(&self) -> MutexGuard<'_, Letter> {
        self.letter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the posted text as far as possible without waiting.
    fn leave(&self) -> io::Result<()> {
        let mut letter = self.letter();
        while self.state() != FREE {
            let left = letter.text.get(letter.sent..).unwrap_or_default();
            if left.is_empty() {
                // A connection must not hold on to what it has sent.
                letter.text = Vec::new();
                self.enter(FREE);
                break;
            }
            match self.write.try_write(left)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                sent => letter.sent += sent,
            }
        }
        Ok(())
    }

    /// Sends in the common turn. Unsent text is left to its task, which then meets the error.
    fn have_turn(&self) {
        if self.leave().is_err() {
            self.enter(STUCK);
            let sender = self.letter().sender.take();
            sender.into_iter().for_each(Waker::wake);
        }
    }
}

/// The turn of all waiting connections: behind the worker's queue of the time of the first post. Taken even at the end of the runtime.
struct Turn;

impl Future for Turn {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        Self::have();
        Poll::Ready(())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        Self::have();
    }
}

impl Turn {
    fn have() {
        // A thread that ends may have let go of its list.
        let mut waiting = WAITING.try_with(RefCell::take).unwrap_or_default();
        waiting.drain(..).for_each(|outlet| outlet.have_turn());
        // Nobody can have posted meanwhile, and the list keeps its room.
        drop(WAITING.try_with(|list| list.replace(waiting)));
    }
}

impl AsyncRead for Tcp {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.read).poll_read(cx, buf)
    }
}

impl AsyncWrite for Tcp {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_writing(cx, |write| write.try_write(buf))
    }

    fn poll_write_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, bufs: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.poll_writing(cx, |write| write.try_write_vectored(bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_sent(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_sent(cx))?;
        let Some(outlet) = Arc::get_mut(&mut self.outlet) else {
            // It has left before its turn, and stands in the list until that has come.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        };
        Pin::new(&mut outlet.write).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
