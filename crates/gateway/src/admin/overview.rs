//! `GET /-/overview`: the calls of the last hour, for the first page of the console. Does not count them.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use telemetry::traffic::{Counts, LATELY, LastCall, NameReport, STEP, StepReport, TrafficReport};

use crate::Gateway;

/// Callers and tools in an answer.
const BUSIEST: usize = 20;

/// `GET /-/overview`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overview {
    /// Length of a step.
    pub step_seconds: u64,
    /// Length of the time that `lately` counts.
    pub lately_seconds: u64,
    /// Steps of the last hour, the oldest first.
    pub steps: Vec<TrafficStep>,
    /// The whole hour.
    pub whole: TrafficStep,
    /// The busiest callers; `""` stands for all callers beyond the first 128 of an hour.
    pub callers: Vec<TrafficName>,
    /// Servers by dotted path, those below other gates among them.
    pub servers: Vec<TrafficName>,
    /// The busiest tools, by dotted name.
    pub tools: Vec<TrafficName>,
    /// The last hundred calls, the newest first.
    pub last: Vec<TrafficCall>,
}

/// Calls of a stretch of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrafficStep {
    pub calls: u32,
    pub failed: u32,
    pub refused: u32,
    /// Absent where no call left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95_ms: Option<f64>,
}

/// Calls of a name within the last hour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficName {
    pub name: String,
    pub calls: u32,
    pub failed: u32,
    pub refused: u32,
    /// Calls of the last minutes.
    pub lately: u32,
    /// Failed calls of the last minutes.
    pub lately_failed: u32,
}

/// A call that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficCall {
    /// Id in the record.
    pub call: String,
    /// Time of the beginning, in microseconds since 1970.
    pub began: u64,
    pub caller: String,
    /// Dotted path of the server; empty of a call that reached none.
    pub server: String,
    pub route: String,
    /// The end in the record's words; `refused` of a call that never left.
    pub outcome: String,
    pub failed: bool,
    pub refused: bool,
    pub took_us: u64,
}

impl Gateway {
    /// Gives the calls of the last hour.
    pub fn overview(&self) -> Overview {
        let TrafficReport { steps, whole, callers, servers, tools, last } = self.0.gate.record.traffic.report(Instant::now());
        let busiest = |names: &[NameReport]| names.iter().take(BUSIEST).map(named).collect();
        Overview {
            step_seconds: STEP.as_secs(),
            lately_seconds: LATELY.as_secs(),
            steps: steps.into_iter().map(step).collect(),
            whole: step(whole),
            callers: busiest(&callers),
            servers: servers.iter().map(named).collect(),
            tools: busiest(&tools),
            last: last.iter().map(|of| call(of)).collect(),
        }
    }
}

fn step(of: StepReport) -> TrafficStep {
    let Counts { calls, failed, refused } = of.counts;
    TrafficStep { calls, failed, refused, p50_ms: of.p50_ms, p95_ms: of.p95_ms }
}

fn named(of: &NameReport) -> TrafficName {
    let Counts { calls, failed, refused } = of.counts;
    TrafficName { name: (*of.name).into(), calls, failed, refused, lately: of.lately.calls, lately_failed: of.lately.failed }
}

fn call(of: &LastCall) -> TrafficCall {
    TrafficCall {
        call: of.call.clone(),
        began: of.began,
        caller: of.caller.clone(),
        server: of.server.clone(),
        route: of.route.clone(),
        outcome: of.outcome.clone(),
        failed: of.is_failed,
        refused: of.is_refused,
        took_us: of.took_us,
    }
}
