//! Programs on this machine, with a bound on time and on output. Does not know the purpose of a program.

use std::fs::File;
use std::process::Stdio;
use std::time::Duration;

use net_proto::fault::{Code, Fault, Trouble};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

/// Longest output of a program, in bytes.
const OUTPUT: u64 = 128 << 20;

/// Texts that a program printed, and its success.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) is_success: bool,
}

/// Runs a program. With `held`, the file stays open until the program and its children have ended.
pub(crate) async fn run(program: &[&str], timeout: Duration, held: Option<File>) -> Result<Output, Fault> {
    let [name, arguments @ ..] = program else { return Err(Fault::new(Code::ConfigIncompatible, "there is no program to run")) };
    let mut command = Command::new(name);
    command.args(arguments).stdin(held.map_or_else(Stdio::null, Stdio::from)).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    let absent = |error: std::io::Error| Fault::new(Code::Unreachable, format!("{name} can't be started: {error}"));
    let mut child = command.spawn().map_err(absent)?;
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let all = async { tokio::join!(bounded(stdout), bounded(stderr), child.wait()) };
    let done = tokio::time::timeout(timeout, all).await;
    let (stdout, stderr, status) = match done {
        Ok((Ok(stdout), Ok(stderr), Ok(status))) => (stdout, stderr, status),
        Ok((Err(too_long), ..) | (_, Err(too_long), _)) => {
            kill_group(group);
            return Err(too_long);
        }
        Ok((_, _, Err(error))) => return Err(absent(error)),
        Err(_) => {
            kill_group(group);
            return Err(Fault::new(Code::Timeout, format!("{name} did not end within {} s", timeout.as_secs())).retryable());
        }
    };
    Ok(Output { stdout, stderr, is_success: status.success() })
}

/// Kills a program together with its children.
fn kill_group(group: Option<rustix::process::Pid>) {
    if let Some(group) = group {
        // Fails only where nothing of it is left.
        let _gone = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

async fn bounded(stream: Option<impl AsyncRead + Unpin>) -> Result<String, Fault> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        // A program that breaks off has printed what it has.
        let _read = stream.take(OUTPUT + 1).read_to_end(&mut bytes).await;
    }
    if bytes.len() as u64 > OUTPUT {
        return Err(Fault::from(Trouble::TooLong { limit: OUTPUT as usize }));
    }
    Ok(String::from_utf8(bytes).unwrap_or_else(|bad| String::from_utf8_lossy(bad.as_bytes()).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_that_hangs_is_ended_with_its_children() {
        let began = std::time::Instant::now();
        let fault = run(&["sh", "-c", "sleep 60 & wait"], Duration::from_millis(300), None).await.unwrap_err();
        assert_eq!(fault.code, Code::Timeout);
        assert!(fault.may_retry && began.elapsed() < Duration::from_secs(10));
    }

    #[tokio::test]
    async fn what_it_prints_and_how_it_ends_is_told() {
        let output = run(&["sh", "-c", "echo out; echo err >&2; exit 3"], Duration::from_secs(10), None).await.unwrap();
        assert_eq!((output.stdout.as_str(), output.stderr.as_str(), output.is_success), ("out\n", "err\n", false));
    }
}
