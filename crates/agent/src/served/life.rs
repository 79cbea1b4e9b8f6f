//! Life of the gate as an agent, kept on the disk and in the record: its state, its work, and each transition. Checks no owner.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_proto::capability::lifecycle::{Lifecycle, LifecycleChange, LifecycleStatus};
use agent_proto::served::rejection::{ClientRefusal, RefusalReason};
use audit::record::{Changed, Record, Text};
use call::judge::gate::Gate;
use call::words::refusal::Refusal;
use door::reply::Payload;
use http::header::{LOCATION, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use runtime::clock;
use runtime::whole::{Readers, make_dirs, replace};

/// Directory for the lives of all gates of a state directory.
const KEPT: &str = "agents";
/// Longest reason for a transition, in characters.
const LONGEST_REASON: usize = 500;
/// Principal of the owner in the record.
const OWNER: &str = "owner";

/// Life of one gate as an agent.
pub struct KeptLife {
    file: Option<PathBuf>,
    life: Mutex<Lifecycle>,
    turn: tokio::sync::Mutex<()>,
    work: Arc<()>,
}

/// Work in progress, until dropped.
pub struct AgentWork(#[expect(dead_code, reason = "counted by its owner")] Arc<()>);

impl KeptLife {
    /// Reads the life of the gate `id`. A file without sense leaves an agent without new work, until its owner makes the agent active again.
    pub fn open(state: Option<&PathBuf>, id: &str) -> Self {
        let file = state.map(|state| state.join(KEPT).join(format!("{id}.json")));
        let life = file.as_deref().map_or_else(Lifecycle::default, kept);
        Self { file, life: Mutex::new(life), turn: tokio::sync::Mutex::default(), work: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Lifecycle> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies the present state.
    pub fn now(&self) -> Lifecycle {
        self.lock().clone()
    }

    /// Counts the work in progress.
    pub fn working(&self) -> usize {
        Arc::strong_count(&self.work).saturating_sub(1)
    }

    /// Begins work, unless the state forbids: a drain stops new work alone, retirement stops all.
    pub fn begin_work(&self, is_new: bool) -> Result<AgentWork, ClientRefusal> {
        let life = self.lock();
        if life.status == LifecycleStatus::Retired || is_new && !life.status.takes_work() {
            let next = life.successor.as_ref().map_or_else(|| "ask its operator for another".to_owned(), |next| format!("use {next}"));
            let text = format!("This agent is {} and takes no new tasks: {next}.", life.status.name());
            return Err(ClientRefusal::new(RefusalReason::Draining, text));
        }
        Ok(AgentWork(Arc::clone(&self.work)))
    }

    /// Makes a transition: recorded first, then on the disk, then in force.
    pub async fn change(&self, gate: &Gate, agent: &str, wish: LifecycleChange, reason: &str) -> Result<Lifecycle, Refusal> {
        let _turn = self.turn.lock().await;
        let before = self.now();
        let next = before.change(&wish, seconds()).map_err(|error| Refusal::failed(error.to_string()))?;
        let working = self.working();
        if next.status == LifecycleStatus::Retired && working > 0 {
            return Err(Refusal::failed(format!("{working} tasks are in progress: retire the agent once they have ended")));
        }
        let reason: String = reason.chars().filter(|c| !c.is_control()).take(LONGEST_REASON).collect();
        let lines = [
            format!("agent {agent}"),
            format!("from {} to {}", before.status.name(), next.status.name()),
            format!("successor {}", next.successor.as_deref().unwrap_or("none")),
            format!("reason {reason}"),
        ];
        record(gate, "aepb:lifecycle_change", next.status.name(), lines.to_vec()).await?;
        if let Err(why) = self.keep(next.write()).await {
            record(gate, "aepb:lifecycle_change", before.status.name(), vec![format!("agent {agent}"), format!("not kept: {why}")]).await?;
            return Err(Refusal::failed(format!("the new state can't be kept: {why}")));
        }
        self.lock().clone_from(&next);
        if next.status == LifecycleStatus::Retired {
            record(gate, "aepb:shutdown", next.status.name(), vec![format!("agent {agent}")]).await?;
        }
        Ok(next)
    }

    async fn keep(&self, text: String) -> Result<(), String> {
        let Some(file) = self.file.clone() else { return Ok(()) };
        let written = tokio::task::spawn_blocking(move || {
            make_dirs(file.parent().unwrap_or(Path::new("/")), 0o700)?;
            replace(&file, text.as_bytes(), Readers::Owner)
        });
        written.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    }

    /// Puts the fields of the life on a response of the agent, and on a refusal for want of work the wait and the successor.
    pub fn mark(&self, mut response: Response<Payload>) -> Response<Payload> {
        let life = self.now();
        let is_closed = response.status() == StatusCode::SERVICE_UNAVAILABLE && !life.status.takes_work();
        let headers = response.headers_mut();
        for (name, value) in life.fields() {
            headers.extend(HeaderValue::from_str(&value).ok().map(|value| (HeaderName::from_static(name), value)));
        }
        if is_closed {
            headers.insert(RETRY_AFTER, life.retry_after(seconds()).into());
            let successor = life.successor.as_deref().and_then(|successor| HeaderValue::from_str(successor).ok());
            headers.extend(successor.map(|successor| (LOCATION, successor)));
        }
        response
    }
}

/// Reads a file of a life.
fn kept(file: &Path) -> Lifecycle {
    let draining = || Lifecycle { status: LifecycleStatus::Draining, ..Lifecycle::default() };
    match std::fs::read(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Lifecycle::default(),
        Err(error) => {
            tracing::error!("{} can't be read: {error}. The agent takes no new tasks until `banyan agent activate`", file.display());
            draining()
        }
        Ok(text) => Lifecycle::read(&text).unwrap_or_else(|error| {
            tracing::error!("{}: {error}. The agent takes no new tasks until `banyan agent activate`", file.display());
            draining()
        }),
    }
}

async fn record(gate: &Gate, what: &str, version: &str, lines: Vec<String>) -> Result<(), Refusal> {
    let lines = lines.into_iter().map(Text::Owned).collect();
    let entry = Record::Changed(Changed { lines, version: Some(Text::Borrowed(version)), what: Text::Borrowed(what) });
    let journal = &gate.record.journal;
    journal.append_durable(&journal.part(OWNER), &entry).await.map_err(|error| Refusal::failed(error.to_string()))
}

fn seconds() -> u64 {
    clock::wall() / 1_000_000
}
