//! Links over pipes in memory, which can be cut or fall silent.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use mcp_proto::envelope::Answer;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use crate::link::child::serve;
use crate::link::*;
use call::tree::port::UpstreamError;
use call::words::pour::BrokenOff;
use door::reply;
use door::reply::Payload;
use mcp::upstream::connection::Pieces;

const BEAT: Duration = Duration::from_secs(1);

/// The way between the two ends of a link.
#[derive(Clone, Default)]
struct Cable {
    cut: CancellationToken,
    silent: CancellationToken,
}

impl Cable {
    /// Carries bytes one way until cut. A silent cable delivers nothing, and tells nobody.
    async fn carry(self, mut from: tokio::io::ReadHalf<DuplexStream>, mut to: tokio::io::WriteHalf<DuplexStream>) {
        let mut room = vec![0; 16 << 10];
        loop {
            let read = tokio::select! {
                read = from.read(&mut room) => read.unwrap_or(0),
                () = self.cut.cancelled() => return,
                () = self.silent.cancelled() => return self.cut.cancelled().await,
            };
            if read == 0 || to.write_all(&room[..read]).await.is_err() {
                return;
            }
        }
    }
}

struct Ends {
    link: Arc<Link>,
    of_child: mpsc::Receiver<LinkMessage>,
    child: DialledLink,
    cable: Cable,
}

async fn ends<S, F>(service: S) -> Ends
where
    S: Fn(Request<Incoming>) -> F + Send + Sync + 'static,
    F: Future<Output = Response<Payload>> + Send,
{
    beating_ends(BEAT, service).await
}

async fn beating_ends<S, F>(beat: Duration, service: S) -> Ends
where
    S: Fn(Request<Incoming>) -> F + Send + Sync + 'static,
    F: Future<Output = Response<Payload>> + Send,
{
    let (up, above) = tokio::io::duplex(64 << 10);
    let (down, below) = tokio::io::duplex(64 << 10);
    let cable = Cable::default();
    let (above, below) = (tokio::io::split(above), tokio::io::split(below));
    tokio::spawn(cable.clone().carry(above.0, below.1));
    tokio::spawn(cable.clone().carry(below.0, above.1));
    let (parent, child) = tokio::join!(accept(TokioIo::new(up), beat), serve(TokioIo::new(down), beat, service));
    let (link, of_child) = parent.unwrap();
    Ends { link, of_child, child: child.unwrap(), cable }
}

fn post(body: &'static str) -> Pieces {
    let head = format!("POST /mcp HTTP/1.1\r\nhost: child\r\nmcp-method: a/b\r\ncontent-length: {}\r\n\r\n", body.len());
    Pieces { head: head.into(), value: Bytes::from_static(body.as_bytes()), after: b"!" }
}

/// Answers with the received body, and whether the header fields arrived.
async fn echo(request: Request<Incoming>) -> Response<Payload> {
    let known = request.headers().get("mcp-method").is_some_and(|v| v == "a/b") && request.uri().path() == "/mcp";
    let body = request.into_body().collect().await.unwrap().to_bytes();
    reply::typed(if known { StatusCode::OK } else { StatusCode::NOT_FOUND }, "text/plain", body)
}

#[tokio::test]
async fn a_parent_calls_the_child_that_dialled_it() {
    let ends = ends(echo).await;
    let answer = ends.link.send(&post("hello")).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()["content-length"], "6");
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "hello!");
}

#[tokio::test]
async fn both_sides_ask_answer_and_notify_in_order() {
    let mut ends = ends(echo).await;
    let control = Arc::clone(&ends.child.control);
    let asked = control.ask("mcpax/heartbeat", b"{\"n\":\n1}");
    control.notify("notifications/tools/list_changed", b"{}");
    let Some(LinkMessage::Request { id, method, params }) = ends.of_child.recv().await else { panic!("no request") };
    assert_eq!((method.as_str(), &params[..]), ("mcpax/heartbeat", &b"{\"n\": 1}"[..]));
    assert!(matches!(ends.of_child.recv().await, Some(LinkMessage::Notification { method, .. }) if method.ends_with("list_changed")));
    ends.link.control().answer(&id, &Answer::Result(Bytes::from_static(b"{\"ok\":1}").into()));
    assert!(matches!(asked.await, Ok(Answer::Result(r)) if &r[..] == b"{\"ok\":1}"));

    let asked = ends.link.control().ask("mcpax/parent", b"{}");
    let Some(LinkMessage::Request { id, .. }) = ends.child.said.recv().await else { panic!("no request") };
    control.answer(&id, &Answer::Error(Bytes::from_static(b"{\"code\":1}")));
    assert!(matches!(asked.await, Ok(Answer::Error(_))));
}

#[tokio::test]
async fn overlong_and_bad_lines_end_the_link() {
    for noise in ["nonsense".to_owned(), format!("\"{}\"", "x".repeat(2 << 20))] {
        let ends = ends(echo).await;
        let asked = ends.link.control().ask("mcpax/parent", b"{}");
        let noise = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{noise}}}");
        ends.child.control.answer(b"1}\n", &Answer::Result(Bytes::from(noise).into()));
        ends.link.gone().await;
        assert!(asked.await.is_err());
        ends.child.gone.cancelled().await;
    }
}

#[tokio::test]
async fn a_peer_that_takes_no_lines_is_given_up() {
    let ends = ends(echo).await;
    // Nobody reads what the child says, so that what waits is bounded at each step.
    for _ in 0..200_000 {
        ends.child.control.notify("n", b"{}");
        if ends.child.gone.is_cancelled() {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert!(ends.child.gone.is_cancelled());
}

#[tokio::test]
async fn calls_over_a_lost_link_are_unmade_or_uncertain() {
    let reached = Arc::new(Notify::new());
    let seen = Arc::clone(&reached);
    let ends = ends(move |_| {
        seen.notify_one();
        std::future::pending()
    })
    .await;
    let request = post("x");
    let call = ends.link.send(&request);
    let cut = async {
        reached.notified().await;
        ends.cable.cut.cancel();
    };
    let (answer, ()) = tokio::join!(call, cut);
    assert!(matches!(answer, Err(UpstreamError::Lost(_))), "{answer:?}");
    ends.link.gone().await;
    assert!(matches!(ends.link.send(&post("x")).await, Err(UpstreamError::Unreachable(_))));
}

#[tokio::test]
async fn callers_over_a_broken_link_hear_at_once() {
    // One stream is for the lines beside calls; the last calls wait for their turn.
    let (carried, reached) = (STREAMS - 1, Arc::new(Semaphore::new(0)));
    let seen = Arc::clone(&reached);
    let ends = ends(move |_| {
        seen.add_permits(1);
        std::future::pending()
    })
    .await;
    let request = post("x");
    let calls: FuturesUnordered<_> = (0..STREAMS + 8).map(|_| ends.link.send(&request)).collect();
    let told = calls.map(|answer| (answer.map(drop), ends.link.cut.is_cancelled())).collect::<Vec<_>>();
    let cut = async {
        reached.acquire_many(carried).await.unwrap().forget();
        ends.cable.cut.cancel();
    };
    let (told, ()) = tokio::join!(told, cut);
    assert!(told.iter().all(|(_, is_late)| !is_late), "the last was told when the link was given up for good");
    let unknown = told.iter().filter(|(answer, _)| matches!(answer, Err(UpstreamError::Lost(_)))).count();
    let unsent = told.iter().filter(|(answer, _)| matches!(answer, Err(UpstreamError::Unreachable(_)))).count();
    assert!(unknown >= carried as usize && unsent > 0 && unknown + unsent == told.len(), "{unknown} unknown, {unsent} not sent");
}

#[tokio::test]
async fn one_link_carries_4095_calls_and_more_wait() {
    const CARRIED: usize = 4095;
    let (begun, go) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
    let (count, gate) = (Arc::clone(&begun), Arc::clone(&go));
    // So much is under way here that a sign of life may be late.
    let mut ends = beating_ends(BEAT * 60, move |request| {
        count.fetch_add(1, Ordering::Relaxed);
        let gate = Arc::clone(&gate);
        async move {
            gate.acquire().await.unwrap().forget();
            echo(request).await
        }
    })
    .await;
    let request = post("x");
    let call = async || ends.link.send(&request).await.unwrap().into_body().collect().await.unwrap().to_bytes();
    let calls = (0..CARRIED + 100).map(|_| call()).collect::<FuturesUnordered<_>>().collect::<Vec<Bytes>>();
    let release = async {
        while begun.load(Ordering::Relaxed) < CARRIED {
            tokio::task::yield_now().await;
        }
        // Whatever may leave besides has left before what is said now is heard and answered.
        for _ in 0..2 {
            let asked = ends.link.control().ask("mcpax/parent", b"{}");
            let Some(LinkMessage::Request { id, .. }) = ends.child.said.recv().await else { panic!("no request") };
            ends.child.control.answer(&id, &Answer::Result(Bytes::from_static(b"{}").into()));
            asked.await.unwrap();
        }
        assert_eq!(begun.load(Ordering::Relaxed), CARRIED);
        go.add_permits(CARRIED + 100);
    };
    let (answers, ()) = tokio::join!(calls, release);
    assert!(answers.iter().all(|answer| answer == "x!"));
}

#[tokio::test]
async fn a_broken_answer_never_ends_like_a_whole() {
    let ends = ends(|_| async {
        let pieces = futures_util::stream::iter(0..3).map(|_| Ok::<_, BrokenOff>(Frame::data(Bytes::from_static(b"piece"))));
        let body = StreamBody::new(Box::pin(pieces.chain(futures_util::stream::pending())));
        Response::new(Payload::Events(Box::new(body)))
    })
    .await;
    let mut body = ends.link.send(&post("x")).await.unwrap().into_body();
    assert!(body.frame().await.unwrap().is_ok());
    ends.cable.cut.cancel();
    let end = loop {
        match body.frame().await {
            Some(Ok(_)) => {}
            other => break other,
        }
    };
    assert!(matches!(end, Some(Err(_))));
}

#[tokio::test]
async fn a_caller_who_reads_slowly_holds_up_nobody_else() {
    let ends = ends(|request: Request<Incoming>| async move {
        if request.uri().path() == "/mcp" {
            return echo(request).await;
        }
        reply::typed(StatusCode::OK, "text/plain", vec![b'x'; 8 << 20].into())
    })
    .await;
    let long = Pieces { head: b"GET /long HTTP/1.1\r\n\r\n".into(), ..Pieces::default() };
    let mut unread = Vec::new();
    for _ in 0..32 {
        unread.push(ends.link.send(&long).await.unwrap());
    }
    for _ in 0..3 {
        assert_eq!(ends.link.send(&post("y")).await.unwrap().into_body().collect().await.unwrap().to_bytes(), "y!");
    }
    let whole = unread.pop().unwrap().into_body().collect().await.unwrap().to_bytes();
    assert_eq!(whole.len(), 8 << 20);
}

#[tokio::test]
async fn ax_62_a_silent_link_is_given_up_by_both_ends() {
    let ends = ends(echo).await;
    let quiet = tokio::time::timeout(BEAT * 2, ends.link.gone()).await;
    assert!(quiet.is_err() && !ends.child.gone.is_cancelled(), "it was quiet, not silent");
    ends.cable.silent.cancel();
    tokio::join!(ends.link.gone(), ends.child.gone.cancelled());
}

#[tokio::test]
async fn calls_under_way_end_over_a_closing_link() {
    let (go, reached) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (wait, seen) = (Arc::clone(&go), Arc::clone(&reached));
    let ends = ends(move |request| {
        let (wait, seen) = (Arc::clone(&wait), Arc::clone(&seen));
        async move {
            seen.notify_one();
            wait.notified().await;
            echo(request).await
        }
    })
    .await;
    let request = post("z");
    let leave = async {
        reached.notified().await;
        ends.child.gone.cancel();
        ends.link.gone().await;
        go.notify_one();
    };
    let (answer, ()) = tokio::join!(ends.link.send(&request), leave);
    assert_eq!(answer.unwrap().into_body().collect().await.unwrap().to_bytes(), "z!");
}
