//! One participant's connection: frames are read and handed to the room, and whatever ends it is said to both sides. What a message means
//! is not known here.

use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use room_proto::name::ConnectionId;
use room_proto::websocket::{End, Opcode, Reader, Received, WebSocketError, close, frame};
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf, ReadHalf};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::driver::{Input, Live};
use crate::pass::Held;
use crate::writer::{Joined, LINGER, PING, Writer};

/// How long nothing may be heard of the other end: two pings, and half of one for the answer.
const SILENCE: Duration = Duration::from_secs(PING.as_secs() * 5 / 2);
/// How long the other end has to take the upgrade.
const UPGRADE: Duration = Duration::from_secs(30);
/// How long the other end may take to close when it was told to.
const FAREWELL: Duration = Duration::from_secs(1);
/// So much is read at once, in bytes.
const PIECE: usize = 8 << 10;
/// Pings that may wait for an answer.
const PINGS: usize = 16;

/// How it ended.
enum Ended {
    /// The other end closed, with this code if it said one.
    Closed(Option<u16>),
    /// The connection is lost.
    Lost,
    /// The room closed it, or it can't be written to.
    Shut,
    /// Nothing was heard for long.
    Silent,
    /// It broke the protocol.
    Wrong(WebSocketError),
}

/// A connection that has become a WebSocket, and what has come over it.
pub struct Line {
    stream: TokioIo<Upgraded>,
    pub frames: Reader,
}

impl Line {
    /// Reads messages of at most `most` bytes; `None`: the other end did not take the upgrade.
    pub async fn open(upgrade: OnUpgrade, most: usize) -> Option<Self> {
        let stream = timeout(UPGRADE, upgrade).await.ok()?.ok()?;
        Some(Self { stream: TokioIo::new(stream), frames: Reader::new(End::Server, most) })
    }

    /// Reads on; `false`: there is no more.
    pub async fn fill(&mut self) -> bool {
        fill(&mut self.stream, &mut self.frames).await
    }

    /// `false`: nobody is there.
    pub async fn write(&mut self, frames: &[u8]) -> bool {
        self.stream.write_all(frames).await.is_ok() && self.stream.flush().await.is_ok()
    }

    /// Reads what nobody wants to know, until the other end has closed: else it might never see why.
    pub async fn farewell(mut self) {
        drop(timeout(FAREWELL, farewell(&mut self.stream, &mut self.frames)).await);
    }
}

/// Serves a connection that has a seat, until it is over. `held` is ready when what let it in holds no more.
pub async fn serve(joined: Joined, upgrade: OnUpgrade, held: Held) {
    match Line::open(upgrade, joined.longest).await {
        Some(line) => serve_over(joined, line, held).await,
        None => drop(joined.room.send(Input::Leave(joined.id)).await),
    }
}

/// The same over one that is a WebSocket already.
pub async fn serve_over(joined: Joined, line: Line, held: Held) {
    let Joined { id, room, longest, last, source } = joined;
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
    if matches!(ended, Ended::Lost) {
        writer.abort();
    }
    ear.room.send(Input::Leave(id)).await;
    if !writer.is_finished() && timeout(LINGER, &mut writer).await.is_err() {
        writer.abort();
    }
    if matches!(ended, Ended::Shut | Ended::Silent | Ended::Wrong(_)) {
        drop(timeout(FAREWELL, farewell(&mut ear.read, &mut ear.frames)).await);
    }
}

/// The close frame that is due.
fn last_word(ended: &Ended) -> Option<Bytes> {
    match ended {
        Ended::Closed(Some(code)) => Some(close(*code, "", None).into()),
        Ended::Closed(None) => Some(frame(Opcode::Close, b"", None).into()),
        Ended::Lost | Ended::Shut => None,
        Ended::Silent => Some(close(1008, "nothing was heard of you for 75 s: answer pings", None).into()),
        Ended::Wrong(why) => Some(close(why.code(), &why.to_string(), None).into()),
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
    /// Until either side ends it; the room is told when what let it in holds no more.
    async fn until_over(&mut self, writer: &mut JoinHandle<()>, held: Held) -> Ended {
        let (room, id) = (Arc::clone(&self.room), self.id);
        let withdrawn = async {
            held.over().await;
            room.send(Input::Withdraw(id)).await;
            std::future::pending().await
        };
        tokio::select! {
            ended = self.listen() => ended,
            _ = writer => Ended::Shut,
            ended = withdrawn => ended,
        }
    }

    /// Hands on what comes, until it ends.
    async fn listen(&mut self) -> Ended {
        loop {
            let heard = match self.frames.poll() {
                Ok(Some(Received::Close(code, _))) => return Ended::Closed(code),
                Ok(Some(Received::Ping(payload))) => match timeout(SILENCE, self.pongs.send(payload)).await {
                    Ok(sent) => sent.is_ok(),
                    Err(_) => return Ended::Silent,
                },
                Ok(Some(Received::Pong(_))) => true,
                Ok(Some(Received::Text(bytes))) => match self.room.send(Input::Message(self.id, bytes)).await {
                    true => true,
                    // It has said so, and that is on its way.
                    false => return Ended::Shut,
                },
                Ok(None) => match timeout(SILENCE, fill(&mut self.read, &mut self.frames)).await {
                    Ok(filled) => filled,
                    Err(_) => return Ended::Silent,
                },
                Err(why) => return Ended::Wrong(why),
            };
            if !heard {
                return Ended::Lost;
            }
        }
    }
}

/// Reads on; `false`: there is no more.
///
/// Into room on the stack, for most of those who are there say nothing, and each would keep its own.
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

/// Reads what nobody wants to know, until the other end has closed: else it might never see why.
async fn farewell(read: &mut (impl AsyncRead + Unpin), frames: &mut Reader) {
    loop {
        while let Ok(Some(received)) = frames.poll() {
            if matches!(received, Received::Close(..)) {
                return;
            }
        }
        if !fill(read, frames).await {
            return;
        }
    }
}
