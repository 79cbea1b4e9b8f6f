//! One kept-alive HTTP/1.1 connection, with as little in between as possible.
//!
//! Understands `content-length` and chunked bodies. Does not follow redirects, decompress or reconnect.

use std::net::SocketAddr;

use anyhow::{Context, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

/// A response: its status, one header that a client needs, and what its body holds.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) session: Option<String>,
    pub(crate) size: usize,
    pub(crate) content: Content,
    /// When its first byte was there.
    pub(crate) first_byte: Instant,
}

/// What the body of a response holds.
pub(crate) enum Content {
    /// A JSON-RPC result, after so many notifications of progress.
    Result { progress: usize },
    /// Anything else: the beginning of it.
    Other(String),
}

pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    filled: usize,
}

/// What the head of a response says about its body.
struct Head {
    status: u16,
    session: Option<String>,
    length: Option<usize>,
    /// Whether the body is a stream of events.
    events: bool,
    /// Bytes of the head itself.
    end: usize,
}

impl Connection {
    pub(crate) async fn open(to: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(to).await.with_context(|| format!("connecting to {to}"))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: vec![0; 16 << 10], filled: 0 })
    }

    /// Sends a request that is already in its wire form and reads the whole response.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> anyhow::Result<Answer> {
        self.stream.write_all(request).await?;
        self.fill().await?;
        let first_byte = Instant::now();
        let (head, total) = self.whole().await?;
        let body = &self.buffer[head.end..total];
        let answer =
            Answer { status: head.status, session: head.session, size: body.len(), content: content(body, head.events), first_byte };
        self.forget(total);
        Ok(answer)
    }

    /// The same, for the status and the whole body.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> anyhow::Result<(u16, Vec<u8>)> {
        self.stream.write_all(request).await?;
        let (head, total) = self.whole().await?;
        let body = self.buffer[head.end..total].to_vec();
        self.forget(total);
        Ok((head.status, body))
    }

    /// Reads until a response is there; says where it ends.
    async fn whole(&mut self) -> anyhow::Result<(Head, usize)> {
        let head = self.head().await?;
        let total = match head.length {
            Some(length) => head.end + length,
            None => self.chunked_end(head.end).await?,
        };
        while self.filled < total {
            self.fill().await?;
        }
        Ok((head, total))
    }

    fn forget(&mut self, read: usize) {
        self.buffer.copy_within(read..self.filled, 0);
        self.filled -= read;
    }

    /// Sends a request whose response is a stream, and reads no further than its head.
    pub(crate) async fn open_stream(&mut self, request: &[u8]) -> anyhow::Result<u16> {
        self.stream.write_all(request).await?;
        Ok(self.head().await?.status)
    }

    async fn head(&mut self) -> anyhow::Result<Head> {
        loop {
            if let Some(at) = memchr::memmem::find(&self.buffer[..self.filled], b"\r\n\r\n") {
                return parse_head(&self.buffer[..at + 4]);
            }
            self.fill().await?;
        }
    }

    /// Where a chunked body ends.
    async fn chunked_end(&mut self, start: usize) -> anyhow::Result<usize> {
        loop {
            if self.filled >= start + 5 && self.buffer[..self.filled].ends_with(b"0\r\n\r\n") {
                return Ok(self.filled);
            }
            self.fill().await?;
        }
    }

    async fn fill(&mut self) -> anyhow::Result<()> {
        if self.filled == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        match self.stream.read(&mut self.buffer[self.filled..]).await? {
            0 => bail!("the server closed the connection after {} bytes of a response", self.filled),
            read => self.filled += read,
        }
        Ok(())
    }
}

fn content(body: &[u8], events: bool) -> Content {
    if memchr::memmem::find(body, b"\"result\"").is_none() {
        return Content::Other(String::from_utf8_lossy(&body[..body.len().min(300)]).into_owned());
    }
    let progress = if events { memchr::memmem::find_iter(body, b"notifications/progress").count() } else { 0 };
    Content::Result { progress }
}

fn parse_head(head: &[u8]) -> anyhow::Result<Head> {
    let text = std::str::from_utf8(head)?;
    let mut lines = text.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).context("no status line")?.parse()?;
    let mut found = Head { status, session: None, length: None, events: false, end: head.len() };
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        if name.eq_ignore_ascii_case("content-length") {
            found.length = Some(value.trim().parse()?);
        } else if name.eq_ignore_ascii_case("mcp-session-id") {
            found.session = Some(value.trim().to_owned());
        } else if name.eq_ignore_ascii_case("content-type") {
            found.events = value.trim().starts_with("text/event-stream");
        }
    }
    if matches!(status, 202 | 204) && found.length.is_none() {
        found.length = Some(0);
    }
    Ok(found)
}
