//! The usual kind of request: a POST with a body of known length. All others are left to a full HTTP server.
//!
//! A request open to two readings is not taken, so that nothing is decided here in another way than by a full server.

use std::mem::MaybeUninit;
use std::ops::Range;

use bytes::BytesMut;

use super::before::{Again, Before};
use super::fields::{Fields, places};
use super::search::Search;
use super::{MAX_FIELDS, MAX_HEAD, whole_number};

/// The head of a POST with a `content-length` and nothing unusual.
#[derive(Debug, Clone)]
pub struct Post {
    target: Range<usize>,
    fields: Fields,
    length: usize,
    keep: bool,
}

/// Some other request, or none. Nothing has been taken off the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unusual;

const METHOD: &[u8] = b"POST ";

impl Post {
    /// Takes a head as [`Post::take`] does, on a connection with `before`: a repeated head is not read again, nor is `ours` asked again.
    /// After `None`, `buffer` has to grow at its end.
    pub fn take_after(buffer: &mut BytesMut, ours: impl Fn(&str) -> bool, before: &mut Before<Self>) -> Result<Option<Self>, Unusual> {
        if !before.search.is_fresh() {
            return Self::take_rest(buffer, ours, before);
        }
        match before.take(buffer) {
            Some(Again::Same(post)) => Ok(Some(post.clone())),
            Some(Again::Alike(post, text, moved, length)) => {
                let (fields, length) = (post.fields.moved(text, &moved), length.unwrap_or(post.length));
                Ok(Some(Self { target: post.target.clone(), fields, length, keep: post.keep }))
            }
            None => Self::take_rest(buffer, ours, before),
        }
    }

    /// Takes a head off the beginning of `buffer`, if its path is `ours`; `None` for an incomplete head.
    pub fn take(buffer: &mut BytesMut, ours: impl Fn(&str) -> bool) -> Result<Option<Self>, Unusual> {
        Self::read(buffer, ours, &mut Search::default())
    }

    fn take_rest(buffer: &mut BytesMut, ours: impl Fn(&str) -> bool, before: &mut Before<Self>) -> Result<Option<Self>, Unusual> {
        let taken = Self::read(buffer, ours, &mut before.search);
        if !matches!(taken, Ok(None)) {
            before.search = Search::default();
        }
        if let Ok(Some(post)) = &taken {
            before.keep(&post.fields, |fields| Self { fields, ..post.clone() });
        }
        taken
    }

    fn read(buffer: &mut BytesMut, ours: impl Fn(&str) -> bool, search: &mut Search) -> Result<Option<Self>, Unusual> {
        let begun = buffer.len().min(METHOD.len());
        if buffer[..begun] != METHOD[..begun] {
            return Err(Unusual);
        }
        if !search.is_due(buffer) {
            return if buffer.len() < MAX_HEAD { Ok(None) } else { Err(Unusual) };
        }
        let mut slots = [const { MaybeUninit::uninit() }; MAX_FIELDS];
        let mut parsed = httparse::Request::new(&mut []);
        let end = match parsed.parse_with_uninit_headers(buffer, &mut slots) {
            Ok(httparse::Status::Complete(end)) if end <= MAX_HEAD => end,
            Ok(httparse::Status::Partial) if buffer.len() < MAX_HEAD => return Ok(None),
            Ok(httparse::Status::Complete(_) | httparse::Status::Partial) | Err(_) => return Err(Unusual),
        };
        let target = parsed.path.filter(|t| is_plain(t) && parsed.version == Some(1)).ok_or(Unusual)?;
        let (length, keep) = body(parsed.headers)?;
        if !ours(path(target).0) {
            return Err(Unusual);
        }
        let target = METHOD.len()..METHOD.len() + target.len();
        let places = places(buffer, parsed.headers);
        let text = buffer.split_to(end).freeze();
        Ok(Some(Self { target, fields: Fields::found(text, places), length, keep }))
    }

    /// Gives the path, and the query without its question mark.
    #[inline]
    pub fn target(&self) -> (&str, Option<&str>) {
        path(std::str::from_utf8(&self.fields.text()[self.target.clone()]).unwrap_or_default())
    }

    /// Gives the fields.
    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    /// Counts the bytes of the head.
    pub fn head(&self) -> usize {
        self.fields.text().len()
    }

    /// Counts the bytes of the body.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Tells if the client means to send more on the connection.
    pub fn keeps_connection(&self) -> bool {
        self.keep
    }
}

fn path(target: &str) -> (&str, Option<&str>) {
    target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)))
}

/// Tells if path and query use only characters of RFC 3986, so that no server refuses or cuts them.
fn is_plain(target: &str) -> bool {
    target.starts_with('/') && target.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@%/?".contains(&b))
}

/// The length of the body, and whether the connection stays open.
fn body(fields: &[httparse::Header<'_>]) -> Result<(usize, bool), Unusual> {
    let (mut length, mut hosts, mut origins, mut tokens, mut keep) = (None, 0, 0, 0, true);
    for field in fields {
        let is = |name: &str| field.name.eq_ignore_ascii_case(name);
        match field.name.len() {
            4 if is("host") => hosts += 1,
            14 if is("content-length") => {
                let value = whole_number(field.value).and_then(|n| usize::try_from(n).ok()).ok_or(Unusual)?;
                if length.replace(value).is_some() {
                    return Err(Unusual);
                }
            }
            10 if is("connection") && field.value.eq_ignore_ascii_case(b"close") => keep = false,
            10 if is("connection") && field.value.eq_ignore_ascii_case(b"keep-alive") => {}
            10 if is("connection") => return Err(Unusual),
            17 if is("transfer-encoding") => return Err(Unusual),
            6 if is("expect") => return Err(Unusual),
            6 if is("origin") => origins += 1,
            13 if is("authorization") => tokens += 1,
            7 if is("upgrade") => return Err(Unusual),
            _ => {}
        }
    }
    match length {
        Some(length) if hosts == 1 && origins <= 1 && tokens <= 1 => Ok((length, keep)),
        _ => Err(Unusual),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(text: &str) -> Result<Option<Post>, Unusual> {
        Post::take(&mut BytesMut::from(text), |_| true)
    }

    #[test]
    fn a_plain_post_is_taken_and_its_body_left() {
        let mut buffer = BytesMut::from("POST /mcp/a?names=safe HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nMcp-Name: n\r\n\r\n{}P");
        let post = Post::take(&mut buffer, |path| path == "/mcp/a").unwrap().unwrap();
        assert_eq!((post.target(), post.length(), post.keeps_connection()), (("/mcp/a", Some("names=safe")), 2, true));
        assert_eq!((post.fields().str("mcp-name"), &buffer[..]), (Some("n"), &b"{}P"[..]));
    }

    #[test]
    fn what_is_for_another_path_stays_where_it_is() {
        let mut buffer = BytesMut::from("POST /x HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n");
        let before = buffer.clone();
        assert_eq!(Post::take(&mut buffer, |path| path == "/y").err(), Some(Unusual));
        assert_eq!(buffer, before);
    }

    #[test]
    fn half_a_head_is_waited_for() {
        let whole = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n";
        for cut in 0..whole.len() {
            assert!(matches!(take(&whole[..cut]), Ok(None)), "{cut}");
        }
        assert!(matches!(take(whole), Ok(Some(_))));
    }

    #[test]
    fn whatever_could_be_read_in_two_ways_is_left_to_others() {
        for fields in [
            "content-length: 1\r\ncontent-length: 1",
            "content-length: +1",
            "content-length: 1, 1",
            "content-length: 1\r\ntransfer-encoding: chunked",
            "transfer-encoding: chunked",
            "content-length: 1\r\nexpect: 100-continue",
            "content-length: 1\r\nconnection: upgrade",
            "content-length: 1\r\nupgrade: h2c",
            "content-length: 1\r\nhost: y",
            "x: y",
            "content-length : 1",
        ] {
            assert_eq!(take(&format!("POST / HTTP/1.1\r\nhost: x\r\n{fields}\r\n\r\nx")).err(), Some(Unusual), "{fields}");
        }
        for text in
            ["GET / HTTP/1.1\r\n", "PRI * HTTP/2.0\r\n", "POSTX", "POST / HTTP/1.0\r\nhost: x\r\ncontent-length: 0\r\n\r\n", "\r\nPOST"]
        {
            assert_eq!(take(text).err(), Some(Unusual), "{text}");
        }
        assert_eq!(take("POST http://x/ HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n").err(), Some(Unusual));
    }
}
