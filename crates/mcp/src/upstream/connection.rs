//! A connection to an origin that speaks HTTP/1.1, and a single exchange on it: no task, no channel, no lock.
//!
//! The calling task reads and writes. `pool.rs` chooses connections.

use std::cell::RefCell;
use std::hash::RandomState;
use std::io;
use std::io::IoSlice;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Bytes, BytesMut};
use mcp_proto::http1::{Before, Body, Head, Heads, HttpError};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::io::poll_read_buf;

use runtime::tcp::Tcp;
use runtime::tls::Io;
use runtime::together;

/// Room for a read in bytes: for a length unknown, and the most.
const ROOM: usize = 8 << 10;
const MOST_ROOM: usize = 256 << 10;
/// Least room. Reusing a small buffer for each answer keeps memory shared by many connections in the processor's cache.
const LEAST_ROOM: usize = 1 << 10;

/// Growth of the next answer over the last that still fits, in bytes.
const SPREAD: usize = 256;

thread_local! {
    /// Heads of answers recently seen by this thread.
    static HEADS: RefCell<Heads<Head>> = RefCell::new(Heads::new(RandomState::new()));
}

/// An open connection in use by a single task.
pub struct Connection {
    io: Io,
    buffer: BytesMut,
    /// The buffer is larger than most answers need.
    grown: bool,
    /// Length of the last answer's head, and of the whole answer: the next is likely to be as long, and then fits at once.
    head: usize,
    expected: usize,
    before: Before<Head>,
    request: UnwrittenRequest,
}

/// Reasons for a missing response.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The connection ended before the whole response was there.
    #[error("the connection was closed")]
    Closed,
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The link in place of the connection broke.
    #[error("{0}")]
    Link(#[from] hyper::Error),
    /// The connection broke before any byte of the request had left.
    #[error("nothing could be sent: {0}")]
    Unsent(io::Error),
}

/// A request on the wire: the head, with the body up to the value, or all of a short body; then the value and the rest.
#[derive(Debug, Default)]
pub struct Pieces {
    pub head: Vec<u8>,
    pub value: Bytes,
    pub after: &'static [u8],
}

/// Rest of a request still to be written.
#[derive(Default)]
struct UnwrittenRequest {
    pieces: Pieces,
    /// Bytes of the pieces written so far.
    sent: usize,
    /// The head, which is all of the request, is queued to be sent with those of other connections.
    posted: bool,
    /// Nothing is left, neither here nor in TLS.
    over: bool,
}

impl Connection {
    /// Wraps an open connection.
    pub fn new(io: Io) -> Self {
        Self {
            io,
            buffer: BytesMut::new(),
            grown: false,
            head: 0,
            expected: ROOM,
            before: Before::default(),
            request: UnwrittenRequest::default(),
        }
    }

    /// Checks that the connection is open and no unasked bytes have come.
    pub fn is_idle(&mut self) -> bool {
        let mut byte = [0];
        let mut probe = ReadBuf::new(&mut byte);
        // Asks the kernel only after an event at the reactor.
        let read = Pin::new(&mut self.io).poll_read(&mut Context::from_waker(Waker::noop()), &mut probe);
        self.buffer.is_empty() && read.is_pending()
    }

    /// Frees the buffer of a long answer.
    pub fn rest(&mut self) {
        if self.grown && self.buffer.is_empty() {
            self.buffer = BytesMut::new();
            self.grown = false;
        }
    }

    /// Sends a request and reads the head of the response.
    ///
    /// A server may answer before the end of the request, so writing goes on while the head and the body are read.
    pub async fn exchange(&mut self, request: Pieces) -> Result<Head, ConnectionError> {
        self.request = UnwrittenRequest { pieces: request, ..UnwrittenRequest::default() };
        if together::are_many() && !std::future::poll_fn(|cx| Poll::Ready(self.request.post(&self.io, cx))).await {
            together::others_first().await;
        }
        std::future::poll_fn(|cx| self.poll_exchange(cx)).await
    }

    /// Takes back a request that could not be sent.
    pub fn unsent(&mut self) -> Pieces {
        std::mem::take(&mut self.request.pieces)
    }

    /// Checks that the whole request has left.
    pub fn is_written(&self) -> bool {
        self.request.over
    }

    /// Reads the next piece of `body`; `None` at its end.
    pub fn poll_piece(&mut self, body: &mut Body, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ConnectionError>>> {
        self.write_on(cx);
        loop {
            match body.take(&mut self.buffer) {
                Ok(Some(piece)) => return Poll::Ready(Some(Ok(piece))),
                Ok(None) if body.is_over() => return Poll::Ready(None),
                Ok(None) => {}
                Err(e) => return Poll::Ready(Some(Err(e.into()))),
            }
            let room = body.left().map_or(ROOM, |left| usize::try_from(left).unwrap_or(MOST_ROOM));
            self.grown |= room > ROOM;
            // A stream may last for hours, and so would the buffer foretold by the last answer.
            if body.left().is_none() && self.buffer.is_empty() && self.buffer.capacity() > ROOM {
                self.buffer = BytesMut::new();
            }
            match ready!(self.poll_fill(room, cx)) {
                Ok(0) if body.closed() => return Poll::Ready(None),
                Ok(0) => return Poll::Ready(Some(Err(ConnectionError::Closed))),
                Ok(_) => {}
                Err(e) => return Poll::Ready(Some(Err(e.into()))),
            }
        }
    }

    /// Reads a body of known length in one piece, with a single allocation.
    pub fn poll_whole(&mut self, body: &mut Body, length: usize, cx: &mut Context<'_>) -> Poll<Result<Bytes, ConnectionError>> {
        self.write_on(cx);
        loop {
            if let Some(whole) = body.take_whole(&mut self.buffer) {
                self.expected = self.head + length + SPREAD;
                // Small answers must not keep the buffer of a large one.
                if length > MOST_ROOM && self.buffer.is_empty() {
                    self.buffer = BytesMut::new();
                }
                return Poll::Ready(Ok(whole));
            }
            self.buffer.reserve(length.saturating_sub(self.buffer.len()));
            match ready!(poll_read_buf(Pin::new(&mut self.io), cx, &mut self.buffer)) {
                Ok(0) => return Poll::Ready(Err(ConnectionError::Closed)),
                Ok(_) => {}
                Err(e) => return Poll::Ready(Err(e.into())),
            }
        }
    }

    fn poll_exchange(&mut self, cx: &mut Context<'_>) -> Poll<Result<Head, ConnectionError>> {
        // A server may answer even where writing failed, and the answer says more than the error.
        let failed = match self.request.poll_write(&mut self.io, cx) {
            Poll::Ready(Err(e)) if self.request.sent == 0 => return Poll::Ready(Err(ConnectionError::Unsent(e))),
            Poll::Ready(Err(e)) => Some(e),
            Poll::Ready(Ok(())) | Poll::Pending => None,
        };
        loop {
            let read = match self.poll_fill(self.expected, cx) {
                Poll::Ready(read) => read,
                Poll::Pending => return failed.map_or(Poll::Pending, |e| Poll::Ready(Err(e.into()))),
            };
            if !matches!(read, Ok(1..)) && self.request.take_back(&self.io) {
                return Poll::Ready(Err(ConnectionError::Unsent(read.err().unwrap_or_else(|| io::ErrorKind::ConnectionReset.into()))));
            }
            match read {
                Ok(0) => return Poll::Ready(Err(failed.map_or(ConnectionError::Closed, Into::into))),
                Ok(_) => {}
                Err(e) => return Poll::Ready(Err(failed.unwrap_or(e).into())),
            }
            let filled = self.buffer.len();
            if let Some(head) = Head::take_after(&mut self.buffer, &mut self.before)? {
                if self.before.is_alone() {
                    HEADS.with_borrow_mut(|heads| self.before.share(heads));
                }
                self.head = filled - self.buffer.len();
                return Poll::Ready(Ok(head));
            }
        }
    }

    /// Goes on writing. A server that stops reading may still answer; the unwritten rest keeps the connection from being used again.
    fn write_on(&mut self, cx: &mut Context<'_>) {
        if !self.request.over {
            let _gone_on = self.request.poll_write(&mut self.io, cx);
        }
    }

    fn poll_fill(&mut self, room: usize, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.buffer.reserve(room.clamp(LEAST_ROOM, MOST_ROOM));
        poll_read_buf(Pin::new(&mut self.io), cx, &mut self.buffer)
    }
}

// A request dropped before it has left must not leave.
impl Drop for Connection {
    fn drop(&mut self) {
        self.request.take_back(&self.io);
    }
}

impl UnwrittenRequest {
    /// Queues a short request to be sent with those of other connections; `false` where queueing is not worth the wait.
    fn post(&mut self, io: &Io, cx: &Context<'_>) -> bool {
        let Some(tcp) = io.tcp().filter(|_| self.pieces.rest().is_none()) else { return false };
        match tcp.post(std::mem::take(&mut self.pieces.head), cx) {
            Ok(()) => self.posted = true,
            Err(head) => self.pieces.head = head,
        }
        self.posted
    }

    fn poll_write(&mut self, io: &mut Io, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.over {
            return Poll::Ready(Ok(()));
        }
        if self.posted
            && let Some(tcp) = io.tcp()
        {
            return self.poll_posted(tcp, cx);
        }
        while self.sent < self.pieces.len() {
            let mut io = Pin::new(&mut *io);
            let written = match self.pieces.rest() {
                None => ready!(io.as_mut().poll_write(cx, &self.pieces.head[self.sent..]))?,
                Some(rest) => {
                    let mut slices = [IoSlice::new(&self.pieces.head), IoSlice::new(rest), IoSlice::new(self.pieces.after)];
                    let mut left = &mut slices[..];
                    IoSlice::advance_slices(&mut left, self.sent);
                    ready!(io.as_mut().poll_write_vectored(cx, left))?
                }
            };
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.sent += written;
        }
        ready!(Pin::new(io).poll_flush(cx))?;
        // A kept connection must not hold on to bytes already sent.
        self.pieces = Pieces::default();
        self.over = true;
        Poll::Ready(Ok(()))
    }

    /// Takes back a queued request; `true` if no byte of it has left.
    fn take_back(&mut self, io: &Io) -> bool {
        let Some(tcp) = io.tcp().filter(|tcp| self.posted && !tcp.is_sent()) else { return false };
        (self.pieces.head, self.sent) = tcp.take_back();
        self.posted = false;
        self.sent == 0
    }

    fn poll_posted(&mut self, tcp: &Tcp, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !tcp.is_sent() {
            if !tcp.is_stuck() {
                return Poll::Pending;
            }
            if let Err(error) = ready!(tcp.poll_sent(cx)) {
                (self.pieces.head, self.sent) = tcp.take_back();
                self.posted = false;
                return Poll::Ready(Err(error));
            }
        }
        (self.posted, self.over) = (false, true);
        Poll::Ready(Ok(()))
    }
}

impl Pieces {
    /// Bytes behind the head, if any.
    fn rest(&self) -> Option<&Bytes> {
        (!self.value.is_empty() || !self.after.is_empty()).then_some(&self.value)
    }

    fn len(&self) -> usize {
        self.head.len() + self.value.len() + self.after.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::alarm;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    fn request() -> Pieces {
        Pieces { head: b"GET / HTTP/1.1\r\n\r\n".into(), ..Pieces::default() }
    }

    #[tokio::test]
    async fn a_stream_drops_the_buffer_of_a_long_answer() {
        const LONG: usize = 200 << 10;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (ours, theirs) = tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
        let (mut connection, mut server) = (Connection::new(Io::plain(ours.unwrap())), theirs.unwrap().0);
        let mut asked = [0; 18];

        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {LONG}\r\n\r\n{}", "x".repeat(LONG));
        let (head, ()) = tokio::join!(connection.exchange(request()), async {
            server.read_exact(&mut asked).await.unwrap();
            server.write_all(answer.as_bytes()).await.unwrap();
        });
        let mut body = head.unwrap().body();
        let whole = std::future::poll_fn(|cx| connection.poll_whole(&mut body, LONG, cx)).await.unwrap();
        assert_eq!(whole.len(), LONG);
        drop(whole);

        let (head, ()) = tokio::join!(connection.exchange(request()), async {
            server.read_exact(&mut asked).await.unwrap();
            server.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n").await.unwrap();
        });
        let mut body = head.unwrap().body();
        let piece = std::future::poll_fn(|cx| connection.poll_piece(&mut body, cx)).await.unwrap().unwrap();
        assert_eq!(piece, "hi");
        drop(piece);
        let waits = std::future::poll_fn(|cx| Poll::Ready(connection.poll_piece(&mut body, cx).is_pending())).await;
        assert!(waits);
        assert!(connection.buffer.capacity() <= 2 * ROOM, "{} bytes", connection.buffer.capacity());
    }

    #[tokio::test]
    async fn a_queued_request_does_not_leave_once_dropped() {
        alarm::sole(true);
        let _crowd: Vec<together::Carried> = (0..30).map(|_| together::Carried::count()).collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        for is_gone in [false, true] {
            let (ours, theirs) = tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
            let (mut connection, mut server) = (Connection::new(Io::plain(ours.unwrap())), theirs.unwrap().0);
            if is_gone {
                server.shutdown().await.unwrap();
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
            {
                let mut exchange = std::pin::pin!(connection.exchange(request()));
                let begun = std::future::poll_fn(|cx| Poll::Ready(exchange.as_mut().poll(cx))).await;
                assert_eq!(matches!(begun, Poll::Ready(Err(ConnectionError::Unsent(_)))), is_gone);
                assert_eq!(begun.is_pending(), !is_gone);
            }
            if is_gone {
                assert_eq!(connection.unsent().head, request().head, "to be sent to another");
            }
            drop(connection);
            let mut came = Vec::new();
            server.read_to_end(&mut came).await.unwrap();
            assert_eq!(came, b"");
        }
    }
}
