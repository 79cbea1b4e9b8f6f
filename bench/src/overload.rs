//! More calls than a gateway can take, then as many as it can: what is shed, what the rest waits, how soon it is itself again.
//!
//! Does not know the capacity: `bench/run` measures it first.

use std::time::Duration;

use tokio::task::LocalSet;
use tokio::time::Instant;

use crate::caller::Ask;
use crate::load::{Pace, all, connect};
use crate::report::line;

/// How long one look at the rate after the overload takes, in seconds.
const LOOK: f64 = 0.05;

#[derive(clap::Args)]
pub(crate) struct Plan {
    #[command(flatten)]
    ask: Ask,
    /// How many connections share the overload
    #[arg(long)]
    connections: usize,
    /// Calls a second
    #[arg(long)]
    rate: f64,
    /// How long the overload lasts
    #[arg(long)]
    seconds: f64,
    /// How many connections there are when it is over
    #[arg(long)]
    after: usize,
    /// The rate at which it is over
    #[arg(long)]
    capacity: f64,
}

pub(crate) async fn run(plan: Plan) -> anyhow::Result<()> {
    let mut many = connect(&plan.ask, plan.connections, true).await?;
    let mut few = connect(&plan.ask, plan.after, true).await?;
    let tasks = LocalSet::new();
    tasks
        .run_until(async {
            let began = Instant::now();
            let outcome = all(&mut many, &Pace::lasting(plan.seconds, Some(plan.rate))).await?;
            let mut said = outcome.json(began.elapsed());
            // What was still under way when the last call was made counts as time to recover.
            let over = began + Duration::from_secs_f64(plan.seconds);
            let mut recovered = None;
            while recovered.is_none() && over.elapsed() < Duration::from_secs(5) {
                let look = all(&mut few, &Pace::lasting(LOOK, None)).await?;
                let whole = look.calls() as f64 / LOOK >= plan.capacity * 0.9;
                recovered = whole.then(|| over.elapsed().as_secs_f64() - LOOK);
            }
            said["recovered_seconds"] = recovered.map(|seconds: f64| seconds.max(0.0)).into();
            line(&said.to_string());
            Ok(())
        })
        .await
}
