//! The bytes of one connection, protected or not. Does not know their meaning.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use rustls::ProtocolVersion;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::tcp::Tcp;

/// An open connection.
pub struct Io(Kind);

enum Kind {
    Plain(Tcp),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Io {
    /// Wraps a stream without TLS.
    pub fn plain(stream: TcpStream) -> Self {
        Self(Kind::Plain(Tcp::new(stream)))
    }

    /// Gives the TCP connection, if unprotected.
    pub fn tcp(&self) -> Option<&Tcp> {
        match &self.0 {
            Kind::Plain(tcp) => Some(tcp),
            Kind::Tls(_) => None,
        }
    }

    pub(super) fn tls(stream: TlsStream<TcpStream>) -> Self {
        Self(Kind::Tls(Box::new(stream)))
    }

    /// Tells if the server took the offer of HTTP/2.
    pub fn is_http2(&self) -> bool {
        match &self.0 {
            Kind::Plain(_) => false,
            Kind::Tls(stream) => stream.get_ref().1.alpn_protocol() == Some(b"h2"),
        }
    }
}

impl Io {
    /// Tells if others may listen in: no TLS, or TLS before 1.3.
    pub fn is_exposed(&self) -> bool {
        match &self.0 {
            Kind::Plain(_) => true,
            Kind::Tls(stream) => stream.get_ref().1.protocol_version() != Some(ProtocolVersion::TLSv1_3),
        }
    }
}

impl AsyncRead for Io {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Kind::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Kind::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Io {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().0 {
            Kind::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Kind::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Kind::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Kind::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Kind::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Kind::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }

    fn poll_write_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, bufs: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().0 {
            Kind::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Kind::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.0 {
            Kind::Plain(stream) => stream.is_write_vectored(),
            Kind::Tls(stream) => stream.is_write_vectored(),
        }
    }
}
