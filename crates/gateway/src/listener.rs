//! The HTTP listener: accepts connections and reads requests. Does not know the meaning of a request.

use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::future::join_all;
use http::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN};
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use runtime::tcp::Tcp;
use runtime::worker::{Seat, Workers};
use rustix::io::Errno;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use call::words::party::Party;
use call::words::shares::Full;
use door::connections::{Busy, Connection, Connections, IDLE, Place};
use door::entrance::Entrance;
use door::port::{Door, FirstReader, ReadEnd, Remote};
use door::reply;
use door::reply::Payload;
use door::rewind::Rewind;
use door::socket::Socket;

/// Time for open requests when the gate shuts.
const DRAIN: Duration = Duration::from_secs(10);
/// Longest pause in accepting connections when the system gives no more.
const BREATH: Duration = Duration::from_millis(10);
/// Time for a client to show the version of HTTP.
const VERSION: Duration = Duration::from_secs(10);
/// Milliseconds for which a client may take none of the sent bytes.
const STUCK: u32 = 120_000;
/// Silence after which an HTTP/2 client gets a ping, and the time for the answer.
const BEAT: Duration = Duration::from_secs(20);
const REPLY: Duration = Duration::from_secs(10);
/// Most requests at once of a client of HTTP/2.
const STREAMS: u32 = 100;
/// First bytes of HTTP/2 (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The doors behind one socket.
pub(crate) struct Listener {
    pub(crate) entrance: Arc<Entrance>,
    /// Reader of fresh connections, whose protocol is unknown.
    pub(crate) first: Arc<dyn FirstReader>,
    /// Doors in order; the first door that knows a path answers.
    pub(crate) doors: Vec<Arc<dyn Door>>,
    /// Open connections.
    pub(crate) open: TaskTracker,
}

/// Serves until `stop` fires, then lets requests in flight finish.
pub(crate) async fn serve(listener: Arc<Listener>, socket: TcpListener, stop: CancellationToken, workers: &Workers) {
    let open = listener.open.clone();
    let connections = Connections::new(socket.local_addr().ok().map(|here| here.ip()), stop.clone());
    let mut reserve = Reserve::new();
    loop {
        let accepted = tokio::select! {
            accepted = socket.accept() => accepted,
            () = stop.cancelled() => break,
        };
        match accepted {
            Ok((stream, address)) => match connections.admit(address.ip(), &listener.entrance.gate.config.load().limits) {
                Ok((place, connection)) => {
                    hand_over(&listener, NewConnection { stream, address, place, connection }, workers.seat(), &open)
                }
                Err(full) => listener.entrance.gate.load.refusals.note(crowded(full), None),
            },
            Err(error) if is_out_of_files(&error) => {
                listener.entrance.gate.load.refusals.note("the system lets the gate open no more files (`ulimit -n`)", None);
                connections.make_room();
                reserve.turn_away(&socket).await;
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(BREATH).await;
            }
        }
    }
    drop(socket);
    open.close();
    let closing = join_all(listener.doors.iter().map(|door| door.close()));
    tokio::join!(closing, async { drop(tokio::time::timeout(DRAIN, open.wait()).await) });
}

fn is_out_of_files(error: &io::Error) -> bool {
    [Errno::MFILE, Errno::NFILE].map(|errno| Some(errno.raw_os_error())).contains(&error.raw_os_error())
}

fn crowded(full: Full) -> &'static str {
    match full {
        Full::All => "there are too many connections (limits.connections)",
        Full::Share(_) => "there are too many connections from one address (limits.connections_per_address)",
    }
}

/// An open file kept in reserve: closing the file frees a descriptor when the system gives no more.
struct Reserve(Option<File>);

impl Reserve {
    fn new() -> Self {
        Self(File::open("/dev/null").ok())
    }

    /// Accepts a waiting connection and drops it. Left alone, the connection would block the queue for as long as descriptors lack.
    async fn turn_away(&mut self, listener: &TcpListener) {
        drop(self.0.take());
        let turned_away = tokio::time::timeout(BREATH, listener.accept()).await;
        drop(turned_away);
        self.0 = File::open("/dev/null").ok();
        if self.0.is_none() {
            tokio::time::sleep(BREATH).await;
        }
    }
}

/// A connection just accepted.
struct NewConnection {
    stream: TcpStream,
    address: SocketAddr,
    place: Place,
    connection: Arc<Connection>,
}

/// Gives a connection to the worker of `seat`.
fn hand_over(listener: &Arc<Listener>, came: NewConnection, seat: Seat, open: &TaskTracker) {
    let listener = Arc::clone(listener);
    let Some(runtime) = seat.runtime.clone() else {
        open.spawn(async move {
            let _seat = seat;
            connection(listener, came).await;
        });
        return;
    };
    let NewConnection { stream, address, place, connection: at } = came;
    let moved = stream.into_std();
    let served = async move {
        let _seat = seat;
        // From here on the runtime of the worker polls the socket.
        match moved.and_then(TcpStream::from_std) {
            Ok(stream) => connection(listener, NewConnection { stream, address, place, connection: at }).await,
            Err(error) => tracing::warn!(%error, "a connection could not be handed to its worker"),
        }
    };
    open.spawn_on(served, &runtime);
}

async fn connection(listener: Arc<Listener>, came: NewConnection) {
    let NewConnection { stream, address, place, connection } = came;
    // Small answers must not wait for the acknowledgement of the one before.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY");
    }
    give_up_on_stuck(&stream);
    if listener.entrance.trust.speaks_tls() {
        // Boxed, so that the many plain connections do not hold room for TLS.
        return Box::pin(protected(listener, stream, place, connection)).await;
    }
    let party = Party::plain(address);
    if let ReadEnd::Unusual(read, stream) = listener.first.read(Tcp::new(stream), party.clone(), &connection).await {
        Box::pin(any(listener, (read, stream, place), party, connection)).await;
    }
}

/// Has the system end a connection whose client takes no bytes; unsent bytes would stay here without end.
fn give_up_on_stuck(stream: &TcpStream) {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::net::sockopt::set_tcp_user_timeout(stream, STUCK) {
        tracing::debug!(%error, "TCP_USER_TIMEOUT");
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (stream, STUCK);
}

/// Serves a connection with TLS, as long as the client's certificate holds.
async fn protected(listener: Arc<Listener>, stream: TcpStream, place: Place, connection: Arc<Connection>) {
    let Some(server) = listener.entrance.trust.server() else { return };
    let Some((stream, party)) = trust::accept(server, stream).await else { return };
    let serving = async {
        if let ReadEnd::Unusual(read, stream) = listener.first.read_tls(stream, Some(Arc::clone(&party)), &connection).await {
            any(Arc::clone(&listener), (read, stream, place), Some(Arc::clone(&party)), connection).await;
        }
    };
    tokio::select! {
        () = serving => {}
        () = listener.entrance.trust.ended(&party) => {}
    }
}

/// Serves HTTP of either version.
async fn any<S: Socket>(
    listener: Arc<Listener>,
    (read, mut stream, place): (Bytes, S, Place),
    party: Option<Arc<Party>>,
    connection: Arc<Connection>,
) {
    let Ok(Some(read)) = tokio::time::timeout(VERSION, version(read, &mut stream)).await else { return };
    connection.rest(Instant::now());
    let at = Arc::clone(&connection);
    let service = service_fn(move |mut request: Request<Incoming>| {
        let (listener, party, busy) = (Arc::clone(&listener), party.clone(), at.busy());
        request.extensions_mut().insert(at.address);
        request.extensions_mut().insert(Remote(at.ip));
        async move { Ok::<_, Infallible>(AnswerBody::response(handle(&listener, request, party).await, busy)) }
    });
    let mut server = auto::Builder::new(TokioExecutor::new());
    server.http1().timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(30));
    let mut http2 = server.http2();
    http2.timer(TokioTimer::new()).keep_alive_interval(BEAT).keep_alive_timeout(REPLY).max_concurrent_streams(STREAMS);
    let stream = TokioIo::new(Rewind::new(read, stream).holding(place));
    let serving = server.serve_connection_with_upgrades(stream, service);
    tokio::pin!(serving);
    tokio::select! {
        ended = serving.as_mut() => return log(ended),
        () = connection.stop.cancelled() => {}
        () = connection.idle_for(IDLE) => {}
    }
    serving.as_mut().graceful_shutdown();
    log(serving.await);
}

/// Reads on until the version of HTTP is certain; a library would wait for that without end. `None`: the client has gone.
async fn version<S: Socket>(read: Bytes, stream: &mut S) -> Option<Bytes> {
    if read.len() >= PREFACE.len() || !PREFACE.starts_with(&read) {
        return Some(read);
    }
    let mut read = BytesMut::from(read);
    while read.len() < PREFACE.len() && PREFACE.starts_with(&read) {
        if stream.read_buf(&mut read).await.ok()? == 0 {
            return None;
        }
    }
    Some(read.freeze())
}

/// Body of an answer; the connection is busy until the body is sent.
struct AnswerBody {
    payload: Payload,
    _busy: Option<Busy>,
}

impl AnswerBody {
    fn response(answer: Response<Payload>, busy: Busy) -> Response<Self> {
        let mut busy = Some(busy);
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            busy.take().into_iter().for_each(Busy::stay);
        }
        answer.map(|payload| Self { payload, _busy: busy })
    }
}

impl Body for AnswerBody {
    type Data = <Payload as Body>::Data;
    type Error = <Payload as Body>::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.get_mut().payload).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.payload.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.payload.size_hint()
    }
}

fn log(ended: Result<(), Box<dyn std::error::Error + Send + Sync>>) {
    if let Err(error) = ended {
        tracing::trace!(%error, "a connection ended");
    }
}

async fn handle(listener: &Arc<Listener>, request: Request<Incoming>, party: Option<Arc<Party>>) -> Response<Payload> {
    // These fields decide about admission, and a proxy in front may have read the other copy.
    let is_twice = |name: &HeaderName| request.headers().get_all(name).iter().nth(1).is_some();
    if let Some(name) = [AUTHORIZATION, HOST, ORIGIN].into_iter().find(is_twice) {
        let why = format!("Bad Request: the field `{name}` stands there twice; send it once");
        return reply::refuse(StatusCode::BAD_REQUEST, None, -32000, &why).into_http();
    }
    match listener.doors.iter().find(|door| door.is_here(request.uri().path())) {
        Some(door) => door.answer(request, party).await,
        None => reply::refuse(StatusCode::NOT_FOUND, None, -32000, "nothing is served here").into_http(),
    }
}
