//! Processes that each serve several servers: started once, with a socket in a directory of its own, over which each server is opened by the
//! arguments and variables that a process of its own would have got. When such a process ends, all its servers are lost, and the first that
//! comes back starts it again. Does not read messages.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use config::resolved::Process;
use config::secret::{SecretRef, Sources};
use serde::Serialize;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::sync::{Mutex as AsyncMutex, mpsc};
use tokio_util::sync::CancellationToken;

use crate::upstream::pipe::{Carrier, ServerInput};
use crate::upstream::process;
use call::tree::stderr::Stderr;

/// Variable with the path of the socket.
const SOCKET: &str = "BANYAN_SOCKET";
/// Longest time until a process listens, which it tells with a first line.
const START: Duration = Duration::from_secs(10);
/// Waits before a process that ended is started again, doubled each time.
const FIRST_WAIT: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Life of a process from which it counts as good.
const HELD: Duration = Duration::from_secs(10);

/// Processes by their commands.
#[derive(Default)]
pub struct SharedProcesses(Mutex<HashMap<String, Arc<AsyncMutex<ProcessSlot>>>>);

/// A process that runs, or is to run again.
#[derive(Default)]
struct ProcessSlot {
    running: Weak<RunningProcess>,
    restarts: Restarts,
}

/// Tries to start a process.
#[derive(Default)]
struct Restarts {
    /// End of the last try: the process listens, or is not to be had.
    tried: Option<Instant>,
    listens: bool,
    failures: u32,
}

impl Restarts {
    /// Begins a try, or says how long it has to wait.
    fn begin(&mut self, now: Instant) -> Result<(), Duration> {
        let Some(tried) = self.tried else { return Ok(()) };
        let (lived, wait) = (now.saturating_duration_since(tried), FIRST_WAIT.saturating_mul(1 << self.failures.min(9)).min(LONGEST_WAIT));
        if lived < wait {
            return Err(wait - lived);
        }
        self.failures = if self.listens && lived > HELD { 0 } else { self.failures + 1 };
        Ok(())
    }

    fn note(&mut self, now: Instant, listens: bool) {
        (self.tried, self.listens) = (Some(now), listens);
    }
}

/// A process that listens.
struct RunningProcess {
    dir: PathBuf,
    close: CancellationToken,
    ended: CancellationToken,
    /// Standard input, which tells the process by its end that nobody needs it.
    _input: mpsc::Sender<Bytes>,
}

impl Drop for RunningProcess {
    fn drop(&mut self) {
        self.close.cancel();
        drop(std::fs::remove_dir_all(&self.dir));
    }
}

/// First line on a socket.
#[derive(Serialize)]
struct ServerOpening {
    args: Vec<String>,
    env: BTreeMap<String, String>,
}

impl SharedProcesses {
    /// Opens a server in the process with the arguments `shared`; the error says why there is none.
    pub async fn open(
        &self,
        server: &Process,
        shared: &[String],
        sources: &dyn Sources,
        stderr: &Arc<Stderr>,
        (limit, probe): (usize, Duration),
    ) -> Result<Carrier, String> {
        let opening = opening(server, sources)?;
        let slot = {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(all.entry(format!("{:?} {shared:?} {:?}", server.command, server.cwd)).or_default())
        };
        let running = slot.lock().await.running(server, shared, sources, (stderr, limit, probe)).await?;
        let lost = |error: io::Error| format!("the process of this and other servers does not take it: {error}");
        let mut stream = UnixStream::connect(running.dir.join("s")).await.map_err(lost)?;
        stream.write_all(&opening).await.map_err(lost)?;
        Ok(carried(stream, running, limit, probe))
    }
}

impl ProcessSlot {
    async fn running(
        &mut self,
        server: &Process,
        shared: &[String],
        sources: &dyn Sources,
        (stderr, limit, probe): (&Arc<Stderr>, usize, Duration),
    ) -> Result<Arc<RunningProcess>, String> {
        if let Some(running) = self.running.upgrade().filter(|running| !running.ended.is_cancelled()) {
            return Ok(running);
        }
        self.restarts
            .begin(Instant::now())
            .map_err(|wait| format!("the process of this and other servers has ended, and starts again in {} s", wait.as_secs() + 1))?;
        let started = start(server, shared, sources, (stderr, limit, probe)).await;
        self.restarts.note(Instant::now(), started.is_ok());
        let running = Arc::new(started?);
        self.running = Arc::downgrade(&running);
        Ok(running)
    }
}

async fn start(
    server: &Process,
    shared: &[String],
    sources: &dyn Sources,
    (stderr, limit, probe): (&Arc<Stderr>, usize, Duration),
) -> Result<RunningProcess, String> {
    let dir = std::env::temp_dir().join(format!("banyan-{}", runtime::random::token()));
    std::fs::DirBuilder::new().mode(0o700).create(&dir).map_err(|error| format!("{} can't be made: {error}", dir.display()))?;
    let process = Process {
        args: shared.iter().map(SecretRef::plain).collect(),
        env: [(SOCKET.to_owned(), SecretRef::plain(dir.join("s").display().to_string()))].into(),
        ..server.clone()
    };
    let carrier = process::start(&process, sources, stderr, limit, probe);
    let Carrier { mut incoming, outgoing, close, ended, .. } = carrier.inspect_err(|_| discard(&dir))?;
    let running = RunningProcess { dir, close, ended, _input: outgoing };
    match tokio::time::timeout(START, incoming.recv()).await {
        Ok(Some(ServerInput::Message(_))) => {
            tokio::spawn(async move { while incoming.recv().await.is_some() {} });
            Ok(running)
        }
        Ok(Some(ServerInput::Ended(why))) => Err(why),
        Ok(Some(ServerInput::TooLong(_)) | None) | Err(_) => {
            Err(format!("the process of this and other servers does not listen within {START:?}"))
        }
    }
}

fn discard(dir: &Path) {
    drop(std::fs::remove_dir(dir));
}

/// The first line for a server, with its secrets.
fn opening(server: &Process, sources: &dyn Sources) -> Result<Vec<u8>, String> {
    let value =
        |reference: &SecretRef| reference.resolve(sources).map(|secret| secret.expose().to_owned()).map_err(|error| error.to_string());
    let args = server.args.iter().map(value).collect::<Result<_, _>>()?;
    let env = server.env.iter().map(|(name, reference)| Ok((name.clone(), value(reference)?))).collect::<Result<_, String>>()?;
    let mut line = serde_json::to_vec(&ServerOpening { args, env }).map_err(|error| error.to_string())?;
    line.push(b'\n');
    Ok(line)
}

/// Carries the lines of a server over its socket. The process lives as long as one of its servers is open.
fn carried(stream: UnixStream, running: Arc<RunningProcess>, limit: usize, probe: Duration) -> Carrier {
    let (reader, writer) = stream.into_split();
    let (incoming_tx, incoming) = mpsc::channel(256);
    let (outgoing, outgoing_rx) = mpsc::channel(256);
    let (close, ended) = (CancellationToken::new(), CancellationToken::new());
    tokio::spawn(process::write_lines(writer, outgoing_rx, close.clone()));
    let (closing, gone) = (close.clone(), ended.clone());
    tokio::spawn(async move {
        tokio::select! {
            () = process::read_lines(reader, limit, incoming_tx.clone()) => {}
            () = closing.cancelled() => {}
        }
        drop(running);
        gone.cancel();
        drop(incoming_tx.send(ServerInput::Ended("the process of this and other servers let go of it".to_owned())).await);
    });
    Carrier { incoming, outgoing, close, ended, probe }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_never_listens_is_tried_less_often() {
        let (mut restarts, mut now, mut waits) = (Restarts::default(), Instant::now(), Vec::new());
        for _ in 0..12 {
            assert_eq!(restarts.begin(now), Ok(()));
            now += START;
            restarts.note(now, false);
            let wait = restarts.begin(now).unwrap_err();
            waits.push(wait);
            now += wait;
        }
        assert_eq!((waits[0], waits[1], waits[11]), (FIRST_WAIT, FIRST_WAIT * 2, LONGEST_WAIT));
        assert!(waits.is_sorted());
    }

    #[test]
    fn a_process_that_worked_is_started_again_at_once() {
        let (mut restarts, mut now) = (Restarts { failures: 7, ..Restarts::default() }, Instant::now());
        restarts.note(now, true);
        now += LONGEST_WAIT;
        assert_eq!((restarts.begin(now), restarts.failures), (Ok(()), 0));
        restarts.note(now, true);
        assert_eq!(restarts.begin(now + FIRST_WAIT), Ok(()));
        restarts.note(now, true);
        assert_eq!(restarts.begin(now + FIRST_WAIT), Err(FIRST_WAIT));
    }
}
