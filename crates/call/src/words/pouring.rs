//! A JSON-RPC response whose result is still coming: the body of a reply, piece by piece. Does not know the source of the result.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame};
use mcp_proto::envelope::RESPONSE_HEAD;

use crate::words::cancel::Guard;
use crate::words::pour::{BrokenOff, Pour};

/// Body of a response still coming. Dropping it early ends the call.
pub struct PouringBody {
    pour: Arc<Pour>,
    next: Next,
    /// Resources held by the call until its whole answer is there.
    held: Option<Box<dyn Send + Sync>>,
    /// Fires when the caller goes away, if that cancels the call.
    gone: Option<Guard>,
}

enum Next {
    Head(Bytes),
    Result,
    Over,
}

impl PouringBody {
    /// The response to the request `id`.
    pub fn new(id: &[u8], pour: Arc<Pour>, held: impl Send + Sync + 'static, gone: Option<Guard>) -> Self {
        let head = [RESPONSE_HEAD, id, b",\"result\":"].concat();
        Self { pour, next: Next::Head(head.into()), held: Some(Box::new(held)), gone }
    }

    /// Takes the next piece; `None` behind the last.
    pub fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BrokenOff>>> {
        match std::mem::replace(&mut self.next, Next::Result) {
            Next::Head(head) => return Poll::Ready(Some(Ok(head))),
            Next::Result => {}
            Next::Over => {
                self.next = Next::Over;
                return Poll::Ready(None);
            }
        }
        let piece = ready!(self.pour.poll_piece(cx));
        if piece.is_some() {
            return Poll::Ready(piece);
        }
        self.next = Next::Over;
        self.held = None;
        if let Some(gone) = self.gone.take() {
            gone.disarm();
        }
        Poll::Ready(Some(Ok(Bytes::from_static(b"}"))))
    }
}

impl std::fmt::Debug for PouringBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PouringBody")
    }
}

impl Drop for PouringBody {
    fn drop(&mut self) {
        self.pour.leave();
    }
}

impl Body for PouringBody {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        self.get_mut().poll_piece(cx).map_ok(Frame::data)
    }
}
