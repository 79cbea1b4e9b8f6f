//! A client on standard input and output: reads lines, runs each request as a task of its own, writes lines.
//!
//! Serves both eras on the same pipe: a request that names its revision is stateless, everything else needs a handshake.
//! Does not know the tools.

use std::collections::{BTreeSet, HashMap};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::AbortHandle;

use crate::line::{self, LONGEST_MESSAGE, LineRead};
use crate::protocol::{self, RESERVED, STATELESS};
use crate::request::{Era, LEVELS, Request, reserved};
use crate::server::{Refusal, Server};
use crate::subject;
use crate::subscriptions::{self, Change, LISTENED, Subscriptions, UpdateExtras};

/// Most messages waiting to be written before their senders wait too.
const WAITING: usize = 256;
/// Most bytes waiting to be written; a longer message waits alone.
const WAITING_BYTES: usize = 16 << 20;
/// Time for requests under way after the end of the input.
const PATIENCE: Duration = Duration::from_secs(1);
/// Most requests of one client under way.
const UNDER_WAY: usize = 256;

/// Input of the writer: a message with its part of the bytes that may wait, or the end.
type Line = Option<(String, Option<OwnedSemaphorePermit>)>;

/// The way to the client, shared by all requests.
#[derive(Clone)]
pub struct Connection {
    lines: mpsc::Sender<Line>,
    room: Arc<Semaphore>,
    state: Arc<Mutex<State>>,
}

/// The client's description of itself, and the work under way.
#[derive(Default)]
struct State {
    session: Option<Session>,
    /// Running requests, by id as text.
    running: HashMap<String, AbortHandle>,
    /// Our own unanswered requests.
    pending: HashMap<u64, oneshot::Sender<Result<Value, Refusal>>>,
    /// Requests of our own so far.
    sent: u64,
    subscriptions: Subscriptions,
}

/// A session of the initialize era.
struct Session {
    capabilities: Value,
    level: Option<String>,
}

/// Serves one client until its input ends.
pub async fn run<S, R, W>(server: Arc<S>, input: R, output: W) -> std::io::Result<()>
where
    S: Server,
    R: AsyncRead + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let (lines, waiting) = mpsc::channel(WAITING);
    let connection = Connection { lines, room: Arc::new(Semaphore::new(WAITING_BYTES)), state: Arc::default() };
    let writer = subject::spawn(write(waiting, output));
    server.connected(&connection);
    let read = connection.read(&server, input).await;
    connection.finish().await;
    // The writer ends at the end of its lines, or when the client stops reading.
    let _written = tokio::time::timeout(PATIENCE, writer).await;
    read
}

async fn write<W: AsyncWrite + Unpin>(mut waiting: mpsc::Receiver<Line>, mut output: W) {
    while let Some(Some((mut line, _waits))) = waiting.recv().await {
        line.push('\n');
        if output.write_all(line.as_bytes()).await.is_err() || output.flush().await.is_err() {
            return;
        }
    }
}

impl Connection {
    /// Sends a notification.
    pub async fn notify(&self, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    /// Sends a request of our own and waits for the answer (initialize era).
    pub async fn request(&self, method: &str, params: Value) -> Result<Value, Refusal> {
        let (reply, answer) = oneshot::channel();
        let id = {
            let mut state = self.state();
            state.sent += 1;
            let id = state.sent;
            state.pending.insert(id, reply);
            id
        };
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        let gone = || Refusal::Rpc { code: -32603, message: "the client is gone".into(), data: None };
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Tells all listeners of a change, each in its era's way.
    pub async fn changed(&self, change: Change<'_>) {
        self.tell(change, &UpdateExtras::default()).await;
    }

    /// Tells all subscribers of a changed resource, with members beyond MCP.
    pub async fn updated(&self, uri: &str, extras: &UpdateExtras) {
        self.tell(Change::Resource(uri), extras).await;
    }

    async fn tell(&self, change: Change<'_>, extras: &UpdateExtras) {
        let messages = {
            let state = self.state();
            state.subscriptions.messages(state.session.is_some(), change, extras)
        };
        for message in messages {
            self.send(message).await;
        }
    }

    /// Resources that the client follows.
    pub fn followed(&self) -> BTreeSet<String> {
        self.state().subscriptions.followed()
    }

    /// Capabilities of the client of a session; `None` before one.
    pub fn session_capabilities(&self) -> Option<Value> {
        self.state().session.as_ref().map(|session| session.capabilities.clone())
    }

    /// Checks that the client is gone.
    pub fn is_closed(&self) -> bool {
        self.lines.is_closed()
    }

    async fn send(&self, message: Value) {
        let line = message.to_string();
        drop(message);
        let bytes = u32::try_from(line.len().min(WAITING_BYTES)).unwrap_or_default();
        let waits = tokio::select! {
            waits = Arc::clone(&self.room).acquire_many_owned(bytes) => waits.ok(),
            // Nothing is written any more.
            () = self.lines.closed() => None,
        };
        // Fails only when the client is gone, which the reader notices.
        let _gone = self.lines.send(Some((line, waits))).await;
    }

    /// Lets short work end, stops the rest, and ends the writer.
    async fn finish(&self) {
        let end = Instant::now() + PATIENCE;
        while !self.state().running.is_empty() && Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        for (_, task) in self.state().running.drain() {
            task.abort();
        }
        let _gone = self.lines.send(None).await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn read<S: Server, R: AsyncRead + Unpin>(&self, server: &Arc<S>, input: R) -> std::io::Result<()> {
        let mut input = BufReader::new(input);
        let mut line = Vec::new();
        loop {
            match line::read(&mut input, &mut line).await? {
                LineRead::End => return Ok(()),
                LineRead::Whole => {}
                LineRead::TooLong => {
                    let message = format!("a message has at most {LONGEST_MESSAGE} bytes: send less at once");
                    self.refuse(line::id_at_front(&line), Refusal::Rpc { code: -32600, message, data: None }).await;
                    continue;
                }
            }
            match serde_json::from_slice::<Value>(&line) {
                Ok(Value::Object(message)) => self.handle(server, message).await,
                Ok(_) => {
                    self.refuse(Value::Null, Refusal::Rpc { code: -32600, message: "a message is one object".into(), data: None }).await
                }
                Err(_) if line.iter().all(u8::is_ascii_whitespace) => {}
                Err(error) => self.refuse(Value::Null, Refusal::Rpc { code: -32700, message: error.to_string(), data: None }).await,
            }
        }
    }

    async fn handle<S: Server>(&self, server: &Arc<S>, mut message: Map<String, Value>) {
        let params = match message.remove("params") {
            Some(Value::Object(params)) => params,
            _ => Map::new(),
        };
        let method = message.get("method").and_then(Value::as_str).map(ToOwned::to_owned);
        match (method, message.remove("id")) {
            (Some(method), Some(id)) => self.start(server, id, method, params).await,
            (Some(method), None) => self.noticed(&method, &params),
            (None, Some(id)) => self.answered(&id, &mut message),
            (None, None) => {}
        }
    }

    fn noticed(&self, method: &str, params: &Map<String, Value>) {
        let (true, Some(id)) = (method == "notifications/cancelled", params.get("requestId")) else { return };
        let mut state = self.state();
        state.subscriptions.end_listening(&id.to_string());
        if let Some(task) = state.running.remove(&id.to_string()) {
            task.abort();
        }
    }

    fn answered(&self, id: &Value, message: &mut Map<String, Value>) {
        let waiting = id.as_u64().and_then(|id| self.state().pending.remove(&id));
        let Some(waiting) = waiting else { return };
        let answer = message.remove("result").ok_or_else(|| {
            let why = message.get("error").and_then(|error| error.get("message")).and_then(Value::as_str).unwrap_or("no reason given");
            Refusal::Rpc { code: -32603, message: format!("the client refused: {why}"), data: None }
        });
        // Fails only when the asking tool was cancelled meanwhile.
        let _cancelled = waiting.send(answer);
    }

    async fn start<S: Server>(&self, server: &Arc<S>, id: Value, method: String, params: Map<String, Value>) {
        let request = match self.incoming(&method, &params) {
            Ok(request) => request,
            Err(refusal) => return self.refuse(id, refusal).await,
        };
        if let Some(done) = self.of_session(&**server, request.era, &method, &params) {
            return match done {
                Ok(result) => self.reply(id, result).await,
                Err(refusal) => self.refuse(id, refusal).await,
            };
        }
        if self.state().running.contains_key(&id.to_string()) {
            let message = format!("a request of the id {id} is under way: give each request an id of its own");
            return self.refuse(Value::Null, Refusal::Rpc { code: -32600, message, data: None }).await;
        }
        if self.state().running.len() >= UNDER_WAY {
            let message = format!("{UNDER_WAY} requests are under way: send this one again when some have been answered");
            return self.refuse(id, Refusal::Rpc { code: -32000, message, data: None }).await;
        }
        if request.era == Era::Stateless && method == "subscriptions/listen" {
            return self.listen(server, id, &params).await;
        }
        if request.era == Era::Initialize && method == "resources/subscribe" {
            return self.subscribe(server, request, id, &params).await;
        }
        let (connection, server, key) = (self.clone(), server.clone(), id.to_string());
        let (started, begin) = oneshot::channel::<()>();
        let task = subject::spawn(S::within_request(async move {
            // Waits until it is known as running, so that it can't end before.
            let _known = begin.await;
            let (done, key) = (protocol::answer(&*server, &request, &method, &params).await, id.to_string());
            match done {
                Ok(result) | Err(Refusal::InputRequired(result)) => {
                    connection.reply(id, protocol::finish(&*server, request.era, &method, result)).await;
                }
                Err(refusal) => connection.refuse(id, refusal).await,
            }
            // Under way until its answer is on the way: a client that reads nothing has no more answers waiting than requests may be under way.
            connection.state().running.remove(&key);
        }));
        self.state().running.insert(key, task.abort_handle());
        let _running = started.send(());
    }

    /// Handles changes of the session in order, before the next message is read; `None` for everything else.
    fn of_session<S: Server>(&self, server: &S, era: Era, method: &str, params: &Map<String, Value>) -> Option<Result<Value, Refusal>> {
        let text = |member: &str| params.get(member).and_then(Value::as_str);
        match (method, era) {
            ("initialize", Era::Initialize) => {
                let capabilities = params.get("capabilities").cloned().unwrap_or_default();
                let mut state = self.state();
                state.session = Some(Session { capabilities, level: None });
                state.subscriptions.begin_session();
                drop(state);
                Some(Ok(protocol::initialize(server, params)))
            }
            ("logging/setLevel", Era::Initialize) => Some(self.in_session(|session| {
                let level = text("level").filter(|level| LEVELS.contains(level));
                session.level = Some(level.ok_or_else(|| Refusal::invalid(format!("`level` is one of {}", LEVELS.join(", "))))?.into());
                Ok(())
            })),
            ("resources/unsubscribe", Era::Initialize) => {
                let Some(name) = text("uri").or_else(|| text("subscriptionId")) else {
                    return Some(Err(Refusal::invalid("`uri` is missing")));
                };
                self.state().subscriptions.unsubscribe(name);
                Some(Ok(json!({})))
            }
            _ => None,
        }
    }

    fn in_session(&self, change: impl FnOnce(&mut Session) -> Result<(), Refusal>) -> Result<Value, Refusal> {
        let mut state = self.state();
        let session = state.session.as_mut().ok_or_else(|| Refusal::invalid("`initialize` has to come first"))?;
        change(session).map(|()| json!({}))
    }

    /// Subscribes a session to a resource, once the server follows the resource.
    async fn subscribe<S: Server>(&self, server: &Arc<S>, request: Request, id: Value, params: &Map<String, Value>) {
        let Some(uri) = params.get("uri").and_then(Value::as_str).map(str::to_owned) else {
            return self.refuse(id, Refusal::invalid("`uri` is missing")).await;
        };
        let (connection, server) = (self.clone(), Arc::clone(server));
        self.begin(&id.to_string(), async move {
            if server.follow(std::slice::from_ref(&uri)).await.is_empty() {
                return connection.refuse(id, protocol::no_resource(Era::Initialize, &uri)).await;
            }
            let subscription = connection.state().subscriptions.subscribe(&uri);
            match subscription {
                Some(subscription) => connection.reply(id, server.subscription(&request, &subscription)).await,
                None => {
                    let message =
                        format!("a client follows at most {} resources, each with a URI that is not too long", subscriptions::MOST);
                    connection.refuse(id, Refusal::Rpc { code: -32000, message, data: None }).await;
                }
            }
        })
        .await;
    }

    /// Serves a listen request, which has no answer: it goes on until cancelled, or until the client is gone.
    async fn listen<S: Server>(&self, server: &Arc<S>, id: Value, params: &Map<String, Value>) {
        let wanted = params.get("notifications").and_then(Value::as_object).cloned().unwrap_or_default();
        let honoured = self.state().subscriptions.honoured(wanted);
        let Some(mut honoured) = honoured else {
            let message = "too many listen requests are open: end one first".to_owned();
            return self.refuse(id, Refusal::Rpc { code: -32000, message, data: None }).await;
        };
        let (connection, server) = (self.clone(), Arc::clone(server));
        self.begin(&id.to_string(), async move {
            let uris: Vec<String> = subscriptions::uris(&honoured).map(str::to_owned).collect();
            if !uris.is_empty() {
                subscriptions::replace_uris(&mut honoured, server.follow(&uris).await);
            }
            let tag = json!({ LISTENED: id });
            let params = json!({ "_meta": tag, "notifications": honoured });
            connection.state().subscriptions.listen(id, honoured);
            connection.notify("notifications/subscriptions/acknowledged", params).await;
        })
        .await;
    }

    /// Begins work under the id of a request: at once as far as nothing has to be waited for, so that the order of requests is kept, and the
    /// rest in a task.
    async fn begin(&self, key: &str, work: impl Future<Output = ()> + Send + 'static) {
        let mut work = Box::pin(work);
        let is_done = poll_fn(|context| Poll::Ready(work.as_mut().poll(context).is_ready())).await;
        if is_done {
            return;
        }
        let (connection, owned) = (self.clone(), key.to_owned());
        let (started, begin) = oneshot::channel::<()>();
        let task = subject::spawn(async move {
            // Waits until it is known as running, so that it can't end before.
            let _known = begin.await;
            work.await;
            connection.state().running.remove(&owned);
        });
        self.state().running.insert(key.to_owned(), task.abort_handle());
        let _running = started.send(());
    }

    /// Reads the era of a request, and its description of the client.
    fn incoming(&self, method: &str, params: &Map<String, Value>) -> Result<Request, Refusal> {
        let meta = params.get("_meta").and_then(Value::as_object).cloned().unwrap_or_default();
        let request = |era, capabilities, level, params: &Map<String, Value>, meta| Request {
            connection: self.clone(),
            era,
            capabilities,
            level,
            meta,
            inputs: params.get("inputResponses").and_then(Value::as_object).cloned().unwrap_or_default(),
            state: params.get("requestState").and_then(Value::as_str).map(Into::into),
        };
        if reserved(&meta, "protocolVersion").is_some() || method == "server/discover" {
            let (capabilities, level) = stateless(&meta)?;
            return Ok(request(Era::Stateless, capabilities, level, params, meta));
        }
        let state = self.state();
        let (capabilities, level) = match &state.session {
            Some(session) => (session.capabilities.clone(), session.level.clone()),
            None if matches!(method, "initialize" | "ping") => (Value::Null, None),
            None => return Err(Refusal::invalid("begin with `initialize`, or name the revision in `_meta` of every request")),
        };
        drop(state);
        Ok(request(Era::Initialize, capabilities, level, params, meta))
    }

    async fn reply(&self, id: Value, result: Value) {
        self.send(json!({ "jsonrpc": "2.0", "id": id, "result": result })).await;
    }

    async fn refuse(&self, id: Value, refusal: Refusal) {
        let error = match refusal {
            Refusal::InputRequired(_) => json!({ "code": -32603, "message": "an answer is needed where none can be given" }),
            Refusal::Rpc { code, message, data: None } => json!({ "code": code, "message": message }),
            Refusal::Rpc { code, message, data: Some(data) } => json!({ "code": code, "message": message, "data": data }),
        };
        self.send(json!({ "jsonrpc": "2.0", "id": id, "error": error })).await;
    }
}

/// Checks what every request of the stateless era has to carry; gives capabilities and log level.
fn stateless(meta: &Map<String, Value>) -> Result<(Value, Option<String>), Refusal> {
    let version = reserved(meta, "protocolVersion").and_then(Value::as_str);
    let capabilities = reserved(meta, "clientCapabilities").filter(|capabilities| capabilities.is_object());
    let (Some(version), Some(capabilities)) = (version, capabilities) else {
        return Err(Refusal::invalid(format!("`_meta` has to hold {RESERVED}protocolVersion and {RESERVED}clientCapabilities")));
    };
    if version != STATELESS {
        return Err(Refusal::Rpc {
            code: -32022,
            message: format!("revision {version} is not supported"),
            data: Some(json!({ "supported": [STATELESS], "requested": version })),
        });
    }
    Ok((capabilities.clone(), reserved(meta, "logLevel").and_then(Value::as_str).map(Into::into)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn bytes_that_wait_to_be_written_are_bounded() {
        let (lines, mut waiting) = mpsc::channel(WAITING);
        let connection = Connection { lines, room: Arc::new(Semaphore::new(WAITING_BYTES)), state: Arc::default() };
        let sent = |bytes: usize| {
            let connection = connection.clone();
            tokio::spawn(async move { connection.notify("n", json!({ "text": "x".repeat(bytes) })).await })
        };
        let all: Vec<_> = (0..10).map(|_| sent(WAITING_BYTES / 8)).collect();
        tokio::task::yield_now().await;
        assert_eq!(waiting.len(), 7, "an eighth of the bytes and some more has each");
        let long = sent(2 * WAITING_BYTES);
        for _ in 0..all.len() + 1 {
            assert!(waiting.recv().await.is_some());
        }
        assert!(long.await.is_ok());
        let stuck: Vec<_> = (0..10).map(|_| sent(WAITING_BYTES / 8)).collect();
        drop(waiting);
        for one in stuck {
            assert!(one.await.is_ok(), "nobody waits for a client that is gone");
        }
    }
}
