//! Checks for splitters of byte streams: cuts in the stream must not matter. Nothing about content.

use bytes::BytesMut;
use mcp_proto::http1::{Before, Head, HttpError, Post, Unusual};
use mcp_proto::lines::{Line, Lines};
use mcp_proto::sse::{Decoder, Event, TooLong};

/// The first byte is the limit, the second the length of the pieces.
pub(super) fn lines(data: &[u8]) {
    let [limit, length, bytes @ ..] = data else { return };
    let (limit, length) = (usize::from(*limit), usize::from(*length).max(1));
    let pieces = all_lines(Lines::new(limit), bytes.chunks(length));
    assert_eq!(pieces, all_lines(Lines::new(limit), [bytes]));
    let of_events = all_lines(Lines::of_events(limit), bytes.chunks(length));
    assert_eq!(of_events, all_lines(Lines::of_events(limit), [bytes]));
    let ends = (0..bytes.len()).filter(|at| bytes[*at] == b'\r' || bytes[..=*at].ends_with(b"\n") && !bytes[..=*at].ends_with(b"\r\n"));
    assert_eq!(of_events.len(), ends.count() + usize::from(!bytes.is_empty() && !bytes.ends_with(b"\n") && !bytes.ends_with(b"\r")));
    for line in of_events.iter().chain(&pieces) {
        match line {
            Line::TooLong(length) => assert!(*length > limit),
            Line::Whole(line) => assert!(line.len() <= limit && !line.contains(&b'\n')),
        }
    }
}

/// The first byte is the length of the pieces; what follows is read as a request and as a response.
pub(super) fn http1(data: &[u8]) {
    let [length, bytes @ ..] = data else { return };
    let length = usize::from(*length).max(1);
    let mut buffer = BytesMut::from(bytes);
    match Post::take(&mut buffer, |_| true) {
        Ok(Some(post)) => {
            assert!(bytes.ends_with(&buffer) && post.fields().all("content-length").count() == 1);
            assert!(post.target().0.starts_with('/') && post.fields().get("transfer-encoding").is_none());
            let head = bytes.len() - buffer.len();
            let halves = [length.min(head - 1), head - 1].map(|end| Post::take(&mut BytesMut::from(&bytes[..end]), |_| true));
            assert!(halves.iter().all(|half| matches!(half, Ok(None))));
        }
        Ok(None) | Err(_) => assert_eq!(buffer, bytes),
    }
    again(bytes);
    assert_eq!(response(bytes.chunks(length)), response([bytes]));
    assert_eq!(request(bytes.chunks(length)), request([bytes]));
}

/// A repeated head reads as it does alone.
fn again(bytes: &[u8]) {
    let (mut posts, mut heads) = (Before::default(), Before::default());
    for _ in 0..3 {
        let (mut again, mut answer, mut alone) = (BytesMut::from(bytes), BytesMut::from(bytes), BytesMut::from(bytes));
        let post = Post::take_after(&mut again, |_| true, &mut posts);
        let head = Head::take_after(&mut answer, &mut heads);
        // Half a head has to go on; here it begins anew.
        if matches!(post, Ok(None)) {
            posts = Before::default();
        }
        if matches!(head, Ok(None)) {
            heads = Before::default();
        }
        assert_eq!(
            post.map(|post| post.map(|post| post.length())),
            Post::take(&mut alone, |_| true).map(|post| post.map(|post| post.length()))
        );
        assert_eq!(again, alone);
        let mut alone = BytesMut::from(bytes);
        assert_eq!(head.map(|head| head.map(|head| head.status())), Head::take(&mut alone).map(|head| head.map(|head| head.status())));
        assert_eq!(answer, alone);
    }
}

/// The first byte is the limit, the second the length of the pieces.
pub(super) fn sse(data: &[u8]) {
    let [limit, length, bytes @ ..] = data else { return };
    let (limit, length) = (usize::from(*limit), usize::from(*length).max(1));
    let (events, end) = all_events(limit, bytes.chunks(length));
    assert!(events.iter().all(|event| event.data.len() <= limit));
    assert_eq!((events, end), all_events(limit, [bytes]));
}

fn all_lines<'a>(mut reader: Lines, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Line> {
    let mut out = Vec::new();
    for piece in pieces {
        reader.handle_bytes(piece);
        out.extend(std::iter::from_fn(|| reader.poll_line()));
    }
    out.extend(reader.finish());
    out
}

fn all_events<'a>(limit: usize, pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Event>, Option<TooLong>) {
    let (mut decoder, mut out) = (Decoder::new(limit), Vec::new());
    for piece in pieces {
        decoder.handle_bytes(piece);
        loop {
            match decoder.poll_event() {
                Ok(Some(event)) => out.push(event),
                Ok(None) => break,
                Err(error) => return (out, Some(error)),
            }
        }
    }
    (out, None)
}

/// The reading of a response: status, body, persistence of the connection, and the rest of the bytes.
type Response = Result<Option<(u16, Vec<u8>, bool, Vec<u8>)>, HttpError>;

fn response<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Response {
    let (mut buffer, mut before, mut begun, mut out) = (BytesMut::new(), Before::default(), None, Vec::new());
    for piece in pieces {
        buffer.extend_from_slice(piece);
        if begun.is_none() {
            begun = Head::take_after(&mut buffer, &mut before)?.map(|head| (head.status(), head.body()));
        }
        let Some((_, body)) = &mut begun else { continue };
        while let Some(data) = body.take(&mut buffer)? {
            assert!(!data.is_empty());
            out.extend_from_slice(&data);
        }
    }
    if begun.is_none() {
        // What is wrong with half a head may show late, but no whole one is missed.
        assert!(Head::take(&mut buffer)?.is_none());
    }
    Ok(begun.map(|(status, body)| (status, out, body.keeps_connection(), buffer.to_vec())))
}

/// The reading of a request: lengths of its head and body, and the rest of the bytes.
type Request = Result<Option<(usize, usize, Vec<u8>)>, Unusual>;

fn request<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Request {
    let (mut buffer, mut before, mut post) = (BytesMut::new(), Before::default(), None);
    for piece in pieces {
        buffer.extend_from_slice(piece);
        if post.is_none() {
            post = Post::take_after(&mut buffer, |_| true, &mut before)?;
        }
    }
    if post.is_none() {
        assert!(Post::take(&mut buffer, |_| true)?.is_none());
    }
    Ok(post.map(|post| (post.head(), post.length(), buffer.to_vec())))
}
