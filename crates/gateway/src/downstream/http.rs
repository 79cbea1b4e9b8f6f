//! The HTTP listener: accepts connections and reads what comes on them. What a request means is not known here.

use std::convert::Infallible;
use std::net::SocketAddr;
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

use super::door::Entered;
use super::endpoint::{self, Asked};
use super::known::Known;
use super::link;
use super::plain::{self, Left};
use super::reply::{self, Payload, Reply};
use super::rewind::Rewind;
use super::socket::Socket;
use crate::Inner;
use crate::admin::Remote;
use crate::rooms;
use crate::tcp::Tcp;
use crate::trust::{self, Party};
use crate::worker::{Seat, Workers};

/// How long open requests have when the gate shuts.
const DRAIN: Duration = Duration::from_secs(10);
/// So much of a body nobody wants is read, in bytes, and for so long.
const PASSED_OVER: usize = 64 << 10;
const LINGER: Duration = Duration::from_secs(2);

/// Serves until `stop` fires, then lets requests in flight finish.
pub(crate) async fn serve(gateway: Arc<Inner>, listener: TcpListener, stop: CancellationToken, workers: &Workers) {
    let open = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        match accepted {
            Ok((stream, address)) => hand_over(&gateway, Came { stream, address }, &stop, workers.seat(), &open),
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
    tokio::join!(gateway.rooms.end(), async { drop(tokio::time::timeout(DRAIN, open.wait()).await) });
}

/// A connection that has just come.
struct Came {
    stream: TcpStream,
    address: SocketAddr,
}

/// Gives a connection to the worker whose seat it has.
fn hand_over(gateway: &Arc<Inner>, came: Came, stop: &CancellationToken, seat: Seat, open: &TaskTracker) {
    let (gateway, stop) = (Arc::clone(gateway), stop.clone());
    let Some(runtime) = seat.runtime.clone() else {
        open.spawn(async move {
            let _seat = seat;
            connection(gateway, came, stop).await;
        });
        return;
    };
    let Came { stream, address } = came;
    let moved = stream.into_std();
    let served = async move {
        let _seat = seat;
        // The worker watches it from here on.
        match moved.and_then(TcpStream::from_std) {
            Ok(stream) => connection(gateway, Came { stream, address }, stop).await,
            Err(error) => tracing::warn!(%error, "a connection could not be handed to its worker"),
        }
    };
    open.spawn_on(served, &runtime);
}

async fn connection(gateway: Arc<Inner>, came: Came, stop: CancellationToken) {
    let Came { stream, address } = came;
    // Small answers must not wait for the acknowledgement of the one before.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY");
    }
    if gateway.trust.speaks_tls() {
        // Few connections come to what is boxed here, and those that do not should not hold the room it needs.
        return Box::pin(protected(gateway, Came { stream, address }, stop)).await;
    }
    let party = Party::plain(address);
    if let Left::Unusual(read, stream) = plain::serve(&gateway, Tcp::new(stream), party.clone(), &stop).await {
        Box::pin(any(gateway, Rewind::new(read, stream), (party, Remote(address.ip())), stop)).await;
    }
}

/// Serves a connection with TLS, as long as the certificate holds that its client has shown.
async fn protected(gateway: Arc<Inner>, came: Came, stop: CancellationToken) {
    let Came { stream, address } = came;
    let Some(server) = gateway.trust.server() else { return };
    let Some((stream, party)) = trust::accept(server, stream).await else { return };
    let serving = async {
        if let Left::Unusual(read, stream) = plain::serve(&gateway, stream, Some(Arc::clone(&party)), &stop).await {
            any(Arc::clone(&gateway), Rewind::new(read, stream), (Some(Arc::clone(&party)), Remote(address.ip())), stop).await;
        }
    };
    tokio::select! {
        () = serving => {}
        () = gateway.trust.ended(&party) => {}
    }
}

/// Serves whatever HTTP there is, to whoever is at the other end.
async fn any<S: Socket>(gateway: Arc<Inner>, stream: Rewind<S>, other_end: (Option<Arc<Party>>, Remote), stop: CancellationToken) {
    let (party, remote) = other_end;
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(remote);
        let (gateway, party) = (Arc::clone(&gateway), party.clone());
        async move { Ok::<_, Infallible>(handle(&gateway, request, party).await) }
    });
    let mut server = auto::Builder::new(TokioExecutor::new());
    server.http1().timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(30));
    let connection = server.serve_connection_with_upgrades(TokioIo::new(stream), service);
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

async fn handle(gateway: &Arc<Inner>, request: Request<Incoming>, party: Option<Arc<Party>>) -> Response<Payload> {
    if link::is_here(request.uri().path()) {
        return link::handle(gateway, request, party);
    }
    if rooms::is_here(request.uri().path()) {
        // Boxed: few come, and the type of what they do is long.
        return Box::pin(rooms::handle(gateway, request, party)).await;
    }
    if !endpoint::is_here(request.uri().path()) {
        return crate::admin::handle(gateway, request, party).await;
    }
    // Streams of one connection run side by side here, so each proves itself.
    mcp(gateway, request, Known::of(party), None).await.into_http()
}

/// Answers a request that came over a link, from a parent that this gate has dialled. Nothing but MCP is served there.
pub(crate) async fn over_link(gateway: &Arc<Inner>, parent: Entered, request: Request<Incoming>) -> Response<Payload> {
    if !endpoint::is_here(request.uri().path()) {
        return reply::refuse(StatusCode::NOT_FOUND, None, -32000, "over a link, a parent is served at /mcp only").into_http();
    }
    mcp(gateway, request, Known::default(), Some(parent)).await.into_http()
}

/// `proven`: who makes the request, where that is known beforehand.
async fn mcp(gateway: &Arc<Inner>, request: Request<Incoming>, mut known: Known, proven: Option<Entered>) -> Reply {
    let (parts, mut body) = request.into_parts();
    let fields = fields(&parts);
    let asked = Asked { path: parts.uri.path(), query: parts.uri.query(), fields: &fields };
    let admitted = match proven {
        Some(entered) => endpoint::admit_known(gateway, asked.path, entered),
        None => endpoint::admit(gateway, asked, &mut known),
    };
    let admitted = match admitted {
        Ok(admitted) => admitted,
        Err(refused) => {
            pass_over(&mut body).await;
            return refused;
        }
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

/// Reads a short body nobody wants to know. An answer before its end goes together with a reset of the stream (RFC 9113, section 8.1), for
/// which some clients take back the answer.
pub(crate) async fn pass_over(body: &mut Incoming) {
    let rest = async {
        let mut read = 0;
        while let Some(Ok(frame)) = body.frame().await {
            read += frame.data_ref().map_or(0, Bytes::len);
            if read > PASSED_OVER {
                return;
            }
        }
    };
    drop(tokio::time::timeout(LINGER, rest).await);
}

async fn read(gateway: &Inner, body: Incoming) -> Result<Bytes, Reply> {
    let limit = gateway.limits().request_bytes;
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(endpoint::too_long(limit)),
        Err(error) => Err(reply::refuse(StatusCode::BAD_REQUEST, None, -32700, &format!("the request broke off: {error}"))),
    }
}
