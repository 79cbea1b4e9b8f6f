//! The stream of lines on a link: JSON-RPC requests, their answers and notifications, in both directions. Does not know their content.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use mcp_proto::envelope::{self, Answer, Message};
use mcp_proto::json::Duplicates;
use mcp_proto::lines::{Line, Lines};
use mesh_proto::message::MAX_BYTES;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use call::words::pour::BrokenOff;

/// Longest line, in bytes: the longest params within a message.
const MOST: usize = MAX_BYTES + (4 << 10);

/// Most lines waiting to be sent. A peer that takes none has a useless link.
const WAITING: usize = 256;

/// A message of the other side.
#[derive(Debug)]
pub enum LinkMessage {
    Notification {
        method: String,
        /// A raw object.
        params: Bytes,
    },
    Request {
        /// The raw id, for the answer.
        id: Bytes,
        method: String,
        /// A raw object.
        params: Bytes,
    },
}

/// This side's end of the stream.
#[derive(Debug)]
pub struct Control {
    lines: mpsc::Sender<Bytes>,
    asked: Mutex<HashMap<u64, oneshot::Sender<Answer>>>,
    next: AtomicU64,
    gone: CancellationToken,
}

/// Outgoing lines, as a body.
#[derive(Debug)]
pub struct OutgoingLines {
    lines: mpsc::Receiver<Bytes>,
    gone: Pin<Box<tokio_util::sync::WaitForCancellationFutureOwned>>,
}

impl Control {
    /// Makes an end. `gone` fires when the other side is out of reach, and ends the stream.
    pub fn new(gone: CancellationToken) -> (Arc<Self>, OutgoingLines) {
        let (lines, leaving) = mpsc::channel(WAITING);
        let leaving = OutgoingLines { lines: leaving, gone: Box::pin(gone.clone().cancelled_owned()) };
        (Arc::new(Self { lines, asked: Mutex::default(), next: AtomicU64::new(1), gone }), leaving)
    }

    /// Sends a request. Requests leave in order; the receiver fails when no answer can come any more.
    pub fn ask(&self, method: &str, params: &[u8]) -> oneshot::Receiver<Answer> {
        let (sender, receiver) = oneshot::channel();
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.lock().insert(id, sender);
        self.send(&envelope::request(id.to_string().as_bytes(), method, params));
        if self.gone.is_cancelled() {
            self.lock().clear();
        }
        receiver
    }

    /// Answers a request.
    pub fn answer(&self, id: &[u8], answer: &Answer) {
        self.send(&envelope::response(id, answer));
    }

    /// Sends a notification. A child notifies over the streams of its calls; other registrants may notify over the link.
    #[cfg(test)]
    pub fn notify(&self, method: &str, params: &[u8]) {
        self.send(&envelope::notification(method, params));
    }

    /// Reads messages until the end of the stream, or until a line is no message.
    pub async fn read(self: Arc<Self>, mut body: Incoming, said: mpsc::Sender<LinkMessage>) {
        let mut lines = Lines::new(MOST);
        loop {
            let frame = tokio::select! {
                frame = body.frame() => frame,
                () = self.gone.cancelled() => break,
            };
            let Some(Ok(frame)) = frame else { break };
            let Ok(data) = frame.into_data() else { continue };
            lines.handle_bytes(&data);
            if self.lines_of(&mut lines, &said).await.is_none() {
                break;
            }
        }
        self.gone.cancel();
        self.lock().clear();
    }

    /// Handles the whole lines received; `None`: the stream is over.
    async fn lines_of(&self, lines: &mut Lines, said: &mpsc::Sender<LinkMessage>) -> Option<()> {
        while let Some(line) = lines.poll_line() {
            let Line::Whole(text) = line else {
                tracing::warn!(most = MOST, "a line on a link is longer than allowed, the link is closed");
                return None;
            };
            let message = match Message::parse(&text, Duplicates::RefuseDeep) {
                Ok(message) => message,
                Err(error) => {
                    tracing::warn!(%error, "a line on a link is no message, the link is closed");
                    return None;
                }
            };
            match message {
                Message::Response(response) => self.answered(&response.id, response.answer),
                Message::Request(r) => {
                    let asked = LinkMessage::Request { id: r.id, method: r.method.into_owned(), params: r.params.text().clone() };
                    said.send(asked).await.ok()?;
                }
                Message::Notification(n) => {
                    said.send(LinkMessage::Notification { method: n.method, params: n.params.text().clone() }).await.ok()?;
                }
            }
        }
        // What can't end within the limit never will.
        if lines.overflowed() { None } else { Some(()) }
    }

    fn answered(&self, id: &[u8], answer: Answer) {
        let id = std::str::from_utf8(id).ok().and_then(|id| id.parse().ok());
        if let Some(asked) = id.and_then(|id: u64| self.lock().remove(&id)) {
            // Whoever asked may have gone.
            drop(asked.send(answer));
        }
    }

    /// Sends a line. A peer that takes nothing is given up rather than waited for.
    fn send(&self, message: &[u8]) {
        let mut line = Vec::with_capacity(message.len() + 1);
        line.extend(message.iter().map(|b| if matches!(b, b'\n' | b'\r') { b' ' } else { *b }));
        line.push(b'\n');
        if self.lines.try_send(line.into()).is_err() {
            self.gone.cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Answer>>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Body for OutgoingLines {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        if let Poll::Ready(line) = self.lines.poll_recv(cx) {
            return Poll::Ready(line.map(|line| Ok(Frame::data(line))));
        }
        self.gone.as_mut().poll(cx).map(|()| None)
    }
}
