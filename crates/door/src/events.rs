//! A lane as the body of an event stream: messages as they come, comments in times of silence, and at the end a response still coming. Does
//! not know what messages mean.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use mcp_proto::sse;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::DropGuard;

use call::words::lane::Reader;
use call::words::pour::BrokenOff;
use call::words::pouring::PouringBody;

/// Longest silence of a stream before a comment is sent, so that proxies keep the connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The event of a response still coming.
enum Last {
    None,
    Coming(Box<PouringBody>),
    Over,
}

/// End of a stream ahead of the end of its lane.
enum Bound {
    None,
    /// Ends the stream with this comment, once the future completes.
    Until(Pin<Box<dyn Future<Output = ()> + Send>>, &'static str),
    Over,
}

/// A lane as the body of an event stream.
pub struct Events {
    reader: Reader,
    /// Words before the number in event ids; `None` sends no ids.
    stream: Option<String>,
    opening: Option<Bytes>,
    silence: Pin<Box<Sleep>>,
    /// Last event, while being sent.
    last: Last,
    bound: Bound,
    /// Fires when the body is dropped, the only sign of a lost connection.
    _gone: Option<DropGuard>,
}

impl Events {
    /// Sends the messages of `reader`. `gone` fires when the connection is lost or the stream is over.
    pub fn new(reader: Reader, stream: Option<String>, gone: Option<DropGuard>) -> Self {
        Self {
            reader,
            stream,
            opening: None,
            silence: Box::pin(tokio::time::sleep(KEEP_ALIVE)),
            last: Last::None,
            bound: Bound::None,
            _gone: gone,
        }
    }

    /// Opens the stream with an event by which a client can resume (revision 2025-11-25).
    pub fn primed(mut self, retry_ms: u64) -> Self {
        if let Some(stream) = &self.stream {
            let mut out = Vec::new();
            sse::encode_priming(&format!("{stream}:0"), retry_ms, &mut out);
            self.opening = Some(Bytes::from(out));
        }
        self
    }

    /// Ends the stream when `over` completes, with the comment `why`. Unsent messages stay in the lane for a client that resumes.
    pub fn until(mut self, over: impl Future<Output = ()> + Send + 'static, why: &'static str) -> Self {
        self.bound = Bound::Until(Box::pin(over), why);
        self
    }
}

impl Bound {
    /// Completes with the last comment, and from then on with nothing.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match self {
            Self::None => Poll::Pending,
            Self::Until(over, why) => {
                std::task::ready!(over.as_mut().poll(cx));
                let comment = format!(": {why}\n\n");
                *self = Self::Over;
                Poll::Ready(Some(comment.into()))
            }
            Self::Over => Poll::Ready(None),
        }
    }
}

impl http_body::Body for Events {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        if let Poll::Ready(end) = this.bound.poll_end(cx) {
            return Poll::Ready(end.map(|comment| Ok(Frame::data(comment))));
        }
        if !matches!(this.last, Last::None) {
            return this.last.poll_data(cx).map_ok(Frame::data);
        }
        if let Some(opening) = this.opening.take() {
            return Poll::Ready(Some(Ok(Frame::data(opening))));
        }
        let mut out = Vec::new();
        loop {
            match this.reader.poll_next(cx) {
                Poll::Ready(Some((number, message))) => {
                    let id = this.stream.as_ref().map(|s| format!("{s}:{number}"));
                    sse::encode(id.as_deref(), &message, &mut out);
                    if out.len() >= 64 << 10 {
                        break;
                    }
                }
                Poll::Ready(None) if out.is_empty() => {
                    let Some(last) = this.reader.take_last() else { return Poll::Ready(None) };
                    this.last = Last::Coming(last);
                    out.extend_from_slice(sse::BEGIN);
                    break;
                }
                Poll::Pending if out.is_empty() => {
                    std::task::ready!(this.silence.as_mut().poll(cx));
                    out.extend_from_slice(b": keep-alive\n\n");
                    break;
                }
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        this.silence.as_mut().reset(Instant::now() + KEEP_ALIVE);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(out)))))
    }
}

impl Last {
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BrokenOff>>> {
        let Self::Coming(pouring) = self else { return Poll::Ready(None) };
        let piece = std::task::ready!(pouring.poll_piece(cx));
        if piece.is_none() {
            *self = Self::Over;
            return Poll::Ready(Some(Ok(Bytes::from_static(b"\n\n"))));
        }
        Poll::Ready(piece.map(|piece| piece.map(sse::encode_piece)))
    }
}
