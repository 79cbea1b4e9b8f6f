//! One connection to an origin that speaks HTTP/1.1, and one exchange on it: no task, no channel, no lock.
//!
//! The task that calls does the reading and writing. Which connection is used for what is in `pool.rs`.

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

/// Room for what is read at once, in bytes: where nobody knows how much will come, and at most.
const ROOM: usize = 8 << 10;
const MOST_ROOM: usize = 256 << 10;
/// And at least. The same little room is used again by each answer, so that what many connections touch stays in the processor's cache.
const LEAST_ROOM: usize = 1 << 10;

/// By how much the next answer may be longer than the last and still fit, in bytes.
const SPREAD: usize = 256;

thread_local! {
    /// The heads with which servers answer this thread.
    static HEADS: RefCell<Heads<Head>> = RefCell::new(Heads::new(RandomState::new()));
}

/// An open connection that nobody else uses.
pub struct Connection {
    io: Io,
    buffer: BytesMut,
    /// It has made more room than most answers need.
    grown: bool,
    /// The length of the last answer's head, and of all of it: the next is likely to be as long, and then fits in at once.
    head: usize,
    expected: usize,
    before: Before<Head>,
    request: Unwritten,
}

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// It ended before the response was there as a whole.
    #[error("the connection was closed")]
    Closed,
    /// What came is no response.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// It broke.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The link that stands for it broke.
    #[error("{0}")]
    Link(#[from] hyper::Error),
    /// It was gone before anything of the request had left.
    #[error("nothing could be sent: {0}")]
    Unsent(io::Error),
}

/// A request as it follows on the wire: the head, with what stands before the value in its body, or all of a short body; then the rest of it.
#[derive(Debug, Default)]
pub struct Pieces {
    pub head: Vec<u8>,
    pub value: Bytes,
    pub after: &'static [u8],
}

/// What is left of a request.
#[derive(Default)]
struct Unwritten {
    pieces: Pieces,
    /// So many bytes of the pieces have left.
    sent: usize,
    /// The head, which is all of it, waits to be sent with what others send.
    posted: bool,
    /// Nothing of it is left, here or in what protects the connection.
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
            request: Unwritten::default(),
        }
    }

    /// Whether it is open and nothing has come that nobody asked for.
    pub fn is_idle(&mut self) -> bool {
        let mut byte = [0];
        let mut probe = ReadBuf::new(&mut byte);
        // Asks the kernel only where the reactor has seen something happen on it.
        let read = Pin::new(&mut self.io).poll_read(&mut Context::from_waker(Waker::noop()), &mut probe);
        self.buffer.is_empty() && read.is_pending()
    }

    /// Lets go of the room that a long answer took.
    pub fn rest(&mut self) {
        if self.grown && self.buffer.is_empty() {
            self.buffer = BytesMut::new();
            self.grown = false;
        }
    }

    /// Sends a request and reads the head of the response.
    ///
    /// A server may answer before it has read everything, so both directions go on at once, here and while the body is read.
    pub async fn exchange(&mut self, request: Pieces) -> Result<Head, ConnectionError> {
        self.request = Unwritten { pieces: request, ..Unwritten::default() };
        if together::are_many() && !std::future::poll_fn(|cx| Poll::Ready(self.request.post(&self.io, cx))).await {
            together::others_first().await;
        }
        std::future::poll_fn(|cx| self.poll_exchange(cx)).await
    }

    /// The request that could not be sent.
    pub fn unsent(&mut self) -> Pieces {
        std::mem::take(&mut self.request.pieces)
    }

    /// Whether the request has left as a whole.
    pub fn is_written(&self) -> bool {
        self.request.over
    }

    /// The next piece of `body`; `None` at its end.
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
            // A stream may stand for hours, and the room that the last answer foretold with it.
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

    /// A body of known length in one piece; the room for it is made once.
    pub fn poll_whole(&mut self, body: &mut Body, length: usize, cx: &mut Context<'_>) -> Poll<Result<Bytes, ConnectionError>> {
        self.write_on(cx);
        loop {
            if let Some(whole) = body.take_whole(&mut self.buffer) {
                self.expected = self.head + length + SPREAD;
                // The room for a large answer is not kept for small ones.
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
        // Where writing failed there may be an answer all the same, and it says more than the error.
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

    /// A server that takes no more of the request may still answer; what has not left keeps the connection from being used again.
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

/// What is given up before it has left does not leave.
impl Drop for Connection {
    fn drop(&mut self) {
        self.request.take_back(&self.io);
    }
}

impl Unwritten {
    /// Leaves the request to be sent with what others send, where it is short and that is worth waiting for; `false`: it is not.
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
        // A kept connection must not hold on to what it has sent.
        self.pieces = Pieces::default();
        self.over = true;
        Poll::Ready(Ok(()))
    }

    /// Takes it back if it is still to leave; `true`: none of it has left.
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
    /// What comes behind the head; `None`: nothing does.
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
    async fn a_stream_after_a_long_answer_keeps_no_room_for_one() {
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
    async fn a_request_that_waits_to_be_sent_does_not_leave_when_it_is_given_up_or_its_server_has_gone() {
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
