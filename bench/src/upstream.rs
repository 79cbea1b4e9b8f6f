//! An MCP server over HTTP/1.1 whose answers lie ready: the cheapest upstream a gateway can have.
//!
//! Any path is its endpoint, so that one process stands for many servers. JSON, or a stream where the tool wants one.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::time::Sleep;

use crate::answers::{Answers, Said};

/// Between the events of a slow stream.
const SLOWLY: Duration = Duration::from_millis(200);

type Reply = Response<Either<Full<Bytes>, Events>>;

/// Serves until the process is ended.
pub(crate) async fn serve(listen: SocketAddr, tools: usize) -> anyhow::Result<()> {
    let listener = TcpListener::bind(listen).await?;
    let answers = Rc::new(Answers::new(tools));
    tokio::task::LocalSet::new()
        .run_until(async move {
            loop {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                let answers = Rc::clone(&answers);
                let service = service_fn(move |request| answer(Rc::clone(&answers), request));
                tokio::task::spawn_local(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        })
        .await
}

async fn answer(answers: Rc<Answers>, request: Request<Incoming>) -> Result<Reply, Infallible> {
    if request.method() == Method::DELETE {
        return Ok(status(StatusCode::OK));
    }
    if request.method() != Method::POST {
        return Ok(status(StatusCode::METHOD_NOT_ALLOWED));
    }
    let Ok(body) = request.into_body().collect().await else {
        return Ok(status(StatusCode::BAD_REQUEST));
    };
    Ok(match answers.to(&body.to_bytes()) {
        Said::Unreadable => status(StatusCode::BAD_REQUEST),
        Said::Nothing => status(StatusCode::ACCEPTED),
        Said::Whole { known, message } => {
            let code = if known { StatusCode::OK } else { StatusCode::NOT_FOUND };
            typed(code, "application/json", Either::Left(Full::new(message)))
        }
        Said::Events { messages, slowly } => typed(StatusCode::OK, "text/event-stream", Either::Right(Events::new(&messages, slowly))),
    })
}

fn status(code: StatusCode) -> Reply {
    let mut response = Response::new(Either::Left(Full::default()));
    *response.status_mut() = code;
    response
}

/// A response with a body of this kind.
pub(crate) fn typed<B>(code: StatusCode, kind: &'static str, body: B) -> Response<B> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Server-sent events, each written by itself, as a server does that sends them when they happen.
struct Events {
    left: VecDeque<Bytes>,
    /// The pause before the next one.
    pause: Option<Pin<Box<Sleep>>>,
    slowly: bool,
    /// Whether what came before is written.
    written: bool,
}

impl Events {
    fn new(messages: &[Bytes], slowly: bool) -> Self {
        Self { left: messages.iter().map(|m| event(m)).collect(), pause: None, slowly, written: true }
    }
}

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if !std::mem::replace(&mut self.written, true) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(cx));
        }
        let next = self.left.pop_front();
        self.pause = (self.slowly && !self.left.is_empty()).then(|| Box::pin(tokio::time::sleep(SLOWLY)));
        self.written = self.left.is_empty();
        Poll::Ready(next.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// A message as a server-sent event.
pub(crate) fn event(message: &[u8]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(message.len() + 32);
    bytes.put_slice(b"event: message\ndata: ");
    bytes.put_slice(message);
    bytes.put_slice(b"\n\n");
    bytes.freeze()
}
