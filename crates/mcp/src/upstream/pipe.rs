//! Drives a [`Pipe`]: the task that owns the machine, and the handle through which calls reach it.
//!
//! Does not know the carrier of the bytes: whole messages come in and go out over channels.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use mcp_proto::client::{AskKey, CallKey, Event, HandshakeError, Negotiated, Pipe};
use mcp_proto::envelope::Answer;
use mcp_proto::json::Object;
use tokio::runtime::Handle;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use call::tree::asks;
use call::tree::back::{Back, OpenQuestion};
use call::tree::port::{Inbox, OutgoingRequest, Owner, Upstream, UpstreamError};

/// Input from the server.
#[derive(Debug)]
pub enum ServerInput {
    /// The stream has ended, and why.
    Ended(String),
    /// A whole message.
    Message(Bytes),
    /// Size of a message longer than allowed, which was thrown away.
    TooLong(usize),
}

/// Ends of the channels that carry a pipe.
pub struct Carrier {
    pub incoming: mpsc::Receiver<ServerInput>,
    pub outgoing: mpsc::Sender<Bytes>,
    /// Fires when the pipe is to be closed.
    pub close: CancellationToken,
    /// Fires when the carrier is gone: the process reaped, the streams closed.
    pub ended: CancellationToken,
    /// Longest wait for the answer to the probe for the stateless era.
    pub probe: Duration,
}

/// Handle of the task that owns a pipe.
#[derive(Debug)]
pub struct PipeHandle {
    commands: mpsc::Sender<Command>,
    close: CancellationToken,
    ended: CancellationToken,
    /// Fires when the driver is gone.
    pub gone: CancellationToken,
    why: Arc<OnceLock<String>>,
}

#[derive(Debug)]
enum Command {
    Call { ticket: u64, method: String, params: Object, back: Option<Arc<Back>>, reply: Reply },
    Cancel { ticket: u64 },
    Notify(Bytes),
    Reply(AskKey, Answer),
}

type Reply = oneshot::Sender<Result<Answer, UpstreamError>>;

/// Starts the driver; returns after the handshake.
pub async fn open(pipe: Pipe, carrier: Carrier, inbox: Inbox) -> Result<(PipeHandle, Negotiated), OpenError> {
    let (commands, queue) = mpsc::channel(256);
    let (ready, opened) = oneshot::channel();
    let (gone, why) = (CancellationToken::new(), Arc::new(OnceLock::new()));
    let handle = PipeHandle {
        commands: commands.clone(),
        close: carrier.close.clone(),
        ended: carrier.ended,
        gone: gone.clone(),
        why: Arc::clone(&why),
    };
    let driver = Driver {
        pipe,
        queue,
        commands: commands.downgrade(),
        inbox,
        outgoing: carrier.outgoing,
        ready: Some(ready),
        calls: HashMap::new(),
        tickets: HashMap::new(),
        asks: HashMap::new(),
    };
    tokio::spawn(async move {
        let ended = driver.run(carrier.incoming, carrier.close, carrier.probe).await;
        why.get_or_init(|| ended);
        gone.cancel();
    });
    match opened.await {
        Ok(Ok(negotiated)) => Ok((handle, negotiated)),
        Ok(Err(e)) => Err(e),
        Err(_) => Err(OpenError::Ended { probing: false, why: "the connection was closed".into() }),
    }
}

/// Reasons for a pipe that did not open.
#[derive(Debug)]
pub enum OpenError {
    /// The stream ended; `probing`: during the probe for the stateless era, which some servers do not survive.
    Ended {
        probing: bool,
        why: String,
    },
    Handshake(HandshakeError),
}

impl Upstream for PipeHandle {
    fn call<'a>(&'a self, out: &'a OutgoingRequest<'a>, back: Option<&'a Arc<Back>>) -> BoxFuture<'a, Result<Answer, UpstreamError>> {
        Box::pin(self.request(out, back))
    }

    fn notify<'a>(&'a self, _: &'a str, whole: Bytes) -> BoxFuture<'a, ()> {
        Box::pin(self.notify(whole))
    }

    fn lost(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.gone.cancelled())
    }

    fn is_lost(&self) -> bool {
        self.gone.is_cancelled()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.close())
    }

    fn last_words(&self) -> String {
        self.why()
    }
}

impl PipeHandle {
    /// Sends a request and waits for its answer.
    pub async fn request(&self, out: &OutgoingRequest<'_>, back: Option<&Arc<Back>>) -> Result<Answer, UpstreamError> {
        let ticket = asks::ticket();
        let (reply, mut answer) = oneshot::channel();
        let lost = || UpstreamError::Lost("the connection to it was closed".into());
        let cancel = back.map(|b| b.cancel.clone()).unwrap_or_default();
        let call = Command::Call { ticket, method: out.method.to_owned(), params: Object::clone(&out.params), back: back.cloned(), reply };
        self.commands.send(call).await.map_err(|_| lost())?;
        let mut unanswered = OpenRequest { commands: &self.commands, ticket: Some(ticket) };
        tokio::select! {
            answer = &mut answer => {
                unanswered.ticket = None;
                answer.unwrap_or_else(|_| Err(lost()))
            }
            () = cancel.cancelled() => {
                unanswered.ticket = None;
                // A driver that is gone has nothing left to cancel.
                drop(self.commands.send(Command::Cancel { ticket }).await);
                Err(UpstreamError::Cancelled)
            }
        }
    }

    /// Sends a whole notification.
    pub async fn notify(&self, whole: Bytes) {
        // A closed pipe has nobody to tell.
        drop(self.commands.send(Command::Notify(whole)).await);
    }

    /// Reason for the driver's end.
    pub fn why(&self) -> String {
        self.why.get().cloned().unwrap_or_else(|| "the connection was closed".into())
    }

    /// Closes the pipe and waits until the driver is gone.
    pub async fn close(&self) {
        self.close.cancel();
        self.gone.cancelled().await;
        self.ended.cancelled().await;
    }
}

/// A request whose answer is awaited. Dropping it cancels the request at the server.
struct OpenRequest<'a> {
    commands: &'a mpsc::Sender<Command>,
    /// `None` once answered.
    ticket: Option<u64>,
}

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        if let (Err(TrySendError::Full(cancel)), Ok(runtime)) = (self.commands.try_send(Command::Cancel { ticket }), Handle::try_current())
        {
            let commands = self.commands.clone();
            // A driver that is gone has nothing left to cancel.
            runtime.spawn(async move { drop(commands.send(cancel).await) });
        }
    }
}

impl Drop for PipeHandle {
    fn drop(&mut self) {
        self.close.cancel();
    }
}

struct Driver {
    pipe: Pipe,
    queue: mpsc::Receiver<Command>,
    commands: mpsc::WeakSender<Command>,
    inbox: Inbox,
    outgoing: mpsc::Sender<Bytes>,
    ready: Option<oneshot::Sender<Result<Negotiated, OpenError>>>,
    calls: HashMap<CallKey, Call>,
    tickets: HashMap<u64, CallKey>,
    /// Questions of the server that wait for a caller.
    asks: HashMap<AskKey, CancellationToken>,
}

struct Call {
    ticket: u64,
    back: Option<Arc<Back>>,
    /// Set while the server waits for what the one client of the connection says.
    asking: Option<OpenQuestion<Arc<Back>>>,
    reply: Reply,
}

impl Driver {
    /// Runs until the pipe is closed or breaks; returns the reason.
    async fn run(mut self, mut incoming: mpsc::Receiver<ServerInput>, close: CancellationToken, probe: Duration) -> String {
        let silence = tokio::time::sleep(probe);
        tokio::pin!(silence);
        let mut timed = self.pipe.probe();
        let mut waiting: Option<Bytes> = None;
        let outgoing = self.outgoing.clone();
        let why = loop {
            while let Some(event) = self.pipe.poll_event() {
                self.handle_event(event);
            }
            if waiting.is_none() {
                waiting = self.pipe.poll_transmit();
            }
            let out = self.pipe.probe();
            if out.is_some() && out != timed {
                silence.as_mut().reset(tokio::time::Instant::now() + probe);
                timed = out;
            }
            tokio::select! {
                biased;
                () = close.cancelled() => break "it was closed".to_owned(),
                permit = outgoing.reserve(), if waiting.is_some() => match (permit, waiting.take()) {
                    (Ok(permit), Some(message)) => permit.send(message),
                    _ => break "it takes no more messages".to_owned(),
                },
                message = incoming.recv(), if !self.pipe.is_behind() => match message {
                    Some(ServerInput::Message(text)) => self.pipe.handle_message(&text),
                    Some(ServerInput::TooLong(size)) => self.handle_too_long(size),
                    Some(ServerInput::Ended(why)) => break why,
                    None => break "its output has ended".to_owned(),
                },
                command = self.queue.recv(), if !self.pipe.is_behind() => match command {
                    Some(command) => self.handle_command(command),
                    None => break "nobody uses it any more".to_owned(),
                },
                () = &mut silence, if self.pipe.is_probing() => self.pipe.handle_silence(),
            }
        };
        self.finish(&why);
        close.cancel();
        why
    }

    fn handle_command(&mut self, command: Command) {
        match command {
            Command::Call { ticket, method, params, back, reply } => {
                let key = self.pipe.handle_call(&method, &params);
                self.tickets.insert(ticket, key);
                self.calls.insert(key, Call { ticket, back, asking: None, reply });
                self.settle();
            }
            Command::Cancel { ticket } => {
                if let Some(key) = self.tickets.remove(&ticket) {
                    self.calls.remove(&key);
                    self.pipe.handle_cancel(key, "the caller cancelled it");
                }
            }
            Command::Notify(whole) => self.pipe.handle_notification(whole),
            Command::Reply(key, answer) => {
                if self.asks.remove(&key).is_some() {
                    self.settle();
                    self.pipe.handle_reply(&key, &answer);
                }
            }
        }
    }

    fn handle_event(&mut self, event: Event) {
        match event {
            Event::Answered(key, answer) => self.reply(key, Ok(answer)),
            Event::Asked(key, request) => self.asked(key, &request.method, &request.params),
            Event::AskWithdrawn(key) => {
                if let Some(ask) = self.asks.remove(&key) {
                    self.settle();
                    ask.cancel();
                }
            }
            Event::Failed(why) => self.opened(Err(OpenError::Handshake(why))),
            Event::Garbled(key, what) => self.reply(key, Err(UpstreamError::Malformed(format!("its answer can't be read: {what}")))),
            Event::Noise(what) => {
                if let Some(mount) = self.inbox.mount.upgrade() {
                    mount.connections.noise(&what);
                }
            }
            Event::Notified(call, notification) => match call.and_then(|key| self.calls.get(&key)?.back.clone()) {
                Some(back) => asks::pass_on(&back, &notification),
                None => self.inbox.notified(&notification, &self.near()),
            },
            Event::Ready(negotiated) => self.opened(Ok(negotiated)),
        }
    }

    /// Finds the only caller that the server can mean, and asks it.
    fn asked(&mut self, key: AskKey, method: &str, params: &Bytes) {
        let stop = CancellationToken::new();
        self.asks.insert(key.clone(), stop.clone());
        self.settle();
        let asked =
            asks::ServerQuestion { method: method.to_owned(), params: params.clone(), near: self.near(), inbox: self.inbox.clone() };
        let commands = self.commands.clone();
        tokio::spawn(async move {
            let answer = tokio::select! {
                answer = asked.answer() => answer,
                () = stop.cancelled() => return,
            };
            if let Some(commands) = commands.upgrade() {
                // The pipe may be gone by now, and the question with it.
                drop(commands.send(Command::Reply(key, answer)).await);
            }
        });
    }

    /// Stops the clock of all calls of one client while its server waits for what that client says: which call is meant can't be told.
    fn settle(&mut self) {
        if !matches!(self.inbox.owner, Owner::Session(_)) {
            return;
        }
        let is_asked = !self.asks.is_empty();
        for call in self.calls.values_mut() {
            call.asking = if is_asked { call.asking.take().or_else(|| call.back.clone().map(OpenQuestion::on)) } else { None };
        }
    }

    fn near(&self) -> Vec<Arc<Back>> {
        self.calls.values().filter_map(|c| c.back.clone()).filter(|b| !b.stands()).collect()
    }

    /// Ends the call of an answer that is too long, or every call to which the answer may belong.
    fn handle_too_long(&mut self, size: usize) {
        let keys = self.pipe.handle_too_long();
        if let [only] = keys[..] {
            self.reply(only, Err(UpstreamError::TooLarge(size)));
            return;
        }
        for key in keys {
            let why = format!("it sent a message of {size} bytes, longer than allowed, which may have been the answer to this call");
            self.reply(key, Err(UpstreamError::Malformed(why)));
        }
    }

    fn reply(&mut self, key: CallKey, answer: Result<Answer, UpstreamError>) {
        if let Some(call) = self.calls.remove(&key) {
            self.tickets.remove(&call.ticket);
            // A caller that has gone away needs no answer.
            drop(call.reply.send(answer));
        }
    }

    fn opened(&mut self, outcome: Result<Negotiated, OpenError>) {
        if let Some(ready) = self.ready.take() {
            // The opener may have given up waiting.
            drop(ready.send(outcome));
        }
    }

    fn finish(mut self, why: &str) {
        let probing = self.pipe.is_probing();
        self.opened(Err(OpenError::Ended { probing, why: why.to_owned() }));
        for (_, call) in self.calls.drain() {
            drop(call.reply.send(Err(UpstreamError::Lost(why.to_owned()))));
        }
        self.asks.values().for_each(CancellationToken::cancel);
    }
}

#[cfg(test)]
mod tests;
