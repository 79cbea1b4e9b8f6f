//! A thousand MCP servers in one process that register themselves with a gate, so that it can be measured what they cost it.
//!
//! Each has a path of its own, tools of its own and, for whoever asks, a stream on which it says that they changed. What to do comes as
//! lines on standard input. Does not measure the gate: `bench/run` looks at it.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::LocalSet;
use tokio::time::Instant;

use crate::connection::Connection;
use crate::message::{Era, Target};
use crate::report::line;
use crate::server::{self, Server};

/// How many connections registrations and heartbeats take.
const CONNECTIONS: usize = 32;

#[derive(clap::Args)]
pub(crate) struct Plan {
    /// Where the gate listens
    #[arg(long)]
    address: SocketAddr,
    /// Where the servers listen
    #[arg(long)]
    listen: SocketAddr,
    /// How many tools each server has
    #[arg(long)]
    tools: usize,
    /// Milliseconds between heartbeats; three that do not come end a registration
    #[arg(long, default_value_t = 20_000)]
    heartbeat: u64,
}

/// Every server, and where their gate is.
struct Registrants {
    plan: Plan,
    target: Target,
    servers: Rc<RefCell<Vec<Rc<Server>>>>,
    /// The session of each that is registered.
    sessions: RefCell<Vec<String>>,
}

pub(crate) async fn run(plan: Plan) -> anyhow::Result<()> {
    let listener = TcpListener::bind(plan.listen).await?;
    let target = Target { host: format!("localhost:{}", plan.address.port()), path: "/mcp".into(), era: Era::Modern };
    let all = Rc::new(Registrants { plan, target, servers: Rc::default(), sessions: RefCell::default() });
    let work = async {
        let serving = tokio::task::spawn_local(server::serve(listener, Rc::clone(&all.servers)));
        let ended = tokio::select! {
            followed = all.follow() => followed,
            beaten = Rc::clone(&all).beat() => beaten.context("heartbeats"),
        };
        serving.abort();
        ended
    };
    LocalSet::new().run_until(work).await
}

impl Registrants {
    /// Does what standard input says, a line at a time, until it ends: `register COUNT`, `change NUMBER`.
    async fn follow(self: &Rc<Self>) -> anyhow::Result<()> {
        let mut lines = BufReader::new(tokio::io::stdin()).lines();
        while let Some(wanted) = lines.next_line().await? {
            let words: Vec<&str> = wanted.split(' ').collect();
            match words[..] {
                ["register", count] => self.register(count.parse()?).await?,
                ["change", number] => self.change(number.parse()?)?,
                _ => bail!("`{wanted}` is not understood"),
            }
        }
        Ok(())
    }

    /// Registers so many more, and waits until the gate has fetched what they list.
    async fn register(self: &Rc<Self>, count: usize) -> anyhow::Result<()> {
        let first = self.servers.borrow().len();
        let listed = Rc::new((Cell::new(count), Notify::new()));
        self.servers.borrow_mut().extend((first..first + count).map(|n| Rc::new(Server::new(n, self.plan.tools, Rc::clone(&listed)))));
        let (began, next) = (Instant::now(), Rc::new(Cell::new(first)));
        let working: Vec<_> = (0..CONNECTIONS.min(count))
            .map(|_| tokio::task::spawn_local(Rc::clone(self).register_some(Rc::clone(&next), first + count)))
            .collect();
        for worker in working {
            worker.await??;
        }
        let registered = began.elapsed();
        while listed.0.get() > 0 {
            listed.1.notified().await;
        }
        let said = serde_json::json!({ "registered": count, "seconds": registered.as_secs_f64(), "listed": began.elapsed().as_secs_f64() });
        line(&said.to_string());
        Ok(())
    }

    /// Registers one after the other over a connection of its own, as long as there are any.
    async fn register_some(self: Rc<Self>, next: Rc<Cell<usize>>, end: usize) -> anyhow::Result<()> {
        let mut gate = Connection::open(self.plan.address).await?;
        while next.get() < end {
            let number = next.replace(next.get() + 1);
            let members = format!(
                r#""subserver_id":"{:08x}-0000-4000-8000-000000000000","segment":"s{number:04}","capabilities":{{"tools":true}},"heartbeat_interval_ms":{},"transport_class":"http","url":"http://{}/{number}""#,
                number + 1,
                self.plan.heartbeat,
                self.plan.listen
            );
            let registered = result(&mut gate, &self.target.ask("mcpax/register", &members)).await?;
            let session = registered["session_id"].as_str().context("a registration without a session")?.to_owned();
            self.sessions.borrow_mut().push(session);
        }
        Ok(())
    }

    /// One more tool for a server, which says so to whoever listens.
    fn change(&self, number: usize) -> anyhow::Result<()> {
        let servers = self.servers.borrow();
        let name = servers.get(number).with_context(|| format!("there is no server {number}"))?.change()?;
        line(&serde_json::json!({ "changed": name }).to_string());
        Ok(())
    }

    /// Heartbeats, each in its turn, twice as often as has to be.
    async fn beat(self: Rc<Self>) -> anyhow::Result<()> {
        let interval = Duration::from_millis(self.plan.heartbeat / 2);
        loop {
            tokio::time::sleep(interval).await;
            // A connection that nothing was asked over for so long would have been closed.
            let mut gate = Connection::open(self.plan.address).await?;
            let sessions = self.sessions.borrow().clone();
            for session in sessions {
                result(&mut gate, &self.target.ask("mcpax/heartbeat", &format!(r#""session_id":"{session}""#))).await?;
            }
        }
    }
}

/// The result of a request.
async fn result(gate: &mut Connection, request: &[u8]) -> anyhow::Result<Value> {
    let (status, body) = gate.ask(request).await?;
    let mut said: Value = serde_json::from_slice(&body)?;
    ensure!(status == 200 && said["result"].is_object(), "HTTP {status}: {said}");
    Ok(said["result"].take())
}
