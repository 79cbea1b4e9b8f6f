//! The draft's transport (section 8.1) on a stream: messages come in one of three framings, and answers go out in the same. Does not encrypt
//! and does not know the controller.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use net_proto::stream::{Framing, StreamReader};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio::time::error::Elapsed;

use crate::device::Device;

/// Bytes on their way between the stream and the server, for each direction.
const PIPE: usize = 64 << 10;
/// Longest time for the last answers.
const PATIENCE: Duration = Duration::from_secs(2);

/// Longest time from the first byte of a message to the last.
const MESSAGE: Duration = Duration::from_secs(30);

/// The framing of the controller, and the reason for which nothing more is read.
#[derive(Default)]
struct Conversation {
    framing: OnceLock<Framing>,
    refusal: OnceLock<String>,
}

/// Serves a device on a stream.
pub(crate) async fn serve<S>(device: Device, stream: S) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let (receiver, sender) = tokio::io::split(stream);
    let (lines, input) = tokio::io::duplex(PIPE);
    let (output, answers) = tokio::io::duplex(PIPE);
    let conversation = Arc::new(Conversation::default());
    let _reading = StreamTask(tokio::spawn(unframe(receiver, lines, Arc::clone(&conversation))));
    let mut writing = StreamTask(tokio::spawn(frame(answers, sender, conversation)));
    let served = tokio::select! {
        served = mcp_server::run(Arc::new(device), input, output) => served,
        // Nobody reads the answers any more.
        _gone = &mut writing.0 => return Ok(()),
    };
    // The last answers; what is not read in time is given up.
    drop(tokio::time::timeout(PATIENCE, &mut writing.0).await);
    served
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
    let mut reader = StreamReader::new(mcp_server::LONGEST_MESSAGE);
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

/// Frames each line of the server, and says at the end why nothing more was read.
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
