//! A participant's connection: hands received frames to the room, and tells both sides of its end. Does not know the messages.

use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use room_proto::name::ConnectionId;
use room_proto::websocket::{End, Opcode, Reader, WebSocketError, WebSocketEvent, close, frame};
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf, ReadHalf};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::driver::{Input, Live};
use crate::pass::WatchedAdmission;
use crate::writer::{LINGER, PING, SeatedConnection, Writer};

/// Longest silence of the other end: two pings, and half the time of another for the answer.
const SILENCE: Duration = Duration::from_secs(PING.as_secs() * 5 / 2);
/// Patience for the upgrade.
const UPGRADE: Duration = Duration::from_secs(30);
/// Patience for the other end's close frame.
const FAREWELL: Duration = Duration::from_secs(1);
/// Bytes read at once.
const PIECE: usize = 8 << 10;
/// Pings waiting for an answer.
const PINGS: usize = 16;

/// End of a connection.
enum ConnectionEnd {
    /// The other end closed, with this code if any.
    Closed(Option<u16>),
    Lost,
    /// The room closed the connection, or writing failed.
    Shut,
    /// Nothing was heard for long.
    Silent,
    /// The other end broke the protocol.
    Wrong(WebSocketError),
}

/// An upgraded connection, with its unread frames.
pub struct Line {
    stream: TokioIo<Upgraded>,
    pub frames: Reader,
}

impl Line {
    /// Opens a line for messages of at most `most` bytes; `None`: the other end did not take the upgrade.
    pub async fn open(upgrade: OnUpgrade, most: usize) -> Option<Self> {
        let stream = timeout(UPGRADE, upgrade).await.ok()?.ok()?;
        Some(Self { stream: TokioIo::new(stream), frames: Reader::new(End::Server, most) })
    }

    /// Reads on; `false`: the end.
    pub async fn fill(&mut self) -> bool {
        fill(&mut self.stream, &mut self.frames).await
    }

    /// Writes frames; `false`: the other end is gone.
    pub async fn write(&mut self, frames: &[u8]) -> bool {
        self.stream.write_all(frames).await.is_ok() && self.stream.flush().await.is_ok()
    }

    /// Reads and discards until the other end has closed, which might otherwise never see the reason.
    pub async fn farewell(mut self) {
        drop(timeout(FAREWELL, farewell(&mut self.stream, &mut self.frames)).await);
    }
}

/// Serves a seated connection until its end. `held` is ready when the admission is void.
pub async fn serve(joined: SeatedConnection, upgrade: OnUpgrade, held: WatchedAdmission) {
    match Line::open(upgrade, joined.longest).await {
        Some(line) => serve_over(joined, line, held).await,
        None => drop(joined.room.send(Input::Leave(joined.id)).await),
    }
}

/// Serves a seated connection that is a WebSocket already.
pub async fn serve_over(joined: SeatedConnection, line: Line, held: WatchedAdmission) {
    let SeatedConnection { id, room, longest, last, source } = joined;
    let Line { stream, mut frames } = line;
    let (read, write) = tokio::io::split(stream);
    let (pongs, to_answer) = mpsc::channel(PINGS);
    let mut writer = tokio::spawn(Writer::new(write, source, to_answer).run());
    // One that is somewhat too long is still read, so that its sender is told in an envelope.
    frames.bound(longest.saturating_mul(2));
    let mut ear = Ear { read, frames, room, id, pongs };
    let ended = ear.until_over(&mut writer, held).await;
    // Before the room lets go of it: what it has said until then goes out first.
    if let Some(frame) = last_word(&ended) {
        drop(last.send(frame));
    }
    if matches!(ended, ConnectionEnd::Lost) {
        writer.abort();
    }
    ear.room.send(Input::Leave(id)).await;
    if !writer.is_finished() && timeout(LINGER, &mut writer).await.is_err() {
        writer.abort();
    }
    if matches!(ended, ConnectionEnd::Shut | ConnectionEnd::Silent | ConnectionEnd::Wrong(_)) {
        drop(timeout(FAREWELL, farewell(&mut ear.read, &mut ear.frames)).await);
    }
}

/// Gives the close frame due, if any.
fn last_word(ended: &ConnectionEnd) -> Option<Bytes> {
    match ended {
        ConnectionEnd::Closed(Some(code)) => Some(close(*code, "", None).into()),
        ConnectionEnd::Closed(None) => Some(frame(Opcode::Close, b"", None).into()),
        ConnectionEnd::Lost | ConnectionEnd::Shut => None,
        ConnectionEnd::Silent => Some(close(1008, "nothing was heard of you for 75 s: answer pings", None).into()),
        ConnectionEnd::Wrong(why) => Some(close(why.code(), &why.to_string(), None).into()),
    }
}

/// The reading half.
struct Ear {
    read: ReadHalf<TokioIo<Upgraded>>,
    frames: Reader,
    room: Arc<Live>,
    id: ConnectionId,
    pongs: mpsc::Sender<Bytes>,
}

impl Ear {
    /// Serves until either side ends the connection; the room is told when the admission is void.
    async fn until_over(&mut self, writer: &mut JoinHandle<()>, held: WatchedAdmission) -> ConnectionEnd {
        let (room, id) = (Arc::clone(&self.room), self.id);
        let withdrawn = async {
            held.over().await;
            room.send(Input::Withdraw(id)).await;
            std::future::pending().await
        };
        tokio::select! {
            ended = self.listen() => ended,
            _ = writer => ConnectionEnd::Shut,
            ended = withdrawn => ended,
        }
    }

    /// Hands received messages on, until the end.
    async fn listen(&mut self) -> ConnectionEnd {
        loop {
            let heard = match self.frames.poll() {
                Ok(Some(WebSocketEvent::Close(code, _))) => return ConnectionEnd::Closed(code),
                Ok(Some(WebSocketEvent::Ping(payload))) => match timeout(SILENCE, self.pongs.send(payload)).await {
                    Ok(sent) => sent.is_ok(),
                    Err(_) => return ConnectionEnd::Silent,
                },
                Ok(Some(WebSocketEvent::Pong(_))) => true,
                Ok(Some(WebSocketEvent::Text(bytes))) => match self.room.send(Input::Message(self.id, bytes)).await {
                    true => true,
                    // It has said so, and that is on its way.
                    false => return ConnectionEnd::Shut,
                },
                Ok(None) => match timeout(SILENCE, fill(&mut self.read, &mut self.frames)).await {
                    Ok(filled) => filled,
                    Err(_) => return ConnectionEnd::Silent,
                },
                Err(why) => return ConnectionEnd::Wrong(why),
            };
            if !heard {
                return ConnectionEnd::Lost;
            }
        }
    }
}

/// Reads on; `false`: the end.
///
/// The buffer lies on the stack: most participants are silent, and each would keep a buffer otherwise.
async fn fill(read: &mut (impl AsyncRead + Unpin), frames: &mut Reader) -> bool {
    std::future::poll_fn(|cx| {
        let mut room = [MaybeUninit::uninit(); PIECE];
        let mut piece = ReadBuf::uninit(&mut room);
        let outcome = ready!(Pin::new(&mut *read).poll_read(cx, &mut piece));
        frames.handle_bytes(piece.filled());
        Poll::Ready(outcome.is_ok() && !piece.filled().is_empty())
    })
    .await
}

/// Reads and discards until the other end has closed, which might otherwise never see the reason.
async fn farewell(read: &mut (impl AsyncRead + Unpin), frames: &mut Reader) {
    loop {
        while let Ok(Some(received)) = frames.poll() {
            if matches!(received, WebSocketEvent::Close(..)) {
                return;
            }
        }
        if !fill(read, frames).await {
            return;
        }
    }
}
