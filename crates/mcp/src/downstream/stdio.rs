//! A client on a stream, such as our standard input and output, in either era: a message a line. Knows no message's meaning.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};

use banyan_model::{Principal, PrincipalKind, Segment};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use mcp_proto::envelope::{self, Answer, EnvelopeError, Message, Notification, Request};
use mcp_proto::era::RequestMeta;
use mcp_proto::json::Duplicates;
use mcp_proto::lines::{Line, Lines};
use mcp_proto::projection::Style;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::downstream::McpServer;
use crate::downstream::exchange::{Exchange, Turn};
use crate::downstream::initialize;
use crate::downstream::stateless;
use call::tree::back::{Back, Sink};
use call::tree::by_session::caller_of;
use call::tree::snapshot::Sight;
use call::way::error::CallError;
use call::words::cancel::Cancel;
use call::words::entered::{AdmittedCaller, By};
use call::words::lane::{Lane, Weight};
use call::words::party::Party;
use call::words::session::Session;
use door::known::KnownClient;

/// Lines of a client.
pub type Input = Box<dyn AsyncRead + Unpin + Send>;
/// Lines for a client.
pub type Output = Box<dyn AsyncWrite + Unpin + Send>;

/// Caller of all requests of a stream, admitted before its first line.
#[derive(Clone, Debug)]
pub struct StreamCaller {
    pub entered: AdmittedCaller,
    /// Only server shown; `None` for the whole tree.
    pub mount: Option<Segment>,
    /// Spelling of names, where not by the client's own.
    pub style: Option<Style>,
}

impl StreamCaller {
    /// Makes the caller on our own standard input.
    pub fn local() -> Self {
        Self { entered: AdmittedCaller::local(), mount: None, style: None }
    }

    /// Makes the caller with a certificate of this name, for whom a server's names are those of the server itself.
    pub fn certified(name: &str, mount: Segment) -> Self {
        // Elsewhere, and without proof of an authority: a stream carries a name, and no certificate.
        let party = Some(Party::tls(None, false));
        let entered = AdmittedCaller {
            principal: Principal::new(PrincipalKind::Certificate, name),
            party,
            by: By::Certificate,
            ..AdmittedCaller::local()
        };
        Self { entered, mount: Some(mount), style: Some(Style::Dotted) }
    }
}

/// Serves a client until its input ends or `stop` fires.
pub fn serve(
    server: Arc<McpServer>,
    caller: StreamCaller,
    input: Input,
    output: Output,
    stop: CancellationToken,
) -> BoxFuture<'static, ()> {
    Box::pin(served(server, caller, input, output, stop))
}

async fn served(server: Arc<McpServer>, caller: StreamCaller, mut input: Input, output: Output, stop: CancellationToken) {
    let (out, session, in_flight, tasks) = (Lane::new(), Mutex::default(), Mutex::default(), TaskTracker::new());
    let door = Arc::new(Door { server, caller, out, session, in_flight, tasks });
    let writing = tokio::spawn(write(Arc::clone(&door.out), output));
    let mut lines = Lines::new(door.server.entrance.gate.limits().request_bytes);
    loop {
        lines.buffer().reserve(16 << 10);
        let read = tokio::select! {
            read = input.read_buf(lines.buffer()) => read,
            () = stop.cancelled() => break,
        };
        while let Some(line) = lines.poll_line() {
            door.line(line).await;
        }
        if !matches!(read, Ok(n) if n > 0) {
            break;
        }
    }
    door.tasks.close();
    // Open answers still go out, since a client with closed input may well be reading.
    drop(tokio::time::timeout(std::time::Duration::from_secs(5), door.tasks.wait()).await);
    door.end_session().await;
    drop(writing.await);
}

struct Door {
    server: Arc<McpServer>,
    caller: StreamCaller,
    out: Arc<Lane>,
    session: Mutex<Option<Arc<Session>>>,
    in_flight: Mutex<HashMap<Bytes, Cancel>>,
    tasks: TaskTracker,
}

impl Door {
    async fn line(self: &Arc<Self>, line: Line) {
        let text = match line {
            Line::Whole(text) => text,
            Line::TooLong(size) => {
                let why = format!("a message of {size} bytes is longer than allowed (limits.request_size)");
                return self.send_error(b"null", -32600, &why);
            }
        };
        match Message::parse(&text, Duplicates::RefuseDeep) {
            Ok(Message::Request(request)) if request.method == "initialize" => self.initialize(&request).await,
            Ok(Message::Request(request)) => self.request(Arc::new(request)),
            Ok(Message::Notification(notification)) => self.notified(&notification).await,
            Ok(Message::Response(response)) => {
                if let Some(session) = self.session() {
                    session.answered(&response.id, response.answer);
                }
            }
            Err(error) => {
                let id = if let EnvelopeError::Invalid { id: Some(id), .. } = &error { id.clone() } else { Bytes::from_static(b"null") };
                let told = CallError::BadMessage(error).tell(banyan_model::Era::Initialize);
                self.send_error(&id, told.code, &told.message);
            }
        }
    }

    fn request(self: &Arc<Self>, request: Arc<Request>) {
        let meta = RequestMeta::of(&request.params);
        let cancel = Cancel::default();
        if !self.begin(&request.id, &cancel) {
            return self.send_error(&request.id, -32600, "a request with this id is in flight already");
        }
        if meta.is_stateless() || request.method == "server/discover" {
            return self.stateless(request, &meta, cancel);
        }
        let Some(session) = self.session() else {
            self.lock().remove(&request.id);
            return self.send_error(&request.id, -32600, "send `initialize` first, or the `_meta` of revision 2026-07-28");
        };
        let back = Back::new(caller_of(&session, &session.opening.entered), Sink::Lane(Arc::clone(&self.out)), None, cancel);
        let id = request.id.clone();
        let sight = Sight::of_caller(self.server.entrance.gate.mounts.tree.load_full(), &back.caller);
        let mut exchange = Exchange::begin(&self.server.entrance.gate, sight, request, &back, false);
        let door = Arc::clone(self);
        self.tasks.spawn(async move {
            loop {
                if let Turn::Ended(ended) = exchange.turn(None).await {
                    door.send(&id, &initialize::to_answer(&ended));
                    return;
                }
            }
        });
    }

    fn stateless(self: &Arc<Self>, request: Arc<Request>, meta: &RequestMeta, cancel: Cancel) {
        if let Err(refused) = stateless::check_meta(meta).and_then(|()| stateless::check_version(meta)) {
            return self.send(&request.id, &Answer::Error(refused.tell(banyan_model::Era::Stateless).object()));
        }
        let tree = self.server.entrance.gate.mounts.tree.load_full();
        let StreamCaller { entered, mount, style } = &self.caller;
        let caller = KnownClient::default().caller(&tree.config, entered, mount.as_ref(), *style, meta);
        if request.method == "subscriptions/listen" {
            let door = Arc::clone(self);
            // The answer waits for servers, and further lines must not wait for the answer.
            tokio::spawn(async move {
                match call::way::open_listener(&door.server.entrance.gate, &caller, &request, &door.out, None).await {
                    Ok(gone) => {
                        cancel.cancelled().await;
                        gone.cancel();
                    }
                    Err(refused) => door.send(&request.id, &Answer::Error(refused.tell(banyan_model::Era::Stateless).object())),
                }
            });
            return;
        }
        let begun = stateless::begin(&self.server, Sight::of_caller(tree, &caller), (&caller, meta), &request, &self.out, None);
        let (mut exchange, open) = match begun {
            Ok(begun) => begun,
            Err(refused) => return self.send(&request.id, &Answer::Error(refused.tell(banyan_model::Era::Stateless).object())),
        };
        let door = Arc::clone(self);
        self.tasks.spawn(async move {
            if !open.is_empty() {
                let result = door.server.parked.park(&door.server, exchange, open, &request);
                return door.send(&request.id, &Answer::Result(result.into()));
            }
            loop {
                let turn = tokio::select! {
                    turn = exchange.turn(None) => turn,
                    () = cancel.cancelled() => {
                        exchange.back.cancel.cancel();
                        return;
                    }
                };
                match turn {
                    Turn::Ended(ended) => return door.send(&request.id, &stateless::to_status_and_answer(&ended).1),
                    Turn::Questions(questions) => {
                        let result = door.server.parked.park(&door.server, exchange, questions, &request);
                        return door.send(&request.id, &Answer::Result(result.into()));
                    }
                    Turn::Message | Turn::Pour(_) => {}
                }
            }
        });
    }

    async fn initialize(self: &Arc<Self>, request: &Request) {
        let id = runtime::random::token().into();
        let StreamCaller { entered, mount, style } = &self.caller;
        let session = initialize::begin(&self.server, entered, mount, *style, request, id);
        session.stand_on(&self.out);
        // A client that reconnects may still answer questions from the connection before.
        session.number_from(u32::from_le_bytes(runtime::random::bytes()));
        let old = self.session.lock().unwrap_or_else(PoisonError::into_inner).replace(Arc::clone(&session));
        if let Some(old) = old {
            self.server.entrance.gate.hub.close(&old.id);
        }
        let result = Box::pin(initialize::initialized(&self.server, &session)).await;
        self.send(&request.id, &Answer::Result(result.into()));
        // No message may come before the answer to `initialize`.
        self.server.entrance.gate.hub.open(session, None);
    }

    async fn notified(&self, notification: &Notification) {
        if notification.method == "notifications/cancelled"
            && let Some(id) = notification.params.members().get("requestId")
            && let Some(cancel) = self.lock().remove(id)
        {
            cancel.cancel();
            return;
        }
        if let Some(session) = self.session() {
            initialize::notified(&self.server, &session, notification).await;
        }
    }

    /// Notes how to cancel request `id`; `false` for an id in use.
    fn begin(&self, id: &Bytes, cancel: &Cancel) -> bool {
        match self.lock().entry(id.clone()) {
            Entry::Occupied(_) => false,
            Entry::Vacant(free) => {
                free.insert(cancel.clone());
                true
            }
        }
    }

    fn send(&self, id: &Bytes, answer: &Answer) {
        self.lock().remove(id);
        self.out.push(envelope::response(id, answer), Weight::Kept);
    }

    fn send_error(&self, id: &[u8], code: i64, message: &str) {
        let error = Answer::Error(envelope::error_object(code, message, None));
        self.out.push(envelope::response(id, &error), Weight::Kept);
    }

    fn session(&self) -> Option<Arc<Session>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Bytes, Cancel>> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn end_session(&self) {
        let cancels: Vec<_> = self.lock().drain().map(|(_, c)| c).collect();
        cancels.iter().for_each(Cancel::cancel);
        if let Some(session) = self.session() {
            self.server.entrance.gate.hub.close(&session.id);
            session.end_session();
            call::way::forget(&self.server.entrance.gate, &session).await;
        }
        self.out.end_lane();
    }
}

/// Writes the messages of the lane, several at once where possible.
async fn write(lane: Arc<Lane>, mut output: impl AsyncWrite + Unpin) {
    let mut reader = lane.read(0);
    while let Some((_, message)) = poll_fn(|cx| reader.poll_next(cx)).await {
        let mut line = message.to_vec();
        line.iter_mut().filter(|b| matches!(**b, b'\n' | b'\r')).for_each(|b| *b = b' ');
        line.push(b'\n');
        if output.write_all(&line).await.is_err() || output.flush().await.is_err() {
            return;
        }
    }
    _ = output.shutdown().await;
}
