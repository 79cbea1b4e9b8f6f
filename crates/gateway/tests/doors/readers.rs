//! Two readers of HTTP/1.1 side by side: whenever Banyan takes bytes for a plain POST, hyper reads the same request.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use mcp_proto::http1::Post;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Bytes behind each request.
const NEXT: &[u8] = b"POST /next HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n";

/// Requests read by hyper: method, path and query, fields and body.
type HyperRequests = Vec<(Method, String, HeaderMap, Bytes)>;

/// Gives `bytes` to hyper's server.
async fn hyper_reads(bytes: &[u8]) -> HyperRequests {
    let seen = Arc::new(Mutex::new(HyperRequests::new()));
    let (mut client, server) = tokio::io::duplex(1 << 20);
    let keep = Arc::clone(&seen);
    let service = service_fn(move |request: Request<Incoming>| {
        let keep = Arc::clone(&keep);
        async move {
            let (parts, body) = request.into_parts();
            if let Ok(body) = body.collect().await {
                let target = parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
                keep.lock().unwrap().push((parts.method, target, parts.headers, body.to_bytes()));
            }
            Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
        }
    });
    let serving = hyper::server::conn::http1::Builder::new().half_close(true).serve_connection(TokioIo::new(server), service);
    let asking = async {
        client.write_all(bytes).await.unwrap();
        client.shutdown().await.unwrap();
        client.read_to_end(&mut Vec::new()).await.unwrap();
    };
    drop(tokio::join!(serving, asking));
    Arc::try_unwrap(seen).unwrap().into_inner().unwrap()
}

fn field() -> impl Strategy<Value = Vec<u8>> {
    let known: Vec<&'static [u8]> = vec![
        b"content-length: 3",
        b"Content-Length:  3 ",
        b"content-length: 03",
        b"content-length: 0",
        b"content-length: 3, 3",
        b"content-length : 3",
        b"transfer-encoding: chunked",
        b"connection: close",
        b"connection: keep-alive, te",
        b"host: y",
        b"expect: 100-continue",
        b"upgrade: h2c",
        b"mcp-name: \xe4 \t b\t",
        b"x:",
        b"x:y:z",
        b" folded",
        b"\tfolded",
        b"x: a\rb",
        b"x: a\0b",
        b"x\xe4: a",
    ];
    prop_oneof![20 => select(known).prop_map(<[u8]>::to_vec), 1 => vec(any::<u8>(), 0..6)]
}

/// Makes a POST, mostly sound, with another request behind.
fn request() -> impl Strategy<Value = Vec<u8>> {
    let target = prop_oneof![
        4 => select(vec!["/mcp", "/mcp/a?names=safe", "/mcp?a#b", "/mcp/\u{e4}", "/%zz", "/<", "/a\"{}|\\^`", "//x", "*", "http://h/mcp", "/a?b?c=//"]).prop_map(str::to_owned),
        1 => "/[ -~]{0,8}",
    ];
    let version = select(vec!["HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "http/1.1"]);
    let end = || select(vec!["\r\n", "\r\n", "\r\n", "\r\n", "\n"]);
    let fields =
        vec((field(), end()), 0..4).prop_map(|list| list.iter().flat_map(|(f, e)| [f, e.as_bytes()].concat()).collect::<Vec<u8>>());
    let damage = prop_oneof![4 => Just(None), 1 => (any::<Index>(), any::<u8>()).prop_map(Some)];
    (target, version, end(), fields, end(), damage).prop_map(|(target, version, first, fields, last, damage)| {
        let head = format!("POST {target} {version}{first}host: x{first}content-length: 3{first}");
        let without = format!("POST {target} {version}{first}host: x{first}");
        let says = fields.windows(14).any(|w| w.eq_ignore_ascii_case(b"content-length"));
        let begin = if says { without } else { head };
        let mut out = [begin.as_bytes(), &fields, last.as_bytes(), b"{ }", NEXT].concat();
        if let Some((at, byte)) = damage {
            let at = at.index(out.len());
            out[at] = byte;
        }
        out
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_plain_post_is_the_same_request_to_hyper(bytes in request()) {
        let mut rest = BytesMut::from(&bytes[..]);
        let Ok(Some(post)) = Post::take(&mut rest, |_| true) else { return Ok(()) };
        if rest.len() < post.length() {
            return Ok(());
        }
        let body = rest.split_to(post.length());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let seen = runtime.block_on(hyper_reads(&bytes));
        let text = String::from_utf8_lossy(&bytes);
        let Some((method, target, fields, read)) = seen.first() else {
            return Err(TestCaseError::fail(format!("hyper reads no request in {text:?}")));
        };
        let (path, query) = post.target();
        let own = query.map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
        prop_assert_eq!((method, target, &read[..]), (&Method::POST, &own, &body[..]), "{:?}", text);
        for name in fields.keys() {
            let theirs: Vec<&[u8]> = fields.get_all(name).iter().map(|value| value.as_bytes().trim_ascii()).collect();
            prop_assert_eq!(post.fields().all(name.as_str()).collect::<Vec<_>>(), theirs, "{}", name);
        }
        // What stands behind it is another request to both of them, or to neither.
        if post.keeps_connection() && rest == NEXT {
            prop_assert_eq!(seen.len(), 2, "{:?}", text);
        }
    }
}
