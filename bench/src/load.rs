//! Sends calls over many connections and keeps every latency.
//!
//! Closed loop: each connection sends its next call when the last one is answered. Open loop: calls are due at fixed times,
//! and a late one counts from when it was due. Does not retry; an error counts and ends its connection's work.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use anyhow::ensure;
use tokio::time::Instant;

use crate::connection::Connection;
use crate::message::{Era, Target, Template};
use crate::report::{Outcome, line};
use crate::sessions;

#[derive(clap::Args)]
pub(crate) struct Plan {
    /// Where to connect
    #[arg(long)]
    address: SocketAddr,
    /// The endpoint
    #[arg(long, default_value = "/mcp")]
    path: String,
    /// Which era to speak
    #[arg(long, value_enum)]
    era: Era,
    /// Names to call in turn; none: `tools/list`
    #[arg(long, value_delimiter = ',')]
    tools: Vec<String>,
    /// How many connections
    #[arg(long)]
    connections: usize,
    /// How long to measure
    #[arg(long)]
    seconds: f64,
    /// Calls a second in an open loop; none: a closed loop
    #[arg(long)]
    rate: Option<f64>,
}

/// When the next call of an open loop is due.
struct Schedule {
    next: Instant,
    gap: Duration,
}

impl Schedule {
    fn take(&mut self) -> Instant {
        let due = self.next;
        self.next += self.gap;
        due
    }
}

struct Worker {
    connection: Connection,
    requests: Vec<Template>,
    number: u64,
}

impl Worker {
    async fn new(plan: &Plan, number: u64) -> anyhow::Result<Self> {
        let target = Target { host: format!("localhost:{}", plan.address.port()), path: plan.path.clone(), era: plan.era };
        let mut connection = Connection::open(plan.address).await?;
        let session = match plan.era {
            Era::Legacy => sessions::hello(&mut connection, &target).await?,
            Era::Modern => None,
        };
        let session = session.as_deref();
        let requests = match plan.tools.as_slice() {
            [] => vec![Template::new(&target, session, None)],
            tools => tools.iter().map(|name| Template::new(&target, session, Some(name))).collect(),
        };
        let mut worker = Self { connection, requests, number: number * 10_000_000 };
        worker.call().await?;
        Ok(worker)
    }

    async fn call(&mut self) -> anyhow::Result<usize> {
        let turn = usize::try_from(self.number)? % self.requests.len();
        let answer = self.connection.exchange(self.requests[turn].numbered(self.number)).await?;
        self.number += 1;
        ensure!(answer.status == 200 && answer.result, "HTTP {} without a result, {} bytes", answer.status, answer.size);
        Ok(answer.size)
    }
}

pub(crate) async fn run(plan: Plan) -> anyhow::Result<()> {
    let mut workers = Vec::new();
    for number in 0..plan.connections {
        workers.push(Worker::new(&plan, number as u64).await?);
    }
    let began = Instant::now();
    let end = began + Duration::from_secs_f64(plan.seconds);
    let schedule = plan.rate.map(|rate| Rc::new(RefCell::new(Schedule { next: began, gap: Duration::from_secs_f64(1.0 / rate) })));
    let tasks = tokio::task::LocalSet::new();
    let handles: Vec<_> = workers.into_iter().map(|w| tasks.spawn_local(work(w, end, schedule.clone()))).collect();
    let outcomes = tasks
        .run_until(async {
            let mut all = Outcome::default();
            for handle in handles {
                all.merge(handle.await?);
            }
            anyhow::Ok(all)
        })
        .await?;
    line(&outcomes.json(began.elapsed()));
    Ok(())
}

async fn work(mut worker: Worker, end: Instant, schedule: Option<Rc<RefCell<Schedule>>>) -> Outcome {
    let mut outcome = Outcome::default();
    loop {
        let began = match &schedule {
            Some(schedule) => wait(schedule).await,
            None => Instant::now(),
        };
        if began >= end {
            return outcome;
        }
        match worker.call().await {
            Ok(size) => outcome.answered(began.elapsed(), size),
            Err(error) => {
                outcome.failed(&error);
                return outcome;
            }
        }
    }
}

/// Waits until the next call is due and gives the time it counts from: when it was due, if this connection was busy then;
/// else now, because the timer's own millisecond is not the target's.
async fn wait(schedule: &RefCell<Schedule>) -> Instant {
    let due = schedule.borrow_mut().take();
    if due <= Instant::now() {
        return due;
    }
    tokio::time::sleep_until(due).await;
    Instant::now()
}
