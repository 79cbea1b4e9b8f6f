//! The HTTP listener: accepts connections, finds the endpoint and the era, and hands over. What a request means is not known here.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use banyan_model::Segment;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use mcp_proto::envelope::{EnvelopeError, Message};
use mcp_proto::era::{INITIALIZE, RequestMeta};
use mcp_proto::json::Duplicates;
use mcp_proto::projection::Style;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::door::{self, Entered};
use super::initialize;
use super::reply::{self, Payload};
use super::stateless::{self, Place, Streams};
use crate::Inner;

/// How long open requests have when the gate shuts.
const DRAIN: Duration = Duration::from_secs(10);

/// Serves until `stop` fires, then lets requests in flight finish.
pub(crate) async fn serve(gateway: Arc<Inner>, listener: TcpListener, stop: CancellationToken) {
    let open = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        match accepted {
            Ok((stream, _)) => {
                open.spawn(connection(Arc::clone(&gateway), stream, stop.clone()));
            }
            Err(error) => {
                // Too many open files, most likely: others must close before more can come.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    drop(listener);
    gateway.hub.end();
    gateway.admin.closing.cancel();
    open.close();
    drop(tokio::time::timeout(DRAIN, open.wait()).await);
}

async fn connection(gateway: Arc<Inner>, stream: TcpStream, stop: CancellationToken) {
    // Small answers must not wait for the acknowledgement of the one before.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY");
    }
    let service = service_fn(move |request| {
        let gateway = Arc::clone(&gateway);
        async move { Ok::<_, Infallible>(handle(&gateway, request).await) }
    });
    let mut server = auto::Builder::new(TokioExecutor::new());
    server.http1().timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(30));
    let connection = server.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => return log(ended),
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    log(connection.await);
}

fn log(ended: Result<(), Box<dyn std::error::Error + Send + Sync>>) {
    if let Err(error) = ended {
        tracing::trace!(%error, "a connection ended");
    }
}

async fn handle(gateway: &Arc<Inner>, request: Request<Incoming>) -> Response<Payload> {
    let path = request.uri().path();
    if let Some(rest) = path.strip_prefix("/mcp")
        && (rest.is_empty() || rest.starts_with('/'))
    {
        return mcp(gateway, request).await;
    }
    crate::admin::handle(gateway, request).await
}

async fn mcp(gateway: &Arc<Inner>, request: Request<Incoming>) -> Response<Payload> {
    let (parts, body) = request.into_parts();
    let entered = match door::enter(&gateway.config.load(), &parts.headers) {
        Ok(entered) => entered,
        Err(refused) => return refuse(&refused),
    };
    let mount = match endpoint(gateway, parts.uri.path()) {
        Ok(mount) => mount,
        Err(why) => return reply::refuse(StatusCode::NOT_FOUND, None, -32000, &why),
    };
    let place = Place { headers: &parts.headers, mount: &mount, style: style(&parts.uri), streams: streams(&parts.headers) };
    match parts.method {
        Method::POST => match read(gateway, body).await {
            Ok(body) => post(gateway, &entered, place, &body).await,
            Err(response) => response,
        },
        // The stateless era has neither GET nor DELETE; a client that speaks it says so in the header.
        Method::GET | Method::DELETE if speaks_stateless(&parts.headers) => not_allowed(),
        Method::GET => initialize::get(gateway, &entered, place),
        Method::DELETE => initialize::delete(gateway, &entered, place).await,
        // Any other method of HTTP, known or not, means nothing here.
        _ => not_allowed(),
    }
}

async fn post(gateway: &Arc<Inner>, entered: &Entered, place: Place<'_>, body: &Bytes) -> Response<Payload> {
    let message = match Message::parse(body, Duplicates::RefuseDeep) {
        Ok(message) => message,
        Err(error) => return unreadable(error),
    };
    match message {
        Message::Request(request) if is_stateless(&request.method, &request.params, place.headers) => {
            stateless::post(gateway, entered, place, request).await
        }
        // The stateless era defines no notification from a client over HTTP; one is taken and means nothing.
        Message::Notification(_) if speaks_stateless(place.headers) => reply::empty(StatusCode::ACCEPTED),
        message @ (Message::Notification(_) | Message::Request(_) | Message::Response(_)) => {
            initialize::post(gateway, entered, place, message).await
        }
    }
}

/// Which era a request is of: its own `_meta` says so, or its method or header does.
fn is_stateless(method: &str, params: &Bytes, headers: &HeaderMap) -> bool {
    if method == "initialize" && !speaks_stateless(headers) {
        return false;
    }
    // Most requests of the initialize era do not hold the word at all.
    let claims = memchr::memmem::find(params, b"protocolVersion").is_some() && RequestMeta::of(params).is_stateless();
    claims || method == "server/discover" || speaks_stateless(headers)
}

/// Whether the header names a revision that is not of the initialize era.
fn speaks_stateless(headers: &HeaderMap) -> bool {
    let version = headers.get("mcp-protocol-version").and_then(|v| v.to_str().ok()).map(str::trim);
    version.is_some_and(|v| !INITIALIZE.contains(&v))
}

async fn read(gateway: &Inner, body: Incoming) -> Result<Bytes, Response<Payload>> {
    let limit = gateway.limits().request_bytes;
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            let why = format!("the request is longer than {limit} bytes (limits.request_size)");
            Err(reply::refuse(StatusCode::PAYLOAD_TOO_LARGE, None, -32600, &why))
        }
        Err(error) => Err(reply::refuse(StatusCode::BAD_REQUEST, None, -32700, &format!("the request broke off: {error}"))),
    }
}

fn unreadable(error: EnvelopeError) -> Response<Payload> {
    let id = if let EnvelopeError::Invalid { id, .. } = &error { id.clone() } else { None };
    let told = crate::call::error::CallError::BadMessage(error).tell(banyan_model::Era::Stateless);
    reply::refuse(told.status, id.as_deref(), told.code, &told.message)
}

/// `/mcp` is the whole tree, `/mcp/NAME` one mount.
fn endpoint(gateway: &Inner, path: &str) -> Result<Option<Segment>, String> {
    let name = path.trim_start_matches("/mcp").trim_matches('/');
    if name.is_empty() {
        return Ok(None);
    }
    let tree = gateway.tree.load();
    match Segment::new(name) {
        Ok(segment) if tree.branch(&segment).is_some() => Ok(Some(segment)),
        _ => {
            let names: Vec<String> = tree.branches.iter().map(|b| b.mount.config.name.to_string()).collect();
            Err(format!("there is no server `{name}` here; there are: {}", names.join(", ")))
        }
    }
}

/// `?names=dotted` and `?names=safe` ask for a spelling.
fn style(uri: &Uri) -> Option<Style> {
    uri.query()?.split('&').find_map(|pair| match pair {
        "names=dotted" => Some(Style::Dotted),
        "names=safe" => Some(Style::Safe),
        _ => None,
    })
}

fn streams(headers: &HeaderMap) -> Streams {
    let accept = headers.get(http::header::ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or_default();
    match (accept.find("text/event-stream"), accept.find("application/json")) {
        (Some(events), Some(json)) if events < json => Streams::Preferred,
        (Some(_), None) => Streams::Preferred,
        (Some(_), Some(_)) => Streams::Taken,
        (None, _) if accept.contains("*/*") => Streams::Taken,
        (None, _) => Streams::Refused,
    }
}

fn not_allowed() -> Response<Payload> {
    let mut response = reply::empty(StatusCode::METHOD_NOT_ALLOWED);
    response.headers_mut().insert(http::header::ALLOW, HeaderValue::from_static("POST"));
    response
}

fn refuse(refused: &door::Refused) -> Response<Payload> {
    let mut response = reply::refuse(refused.status, None, -32000, &refused.why);
    if refused.status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(HeaderName::from_static("www-authenticate"), HeaderValue::from_static("Bearer realm=\"banyan\""));
    }
    response
}
