//! Messages of a room on their way to a socket: one after the other, several at a time where several wait. Does not bound the queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use room_proto::name::ConnectionId;
use room_proto::room::{CloseReason, Settings};
use room_proto::websocket::{Opcode, close, frame};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::Way;
use crate::driver::Live;

/// Interval of pings.
pub const PING: Duration = Duration::from_secs(30);
/// Patience for a close frame.
pub const LINGER: Duration = Duration::from_secs(30);
/// Messages taken at once.
const BATCH: usize = 64;
/// Approximate bytes written at once.
const PIECE: usize = 64 << 10;

/// The room's end.
pub struct Outlet {
    queue: mpsc::Sender<QueuedFrame>,
    ends: mpsc::Sender<Bytes>,
    pub written: Arc<WrittenCounts>,
    pub way: Way,
}

/// A seated connection.
pub struct SeatedConnection {
    pub id: ConnectionId,
    pub room: Arc<Live>,
    /// Longest message accepted by the room.
    pub longest: usize,
    /// Takes the close frame due behind all messages of the room.
    pub last: oneshot::Sender<Bytes>,
    pub source: Source,
}

/// Messages to be written.
pub struct Source {
    queue: mpsc::Receiver<QueuedFrame>,
    /// A close frame in place of the queue.
    ends: mpsc::Receiver<Bytes>,
    last: oneshot::Receiver<Bytes>,
    written: Arc<WrittenCounts>,
}

enum QueuedFrame {
    Close(CloseReason),
    /// A frame, and the length of the message within.
    Message(Bytes, usize),
}

impl Source {
    /// Gives the next message, for parts of the gate; `None`: the room has let go.
    pub async fn next(&mut self) -> Option<Bytes> {
        let outgoing = tokio::select! {
            biased;
            Some(_) = self.ends.recv() => None,
            outgoing = self.queue.recv() => outgoing,
        };
        match outgoing? {
            QueuedFrame::Close(_) => None,
            QueuedFrame::Message(framed, length) => {
                self.written.add(1, length);
                // What a server sends is not masked: the message is the end of its frame.
                Some(framed.slice(framed.len() - length..))
            }
        }
    }
}

/// Counts of written messages and bytes.
#[derive(Default)]
pub struct WrittenCounts {
    messages: AtomicUsize,
    bytes: AtomicUsize,
}

impl WrittenCounts {
    /// Takes the counted messages and bytes, and counts anew.
    pub fn take_counts(&self) -> (usize, usize) {
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

/// Makes both ends of the way to a connection.
pub fn outlet(id: ConnectionId, room: Arc<Live>, settings: &Settings, way: Way) -> (Outlet, SeatedConnection) {
    // The room counts what waits, so that there is a place for all it sends: and one for the last word.
    let (queue, queued) = mpsc::channel(settings.queue_messages.max(1) + 1);
    let (ends, ended) = mpsc::channel(1);
    let (last, is_last) = oneshot::channel();
    let written = Arc::new(WrittenCounts::default());
    let outlet = Outlet { queue, ends, written: Arc::clone(&written), way };
    let source = Source { queue: queued, ends: ended, last: is_last, written };
    (outlet, SeatedConnection { id, room, longest: settings.message_bytes, last, source })
}

impl Outlet {
    /// Sends a frame, counted as `length` bytes by the room; `false`: the queue is full.
    pub fn send(&self, framed: Bytes, length: usize) -> bool {
        !matches!(self.queue.try_send(QueuedFrame::Message(framed, length)), Err(mpsc::error::TrySendError::Full(_)))
    }

    /// Closes the connection with a reason, behind the queue or in its place.
    pub fn close(self, why: CloseReason) {
        let (Ok(()) | Err(_)) = if why.drops_what_waits() {
            self.ends.try_send(close(why.code(), why.reason(), None).into()).map_err(drop)
        } else {
            self.queue.try_send(QueuedFrame::Close(why)).map_err(drop)
        };
    }
}

/// Writer until the connection is closed or lost.
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

    /// Writes messages; `false`: the last.
    async fn put(&mut self, waiting: Vec<QueuedFrame>) -> bool {
        let (mut messages, mut bytes) = (0, 0);
        for outgoing in waiting {
            match outgoing {
                QueuedFrame::Close(why) => {
                    self.finish(&close(why.code(), why.reason(), None)).await;
                    return false;
                }
                QueuedFrame::Message(framed, length) => {
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

    /// Writes the buffer, unless ordered to end meanwhile; `false`: ended, or the other end is gone.
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

    /// Writes the rest and the last frame, within the patience.
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

/// Writes the buffer; bytes written leave the buffer even if the future is dropped half-way.
async fn write_all(stream: &mut (impl AsyncWrite + Unpin), buffer: &mut BytesMut) -> bool {
    while !buffer.is_empty() {
        if !matches!(stream.write_buf(buffer).await, Ok(1..)) {
            return false;
        }
    }
    stream.flush().await.is_ok()
}
