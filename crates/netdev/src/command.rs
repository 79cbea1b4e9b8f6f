//! Programs on this machine, with a bound on time and on output. Does not know the purpose of a program.

use std::fs::File;
use std::process::Stdio;
use std::time::Duration;

use net_proto::fault::{Code, Fault, Trouble};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::room::is_settling;
use crate::share;

/// Longest output of a program, in bytes.
const OUTPUT: usize = 128 << 20;

/// Texts that a program printed, and its success.
#[derive(Debug)]
pub(crate) struct ProgramOutput {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) is_success: bool,
}

/// Waits for a place among the programs of a device, for at most `timeout`. A confirmation or a restore takes none and waits for nobody.
pub(crate) async fn turn(room: &Semaphore, timeout: Duration) -> Result<Option<SemaphorePermit<'_>>, Fault> {
    if is_settling() {
        return Ok(None);
    }
    let waited = tokio::time::timeout(timeout, room.acquire()).await;
    waited.ok().and_then(Result::ok).map(Some).ok_or_else(|| Trouble::Busy.into())
}

/// Runs a program. With `held`, the file stays open until the program and its children have ended.
pub(crate) async fn run(program: &[&str], timeout: Duration, held: Option<File>) -> Result<ProgramOutput, Fault> {
    let limit = share::at_most(OUTPUT);
    let output = run_within(program, timeout, held, limit as u64).await?;
    output.ok_or_else(|| Fault::from(Trouble::TooLong { limit }))
}

/// Runs a program that prints at most `limit` bytes; `None` where it prints more, and is ended for that.
pub(crate) async fn run_within(
    program: &[&str],
    timeout: Duration,
    held: Option<File>,
    limit: u64,
) -> Result<Option<ProgramOutput>, Fault> {
    let [name, arguments @ ..] = program else { return Err(Fault::new(Code::ConfigIncompatible, "there is no program to run")) };
    let mut command = Command::new(name);
    command.args(arguments).stdin(held.map_or_else(Stdio::null, Stdio::from)).stdout(Stdio::piped()).stderr(Stdio::piped());
    // `vtysh` writes a history below its home, and the commands of a change hold passwords.
    command.process_group(0).kill_on_drop(true).env("HOME", "/nonexistent");
    let absent = |error: std::io::Error| Fault::new(Code::Unreachable, format!("{name} can't be started: {error}"));
    let mut child = command.spawn().map_err(absent)?;
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
    let mut running = RunningGroup(group);
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let (from_stdout, from_stderr) = (child.stdout.take(), child.stderr.take());
    let printed = async { tokio::try_join!(read(from_stdout, &mut stdout, limit), read(from_stderr, &mut stderr, limit)) };
    let ended = async {
        printed.await?;
        Ok::<_, Trouble>(child.wait().await)
    };
    let ended = tokio::time::timeout(timeout, ended).await.ok().transpose()?;
    if stdout.len().max(stderr.len()) as u64 > limit {
        kill_group(group);
        return Ok(None);
    }
    let (stdout, stderr) = (text(stdout), text(stderr));
    if ended.is_some() {
        running.0 = None;
    }
    match ended {
        Some(status) => Ok(Some(ProgramOutput { stdout, stderr, is_success: status.map_err(absent)?.success() })),
        None => {
            kill_group(group);
            let so_far = if stdout.is_empty() { String::new() } else { format!(" and had printed: {}", last(&stdout)) };
            Err(Fault::new(Code::Timeout, format!("{name} did not end within {} s{so_far}", timeout.as_secs())).retryable())
        }
    }
}

/// The end of a long text, where programs put errors.
pub(crate) fn last(text: &str) -> &str {
    let text = text.trim();
    let from = text.len().saturating_sub(600);
    (from..text.len()).find(|at| text.is_char_boundary(*at)).map_or("", |at| &text[at..])
}

/// Program with its children, which end where nobody waits for them any more.
struct RunningGroup(Option<rustix::process::Pid>);

impl Drop for RunningGroup {
    fn drop(&mut self) {
        kill_group(self.0);
    }
}

/// Kills a program together with its children.
fn kill_group(group: Option<rustix::process::Pid>) {
    if let Some(group) = group {
        // Fails only where nothing of it is left.
        let _gone = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

/// Reads to the end, or to the first byte beyond `limit`. A program that breaks off has printed what it has.
async fn read(stream: Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>, limit: u64) -> Result<(), Trouble> {
    let (Some(stream), mut bytes) = (stream, share::answer()) else { return Ok(()) };
    let mut stream = stream.take(limit + 1);
    while let Ok(count @ 1..) = stream.read_buf(into).await {
        bytes.count(count)?;
    }
    Ok(())
}

/// The text of bytes that usually are one.
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|bad| String::from_utf8_lossy(bad.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_that_hangs_is_ended_with_its_children() {
        let began = std::time::Instant::now();
        let fault = run(&["sh", "-c", "echo 64 bytes; sleep 60 & wait"], Duration::from_millis(300), None).await.unwrap_err();
        assert_eq!(fault.code, Code::Timeout);
        assert!(fault.detail.contains("64 bytes"), "{}", fault.detail);
        assert!(fault.may_retry && began.elapsed() < Duration::from_secs(10));
    }

    #[tokio::test]
    async fn a_program_that_prints_too_much_is_ended() {
        assert!(run_within(&["sh", "-c", "yes"], Duration::from_secs(60), None, 1 << 20).await.unwrap().is_none());
        let output = run_within(&["sh", "-c", "echo out"], Duration::from_secs(60), None, 4).await.unwrap();
        assert_eq!(output.unwrap().stdout, "out\n");
    }

    #[tokio::test]
    async fn what_it_prints_and_how_it_ends_is_told() {
        let output = run(&["sh", "-c", "echo out; echo err >&2; exit 3"], Duration::from_secs(10), None).await.unwrap();
        assert_eq!((output.stdout.as_str(), output.stderr.as_str(), output.is_success), ("out\n", "err\n", false));
    }
}
