//! What a client's connection is read from and written to: TCP, with or without TLS on it. Knows no HTTP.

use std::io;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use runtime::tcp::Tcp;

/// A connection that tells before it is read whether that is worth any room.
pub trait Socket: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Ready when there may be something to read.
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Leaves `text` to be sent with what others send. Given back where it can't be left, or that is not worth waiting for.
    fn post(&self, text: Vec<u8>, _: &Context<'_>) -> Result<(), Vec<u8>> {
        Err(text)
    }

    /// Goes on with what was posted and did not leave when it had its turn.
    fn poll_stuck(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Socket for Tcp {
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_readable(cx)
    }

    fn post(&self, text: Vec<u8>, cx: &Context<'_>) -> Result<(), Vec<u8>> {
        self.post(text, cx)
    }

    fn poll_stuck(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_stuck() { self.poll_sent(cx) } else { Poll::Ready(Ok(())) }
    }
}

/// What TLS has read ahead does not show on its socket, so only reading tells.
impl Socket for Box<TlsStream<TcpStream>> {
    fn poll_readable(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
