//! The child's end of a link: dials the parent, then serves its requests. Does not answer them itself.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONNECTION, HOST, UPGRADE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::rt::{Read, Write};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use runtime::reach::is_loopback;
use runtime::tls::{ConnectError, Connector, Security, Target};
use rustls::ClientConfig;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::link::control::{Control, LinkMessage, OutgoingLines};
use crate::link::{BEAT, CONTROL, DRAIN, FRAME, LINK_WINDOW, PATH, PROTOCOL, STREAM_WINDOW, STREAMS, look};
use door::reply;
use door::reply::Payload;

/// Messages of a parent in the queue.
const SAID: usize = 64;

/// Bytes read of a refusal.
const REFUSAL: usize = 8 << 10;

/// A parent to dial, with the terms.
#[derive(Debug)]
pub struct DialTerms<'a> {
    /// The parent's address: `http` or `https`, with or without `/mcp` at its end.
    pub url: &'a url::Url,
    /// Bearer token for the parent.
    pub token: Option<&'a str>,
    /// `None`: the settings for all servers.
    pub tls: Option<Arc<ClientConfig>>,
    /// Accepts connections without TLS 1.3.
    pub insecure: bool,
    /// Interval of heartbeats to come.
    pub beat: Duration,
    /// Time for the whole attempt.
    pub limit: Duration,
}

/// A standing link.
#[derive(Debug)]
pub struct DialledLink {
    /// Stream of lines beside calls.
    pub control: Arc<Control>,
    /// The parent's messages beside calls.
    pub said: mpsc::Receiver<LinkMessage>,
    /// Fires when either side gives the link up; firing gives the link up. Calls under way have a little time to end.
    pub gone: CancellationToken,
    /// Ends with the last call under way.
    pub carried: Option<JoinHandle<()>>,
}

/// Reasons for a missing link.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The connection is open to eavesdroppers (AX-42).
    #[error(
        "the connection to it is not protected by TLS 1.3: others could read and change every call. Let it speak TLS 1.3, or say \
         `insecure = true` of this parent"
    )]
    Exposed,
    /// The parent takes no links, or not this one.
    #[error("{}", refused(*.status, .why))]
    Refused {
        status: StatusCode,
        /// Text of the refusal.
        why: String,
    },
    /// The parent did not answer.
    #[error("it did not answer within {0:?}; look whether a Banyan gate runs there")]
    Silent(Duration),
    /// The other end is no parent.
    #[error("it does not speak as a parent does: {0}; look whether a Banyan gate runs there")]
    Strange(String),
}

/// Dials a parent, and serves it with `service` from then on.
pub async fn dial<S, F>(connector: &Connector, wanted: &DialTerms<'_>, service: S) -> Result<DialledLink, DialError>
where
    S: Fn(Request<Incoming>) -> F + Send + Sync + 'static,
    F: Future<Output = Response<Payload>> + Send,
{
    let dialling = async {
        let url = wanted.url;
        let security = if url.scheme() == "https" { Security::Tls } else { Security::Plain };
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let to = Target { host, port: url.port_or_known_default().unwrap_or(80), security };
        let io = connector.connect_as(to, wanted.tls.clone(), wanted.limit).await?;
        if io.is_exposed() && !wanted.insecure && !is_loopback(url) {
            return Err(DialError::Exposed);
        }
        let upgraded = upgrade(TokioIo::new(io), wanted).await?;
        serve(upgraded, wanted.beat, service).await
    };
    tokio::time::timeout(wanted.limit, dialling).await.unwrap_or(Err(DialError::Silent(wanted.limit)))
}

async fn upgrade<I>(io: I, wanted: &DialTerms<'_>) -> Result<hyper::upgrade::Upgraded, DialError>
where
    I: Read + Write + Unpin + Send + 'static,
{
    let (mut requests, connection) = http1::handshake(io).await.map_err(|e| strange(&e))?;
    tokio::spawn(connection.with_upgrades());
    let response = requests.send_request(request(wanted)?).await.map_err(|e| strange(&e))?;
    let status = response.status();
    if status != StatusCode::SWITCHING_PROTOCOLS {
        let body = Limited::new(response.into_body(), REFUSAL).collect().await;
        return Err(DialError::Refused { status, why: body.map(|body| said_in(&body.to_bytes())).unwrap_or_default() });
    }
    hyper::upgrade::on(response).await.map_err(|e| strange(&e))
}

fn request(wanted: &DialTerms<'_>) -> Result<Request<Empty<Bytes>>, DialError> {
    let bad = |what: &str| DialError::Strange(format!("the {what} can't stand in a request"));
    let base = wanted.url.path().trim_end_matches('/');
    let path = format!("{}{PATH}", base.strip_suffix("/mcp").unwrap_or(base));
    let host = wanted.url.host_str().unwrap_or_default();
    let host = wanted.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    let mut request = Request::new(Empty::new());
    *request.method_mut() = Method::GET;
    *request.uri_mut() = path.parse().map_err(|_| bad("path"))?;
    let fields = request.headers_mut();
    fields.insert(HOST, HeaderValue::try_from(host).map_err(|_| bad("host"))?);
    fields.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    fields.insert(UPGRADE, HeaderValue::from_static(PROTOCOL));
    fields.insert(BEAT, HeaderValue::from(u64::try_from(wanted.beat.as_millis()).unwrap_or(u64::MAX)));
    if let Some(token) = wanted.token {
        let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| bad("token"))?;
        value.set_sensitive(true);
        fields.insert(AUTHORIZATION, value);
    }
    Ok(request)
}

/// Materials of the stream of lines until the parent opens it.
struct Opening {
    leaving: OutgoingLines,
    said: mpsc::Sender<LinkMessage>,
    opened: oneshot::Sender<()>,
}

/// Serves the other side of `io`, and waits until the parent has opened the stream of lines.
pub async fn serve<I, S, F>(io: I, beat: Duration, service: S) -> Result<DialledLink, DialError>
where
    I: Read + Write + Unpin + Send + 'static,
    S: Fn(Request<Incoming>) -> F + Send + Sync + 'static,
    F: Future<Output = Response<Payload>> + Send,
{
    let gone = CancellationToken::new();
    let (control, leaving) = Control::new(gone.clone());
    let (sender, said) = mpsc::channel(SAID);
    let (opened, is_open) = oneshot::channel();
    let opening = Arc::new(Mutex::new(Some(Opening { leaving, said: sender, opened })));
    let (service, own) = (Arc::new(service), Arc::clone(&control));
    let service = service_fn(move |request: Request<Incoming>| {
        let (service, control, opening) = (Arc::clone(&service), Arc::clone(&own), Arc::clone(&opening));
        async move {
            if request.uri().path() != CONTROL {
                return Ok::<_, Infallible>(service(request).await);
            }
            let opening = opening.lock().unwrap_or_else(PoisonError::into_inner).take();
            Ok(open(opening, &control, request))
        }
    });
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(LINK_WINDOW)
        .max_frame_size(FRAME)
        .max_concurrent_streams(STREAMS)
        .keep_alive_interval(look(beat))
        .keep_alive_timeout(look(beat));
    let (connection, ends) = (builder.serve_connection(io, service), gone.clone());
    let carried = tokio::spawn(async move {
        let _gone = ends.clone().drop_guard();
        tokio::pin!(connection);
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a link broke");
                }
                return;
            }
            () = ends.cancelled() => connection.as_mut().graceful_shutdown(),
        }
        drop(tokio::time::timeout(DRAIN, connection).await);
    });
    let ends = gone.clone().drop_guard();
    is_open.await.map_err(|_| DialError::Strange("the connection ended".into()))?;
    ends.disarm();
    Ok(DialledLink { control, said, gone, carried: Some(carried) })
}

fn open(opening: Option<Opening>, control: &Arc<Control>, request: Request<Incoming>) -> Response<Payload> {
    let Some(Opening { leaving, said, opened }) = opening else {
        return reply::typed(StatusCode::CONFLICT, "text/plain", Bytes::from_static(b"the stream of lines is open already\n"));
    };
    tokio::spawn(Arc::clone(control).read(request.into_body(), said));
    // Whoever waits may have lost patience.
    let _waited_for = opened.send(());
    Response::new(Payload::Events(Box::new(leaving)))
}

fn strange(error: &hyper::Error) -> DialError {
    DialError::Strange(error.to_string())
}

/// Reads a refusal: the message of JSON-RPC or of the admin API's JSON; else the text.
fn said_in(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let message =
        serde_json::from_slice::<serde_json::Value>(body).ok().and_then(|value| Some(value["error"]["message"].as_str()?.to_owned()));
    message.unwrap_or_else(|| text.chars().filter(|c| !c.is_control()).take(300).collect())
}

fn refused(status: StatusCode, why: &str) -> String {
    let hint = match status.as_u16() {
        401 => "; give it the token of an entry made there with `banyan token add NAME`",
        404 | 405 | 426 => "; look whether a Banyan gate runs there, and whether a proxy before it passes `Upgrade` on",
        _ => "",
    };
    format!("it answered {}: {why}{hint}", status.as_u16())
}
