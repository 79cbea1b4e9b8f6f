//! A client on standard input and output, and its gate: lines pass between them unchanged. After the end of a gate, the client hears of it
//! and goes on with the next. Does not find or start gates.

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

use crate::bridge::conversation::{Conversation, MessageFate, unreached};

/// Longest message passed on, in bytes; far above the bounds of the gate itself (`limits.request_size`, `limits.response_size`).
const LONGEST: usize = 256 << 20;
/// Unwritten bytes at which reading pauses.
const FULL: usize = 4 << 20;
/// Longest wait for open answers after the client's last word.
const LAST: Duration = Duration::from_secs(10);
/// First and longest pause between searches for the next gate.
const LOOK: Duration = Duration::from_millis(500);
const LOOK_SELDOM: Duration = Duration::from_secs(5);

/// Place to find gates.
pub trait Gates {
    /// Lines of one client on their way to a gate and back.
    type Connection: AsyncRead + AsyncWrite + Unpin;

    /// Connects to the gate; starts one where none runs, if `starts`, and otherwise returns `None`.
    ///
    /// # Errors
    /// Reason for the lack of a connection, for people.
    fn connect(&mut self, starts: bool) -> impl Future<Output = Result<Option<Self::Connection>, String>>;
}

/// A client and its gate.
pub struct Bridge<G: Gates, I, O> {
    gates: G,
    conversation: Conversation,
    client: Client<I, O>,
    gate: Option<GateBeside<G::Connection>>,
    /// Time of the next search for a gate, and the pause after it.
    look: (Instant, Duration),
}

struct Client<I, O> {
    input: I,
    typed: Lines,
    out: LineWriter<O>,
    /// Deadline for open answers, after the client's last word.
    until: Option<Instant>,
}

struct GateBeside<C> {
    read: ReadHalf<C>,
    said: Lines,
    out: LineWriter<WriteHalf<C>>,
}

struct LineWriter<W> {
    write: W,
    unsent: BytesMut,
    is_flushed: bool,
    is_shut: bool,
}

enum Event {
    Written,
    /// The client needs no more messages, and waits for none.
    Over,
    Said,
    /// The gate is gone.
    Lost,
    /// A search for a gate is due.
    Look,
    Typed,
    /// The client has said its last word or is no longer heard.
    Ended,
}

impl<G: Gates, I: AsyncRead + Unpin, O: AsyncWrite + Unpin> Bridge<G, I, O> {
    /// Between a client and the gate at the other end of `connection`.
    pub fn new(gates: G, connection: G::Connection, input: I, output: O) -> Self {
        let client = Client { input, typed: Lines::new(LONGEST), out: LineWriter::new(output), until: None };
        Self { gates, conversation: Conversation::default(), client, gate: Some(GateBeside::new(connection)), look: (Instant::now(), LOOK) }
    }

    /// Carries messages until the client ends or `stop` fires, and then waits for open answers.
    pub async fn serve(mut self, stop: CancellationToken) {
        loop {
            match self.event(&stop).await {
                Event::Written => {}
                Event::Over => break,
                Event::Said => self.on_gate_bytes(),
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

    fn on_gate_bytes(&mut self) {
        let Some(gate) = &mut self.gate else { return };
        while let Some(line) = gate.said.poll_line() {
            // The lost line may have been any request's answer.
            let Line::Whole(line) = line else { return self.lost() };
            match self.conversation.on_gate_line(&line) {
                MessageFate::Passed => self.client.out.push(&line),
                MessageFate::Replaced(lines) => lines.iter().for_each(|line| self.client.out.push(line)),
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

    /// Looks for a gate started meanwhile, so that the client hears of changes.
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

    /// Passes on a message of the client. A request is worth starting a gate for.
    async fn pass(&mut self, line: &Bytes, stop: &CancellationToken) {
        // Refusing what is no message is left to the gate.
        let message = Message::parse(line, Duplicates::RefuseTop).ok();
        if self.gate.is_none()
            && let Some(Message::Request(request)) = &message
            && let Err(why) = self.reach(stop).await
        {
            return self.client.out.push(&unreached(&request.id, &why));
        }
        let Some(gate) = &mut self.gate else { return };
        if message.is_none_or(|message| self.conversation.on_client_message(&message)) {
            gate.out.push(line);
        }
    }

    async fn reach(&mut self, stop: &CancellationToken) -> Result<(), String> {
        // Connecting may take long, so messages due to the client go first.
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
        Self { read, said: Lines::new(LONGEST), out: LineWriter::new(write) }
    }
}

impl<W> LineWriter<W> {
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

impl<W: AsyncWrite + Unpin> LineWriter<W> {
    /// Writes part of the queue, and closes the stream behind the last part. Never completes with an empty queue; loses nothing when
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

    /// Writes the whole queue.
    async fn finish(&mut self) -> io::Result<()> {
        self.write.write_all_buf(&mut self.unsent).await?;
        self.write.flush().await
    }
}

/// Reads from the gate; without a gate, never completes.
async fn hear<C: AsyncRead>(gate: Option<(&mut ReadHalf<C>, &mut Lines)>) -> Event {
    let Some((read, said)) = gate else { return std::future::pending().await };
    said.buffer().reserve(16 << 10);
    match read.read_buf(said.buffer()).await {
        Ok(0) | Err(_) => Event::Lost,
        Ok(_) => Event::Said,
    }
}

async fn send(gate: Option<&mut LineWriter<impl AsyncWrite + Unpin>>, is_last: bool) -> io::Result<()> {
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
