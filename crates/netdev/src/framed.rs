//! The draft's transport (section 8.1) between a stream and a gate: messages come in one of three framings and go to the gate as lines, and
//! answers go out in the framing of the controller. Does not encrypt, answers no call, and does not know the controller.

use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use net_proto::controller::{ControllerConversation, ControllerMessage, ControllerShapes};
use net_proto::fault::Fault;
use net_proto::stream::{Framing, StreamReader};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio::time::error::Elapsed;

/// Bytes on their way between the stream and the gate, for each direction.
const PIPE: usize = 64 << 10;
/// Longest time for the last answers: a gate has five seconds for what it still answers.
const PATIENCE: Duration = Duration::from_secs(8);
/// Longest message of a gate, in bytes; far above the bounds of the gate itself (`limits.response_size`).
const LONGEST: u64 = 256 << 20;
/// Longest message of a controller, in bytes.
const LONGEST_MESSAGE: usize = mcp_server::LONGEST_MESSAGE;

/// Longest message of a controller that is refused, in bytes.
const LONGEST_REFUSED: usize = 16 << 10;
/// Longest wait for its first message.
const REFUSING: Duration = Duration::from_secs(5);

/// Longest time from the first byte of a message to the last.
const MESSAGE: Duration = Duration::from_secs(30);

/// The framing of the controller, and the reason for which nothing more is read.
#[derive(Default)]
struct Conversation {
    framing: OnceLock<Framing>,
    refusal: OnceLock<String>,
}

/// Carries the messages of a controller to a gate and back, until `stream` or `gate` ends or the controller says `close`. `gate` takes and gives
/// a message a line.
///
/// # Errors
/// Reading or writing failed.
pub async fn carry_controller<S, G>(stream: S, shapes: ControllerShapes, gate: G) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Send + 'static,
    G: AsyncRead + AsyncWrite + Send,
{
    let (receiver, sender) = tokio::io::split(stream);
    let (lines, input) = tokio::io::duplex(PIPE);
    let (output, answers) = tokio::io::duplex(PIPE);
    let conversation = Arc::new(Conversation::default());
    let _reading = StreamTask(tokio::spawn(unframe(receiver, lines, Arc::clone(&conversation))));
    let mut writing = StreamTask(tokio::spawn(frame(answers, sender, conversation)));
    let carried = tokio::select! {
        carried = Carrier::new(shapes, output).carry(input, gate) => carried,
        // Nobody reads the answers any more.
        _gone = &mut writing.0 => return Ok(()),
    };
    // The last answers; what is not read in time is given up.
    drop(tokio::time::timeout(PATIENCE, &mut writing.0).await);
    carried
}

/// Answers the first message of a controller with an error, in its framing, and ends the connection. A controller that says nothing in time
/// gets the error unasked.
///
/// # Errors
/// Reading or writing failed.
pub async fn refuse_controller<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, fault: &Fault) -> io::Result<()> {
    let mut reader = StreamReader::new(LONGEST_REFUSED);
    let first = tokio::time::timeout(REFUSING, first_message(&mut stream, &mut reader)).await;
    let message = first.unwrap_or(Ok(None))?.and_then(|message| serde_json::from_slice::<Value>(&message).ok());
    let id = message.as_ref().and_then(|message| message.get("id")).filter(|id| id.is_string() || id.is_number());
    let error = json!({ "jsonrpc": "2.0", "id": id, "error": fault.to_error() });
    let framing = reader.framing().unwrap_or(Framing::Lines);
    let told = tokio::time::timeout(REFUSING, async {
        stream.write_all(&framing.frame(error.to_string().as_bytes())).await?;
        stream.shutdown().await
    });
    told.await.unwrap_or(Ok(()))
}

/// Reads one message; `None`: the stream ends before, or holds none.
async fn first_message<S: AsyncRead + Unpin>(stream: &mut S, reader: &mut StreamReader) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = vec![0; LONGEST_REFUSED / 4];
    loop {
        let count = stream.read(&mut bytes).await?;
        reader.receive(&bytes[..count]);
        match reader.message() {
            Ok(None) if count != 0 => {}
            Ok(message) => return Ok(message),
            Err(_) => return Ok(None),
        }
    }
}

/// Carrier of lines between a controller and a gate.
struct Carrier {
    words: Mutex<ControllerConversation>,
    /// Lines for the controller, of the gate and of the carrier itself.
    output: tokio::sync::Mutex<DuplexStream>,
}

impl Carrier {
    fn new(shapes: ControllerShapes, output: DuplexStream) -> Self {
        Self { words: Mutex::new(ControllerConversation::new(shapes)), output: tokio::sync::Mutex::new(output) }
    }

    async fn carry<G: AsyncRead + AsyncWrite>(self, input: DuplexStream, gate: G) -> io::Result<()> {
        let (hearing, telling) = tokio::io::split(gate);
        let hearing = self.hear(hearing);
        tokio::pin!(hearing);
        let asked = tokio::select! {
            asked = self.ask(input, telling) => asked,
            heard = &mut hearing => return heard,
        };
        match asked? {
            ControllerEnd::Closed => Ok(()),
            // Answers to what was asked before are on their way.
            ControllerEnd::Over => tokio::time::timeout(PATIENCE, hearing).await.unwrap_or(Ok(())),
        }
    }

    /// Sends what the controller asks to the gate.
    async fn ask<W: AsyncWrite>(&self, input: DuplexStream, mut gate: WriteHalf<W>) -> io::Result<ControllerEnd> {
        let mut input = BufReader::new(input);
        let mut line = Vec::new();
        while input.read_until(b'\n', &mut line).await? != 0 {
            let message = self.words.lock().unwrap_or_else(PoisonError::into_inner).on_controller_message(line.trim_ascii());
            match message {
                ControllerMessage::Passed(message) => send(&mut gate, message).await?,
                ControllerMessage::Answered(answer) => self.tell(answer).await?,
                ControllerMessage::Closed(answer) => {
                    if let Some(answer) = answer {
                        self.tell(answer).await?;
                    }
                    return Ok(ControllerEnd::Closed);
                }
            }
            line.clear();
        }
        gate.shutdown().await?;
        Ok(ControllerEnd::Over)
    }

    /// Gives the controller what the gate says.
    async fn hear<R: AsyncRead>(&self, gate: ReadHalf<R>) -> io::Result<()> {
        let mut gate = BufReader::new(gate);
        let mut line = Vec::new();
        while (&mut gate).take(LONGEST).read_until(b'\n', &mut line).await? != 0 {
            let message = std::mem::take(&mut line).trim_ascii().to_vec();
            let messages = self.words.lock().unwrap_or_else(PoisonError::into_inner).on_gate_message(message);
            for message in messages {
                self.tell(message).await?;
            }
        }
        Ok(())
    }

    async fn tell(&self, message: Vec<u8>) -> io::Result<()> {
        send(&mut *self.output.lock().await, message).await
    }
}

/// End of what a controller says.
enum ControllerEnd {
    Closed,
    Over,
}

async fn send<W: AsyncWrite + Unpin>(output: &mut W, mut message: Vec<u8>) -> io::Result<()> {
    message.push(b'\n');
    output.write_all(&message).await?;
    output.flush().await
}

/// Half of a stream, which is closed where its connection is given up.
struct StreamTask(JoinHandle<io::Result<()>>);

impl Drop for StreamTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Makes a line of each message.
async fn unframe<R: AsyncRead + Unpin>(mut receiver: R, mut lines: DuplexStream, conversation: Arc<Conversation>) -> io::Result<()> {
    let mut reader = StreamReader::new(LONGEST_MESSAGE);
    let mut bytes = vec![0; PIPE];
    // Moment by which the message that has begun is whole: a byte now and then is no message.
    let mut until = None;
    loop {
        let Ok(count) = before(until, receiver.read(&mut bytes)).await else {
            conversation.refusal.get_or_init(|| format!("a message was not whole {} s after its begin", MESSAGE.as_secs()));
            return Ok(());
        };
        let count = count?;
        if count == 0 {
            return Ok(());
        }
        reader.receive(&bytes[..count]);
        loop {
            let message = reader.message();
            if let Some(framing) = reader.framing() {
                conversation.framing.get_or_init(|| framing);
            }
            match message {
                Ok(Some(mut message)) => {
                    until = None;
                    // Between the tokens of JSON a line end says no more than a space, and within a text it may not stand.
                    message.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
                    message.push(b'\n');
                    lines.write_all(&message).await?;
                }
                Ok(None) => {
                    until = reader.is_amid().then(|| until.unwrap_or_else(|| Instant::now() + MESSAGE));
                    break;
                }
                Err(error) => {
                    conversation.refusal.get_or_init(|| error.to_string());
                    return Ok(());
                }
            }
        }
    }
}

/// Waits for `work`, until a moment where there is one.
async fn before<T>(until: Option<Instant>, work: impl Future<Output = T>) -> Result<T, Elapsed> {
    match until {
        Some(until) => tokio::time::timeout_at(until, work).await,
        None => Ok(work.await),
    }
}

/// Frames each line for the controller, and says at the end why nothing more was read.
async fn frame<W: AsyncWrite + Unpin>(answers: DuplexStream, mut sender: W, conversation: Arc<Conversation>) -> io::Result<()> {
    let framing = || conversation.framing.get().copied().unwrap_or(Framing::Lines);
    let mut answers = BufReader::new(answers);
    let mut line = Vec::new();
    while answers.read_until(b'\n', &mut line).await? != 0 {
        sender.write_all(&framing().frame(line.trim_ascii_end())).await?;
        sender.flush().await?;
        line.clear();
    }
    if let Some(refusal) = conversation.refusal.get() {
        let error = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32700, "message": refusal } });
        sender.write_all(&framing().frame(error.to_string().as_bytes())).await?;
    }
    sender.shutdown().await
}
