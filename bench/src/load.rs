//! Sends calls over many connections and keeps every latency.
//!
//! Closed loop: each connection sends its next call when the last one is answered. Open loop: calls are due at fixed times,
//! and a late one counts from when it was due. Does not retry; an error counts and ends its connection's work.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use tokio::task::LocalSet;
use tokio::time::Instant;

use crate::caller::{Ask, Caller, Ended};
use crate::processor::Used;
use crate::report::{Outcome, line};

#[derive(clap::Args)]
pub(crate) struct Plan {
    #[command(flatten)]
    ask: Ask,
    /// How many connections
    #[arg(long)]
    connections: usize,
    /// How long to measure
    #[arg(long, required_unless_present = "calls")]
    seconds: Option<f64>,
    /// How many calls to send
    #[arg(long)]
    calls: Option<u64>,
    /// Calls a second in an open loop; none: a closed loop
    #[arg(long)]
    rate: Option<f64>,
    /// Do not call once on each connection before measuring
    #[arg(long)]
    cold: bool,
    /// Processes whose processor time is counted
    #[arg(long, value_delimiter = ',')]
    watch: Vec<u32>,
}

/// When calls are made, shared by all connections.
pub(crate) struct Pace {
    end: Instant,
    /// How many calls are left.
    left: Cell<u64>,
    /// Of an open loop: when the next call is due, and how long after it the one behind it.
    due: Option<RefCell<(Instant, Duration)>>,
}

impl Pace {
    /// Calls until `seconds` are over, `rate` a second or as fast as they are answered.
    pub(crate) fn lasting(seconds: f64, rate: Option<f64>) -> Rc<Self> {
        Self::new(Some(seconds), None, rate)
    }

    fn new(seconds: Option<f64>, calls: Option<u64>, rate: Option<f64>) -> Rc<Self> {
        const AN_HOUR: f64 = 3600.0;
        let now = Instant::now();
        let due = rate.map(|rate| RefCell::new((now, Duration::from_secs_f64(1.0 / rate))));
        Rc::new(Self { end: now + Duration::from_secs_f64(seconds.unwrap_or(AN_HOUR)), left: Cell::new(calls.unwrap_or(u64::MAX)), due })
    }

    /// Waits until the next call may be made and gives the time it counts from: when it was due, if this connection was busy then;
    /// else now, because the timer's own millisecond is not the target's. `None`: no more calls.
    async fn next(&self) -> Option<Instant> {
        self.left.set(self.left.get().checked_sub(1)?);
        let began = match &self.due {
            Some(due) => wait(due).await,
            None => Instant::now(),
        };
        (began < self.end).then_some(began)
    }
}

async fn wait(schedule: &RefCell<(Instant, Duration)>) -> Instant {
    let (due, gap) = *schedule.borrow();
    schedule.borrow_mut().0 = due + gap;
    if due <= Instant::now() {
        return due;
    }
    tokio::time::sleep_until(due).await;
    Instant::now()
}

pub(crate) async fn run(plan: Plan) -> anyhow::Result<()> {
    let mut callers = connect(&plan.ask, plan.connections, !plan.cold).await?;
    let before = Used::by(&plan.watch)?;
    let began = Instant::now();
    let pace = Pace::new(plan.seconds, plan.calls, plan.rate);
    let outcome = LocalSet::new().run_until(all(&mut callers, &pace)).await?;
    let took = began.elapsed();
    let (user, system) = Used::by(&plan.watch)?.each(before, outcome.calls());
    let mut said = outcome.json(took);
    said["user_us"] = user.into();
    said["system_us"] = system.into();
    for caller in &mut callers {
        caller.end_sessions().await?;
    }
    line(&said.to_string());
    Ok(())
}

/// Opens connections; `warm`: calls once on each.
pub(crate) async fn connect(ask: &Ask, connections: usize, warm: bool) -> anyhow::Result<Vec<Caller>> {
    let mut callers = Vec::new();
    for number in 0..connections {
        let mut caller = Caller::new(ask, number as u64).await?;
        if warm {
            caller.call().await?;
        }
        callers.push(caller);
    }
    Ok(callers)
}

/// Lets every caller work until the pace says that it is over; has to run in a `LocalSet`.
pub(crate) async fn all(callers: &mut Vec<Caller>, pace: &Rc<Pace>) -> anyhow::Result<Outcome> {
    let working: Vec<_> = callers.drain(..).map(|caller| tokio::task::spawn_local(work(caller, Rc::clone(pace)))).collect();
    let mut total = Outcome::default();
    for handle in working {
        let (caller, outcome) = handle.await?;
        callers.push(caller);
        total.merge(outcome);
    }
    Ok(total)
}

async fn work(mut caller: Caller, pace: Rc<Pace>) -> (Caller, Outcome) {
    let mut outcome = Outcome::default();
    while let Some(began) = pace.next().await {
        match caller.call().await {
            Ok(Ended::Answered { size, first_byte }) => outcome.answered(began.elapsed(), first_byte - began, size),
            Ok(Ended::Shed(text)) => outcome.shed(text),
            Err(error) => {
                outcome.failed(&error);
                break;
            }
        }
    }
    (caller, outcome)
}
