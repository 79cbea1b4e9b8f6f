//! The run of a gate from its first byte to its last: listens, announces itself, follows changes of the configuration, ends on a signal.
//! The content is not decided here.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use config::diff::Change;
use config::watch::Watch;
use gateway::admin::Command;
use gateway::admin::presence::ServedConfig;
use gateway::parts::PartList;
use gateway::{Gateway, ReloadOutcome};
use runtime::listening;
use runtime::worker::Workers;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::changes::DevicePart;
use crate::failure::Failure;
use crate::idle::Idle;
use crate::news::{News, Teller, tell};
use crate::output::{Look, Output};
use crate::plan::Plan;
use crate::signals::Signals;
use crate::{document, files, handover, log, notify, places, port};

/// Interval of looks for slowly starting servers: no event announces them.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The same while none starts: to look costs something for each server, and whatever changes is told of.
const LOOK_ANYWAY: Duration = Duration::from_secs(60);

/// Interval of looks for users, for a gate that ends without any.
const LOOK_WHETHER_USED: Duration = Duration::from_millis(500);

/// Mounts from which a gate asks for more open files.
const MANY: usize = 200;

/// The manner of serving.
#[derive(Clone, Copy)]
pub(crate) struct Manner {
    /// Address to listen on, before any changed configuration's.
    pub(crate) listen: Option<SocketAddr>,
    /// The gate ends when nobody uses it, and makes way for others.
    pub(crate) while_used: bool,
}

/// Serves `plan` until a signal or the admin API says to stop.
pub(crate) async fn serve(plan: Plan, manner: Manner, workers: Workers, output: &Output) -> Result<(), Failure> {
    config::check_listen(plan.config.listen, &plan.config).map_err(|why| Failure::Refused(why.to_string()))?;
    gateway::trust::check(&plan.config).map_err(|why| Failure::Refused(why.to_string()))?;
    let state_dir = places::state_dir()?;
    disk::check(&plan.config, &state_dir).map_err(|why| Failure::Failed(why.to_string()))?;
    if let Some(why) = config::exposed(plan.config.listen, &plan.config) {
        output.remark(&format!("{} {why}", output.paint_remark(Look::Warn, "warning:")));
    }
    if plan.config.mounts.len() > MANY {
        files::raise_limit();
    }
    let scheme = if plan.config.trust.tls.is_some() { "https" } else { "http" };
    let turn = match &plan.watched {
        Some(file) if !manner.while_used => Some(handover::take_over(file, output).await?),
        Some(_) | None => None,
    };
    let listener = listener(&plan, manner, output).await?;
    let address = listener.local_addr().map_err(|e| Failure::Failed(format!("the listener has no address: {e}")))?;
    let mut signals = Signals::new()?;
    let (servers, rooms) = (plan.config.servers().count(), plan.config.rooms.mounted().count());
    // Without a configuration of its own it is another gate each time.
    let parts = PartList::default().with(DevicePart);
    let gate = Gateway::assemble(&parts, plan.config, state_dir, plan.watched.as_deref());
    let runtime_dir = places::runtime_dir()?;
    let served = ServedConfig { what: plan.serves.clone(), digest: plan.digest, while_used: manner.while_used };
    let published = gate.publish(&runtime_dir, address, served);
    let (presence, commands) = published.map_err(|e| document::failed(&runtime_dir, "written", &e))?;
    drop(turn);
    let stop = CancellationToken::new();
    let serving = tokio::spawn(gate.serve_http(listener, stop.clone(), workers));
    let url = format!("{scheme}://{address}/mcp");
    tell(&News::Listening { url, pid: std::process::id(), serves: plan.serves, servers, rooms }, output)?;
    notify::tell("READY=1");
    let idle = manner.while_used.then(|| Idle::since(Instant::now()));
    let mut running = RunningGate { gate: gate.clone(), watched: plan.watched, listen: manner.listen, teller: Teller::default(), idle };
    let outcome = running.until_stopped(&mut signals, commands, output).await;
    notify::tell("STOPPING=1");
    _ = tell(&News::Stopping, output);
    stop.cancel();
    tokio::select! {
        ended = serving => drop(ended),
        // A second signal means now.
        () = signals.stop() => {}
    }
    gate.shutdown().await;
    drop(presence);
    outcome
}

/// Listens where the configuration says. A gate started by a client takes another port if that port is taken, or if no port was
/// named: on this machine only, so that nothing opens to others by itself.
async fn listener(plan: &Plan, manner: Manner, output: &Output) -> Result<TcpListener, Failure> {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    if !manner.while_used {
        return bind(plan.config.listen).await;
    }
    if plan.watched.is_none() {
        return bind(any).await;
    }
    match listening::listener(plan.config.listen).await {
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            output.remark(&port::taken(plan.config.listen));
            bind(any).await
        }
        Ok(listener) => Ok(listener),
        Err(_) => bind(plan.config.listen).await,
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
    listening::listener(address).await.map_err(|e| {
        if e.kind() == ErrorKind::AddrInUse {
            return Failure::Failed(port::taken(address));
        }
        let why = |kind, advice| (e.kind() == kind).then_some(advice);
        let foreign = "this machine has no such address: 127.0.0.1 is always there, 0.0.0.0 stands for all it has";
        let advice = why(ErrorKind::AddrNotAvailable, foreign)
            .or_else(|| why(ErrorKind::PermissionDenied, "this user may not: choose a port from 1024 on with `--listen`"))
            .unwrap_or("choose another address with `--listen`, or `listen` in banyan.toml");
        Failure::Failed(format!("can't listen on {address}: {e}\n  {advice}"))
    })
}

struct RunningGate {
    gate: Gateway,
    watched: Option<PathBuf>,
    listen: Option<SocketAddr>,
    teller: Teller,
    /// Present for a gate that ends when nobody uses it.
    idle: Option<Idle>,
}

impl RunningGate {
    async fn until_stopped(
        &mut self,
        signals: &mut Signals,
        mut commands: mpsc::Receiver<Command>,
        output: &Output,
    ) -> Result<(), Failure> {
        let mut named = self.files();
        let mut watch = (!named.is_empty()).then(|| Watch::start(named.clone()));
        loop {
            if named != self.files() {
                named = self.files();
                watch = (!named.is_empty()).then(|| Watch::start(named.clone()));
                // What changed before it watched would be heard of by nobody.
                drop(self.reload(output)?);
                continue;
            }
            // What changes behind this is heard of, so that nothing is missed between a look and the wait for the next change.
            let gate = self.gate.clone();
            let changes = gate.changed();
            let servers = gate.status();
            let is_any_starting = servers.iter().any(|server| server.state == "starting");
            let of_parents = self.teller.parents(self.gate.joined().as_deref());
            for news in of_parents.into_iter().chain(self.teller.news(&servers, SystemTime::now())) {
                tell(&news, output)?;
            }
            if self.is_over().await && self.gate.leave() {
                return Ok(());
            }
            let again = match &self.idle {
                Some(_) => LOOK_WHETHER_USED,
                None if is_any_starting => LOOK_AGAIN,
                None => LOOK_ANYWAY,
            };
            tokio::select! {
                () = signals.stop() => return Ok(()),
                () = changed(&mut watch) => drop(self.reload(output)?),
                command = commands.recv() => match command {
                    Some(Command::Reload(reply)) => drop(reply.send(self.reload(output)?)),
                    Some(Command::Stop) | None => return Ok(()),
                },
                () = changes => {}
                () = tokio::time::sleep(again) => {}
            }
        }
    }

    /// Checks if nobody needs the gate any more.
    async fn is_over(&mut self) -> bool {
        let Some(idle) = &mut self.idle else { return false };
        log::bound();
        idle.is_over(self.gate.is_used().await, Instant::now())
    }

    /// Lists the files to follow: the configuration, and its files of rules and of keys of approval services.
    fn files(&self) -> Vec<PathBuf> {
        let Some(watched) = &self.watched else { return Vec::new() };
        let config = self.gate.config();
        let rules = config.policy.iter().map(|policy| &policy.file);
        let keys = config.gate.iter().flat_map(|gate| &gate.services).map(|service| &service.keys);
        std::iter::once(watched).chain(rules).chain(keys).cloned().collect()
    }

    /// Reads the configuration again; gives the changes, or the reason for keeping the old one.
    fn reload(&mut self, output: &Output) -> Result<Result<Vec<String>, String>, Failure> {
        let Some(path) = &self.watched else { return Ok(Err("this gate reads no configuration file".to_owned())) };
        let lines = |changes: &[Change]| -> Vec<String> { changes.iter().map(ToString::to_string).collect() };
        let (news, answer) = match self.gate.reload(path, self.listen) {
            ReloadOutcome::Unchanged => return Ok(Ok(Vec::new())),
            ReloadOutcome::Applied(changes) => (News::Reloaded { changes: lines(&changes) }, Ok(lines(&changes))),
            ReloadOutcome::Kept { error, revoked } => {
                let news = News::Kept { error, revoked: lines(&revoked) };
                let answer = news.refusal();
                (news, Err(answer))
            }
        };
        tell(&news, output)?;
        Ok(answer)
    }
}

async fn changed(watch: &mut Option<Watch>) {
    match watch {
        Some(watch) => drop(watch.changed().await),
        None => std::future::pending().await,
    }
}
