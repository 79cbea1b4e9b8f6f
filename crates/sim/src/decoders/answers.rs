//! Answers of servers over HTTP/1.1, read by the gate and by hyper's client: where the gate takes one for whole, hyper reads the same.
//! The gate may refuse more than hyper does. Knows nothing of what a body says.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1;
use hyper::rt::{Read, ReadBufCursor, Write};
use mcp_proto::http1::{Head, HttpError};

type Answer = (u16, Vec<u8>);

/// Turns of hyper's tasks after which a missing answer counts as refused: each turn reads or writes something.
const TURNS: usize = 100_000;

/// Compares two readers of an answer. The first byte is the length of the arriving pieces; the connection is closed behind the answer.
pub(super) fn response(data: &[u8]) {
    let [length, bytes @ ..] = data else { return };
    let Ok(Some(ours)) = read_here(bytes) else { return };
    let theirs = read_by_hyper(bytes, usize::from(*length).max(1));
    assert_eq!(theirs.as_ref(), Ok(&ours), "{:?}", String::from_utf8_lossy(bytes));
}

/// Reads an answer as the gate does; `None` for an incomplete answer.
fn read_here(bytes: &[u8]) -> Result<Option<Answer>, HttpError> {
    let mut buffer = BytesMut::from(bytes);
    let Some(head) = Head::take(&mut buffer)? else { return Ok(None) };
    let (mut body, mut read) = (head.body(), Vec::new());
    while let Some(piece) = body.take(&mut buffer)? {
        read.extend_from_slice(&piece);
    }
    Ok((body.is_over() || body.closed()).then(|| (head.status(), read)))
}

/// Reads an answer as hyper's client does.
fn read_by_hyper(bytes: &[u8], length: usize) -> Result<Answer, String> {
    let server = Server { answer: Bytes::copy_from_slice(bytes), length, asked: false, reader: None };
    let mut cx = Context::from_waker(Waker::noop());
    let Poll::Ready(Ok((mut sender, connection))) = pin!(http1::handshake(server)).poll(&mut cx) else {
        return Err("no handshake".to_owned());
    };
    let request = hyper::Request::post("/mcp").header("host", "x").body(Empty::<Bytes>::new()).map_err(|e| e.to_string())?;
    let mut asking = pin!(async move {
        let answer = sender.send_request(request).await?;
        let status = answer.status().as_u16();
        Ok::<_, hyper::Error>((status, answer.into_body().collect().await?.to_bytes().to_vec()))
    });
    let (mut connection, mut is_over) = (pin!(connection), false);
    for _ in 0..TURNS {
        if !is_over {
            is_over = connection.as_mut().poll(&mut cx).is_ready();
        }
        if let Poll::Ready(answer) = asking.as_mut().poll(&mut cx) {
            return answer.map_err(|e| e.to_string());
        }
    }
    Err("no answer".to_owned())
}

/// A peer of hyper's client that answers a request piece by piece and then closes the connection.
struct Server {
    answer: Bytes,
    length: usize,
    asked: bool,
    reader: Option<Waker>,
}

impl Read for Server {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, mut room: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        if !self.asked {
            self.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let length = self.length.min(self.answer.len()).min(room.remaining());
        room.put_slice(&self.answer.split_to(length));
        Poll::Ready(Ok(()))
    }
}

impl Write for Server {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.asked = true;
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
