//! A connection for raw bytes, whose replies are cut as their heads say. Never opens another.

use bytes::BytesMut;
use mcp_proto::http1::{Body, Head};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::World;

/// The connection.
pub(crate) struct Raw {
    reading: OwnedReadHalf,
    /// May be taken out, to send and read at once.
    pub(crate) writing: Option<OwnedWriteHalf>,
    buffer: BytesMut,
}

/// A reply whose body may still be coming.
pub(crate) struct Answer {
    pub(crate) head: Head,
    body: Body,
}

impl Raw {
    pub(crate) async fn connect(world: &World) -> Self {
        let stream = TcpStream::connect(world.addr).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (reading, writing) = stream.into_split();
        Self { reading, writing: Some(writing), buffer: BytesMut::new() }
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.writing.as_mut().unwrap().write_all(bytes).await.unwrap();
    }

    /// Reads the head of the next reply.
    pub(crate) async fn begin(&mut self) -> Answer {
        loop {
            if let Some(head) = Head::take(&mut self.buffer).unwrap() {
                return Answer { body: head.body(), head };
            }
            assert!(self.fill().await, "the connection ended before the reply: {:?}", self.buffer);
        }
    }

    /// Reads all of a reply's body.
    pub(crate) async fn finish(&mut self, mut answer: Answer) -> String {
        let mut out = Vec::new();
        loop {
            while let Some(piece) = answer.body.take(&mut self.buffer).unwrap() {
                out.extend_from_slice(&piece);
            }
            if answer.body.is_over() {
                return String::from_utf8(out).unwrap();
            }
            assert!(self.fill().await, "the body broke off behind {}", String::from_utf8_lossy(&out));
        }
    }

    /// Reads the rest of a body until the connection ends; `None` when the body came whole.
    pub(crate) async fn broken(&mut self, mut answer: Answer) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        loop {
            while let Some(piece) = answer.body.take(&mut self.buffer).unwrap() {
                out.extend_from_slice(&piece);
            }
            if answer.body.is_over() {
                return None;
            }
            if !self.fill().await {
                return Some(out);
            }
        }
    }

    /// Reads the next reply: status, announced end of the connection, and body.
    pub(crate) async fn reply(&mut self) -> (u16, bool, String) {
        let answer = self.begin().await;
        let closes = answer.head.fields().str("connection") == Some("close");
        (answer.head.status(), closes, self.finish(answer).await)
    }

    /// Reads on until the bytes begin with `wanted`, and takes these off.
    pub(crate) async fn expect(&mut self, wanted: &[u8]) {
        while self.buffer.len() < wanted.len() {
            assert!(self.fill().await, "the connection ended");
        }
        assert_eq!(&self.buffer.split_to(wanted.len())[..], wanted);
    }

    /// Checks that the gate closes the connection without another byte.
    pub(crate) async fn ends(&mut self) -> bool {
        self.buffer.is_empty() && !self.fill().await
    }

    async fn fill(&mut self) -> bool {
        self.reading.read_buf(&mut self.buffer).await.is_ok_and(|read| read > 0)
    }
}

/// Writes a request.
pub(crate) fn request(method: &str, path: &str, fields: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut out = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n");
    for (name, value) in fields {
        out.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() && fields.iter().all(|(name, _)| *name != "transfer-encoding") {
        out.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    format!("{out}\r\n{body}").into_bytes()
}
