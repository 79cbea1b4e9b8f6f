//! What a room sends to one connection, on its way to the socket: messages one after the other, several at a time where several wait. How
//! much may wait is not decided here.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use room_proto::name::ConnectionId;
use room_proto::room::{Closed, Settings};
use room_proto::websocket::{Opcode, close, frame};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::Way;
use crate::driver::Live;

/// How often the other end is asked whether it is there.
pub const PING: Duration = Duration::from_secs(30);
/// How long a close frame may take to leave.
pub const LINGER: Duration = Duration::from_secs(30);
/// So many messages are taken at once.
const BATCH: usize = 64;
/// What waits is written in pieces of about this size, in bytes.
const PIECE: usize = 64 << 10;

/// The room's end.
pub struct Outlet {
    queue: mpsc::Sender<Outgoing>,
    ends: mpsc::Sender<Bytes>,
    pub written: Arc<Written>,
    pub way: Way,
}

/// A connection that has a seat.
pub struct Joined {
    pub id: ConnectionId,
    pub room: Arc<Live>,
    /// The longest message that its room takes.
    pub longest: usize,
    /// Takes the close frame that is due behind all that the room has sent.
    pub last: oneshot::Sender<Bytes>,
    pub source: Source,
}

/// What is to be written.
pub struct Source {
    queue: mpsc::Receiver<Outgoing>,
    /// A close frame in place of what waits.
    ends: mpsc::Receiver<Bytes>,
    last: oneshot::Receiver<Bytes>,
    written: Arc<Written>,
}

enum Outgoing {
    Close(Closed),
    /// A frame, and the length of the message in it.
    Message(Bytes, usize),
}

impl Source {
    /// The next message, for whoever sits in the gate itself; `None`: the room has let go of it.
    pub async fn next(&mut self) -> Option<Bytes> {
        let outgoing = tokio::select! {
            biased;
            Some(_) = self.ends.recv() => None,
            outgoing = self.queue.recv() => outgoing,
        };
        match outgoing? {
            Outgoing::Close(_) => None,
            Outgoing::Message(framed, length) => {
                self.written.add(1, length);
                // What a server sends is not masked: the message is the end of its frame.
                Some(framed.slice(framed.len() - length..))
            }
        }
    }
}

/// What has been written since it was asked last.
#[derive(Default)]
pub struct Written {
    messages: AtomicUsize,
    bytes: AtomicUsize,
}

impl Written {
    /// Takes the counted messages and bytes, and counts anew.
    pub fn take(&self) -> (usize, usize) {
        if self.messages.load(Ordering::Relaxed) == 0 {
            return (0, 0);
        }
        (self.messages.swap(0, Ordering::AcqRel), self.bytes.swap(0, Ordering::AcqRel))
    }

    fn add(&self, messages: usize, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::AcqRel);
        self.messages.fetch_add(messages, Ordering::AcqRel);
    }
}

/// Both ends of the way to one connection.
pub fn outlet(id: ConnectionId, room: Arc<Live>, settings: &Settings, way: Way) -> (Outlet, Joined) {
    // The room counts what waits, so that there is a place for all it sends: and one for the last word.
    let (queue, queued) = mpsc::channel(settings.queue_messages.max(1) + 1);
    let (ends, ended) = mpsc::channel(1);
    let (last, is_last) = oneshot::channel();
    let written = Arc::new(Written::default());
    let outlet = Outlet { queue, ends, written: Arc::clone(&written), way };
    let source = Source { queue: queued, ends: ended, last: is_last, written };
    (outlet, Joined { id, room, longest: settings.message_bytes, last, source })
}

impl Outlet {
    /// A frame, and the length of the message that the room counts for it; `false`: there is no place, or nobody reads there any more.
    pub fn send(&self, framed: Bytes, length: usize) -> bool {
        !matches!(self.queue.try_send(Outgoing::Message(framed, length)), Err(mpsc::error::TrySendError::Full(_)))
    }

    /// Says why, behind what waits or instead of it.
    pub fn close(self, why: Closed) {
        let (Ok(()) | Err(_)) = if why.drops_what_waits() {
            self.ends.try_send(close(why.code(), why.reason(), None).into()).map_err(drop)
        } else {
            self.queue.try_send(Outgoing::Close(why)).map_err(drop)
        };
    }
}

/// Writes until the connection is closed or lost.
pub struct Writer<W> {
    stream: W,
    source: Source,
    /// Answers to the other end's pings.
    pongs: mpsc::Receiver<Bytes>,
    buffer: BytesMut,
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    /// Makes the writer of a connection.
    pub fn new(stream: W, source: Source, pongs: mpsc::Receiver<Bytes>) -> Self {
        Self { stream, source, pongs, buffer: BytesMut::new() }
    }

    /// Writes messages, pings and pongs until the connection ends.
    pub async fn run(mut self) {
        let mut ping = interval_at(Instant::now() + PING, PING);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let mut waiting = Vec::new();
            tokio::select! {
                biased;
                Some(last) = self.source.ends.recv() => return self.finish(&last).await,
                Some(payload) = self.pongs.recv() => self.buffer.extend_from_slice(&frame(Opcode::Pong, &payload, None)),
                count = self.source.queue.recv_many(&mut waiting, BATCH) => if count == 0 {
                    // The room has let go of it.
                    if let Ok(last) = self.source.last.try_recv() {
                        self.finish(&last).await;
                    }
                    return;
                },
                _ = ping.tick() => self.buffer.extend_from_slice(&frame(Opcode::Ping, b"", None)),
            }
            if !self.put(waiting).await {
                return;
            }
            // An idle connection keeps nothing.
            self.buffer = BytesMut::new();
        }
    }

    /// `false`: it was the last.
    async fn put(&mut self, waiting: Vec<Outgoing>) -> bool {
        let (mut messages, mut bytes) = (0, 0);
        for outgoing in waiting {
            match outgoing {
                Outgoing::Close(why) => {
                    self.finish(&close(why.code(), why.reason(), None)).await;
                    return false;
                }
                Outgoing::Message(framed, length) => {
                    self.buffer.extend_from_slice(&framed);
                    (messages, bytes) = (messages + 1, bytes + length);
                }
            }
            if self.buffer.len() >= PIECE {
                if !self.flush().await {
                    return false;
                }
                self.source.written.add(std::mem::take(&mut messages), std::mem::take(&mut bytes));
            }
        }
        let is_open = self.flush().await;
        self.source.written.add(messages, bytes);
        is_open
    }

    /// Writes what is in the buffer, unless it is told to end meanwhile; `false`: it was, or nobody is there.
    async fn flush(&mut self) -> bool {
        let last = {
            let all = write_all(&mut self.stream, &mut self.buffer);
            tokio::select! {
                biased;
                Some(last) = self.source.ends.recv() => last,
                written = all => return written,
            }
        };
        self.finish(&last).await;
        false
    }

    /// Writes what was begun and the last frame, if that leaves in time.
    async fn finish(&mut self, last: &[u8]) {
        self.buffer.extend_from_slice(last);
        let rest = async {
            if write_all(&mut self.stream, &mut self.buffer).await {
                drop(self.stream.shutdown().await);
            }
        };
        drop(tokio::time::timeout(LINGER, rest).await);
    }
}

/// What has been written is taken off the buffer, even when this is given up half-way.
async fn write_all(stream: &mut (impl AsyncWrite + Unpin), buffer: &mut BytesMut) -> bool {
    while !buffer.is_empty() {
        if !matches!(stream.write_buf(buffer).await, Ok(1..)) {
            return false;
        }
    }
    stream.flush().await.is_ok()
}
