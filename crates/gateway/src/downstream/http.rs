//! The HTTP listener: accepts connections and reads what comes on them. What a request means is not known here.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use mcp_proto::http1::Fields;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::endpoint::{self, Asked};
use super::known::Known;
use super::plain::{self, Left};
use super::reply::{self, Payload, Reply};
use super::rewind::Rewind;
use crate::Inner;
use crate::worker::{Seat, Workers};

/// How long open requests have when the gate shuts.
const DRAIN: Duration = Duration::from_secs(10);

/// Serves until `stop` fires, then lets requests in flight finish.
pub(crate) async fn serve(gateway: Arc<Inner>, listener: TcpListener, stop: CancellationToken, workers: &Workers) {
    let open = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        match accepted {
            Ok((stream, _)) => hand_over(&gateway, stream, &stop, workers.seat(), &open),
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

/// Gives a connection to the worker whose seat it has.
fn hand_over(gateway: &Arc<Inner>, stream: TcpStream, stop: &CancellationToken, seat: Seat, open: &TaskTracker) {
    let (gateway, stop) = (Arc::clone(gateway), stop.clone());
    let Some(runtime) = seat.runtime.clone() else {
        open.spawn(async move {
            let _seat = seat;
            connection(gateway, stream, stop).await;
        });
        return;
    };
    let moved = stream.into_std();
    let served = async move {
        let _seat = seat;
        // The worker watches it from here on.
        match moved.and_then(TcpStream::from_std) {
            Ok(stream) => connection(gateway, stream, stop).await,
            Err(error) => tracing::warn!(%error, "a connection could not be handed to its worker"),
        }
    };
    open.spawn_on(served, &runtime);
}

async fn connection(gateway: Arc<Inner>, stream: TcpStream, stop: CancellationToken) {
    // Small answers must not wait for the acknowledgement of the one before.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY");
    }
    if let Left::Unusual(read, stream) = plain::serve(&gateway, stream, &stop).await {
        // Few connections come to this, and those that do not should not hold the room it needs.
        Box::pin(any(gateway, Rewind::new(read, stream), stop)).await;
    }
}

/// Serves whatever HTTP there is.
async fn any(gateway: Arc<Inner>, stream: Rewind, stop: CancellationToken) {
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
    if !endpoint::is_here(request.uri().path()) {
        return crate::admin::handle(gateway, request).await;
    }
    mcp(gateway, request).await.into_http()
}

async fn mcp(gateway: &Arc<Inner>, request: Request<Incoming>) -> Reply {
    let (parts, body) = request.into_parts();
    let fields = fields(&parts);
    let asked = Asked { path: parts.uri.path(), query: parts.uri.query(), fields: &fields };
    // Streams of one connection run side by side here, so each proves itself.
    let mut known = Known::default();
    let admitted = match endpoint::admit(gateway, asked, &mut known) {
        Ok(admitted) => admitted,
        Err(refused) => return refused,
    };
    match parts.method {
        Method::POST => match read(gateway, body).await {
            Ok(body) => endpoint::post(gateway, &admitted, asked, &body, &mut known).await,
            Err(reply) => reply,
        },
        Method::GET => endpoint::get(gateway, &admitted, asked),
        Method::DELETE => endpoint::delete(gateway, &admitted, asked).await,
        _ => endpoint::not_allowed(),
    }
}

/// The same fields as this gate's own reader gives them. HTTP/2 names the host elsewhere (RFC 9113, section 8.3.1).
pub(crate) fn fields(parts: &Parts) -> Fields {
    let authority = parts.uri.authority().filter(|_| !parts.headers.contains_key(HOST));
    let host = authority.map(|authority| (HOST.as_str(), authority.as_str().as_bytes()));
    Fields::new(parts.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).chain(host))
}

async fn read(gateway: &Inner, body: Incoming) -> Result<Bytes, Reply> {
    let limit = gateway.limits().request_bytes;
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(endpoint::too_long(limit)),
        Err(error) => Err(reply::refuse(StatusCode::BAD_REQUEST, None, -32700, &format!("the request broke off: {error}"))),
    }
}
