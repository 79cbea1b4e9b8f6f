//! A connection with bytes read ahead, given again before further reads. Does not look at the bytes.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connections::Place;

/// A stream with bytes to be read again first.
pub struct Rewind<S> {
    read: Bytes,
    stream: S,
    /// Place among the connections of clients, whatever the connection becomes.
    _place: Option<Place>,
}

impl<S> Rewind<S> {
    /// Puts `read`, taken off the beginning of `stream`, back in front.
    pub fn new(read: Bytes, stream: S) -> Self {
        Self { read, stream, _place: None }
    }

    /// Keeps the place among the connections.
    pub fn holding(self, place: Place) -> Self {
        Self { _place: Some(place), ..self }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Rewind<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.read.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buf);
        }
        let taken = self.read.len().min(buf.remaining());
        buf.put_slice(&self.read[..taken]);
        self.read.advance(taken);
        // An empty `Bytes` would still hold its whole buffer for the lifetime of the connection.
        if self.read.is_empty() {
            self.read = Bytes::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Rewind<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bufs: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::io::AsyncReadExt;

    use super::*;

    /// A buffer, with a count of its holders.
    struct Room(#[expect(dead_code, reason = "it is held, not read")] Arc<()>);

    impl AsRef<[u8]> for Room {
        fn as_ref(&self) -> &[u8] {
            b"read"
        }
    }

    #[tokio::test]
    async fn bytes_read_ahead_come_first_and_are_then_freed() {
        let kept = Arc::new(());
        let mut rewind = Rewind::new(Bytes::from_owner(Room(Arc::clone(&kept))), &b" on"[..]);
        let mut piece = [0; 3];
        rewind.read_exact(&mut piece).await.unwrap();
        assert_eq!((&piece, Arc::strong_count(&kept)), (b"rea", 2));
        rewind.read_exact(&mut piece[..1]).await.unwrap();
        assert_eq!(Arc::strong_count(&kept), 1);
        let mut rest = String::new();
        rewind.read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, " on");
    }
}
