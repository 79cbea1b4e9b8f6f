//! A client's connection: TCP, with or without TLS. Knows no HTTP.

use std::io;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use runtime::tcp::Tcp;

/// A connection that can tell readiness before a buffer is allocated.
pub trait Socket: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Completes when there may be something to read.
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Queues `text` to be sent together with the texts of other connections. Returns `text` where queueing is impossible or not worth the
    /// wait.
    fn post(&self, text: Vec<u8>, _: &Context<'_>) -> Result<(), Vec<u8>> {
        Err(text)
    }

    /// Goes on writing queued text that the socket did not take at once.
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

// Bytes that TLS has read ahead do not show on the socket, so readiness is known only by reading.
impl Socket for Box<TlsStream<TcpStream>> {
    fn poll_readable(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
