//! `banyan reload` and `banyan stop`: a supervisor's orders to a running gate. The gate follows its configuration by itself; nobody has to.

use clap::Args;
use gateway::admin::shapes::ReloadReply;

use crate::arguments::Place;
use crate::failure::Failure;
use crate::output::Output;
use crate::{gate, threads};

/// Makes the running gate read its configuration now.
#[derive(Args)]
pub(crate) struct Reload {}

/// Ends the running gate.
#[derive(Args)]
pub(crate) struct Stop {}

impl Reload {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let gate = gate::needed(place)?;
        let answer = threads::wait(gate.post("/-/reload", &()))??;
        let reloaded: ReloadReply =
            serde_json::from_slice(&answer).map_err(|e| Failure::Failed(format!("the gate's answer can't be read: {e}")))?;
        if output.wants_json() {
            return output.json(&reloaded);
        }
        if reloaded.changes.is_empty() {
            return output.line("nothing is different");
        }
        reloaded.changes.iter().try_for_each(|change| output.line(change))
    }
}

impl Stop {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let gate = gate::needed(place)?;
        threads::wait(gate.post("/-/stop", &()))??;
        if output.wants_json() {
            return output.json(&serde_json::json!({ "stopping": true }));
        }
        output.line("stopping: calls in flight may finish")
    }
}
