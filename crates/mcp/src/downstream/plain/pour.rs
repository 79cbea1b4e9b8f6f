//! A response sent while it comes in, as chunks on a client's own connection. Ends properly only when complete, and is otherwise broken
//! off.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Poll, ready};

use bytes::Bytes;

use crate::downstream::plain::Line;
use call::words::pouring::PouringBody;
use door::socket::Socket;

impl<S: Socket> Line<S> {
    /// Sends `body`; fails when the body broke off or the client has gone, and then the connection is useless.
    pub(super) async fn pour(&mut self, mut body: PouringBody) -> io::Result<()> {
        loop {
            let piece = std::future::poll_fn(|cx| {
                if let Poll::Ready(piece) = body.poll_piece(cx) {
                    return Poll::Ready(Ok(piece));
                }
                ready!(self.poll_gone(cx));
                Poll::Ready(Err(io::ErrorKind::ConnectionReset))
            });
            let Some(piece) = piece.await? else { return self.write(b"0\r\n\r\n").await };
            self.chunk(&piece.map_err(io::Error::other)?).await?;
        }
    }

    /// Writes a chunk; fails when the client has gone.
    async fn chunk(&mut self, data: &Bytes) -> io::Result<()> {
        let size = format!("{:x}\r\n", data.len());
        let mut pieces = [IoSlice::new(size.as_bytes()), IoSlice::new(data), IoSlice::new(b"\r\n")];
        let mut left = &mut pieces[..];
        std::future::poll_fn(|cx| {
            while !left.is_empty() {
                match Pin::new(&mut self.stream).poll_write_vectored(cx, left) {
                    Poll::Ready(written) => IoSlice::advance_slices(&mut left, written?),
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
}
