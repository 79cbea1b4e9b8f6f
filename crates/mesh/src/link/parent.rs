//! The parent's end of a link: calls the child that dialled. Does not know the calls.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Method, Request, Response, StatusCode, Uri};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper::rt::{Executor, Read, Write};
use hyper_util::rt::TokioTimer;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::link::control::{Control, LinkMessage, OutgoingLines};
use crate::link::{CONTROL, DRAIN, FRAME, LINK_WINDOW, STREAM_WINDOW, look};
use call::tree::port::UpstreamError;
use call::words::pour::BrokenOff;
use mcp::upstream::connection::Pieces;
use mcp::upstream::pool::Carrier;

/// Origin of requests over a link. The name is ignored.
const ORIGIN: &str = "http://child";

/// Messages of a child in the queue.
const SAID: usize = 64;

/// Patience for the child's stream of lines.
const OPENING: Duration = Duration::from_secs(10);

/// A link dialled by a child.
pub struct Link {
    requests: SendRequest<LinkBody>,
    control: Arc<Control>,
    /// Fires when the link is given up. Calls under way may end first.
    gone: CancellationToken,
    /// Fires when nothing may pass any more.
    pub cut: CancellationToken,
}

/// Body of a request over a link.
enum LinkBody {
    Lines(OutgoingLines),
    Whole(Full<Bytes>),
}

/// Takes the connection of a child with heartbeats every `beat`, and turns it round. Gives the link, and the child's messages.
///
/// # Errors
/// When the child speaks another language, or none.
pub async fn accept<I>(io: I, beat: Duration) -> Result<(Arc<Link>, mpsc::Receiver<LinkMessage>), UpstreamError>
where
    I: Read + Write + Unpin + Send + 'static,
{
    let opening = async {
        let (gone, cut) = (CancellationToken::new(), CancellationToken::new());
        let mut builder = http2::Builder::new(Until(cut.clone()));
        builder
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(LINK_WINDOW)
            .max_frame_size(FRAME)
            .keep_alive_interval(look(beat))
            .keep_alive_timeout(look(beat))
            .keep_alive_while_idle(true);
        let (mut requests, connection) = builder.handshake(io).await.map_err(|e| lost(&e))?;
        let (control, leaving) = Control::new(gone.clone());
        tokio::spawn(carry(connection, gone.clone(), cut.clone()));
        let request = request(Method::POST, CONTROL, LinkBody::Lines(leaving))?;
        let response = requests.send_request(request).await.map_err(|e| lost(&e))?;
        if response.status() != StatusCode::OK {
            gone.cancel();
            return Err(UpstreamError::Malformed(format!("it answered {} where a link begins", response.status())));
        }
        let (sender, said) = mpsc::channel(SAID);
        tokio::spawn(Arc::clone(&control).read(response.into_body(), sender));
        Ok((Arc::new(Link { requests, control, gone, cut }), said))
    };
    tokio::time::timeout(OPENING, opening).await.unwrap_or(Err(UpstreamError::Silent(OPENING)))
}

impl Link {
    /// Sends a request in the form of HTTP/1.1; gives the response with its body.
    ///
    /// # Errors
    /// [`UpstreamError::Unreachable`] for an unsent request, [`UpstreamError::Lost`] for an uncertain one.
    pub async fn send(&self, request: &Pieces) -> Result<Response<Incoming>, UpstreamError> {
        if self.gone.is_cancelled() {
            return Err(UpstreamError::Unreachable("its link is closed".into()));
        }
        let request = translated(request)?;
        self.requests.clone().try_send_request(request).await.map_err(|mut failed| {
            if failed.take_message().is_some() {
                return UpstreamError::Unreachable("its link broke before the call was sent".into());
            }
            lost(failed.error())
        })
    }

    /// Gives the stream of lines beside calls.
    pub fn control(&self) -> &Arc<Control> {
        &self.control
    }

    /// Gives the link up: no new call passes, and calls under way have a little time to end.
    pub fn close(&self) {
        self.gone.cancel();
    }

    /// Ends the link, with all calls under way.
    pub fn cut(&self) {
        self.cut.cancel();
        self.close();
    }

    /// Waits until either side has given up the link.
    pub async fn gone(&self) {
        self.gone.cancelled().await;
    }

    /// Tells whether the link is given up.
    pub fn is_gone(&self) -> bool {
        self.gone.is_cancelled()
    }
}

impl Carrier for Link {
    fn send<'a>(&'a self, request: &'a Pieces) -> BoxFuture<'a, Result<Response<Incoming>, UpstreamError>> {
        Box::pin(Self::send(self, request))
    }

    fn gone(&self) -> BoxFuture<'_, ()> {
        Box::pin(Self::gone(self))
    }

    fn is_gone(&self) -> bool {
        Self::is_gone(self)
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Link(gone: {})", self.is_gone())
    }
}

/// Executor for the tasks of a link, until the token fires: the connection goes on by itself while anything is under way.
#[derive(Clone)]
struct Until(CancellationToken);

impl<F: Future<Output: Send> + Send + 'static> Executor<F> for Until {
    fn execute(&self, task: F) {
        tokio::spawn(self.0.clone().run_until_cancelled_owned(task));
    }
}

/// Carries the traffic of a link until the connection breaks, `cut` fires, or the link is given up and the calls under way are over or take
/// too long.
async fn carry(connection: impl Future<Output = hyper::Result<()>>, gone: CancellationToken, cut: CancellationToken) {
    let over = gone.clone().drop_guard();
    let mut connection = Box::pin(connection);
    let has_ended = tokio::select! {
        ended = &mut connection => {
            if let Err(error) = ended {
                tracing::debug!(%error, "a link broke");
            }
            true
        }
        () = gone.cancelled() => false,
    };
    drop(over);
    let rest = async {
        if !has_ended {
            drop(connection.as_mut().await);
        }
        // What it has not begun to send is told so only when it is dropped; calls under way go on without it.
        drop(connection);
        cut.cancelled().await;
    };
    drop(tokio::time::timeout(DRAIN, rest).await);
    cut.cancel();
}

/// Translates a request into HTTP/2. The gate wrote the request itself, so that its form is known.
fn translated(request: &Pieces) -> Result<Request<LinkBody>, UpstreamError> {
    let unsound = || UpstreamError::Malformed("a request can't be sent over a link".into());
    let Pieces { head: start, value, after } = request;
    let end = memchr::memmem::find(start, b"\r\n\r\n").ok_or_else(unsound)?;
    let head = std::str::from_utf8(&start[..end]).map_err(|_| unsound())?;
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target)) = (words.next(), words.next()) else { return Err(unsound()) };
    let method = Method::from_bytes(method.as_bytes()).map_err(|_| unsound())?;
    let body = Bytes::from([&start[end + 4..], value, after].concat());
    let mut request = self::request(method, target, LinkBody::Whole(Full::new(body)))?;
    for (name, field) in lines.filter_map(|line| line.split_once(": ")).filter(|(name, _)| !matches!(*name, "host" | "content-length")) {
        let (Ok(name), Ok(field)) = (http::HeaderName::try_from(name), http::HeaderValue::try_from(field)) else { return Err(unsound()) };
        request.headers_mut().append(name, field);
    }
    Ok(request)
}

fn request(method: Method, target: &str, body: LinkBody) -> Result<Request<LinkBody>, UpstreamError> {
    let uri = Uri::try_from(format!("{ORIGIN}{target}")).map_err(|e| UpstreamError::Malformed(e.to_string()))?;
    let mut request = Request::new(body);
    (*request.method_mut(), *request.uri_mut()) = (method, uri);
    Ok(request)
}

fn lost(error: &hyper::Error) -> UpstreamError {
    UpstreamError::Lost(format!("its link broke before the answer was there: {error}"))
}

impl Body for LinkBody {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match self.get_mut() {
            Self::Lines(lines) => Pin::new(lines).poll_frame(cx),
            Self::Whole(full) => Pin::new(full).poll_frame(cx).map_err(|never| match never {}),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(full) if full.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Lines(lines) => lines.size_hint(),
            Self::Whole(full) => full.size_hint(),
        }
    }
}
