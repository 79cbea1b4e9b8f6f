//! The connection of nearly every client: POSTs of known length over HTTP/1.1, one after the other, answered in place.
//!
//! No task, no channel and no copy of the head stand between the socket and the call. Anything unusual goes to a full HTTP server, which
//! takes the connection over. Knows no request's meaning.

use std::cell::RefCell;
use std::hash::RandomState;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http_body::Body;
use mcp_proto::http1::{Before, Heads, Post, Unusual};
use runtime::alarm::Alarm;
use runtime::clock;
use runtime::together::{self, Carried};
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;
use tokio_util::io::poll_read_buf;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::downstream::McpServer;
use crate::downstream::endpoint;
use crate::downstream::endpoint::RequestHead;
use call::words::party::Party;
use door::body;
use door::connections::{Connection, IDLE};
use door::events::Events;
use door::known::KnownClient;
use door::port::ReadEnd;
use door::reply;
use door::reply::Reply;
use door::socket::Socket;

pub mod pour;
#[cfg(test)]
mod tests;

/// Time for a client to begin its first request.
const FIRST: Duration = Duration::from_secs(10);
/// Longest reading of unwanted bytes before a connection is closed for good.
const LINGER: Duration = Duration::from_secs(2);
/// Room for a read in bytes: for a length unknown, and the least.
const ROOM: usize = 8 << 10;
const LEAST_ROOM: usize = 1 << 10;
/// Growth of the next request over the last that still fits, in bytes.
const SPREAD: usize = 256;
/// Most bytes of further requests accepted while a call runs.
const AHEAD: usize = 64 << 10;

/// Serves until an unusual request comes, the connection ends or `stop` fires.
pub async fn serve<S: Socket>(server: &Arc<McpServer>, stream: S, party: Option<Arc<Party>>, connection: &Connection) -> ReadEnd<S> {
    let stop = &connection.stop;
    let mut line = Line::new(stream, stop, Patience { arrival: body::ARRIVAL, idle: FIRST, later: IDLE });
    let mut known = KnownClient::of_party(party);
    loop {
        let post = match line.head().await {
            Ok(Some(post)) => post,
            Ok(None) => return ReadEnd::Ended,
            Err(Unusual) => return ReadEnd::Unusual(line.buffer.freeze(), line.stream),
        };
        connection.stir();
        let carried = Carried::count();
        let Some(answered) = answer(server, &mut line, &post, &mut known, stop).await else { return ReadEnd::Ended };
        let left = if answered.keep && together::are_many() { line.post(answered.wire).await } else { Err(answered.wire) };
        if left.is_err() {
            together::others_first().await;
        }
        drop(carried);
        if let Err(wire) = left
            && (line.send(wire).await.is_err() || !answered.keep)
        {
            line.close(answered.read).await;
            return ReadEnd::Ended;
        }
        line.rest();
        connection.rest(line.since);
    }
}

struct PlainAnswer {
    wire: reply::Wire,
    /// The request has been read to its end.
    read: bool,
    /// More requests may come.
    keep: bool,
}

/// Answers a request; `None` once the client has gone.
async fn answer<S: Socket>(
    server: &Arc<McpServer>,
    line: &mut Line<S>,
    post: &Post,
    known: &mut KnownClient,
    stop: &CancellationToken,
) -> Option<PlainAnswer> {
    let answered = |reply: Reply, read: bool| {
        let keep = post.keeps_connection() && !stop.is_cancelled() && read;
        PlainAnswer { wire: reply.wire(keep), read, keep }
    };
    let (path, query) = post.target();
    let asked = RequestHead { path, query, fields: post.fields() };
    let limit = known.config(&server.entrance).limits.request_bytes;
    if post.length() > limit {
        return Some(answered(body::too_long(limit), false));
    }
    let admitted = match endpoint::admit(server, asked, known) {
        Ok(admitted) => admitted,
        Err(reply) => return Some(answered(reply, line.skip(post.length()))),
    };
    let taken =
        match (post.length() > body::COUNTED).then(|| body::room(&server.entrance.gate, admitted.principal(), post.length())).transpose() {
            Ok(taken) => taken,
            Err(reply) => return Some(answered(reply, line.skip(post.length()))),
        };
    let body = body::counted(line.body(post.length()).await?, taken);
    line.watched(pin!(async { answered(endpoint::post(server, &admitted, asked, &body, known).await, true) })).await
}

thread_local! {
    /// Heads recently seen by this thread.
    static HEADS: RefCell<Heads<Post>> = RefCell::new(Heads::new(RandomState::new()));
}

/// A client's connection.
struct Line<S> {
    stream: S,
    buffer: BytesMut,
    /// Likely length of the next request, in bytes. Reusing the buffer of the last request keeps memory shared by many connections in the
    /// processor's cache.
    expected: usize,
    /// Head of the request before.
    before: Before<Post>,
    stop: Pin<Box<WaitForCancellationFutureOwned>>,
    /// The task's waker is registered with `stop` and the alarm.
    is_wakened: bool,
    /// No wake-up has come since the wait began.
    is_fresh: bool,
    alarm: Alarm,
    /// Beginning of the present wait.
    since: Instant,
    /// A head has begun to come.
    begun: bool,
    patience: Patience,
}

/// Time limits.
#[derive(Clone, Copy)]
struct Patience {
    arrival: Duration,
    /// For the next request.
    idle: Duration,
    /// For later requests.
    later: Duration,
}

impl<S: Socket> Line<S> {
    fn new(stream: S, stop: &CancellationToken, patience: Patience) -> Self {
        let now = Instant::now();
        Self {
            stream,
            buffer: BytesMut::new(),
            expected: ROOM,
            before: Before::default(),
            stop: Box::pin(stop.clone().cancelled_owned()),
            is_wakened: false,
            is_fresh: false,
            alarm: Alarm::new(now, patience.arrival),
            since: now,
            begun: false,
            patience,
        }
    }

    /// Begins to wait for the next request.
    fn rest(&mut self) {
        self.since = Instant::now();
        self.begun = false;
        self.is_fresh = true;
        self.patience.idle = self.patience.later;
    }

    /// Closes the connection; `read`: the client's bytes are all read.
    ///
    /// Unread bytes would make the kernel withdraw the answer (RFC 9112, section 9.6), so reading goes on for a while.
    async fn close(mut self, read: bool) {
        if self.stream.shutdown().await.is_err() || read {
            return;
        }
        let rest = std::future::poll_fn(|cx| {
            while ready!(self.poll_read(cx, ROOM)) {
                self.buffer.clear();
            }
            Poll::Ready(())
        });
        drop(tokio::time::timeout(LINGER, rest).await);
    }

    /// Reads the head of the next request; `None` at the end.
    async fn head(&mut self) -> Result<Option<Post>, Unusual> {
        std::future::poll_fn(|cx| self.poll_head(cx)).await
    }

    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Post>, Unusual>> {
        if ready!(self.stream.poll_stuck(cx)).is_err() {
            return Poll::Ready(Ok(None));
        }
        loop {
            if !self.buffer.is_empty()
                && let Some(post) = Post::take_after(&mut self.buffer, endpoint::is_here, &mut self.before)?
            {
                if self.before.is_alone() {
                    HEADS.with_borrow_mut(|heads| self.before.share(heads));
                }
                self.expected = post.length().saturating_add(post.head() + SPREAD).min(ROOM);
                return Poll::Ready(Ok(Some(post)));
            }
            if !self.buffer.is_empty() && !self.begun {
                // A head that comes in pieces has a time of its own, after any idle time.
                self.since = Instant::now();
                self.begun = true;
            }
            match self.poll_read(cx, self.expected) {
                Poll::Ready(true) => {}
                Poll::Ready(false) => return Poll::Ready(Ok(None)),
                Poll::Pending if self.is_at_rest() => return Poll::Pending,
                Poll::Pending if self.buffer.is_empty() && self.stop.as_mut().poll(cx).is_ready() => return Poll::Ready(Ok(None)),
                Poll::Pending => {
                    let patience = if self.buffer.is_empty() { self.patience.idle } else { self.patience.arrival };
                    return self.poll_patience(cx, patience).map(|()| Ok(None));
                }
            }
        }
    }

    /// Checks for a wait that has just begun with the waker already registered: with `stop` by the answer before, and with an alarm that
    /// rings too early at most. Both are polled again only after a wake-up.
    fn is_at_rest(&mut self) -> bool {
        let is_fresh = std::mem::take(&mut self.is_fresh);
        if !self.buffer.is_empty() {
            return false;
        }
        // An alarm that rang during a call will not ring again.
        std::mem::replace(&mut self.is_wakened, true) && is_fresh && self.alarm.rings_by(self.since + self.patience.idle)
    }

    /// Reads the body of a request, `length` bytes; `None` where it did not come.
    async fn body(&mut self, length: usize) -> Option<Bytes> {
        if self.buffer.len() < length {
            self.since = Instant::now();
        }
        let whole = std::future::poll_fn(|cx| {
            while self.buffer.len() < length {
                match self.poll_read(cx, length - self.buffer.len()) {
                    Poll::Ready(true) => {}
                    Poll::Ready(false) => return Poll::Ready(false),
                    Poll::Pending => {
                        let patience = body::patience(self.patience.arrival, self.buffer.len());
                        return self.poll_patience(cx, patience).map(|()| false);
                    }
                }
            }
            Poll::Ready(true)
        });
        if !whole.await {
            return None;
        }
        let body = self.buffer.split_to(length).freeze();
        if length > ROOM && self.buffer.is_empty() {
            // An idle connection must not keep the buffer of a long body.
            self.buffer = BytesMut::new();
        }
        Some(body)
    }

    /// Skips an unwanted body; `false` where part of it is still to come.
    fn skip(&mut self, length: usize) -> bool {
        let here = self.buffer.len() >= length;
        if here {
            self.buffer.advance(length);
        }
        here
    }

    /// Waits for `answer`, unless the client goes away before.
    async fn watched<T>(&mut self, mut answer: Pin<&mut impl Future<Output = T>>) -> Option<T> {
        std::future::poll_fn(|cx| {
            if let Poll::Ready(reply) = clock::turn(|| answer.as_mut().poll(cx)) {
                return Poll::Ready(Some(reply));
            }
            ready!(self.poll_gone(cx));
            Poll::Ready(None)
        })
        .await
    }

    /// Completes when the client has closed its side. Bytes sent ahead are kept.
    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // A client that sends the next request still reads the answer before.
        if matches!(self.stream.poll_stuck(cx), Poll::Ready(Err(_))) {
            return Poll::Ready(());
        }
        while self.buffer.len() < AHEAD {
            if !ready!(self.poll_read(cx, ROOM)) {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }

    /// Reads once; `false` at the end of the stream. The buffer grows only when there are bytes to read.
    fn poll_read(&mut self, cx: &mut Context<'_>, room: usize) -> Poll<bool> {
        if ready!(self.stream.poll_readable(cx)).is_err() {
            return Poll::Ready(false);
        }
        self.buffer.reserve(room.clamp(LEAST_ROOM, 1 << 20));
        // Unlike `try_read_buf`, this takes a read that leaves room unfilled for the last, and spares a call to the kernel.
        let read = ready!(poll_read_buf(Pin::new(&mut self.stream), cx, &mut self.buffer));
        Poll::Ready(read.is_ok_and(|read| read > 0))
    }

    /// Completes after `patience` without a byte.
    fn poll_patience(&mut self, cx: &mut Context<'_>, patience: Duration) -> Poll<()> {
        self.alarm.poll(self.since + patience, cx)
    }

    /// Queues a short reply to be sent together with those of other connections; returns the reply where queueing is not worth the wait.
    async fn post(&self, wire: reply::Wire) -> Result<(), reply::Wire> {
        let (mut text, body, tail) = match wire {
            reply::Wire::Whole(text, body, tail) if body.is_empty() && tail.is_empty() => (text, body, tail),
            reply::Wire::Whole(..) | reply::Wire::Events(..) | reply::Wire::Pour(..) => return Err(wire),
        };
        let posted = std::future::poll_fn(|cx| Poll::Ready(self.stream.post(std::mem::take(&mut text), cx))).await;
        posted.map_err(|text| reply::Wire::Whole(text, body, tail))
    }

    async fn send(&mut self, wire: reply::Wire) -> io::Result<()> {
        match wire {
            reply::Wire::Whole(head, body, tail) if body.is_empty() && tail.is_empty() => {
                self.stream.write_all(&head).await?;
                self.stream.flush().await
            }
            reply::Wire::Whole(head, body, tail) => {
                let mut pieces = [IoSlice::new(&head), IoSlice::new(&body), IoSlice::new(tail)];
                let mut left = &mut pieces[..];
                while !left.is_empty() {
                    match self.stream.write_vectored(left).await? {
                        0 => return Err(io::ErrorKind::WriteZero.into()),
                        written => IoSlice::advance_slices(&mut left, written),
                    }
                }
                self.stream.flush().await
            }
            reply::Wire::Events(head, events) => {
                self.stream.write_all(&head).await?;
                self.stream_events(*events).await
            }
            reply::Wire::Pour(head, body) => {
                self.stream.write_all(&head).await?;
                self.pour(*body).await
            }
        }
    }

    /// Sends events as chunks until the last; fails when the client has gone.
    async fn stream_events(&mut self, mut events: Events) -> io::Result<()> {
        loop {
            let frame = std::future::poll_fn(|cx| {
                if let Poll::Ready(frame) = Pin::new(&mut events).poll_frame(cx) {
                    return Poll::Ready(Ok(frame));
                }
                ready!(self.poll_gone(cx));
                Poll::Ready(Err(io::ErrorKind::ConnectionReset))
            });
            let Some(frame) = frame.await? else { return self.write(b"0\r\n\r\n").await };
            let Ok(data) = frame.map_err(io::Error::other)?.into_data() else { continue };
            let mut chunk = Vec::with_capacity(data.len() + 20);
            chunk.extend_from_slice(format!("{:x}\r\n", data.len()).as_bytes());
            chunk.extend_from_slice(&data);
            chunk.extend_from_slice(b"\r\n");
            self.write(&chunk).await?;
        }
    }

    /// Writes all of `bytes`; fails when the client has gone, which shows on the reading side.
    async fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        std::future::poll_fn(|cx| {
            while !bytes.is_empty() {
                match Pin::new(&mut self.stream).poll_write(cx, bytes) {
                    Poll::Ready(written) => bytes = &bytes[written?..],
                    Poll::Pending => {
                        ready!(self.poll_gone(cx));
                        return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
                    }
                }
            }
            self.poll_flushed(cx)
        })
        .await
    }

    /// Completes when all bytes written have left; fails when the client has gone.
    fn poll_flushed(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Poll::Ready(flushed) = Pin::new(&mut self.stream).poll_flush(cx) {
            return Poll::Ready(flushed);
        }
        ready!(self.poll_gone(cx));
        Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
    }
}
