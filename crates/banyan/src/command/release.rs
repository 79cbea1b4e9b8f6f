//! `banyan release`: frees a segment that stays with its authority. Puts no server out.

use clap::Args;
use gateway::admin::shapes::ReleaseReply;

use crate::arguments::Place;
use crate::failure::Failure;
use crate::output::Output;
use crate::{gate, threads};

/// Frees a segment that an authority keeps at this gate.
#[derive(Args)]
pub(crate) struct Release {
    /// The segment; the next registration gets it
    segment: String,
}

impl Release {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let gate = gate::needed(place)?;
        let answer = threads::wait(gate.post(&format!("/-/release/{}", self.segment), &()))??;
        let reply: ReleaseReply =
            serde_json::from_slice(&answer).map_err(|e| Failure::Failed(format!("the gate's answer can't be read: {e}")))?;
        if output.wants_json() {
            return output.json(&reply);
        }
        output.line(&format!("`{}` belongs to no authority now; a server that holds it keeps it until its session ends", reply.released))
    }
}
