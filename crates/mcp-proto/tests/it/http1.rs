//! HTTP/1.1 as read here, cut at every place and bent in every way that once let a request be smuggled.

use bytes::{Bytes, BytesMut};
use mcp_proto::http1::{Before, Fields, Head, HttpError, MAX_HEAD, Post, Unusual};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Pieces of which requests and responses, sound and broken, are likely to be made.
fn pieces() -> Vec<&'static [u8]> {
    vec![
        b"POST /mcp HTTP/1.1\r\n",
        b"POST /mcp/a?names=safe HTTP/1.1\r\n",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.0 200 OK\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n",
        b"host: x\r\n",
        b"content-length: 5\r\n",
        b"Content-Length:12\r\n",
        b"transfer-encoding: chunked\r\n",
        b"connection: close\r\n",
        b"connection: keep-alive\r\n",
        b"x-a:  b \r\n",
        b"\r\n",
        b"\n",
        b"\r",
        b"hello",
        b"5\r\nhello\r\n",
        b"a;x=\"y\"\r\n0123456789\r\n",
        b"0\r\n",
        b"0\r\n\r\n",
        b"trailer: t\r\n",
        b"\0",
        b" ",
    ]
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![15 => select(pieces()).prop_map(<[u8]>::to_vec), 1 => vec(any::<u8>(), 0..4)];
    vec(piece, 0..14).prop_map(|list| list.concat())
}

/// Continuations of a head: few kinds, so that equal and similar heads are frequent.
fn similar() -> impl Strategy<Value = (&'static str, String)> {
    let status = select(vec!["200 OK", "200 OK", "204 No"]);
    let length = select(vec![
        "1",
        "2",
        "12",
        "13",
        "99",
        "100",
        "1\u{c}",
        "+1",
        "1 ",
        "1\r",
        " 1",
        "1,",
        "xy",
        "12\r\ncontent-length: 12",
        "13\r\ncontent-length: 12",
    ]);
    let name = select(vec!["content-length", "content-length", "Content-Length", "transfer-encoding: chunked\r\ncontent-length", "x"]);
    let rest = select(vec!["", "", "y: 1\r\n", "y: 2\r\n", "connection: close\r\n"]);
    let called = select(vec![
        "",
        "mcp-name: a\r\n",
        "mcp-name: b\r\n",
        "Mcp-Name: longer\r\n",
        "mcp-name: longer\r\n",
        "mcp-name:\r\n",
        "mcp-name: é\r\n",
        "mcp-name: a \r\n",
        "mcp-name:  a\r\n",
        "mcp-name: a\tb\r\n",
        "mcp-name: a\u{1}b\r\n",
        "mcp-name: a\rx\r\n",
        "mcp-name: a\nb\r\n",
        "mcp-name: a\r\nmcp-name: b\r\n",
    ]);
    let end = select(vec!["\r\n", "\r\n", "", "\r\nmore"]);
    (status, name, length, rest, end, called, any::<bool>()).prop_map(|(status, name, length, rest, end, called, is_first)| {
        let (before, behind) = if is_first { (called, "") } else { ("", called) };
        (status, format!("{before}{name}: {length}\r\n{rest}{behind}{end}"))
    })
}

fn request() -> impl Strategy<Value = Vec<u8>> {
    similar().prop_map(|(_, head)| format!("POST /mcp HTTP/1.1\r\nhost: x\r\n{head}").into_bytes())
}

/// Gives the fields by which a head is judged.
fn said(fields: &Fields) -> Vec<(&'static str, Vec<Vec<u8>>)> {
    let names = ["host", "content-length", "connection", "transfer-encoding", "mcp-name", "x", "y"];
    names.map(|name| (name, fields.all(name).map(<[u8]>::to_vec).collect())).to_vec()
}

/// A response and a few bytes behind it, mostly sound.
fn response() -> impl Strategy<Value = Vec<u8>> {
    let first = select(vec!["HTTP/1.1 200 OK\r\n", "HTTP/1.0 200 OK\r\n", "HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 404 No\r\n"]);
    let chunk = vec(any::<u8>(), 1..20).prop_map(|data| [format!("{:x};e\r\n", data.len()).as_bytes(), &data, b"\r\n"].concat());
    let chunked =
        vec(chunk, 0..4).prop_map(|list| [b"transfer-encoding: chunked\r\n\r\n".as_slice(), &list.concat(), b"0\r\nx: y\r\n\r\n"].concat());
    let plain = vec(any::<u8>(), 0..40).prop_map(|data| [format!("content-length: {}\r\n\r\n", data.len()).as_bytes(), &data].concat());
    let close = vec(any::<u8>(), 0..40).prop_map(|data| [b"\r\n".as_slice(), &data].concat());
    (first, prop_oneof![chunked, plain, close], vec(any::<u8>(), 0..5))
        .prop_map(|(first, rest, behind)| [first.as_bytes(), &rest, &behind].concat())
}

/// The reading of a response: status, body, its completeness, persistence of the connection, and the rest of the bytes.
type Read = Result<Option<(u16, Vec<u8>, bool, bool, Vec<u8>)>, HttpError>;

fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Read {
    let (mut buffer, mut before) = (BytesMut::new(), Before::default());
    let mut begun = None;
    let mut out = Vec::new();
    for piece in pieces {
        buffer.extend_from_slice(piece);
        if begun.is_none() {
            begun = Head::take_after(&mut buffer, &mut before)?.map(|head| (head.status(), head.body()));
        }
        let Some((_, body)) = &mut begun else { continue };
        while let Some(data) = body.take(&mut buffer)? {
            assert!(!data.is_empty(), "an empty piece would look like progress");
            out.extend_from_slice(&data);
        }
    }
    if begun.is_none() {
        // What is wrong with half a head may show late, but no whole one is missed.
        assert!(Head::take(&mut buffer)?.is_none());
    }
    Ok(begun.map(|(status, body)| (status, out, body.is_over(), body.keeps_connection(), buffer.to_vec())))
}

/// Lengths of a request's head and body, and the rest of the bytes.
type Asked = Result<Option<(usize, usize, Vec<u8>)>, Unusual>;

fn asked<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Asked {
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

proptest! {
    #[test]
    fn a_response_reads_the_same_however_it_is_cut(bytes in prop_oneof![response(), stream()], at in any::<prop::sample::Index>()) {
        let whole = read([&bytes[..]]);
        let (a, b) = bytes.split_at(at.index(bytes.len() + 1));
        prop_assert_eq!(&read([a, b]), &whole);
        prop_assert_eq!(read(bytes.chunks(1)), whole);
    }

    #[test]
    fn a_request_reads_the_same_however_it_is_cut(bytes in prop_oneof![request(), stream()], at in any::<prop::sample::Index>()) {
        let whole = asked([&bytes[..]]);
        let (a, b) = bytes.split_at(at.index(bytes.len() + 1));
        prop_assert_eq!(&asked([a, b]), &whole);
        prop_assert_eq!(asked(bytes.chunks(1)), whole);
    }

    /// The bytes of an unframed body and the rest are the received bytes, in order.
    #[test]
    fn nothing_behind_a_body_is_taken(data in vec(any::<u8>(), 0..60), behind in vec(any::<u8>(), 0..20)) {
        let text = [format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", data.len()).as_bytes(), &data, &behind].concat();
        prop_assert_eq!(read([&text[..]]), Ok(Some((200, data, true, true, behind))));
    }

    /// Earlier heads of a connection change no reading.
    #[test]
    fn a_head_reads_the_same_whatever_came_before_it(heads in vec(similar(), 1..80)) {
        let (mut posts, mut answers) = (Before::default(), Before::default());
        for (status, head) in heads {
            let request = format!("POST /mcp HTTP/1.1\r\nhost: x\r\n{head}");
            let (mut alone, mut after) = (BytesMut::from(&*request), BytesMut::from(&*request));
            let post = |taken: Result<Option<Post>, Unusual>| {
                taken.map(|post| post.map(|post| (format!("{:?} {:?}", post.target(), said(post.fields())), post.length(), post.keeps_connection())))
            };
            let both = |alone: &mut BytesMut, after: &mut BytesMut, posts: &mut Before<Post>| {
                (post(Post::take(alone, |_| true)), post(Post::take_after(after, |_| true, posts)))
            };
            let (fresh, again) = both(&mut alone, &mut after, &mut posts);
            prop_assert_eq!(&fresh, &again);
            if fresh == Ok(None) {
                [&mut alone, &mut after].into_iter().for_each(|buffer| buffer.extend_from_slice(b"\r\n"));
                let (fresh, again) = both(&mut alone, &mut after, &mut posts);
                prop_assert_eq!(fresh, again);
            }
            prop_assert_eq!(alone, after);
            let response = format!("HTTP/1.1 {status}\r\n{head}");
            let (mut alone, mut after) = (BytesMut::from(&*response), BytesMut::from(&*response));
            let answer = |taken: Result<Option<Head>, HttpError>| {
                taken.map(|head| head.map(|head| (head.status(), said(head.fields()), head.body().left(), head.body().keeps_connection())))
            };
            let both = |alone: &mut BytesMut, after: &mut BytesMut, answers: &mut Before<Head>| {
                (answer(Head::take(alone)), answer(Head::take_after(after, answers)))
            };
            let (fresh, again) = both(&mut alone, &mut after, &mut answers);
            prop_assert_eq!(&fresh, &again);
            if fresh == Ok(None) {
                [&mut alone, &mut after].into_iter().for_each(|buffer| buffer.extend_from_slice(b"\r\n"));
                let (fresh, again) = both(&mut alone, &mut after, &mut answers);
                prop_assert_eq!(fresh, again);
            }
            prop_assert_eq!(alone, after);
        }
    }

    /// A request is taken as a whole or not at all, whatever came before the last of its bytes.
    #[test]
    fn a_post_is_taken_whole_or_not_at_all(bytes in stream()) {
        let mut whole = BytesMut::from(&bytes[..]);
        let taken = Post::take(&mut whole, |_| true);
        let head = bytes.len() - whole.len();
        match &taken {
            Ok(Some(post)) => {
                prop_assert_eq!(&whole[..], &bytes[head..]);
                for end in 0..head {
                    let mut part = BytesMut::from(&bytes[..end]);
                    prop_assert!(matches!(Post::take(&mut part, |_| true), Ok(None)), "{end}");
                    prop_assert_eq!(part.len(), end);
                }
                prop_assert!(post.fields().get("host").is_some() && post.fields().get("transfer-encoding").is_none());
            }
            Ok(None) | Err(Unusual) => prop_assert_eq!(&whole[..], &bytes[..]),
        }
    }
}

#[test]
fn a_request_that_two_servers_could_read_differently_is_left_where_it_is() {
    let sound = "POST /mcp HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhello";
    assert!(Post::take(&mut BytesMut::from(sound), |_| true).unwrap().is_some());
    let cases: [(&str, &[u8]); 23] = [
        ("length and coding", b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n"),
        ("coding and length", b"POST / HTTP/1.1\r\nhost: x\r\nTransfer-Encoding: xchunked\r\ncontent-length: 5\r\n\r\n"),
        ("two lengths", b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\nContent-Length: 6\r\n\r\n"),
        ("one length twice", b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ncontent-length: 5\r\n\r\n"),
        ("a list of lengths", b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5,5\r\n\r\n"),
        ("a sign", b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: +5\r\n\r\n"),
        ("a sign of less", b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: -5\r\n\r\n"),
        ("hexadecimal", b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0x5\r\n\r\n"),
        ("no length", b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length:\r\n\r\n"),
        ("more than fits", b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 18446744073709551616\r\n\r\n"),
        ("a folded line", b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\nx: a\r\n b: c\r\n\r\n"),
        ("a folded length", b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length:\r\n 5\r\n\r\n"),
        ("space before a colon", b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length : 5\r\n\r\n"),
        ("space before a name", b"POST / HTTP/1.1\r\n host: x\r\ncontent-length: 5\r\n\r\n"),
        ("NUL in a value", b"POST / HTTP/1.1\r\nhost: x\0y\r\ncontent-length: 5\r\n\r\n"),
        ("NUL in a name", b"POST / HTTP/1.1\r\nhost: x\r\nx\0: y\r\ncontent-length: 5\r\n\r\n"),
        ("a lone CR in a value", b"POST / HTTP/1.1\r\nhost: x\ry: z\r\ncontent-length: 5\r\n\r\n"),
        ("no path", b"POST http://x/ HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\n"),
        ("what no path may hold", b"POST /<a> HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\n"),
        ("two hosts", b"POST / HTTP/1.1\r\nhost: x\r\nhost: x\r\ncontent-length: 5\r\n\r\n"),
        ("two spaces", b"POST  / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\n"),
        ("what no query may hold", b"POST /?\" HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\n"),
        ("a fragment", b"POST /#a HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\n"),
    ];
    for (why, text) in cases {
        let mut buffer = BytesMut::from(text);
        assert_eq!(Post::take(&mut buffer, |_| true).err(), Some(Unusual), "{why}");
        assert_eq!(&buffer[..], text, "{why}: some of it is gone");
    }
}

#[test]
fn a_head_without_end_is_not_waited_for() {
    let long = format!("POST / HTTP/1.1\r\nhost: {}", "x".repeat(MAX_HEAD));
    assert_eq!(Post::take(&mut BytesMut::from(&long[..]), |_| true).err(), Some(Unusual));
    let many = format!("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n{}\r\n", "a: b\r\n".repeat(100));
    assert_eq!(Post::take(&mut BytesMut::from(&many[..]), |_| true).err(), Some(Unusual));
    // The limit holds as well when the end is there already, so that it does not matter how the head was cut.
    let sound = |pad: usize| format!("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\nx: {}\r\n\r\n", "x".repeat(pad));
    let whole = |length: usize| sound(length - sound(0).len());
    assert!(whole(MAX_HEAD).len() == MAX_HEAD && Post::take(&mut BytesMut::from(&whole(MAX_HEAD)[..]), |_| true).unwrap().is_some());
    assert_eq!(Post::take(&mut BytesMut::from(&whole(MAX_HEAD + 1)[..]), |_| true).err(), Some(Unusual));
    let whole = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "x".repeat(MAX_HEAD));
    assert_eq!(Head::take(&mut BytesMut::from(&whole[..])).err(), Some(HttpError::Head));
    let long = format!("HTTP/1.1 200 OK\r\nx: {}", "x".repeat(MAX_HEAD));
    assert_eq!(Head::take(&mut BytesMut::from(&long[..])).err(), Some(HttpError::Head));
}

/// Gives the body, its completeness, persistence of the connection, and the rest.
fn told(text: &str) -> Result<(String, bool, bool, String), HttpError> {
    let Some((_, body, over, keeps, left)) = read([text.as_bytes()])? else { return Err(HttpError::Head) };
    Ok((String::from_utf8_lossy(&body).into_owned(), over, keeps, String::from_utf8_lossy(&left).into_owned()))
}

#[test]
fn where_a_body_ends_and_whether_the_connection_stays() {
    let case = |text: &str, body: &str, over: bool, keeps: bool, left: &str| {
        assert_eq!(told(text), Ok((body.to_owned(), over, keeps, left.to_owned())), "{text:?}");
    };
    case(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
        "{}",
        true,
        true,
        "",
    );
    for status in ["204 No Content", "304 Not Modified"] {
        case(&format!("HTTP/1.1 {status}\r\ncontent-length: 7\r\n\r\n"), "", true, true, "");
        case(&format!("HTTP/1.1 {status}\r\n\r\nHTTP/1.1"), "", true, true, "HTTP/1.1");
    }
    case("HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n{}", "{}", true, false, "");
    case("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\ncontent-length: 2\r\n\r\n{}", "{}", true, true, "");
    case("HTTP/1.0 200 OK\r\nconnection: close, keep-alive\r\ncontent-length: 2\r\n\r\n{}", "{}", true, false, "");
    case("HTTP/1.0 200 OK\r\nconnection: close\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\n{}", "{}", true, false, "");
    case("HTTP/1.1 200 OK\r\nconnection: x, Close\r\ncontent-length: 2\r\n\r\n{}", "{}", true, false, "");
    case("HTTP/1.1 200 OK\r\n\r\nabc", "abc", false, false, "");
    case("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 2\r\n\r\n{}x", "{}", true, true, "x");
    case("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{}", "{}", false, false, "");
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n";
    case(&format!("{chunked}1\r\n{{\r\n0001;a=\"b\"\r\n}}\r\n0\r\nx: y\r\nz: w\r\n\r\nmore"), "{}", true, true, "more");
    case(&format!("{chunked}2 \r\n{{}}\r\n0\r\n"), "{}", false, false, "");
}

#[test]
fn a_body_whose_end_is_not_clear_is_an_error() {
    let head = "HTTP/1.1 200 OK\r\n";
    for fields in [
        "content-length: 2\r\ntransfer-encoding: chunked",
        "content-length: 2\r\ncontent-length: 3",
        "content-length: 2, 2",
        "content-length: +2",
        "content-length: ",
        "content-length: 99999999999999999999",
        "transfer-encoding: gzip, chunked",
        "transfer-encoding: identity",
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
    ] {
        assert_eq!(told(&format!("{head}{fields}\r\n\r\n{{}}")), Err(HttpError::Framing), "{fields}");
    }
    // A coding that HTTP/1.0 does not know (RFC 9112, section 6.1).
    assert_eq!(told("HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"), Err(HttpError::Framing));
    let long = "a".repeat(9 << 10);
    let trailers = format!("0\r\n{}\r\n", format!("x: {}\r\n", "y".repeat(1000)).repeat(9));
    for chunks in [
        "\r\n",
        "x\r\n",
        "-1\r\n",
        "+1\r\n",
        "0x1\r\n",
        " 1\r\n",
        ";a\r\n",
        "1\n{",
        "1\r\n{}\r\n",
        "1\r\n{\n",
        "1\r\n{\r\r\n",
        "ffffffffffffffff\r\n",
        "10000000000000000\r\n",
        "0\r\nx: y\n\r\n",
        "0\r\nx\r\n\r\n",
        "0\r\n x: y\r\n\r\n",
        "0\r\nx : y\r\n\r\n",
        "1;a\rb\r\n{\r\n",
        "1 \r\r\n{\r\n",
        &format!("0\r\n{}\r\n", "x:\r\n".repeat(101)),
        &format!("1;{}\r\n{{\r\n", "a".repeat(8000)).repeat(3),
        &format!("1;{long}"),
        &format!("{long}\r\n"),
        &trailers,
    ] {
        assert_eq!(told(&format!("{head}transfer-encoding: chunked\r\n\r\n{chunks}")), Err(HttpError::Framing), "{chunks:.40?}");
    }
}

#[test]
fn what_is_no_response_is_an_error() {
    for text in [
        "HTTP/2 200\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nx : y\r\n\r\n",
        "HTTP/1.1 200 OK\r\nx: a\r\n b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nx: a\0\r\n\r\n",
        "SSH-2.0-x\r\n",
        "{}",
    ] {
        assert_eq!(Head::take(&mut BytesMut::from(text)).err(), Some(HttpError::Head), "{text:?}");
    }
}

#[test]
fn a_body_that_ends_with_its_connection_is_told_from_one_that_broke_off() {
    for (fields, ends) in [("", true), ("content-length: 9\r\n", false), ("transfer-encoding: chunked\r\n", false)] {
        let mut buffer = BytesMut::from(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n")[..]);
        let mut body = Head::take(&mut buffer).unwrap().unwrap().body();
        buffer.extend_from_slice(b"1\r\nx");
        while body.take(&mut buffer).unwrap().is_some() {}
        assert_eq!((body.closed(), body.keeps_connection()), (ends, false), "{fields}");
    }
    let left = |text: &str| Head::take(&mut BytesMut::from(text)).unwrap().unwrap().body().left();
    assert_eq!(left("HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n"), Some(7));
    assert_eq!((left("HTTP/1.1 204 No\r\n\r\n"), left("HTTP/1.1 200 OK\r\n\r\n")), (Some(0), None));
}

#[test]
fn pieces_share_what_came() {
    let mut buffer = BytesMut::from(&b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"[..]);
    let mut body = Head::take(&mut buffer).unwrap().unwrap().body();
    let at = buffer.as_ptr();
    assert_eq!(body.take(&mut buffer).unwrap().map(|piece: Bytes| piece.as_ptr()), Some(at));
}
