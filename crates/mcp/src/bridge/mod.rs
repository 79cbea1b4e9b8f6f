//! A client on standard input and output, and the gate that it uses: lines go from one to the other as they are. Where the gate ends, the client
//! is told, and goes on with the next one. Which gate that is, and who starts it, is not decided here.

pub mod conversation;

use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use mcp_proto::envelope::{self, Answer, Message};
use mcp_proto::json::Duplicates;
use mcp_proto::lines::{Line, Lines};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::bridge::conversation::{Conversation, Heard, unreached};

/// A longer message is not passed on, in bytes. The gate has bounds of its own (`limits.request_size`, `limits.response_size`), far below.
const LONGEST: usize = 256 << 20;
/// Where so much waits to be written, in bytes, no more is read.
const FULL: usize = 4 << 20;
/// How long answers may take that are under way when the client says nothing more.
const LAST: Duration = Duration::from_secs(10);
/// How soon it is looked for the next gate, and how seldom at last.
const LOOK: Duration = Duration::from_millis(500);
const LOOK_SELDOM: Duration = Duration::from_secs(5);

/// Where gates are.
pub trait Gates {
    /// The lines of one client, on their way to a gate and back.
    type Connection: AsyncRead + AsyncWrite + Unpin;

    /// A connection to the gate. Where none runs, one is started if `starts`, and else there is none.
    ///
    /// # Errors
    /// Why there is no connection, for people.
    fn connect(&mut self, starts: bool) -> impl Future<Output = Result<Option<Self::Connection>, String>>;
}

/// A client and its gate.
pub struct Bridge<G: Gates, I, O> {
    gates: G,
    conversation: Conversation,
    client: Client<I, O>,
    gate: Option<GateBeside<G::Connection>>,
    /// When it is looked for a gate, and how long after that again.
    look: (Instant, Duration),
}

struct Client<I, O> {
    input: I,
    typed: Lines,
    out: Outgoing<O>,
    /// It says nothing more; until when answers are waited for.
    until: Option<Instant>,
}

struct GateBeside<C> {
    read: ReadHalf<C>,
    said: Lines,
    out: Outgoing<WriteHalf<C>>,
}

/// Lines on their way out.
struct Outgoing<W> {
    write: W,
    unsent: BytesMut,
    is_flushed: bool,
    is_shut: bool,
}

/// What happened.
enum Event {
    /// Bytes were written.
    Written,
    /// Nothing more goes to the client, or is waited for.
    Over,
    /// The gate said something.
    Said,
    /// The gate is gone.
    Lost,
    /// It is time to look for a gate.
    Look,
    /// The client said something.
    Typed,
    /// The client says nothing more, or is not to be heard any more.
    Ended,
}

impl<G: Gates, I: AsyncRead + Unpin, O: AsyncWrite + Unpin> Bridge<G, I, O> {
    /// Between a client and the gate at the other end of `connection`.
    pub fn new(gates: G, connection: G::Connection, input: I, output: O) -> Self {
        let client = Client { input, typed: Lines::new(LONGEST), out: Outgoing::new(output), until: None };
        Self { gates, conversation: Conversation::default(), client, gate: Some(GateBeside::new(connection)), look: (Instant::now(), LOOK) }
    }

    /// Carries messages until the client says nothing more, or `stop` fires, and the last answers are there.
    pub async fn serve(mut self, stop: CancellationToken) {
        loop {
            match self.event(&stop).await {
                Event::Written => {}
                Event::Over => break,
                Event::Said => self.said(),
                Event::Lost => self.lost(),
                Event::Look => self.look().await,
                Event::Typed => self.typed(&stop).await,
                Event::Ended => self.client.until = Some(Instant::now() + LAST),
            }
        }
        _ = self.client.out.finish().await;
    }

    async fn event(&mut self, stop: &CancellationToken) -> Event {
        let Self { conversation, client, gate, look, .. } = self;
        let is_over = client.until.is_some();
        if is_over && gate.is_none() {
            return Event::Over;
        }
        let (looks, at) = (gate.is_none() && conversation.has_session(), look.0);
        let (gate_is_full, client_is_full) = (gate.as_ref().is_some_and(|gate| gate.out.is_full()), client.out.is_full());
        let (read, write) = match gate {
            Some(GateBeside { read, said, out }) => (Some((read, said)), Some(out)),
            None => (None, None),
        };
        let Client { input, typed, out, until } = client;
        typed.buffer().reserve(16 << 10);
        tokio::select! {
            read = input.read_buf(typed.buffer()), if !is_over && !gate_is_full => match read {
                Ok(0) | Err(_) => Event::Ended,
                Ok(_) => Event::Typed,
            },
            heard = hear(read), if !client_is_full => heard,
            sent = send(write, is_over) => if sent.is_ok() { Event::Written } else { Event::Lost },
            told = out.send(false) => if told.is_ok() { Event::Written } else { Event::Over },
            () = tokio::time::sleep_until(at), if looks => Event::Look,
            () = passed(*until) => Event::Over,
            () = stop.cancelled(), if !is_over => Event::Ended,
        }
    }

    fn said(&mut self) {
        let Some(gate) = &mut self.gate else { return };
        while let Some(line) = gate.said.poll_line() {
            // Whose answer it was is not known any more.
            let Line::Whole(line) = line else { return self.lost() };
            match self.conversation.heard(&line) {
                Heard::Passed => self.client.out.push(&line),
                Heard::Replaced(lines) => lines.iter().for_each(|line| self.client.out.push(line)),
            }
        }
    }

    fn lost(&mut self) {
        self.gate = None;
        self.look = (Instant::now() + LOOK, LOOK);
        if self.client.until.is_some() {
            return;
        }
        for line in self.conversation.lost() {
            self.client.out.push(&line);
        }
    }

    /// A gate that somebody has started meanwhile is found, so that the client hears what changes.
    async fn look(&mut self) {
        let patience = (self.look.1 * 2).min(LOOK_SELDOM);
        self.look = (Instant::now() + patience, patience);
        if let Ok(Some(connection)) = self.gates.connect(false).await {
            self.resume(connection);
        }
    }

    fn resume(&mut self, connection: G::Connection) {
        let mut gate = GateBeside::new(connection);
        self.conversation.resumed().iter().for_each(|line| gate.out.push(line));
        self.gate = Some(gate);
    }

    async fn typed(&mut self, stop: &CancellationToken) {
        while let Some(line) = self.client.typed.poll_line() {
            match line {
                Line::Whole(line) => self.pass(&line, stop).await,
                Line::TooLong(size) => {
                    let why = format!("a message of {size} bytes is longer than `banyan stdio` passes on ({LONGEST})");
                    let error = Answer::Error(envelope::error_object(-32600, &why, None));
                    self.client.out.push(&envelope::response(b"null", &error));
                }
            }
        }
    }

    /// Passes a message of the client on. A request is worth starting a gate for.
    async fn pass(&mut self, line: &Bytes, stop: &CancellationToken) {
        // What is no message is the gate's to refuse.
        let message = Message::parse(line, Duplicates::RefuseTop).ok();
        if self.gate.is_none()
            && let Some(Message::Request(request)) = &message
            && let Err(why) = self.reach(stop).await
        {
            return self.client.out.push(&unreached(&request.id, &why));
        }
        let Some(gate) = &mut self.gate else { return };
        if message.is_none_or(|message| self.conversation.said(&message)) {
            gate.out.push(line);
        }
    }

    async fn reach(&mut self, stop: &CancellationToken) -> Result<(), String> {
        // What the client has to hear may take its time no longer.
        self.client.out.finish().await.map_err(|error| error.to_string())?;
        let connection = tokio::select! {
            connection = self.gates.connect(true) => connection?,
            () = stop.cancelled() => return Err("`banyan stdio` is ending".to_owned()),
        };
        self.resume(connection.ok_or("no gate is running")?);
        Ok(())
    }
}

impl<C: AsyncRead + AsyncWrite> GateBeside<C> {
    fn new(connection: C) -> Self {
        let (read, write) = tokio::io::split(connection);
        Self { read, said: Lines::new(LONGEST), out: Outgoing::new(write) }
    }
}

impl<W> Outgoing<W> {
    fn new(write: W) -> Self {
        Self { write, unsent: BytesMut::new(), is_flushed: true, is_shut: false }
    }

    fn push(&mut self, line: &[u8]) {
        self.unsent.extend_from_slice(line);
        self.unsent.extend_from_slice(b"\n");
    }

    fn is_full(&self) -> bool {
        self.unsent.len() > FULL
    }
}

impl<W: AsyncWrite + Unpin> Outgoing<W> {
    /// Writes some of what waits, and shuts the way behind the last of it. Never ready where there is nothing to do; nothing is lost where it is
    /// dropped.
    async fn send(&mut self, is_last: bool) -> io::Result<()> {
        if !self.unsent.is_empty() {
            self.is_flushed = false;
            self.write.write_buf(&mut self.unsent).await?;
        } else if !self.is_flushed {
            self.write.flush().await?;
            self.is_flushed = true;
        } else if is_last && !self.is_shut {
            self.write.shutdown().await?;
            self.is_shut = true;
        } else {
            std::future::pending::<()>().await;
        }
        Ok(())
    }

    /// Writes all that waits.
    async fn finish(&mut self) -> io::Result<()> {
        self.write.write_all_buf(&mut self.unsent).await?;
        self.write.flush().await
    }
}

/// Reads what the gate says; where there is none, for ever.
async fn hear<C: AsyncRead>(gate: Option<(&mut ReadHalf<C>, &mut Lines)>) -> Event {
    let Some((read, said)) = gate else { return std::future::pending().await };
    said.buffer().reserve(16 << 10);
    match read.read_buf(said.buffer()).await {
        Ok(0) | Err(_) => Event::Lost,
        Ok(_) => Event::Said,
    }
}

async fn send(gate: Option<&mut Outgoing<impl AsyncWrite + Unpin>>, is_last: bool) -> io::Result<()> {
    match gate {
        Some(gate) => gate.send(is_last).await,
        None => std::future::pending().await,
    }
}

async fn passed(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
