//! The end of a gate started by a client, once a person starts the gate of the same configuration: its clients come over by themselves.
//! Does not
//! start the new gate.

use std::path::Path;
use std::time::Duration;

use gateway::admin::client::AdminClient;
use tokio::time::{Instant, sleep};

use crate::failure::Failure;
use crate::gate;
use crate::output::Output;
use crate::turn::Turn;

/// Time for the old gate to let its calls finish.
const END: Duration = Duration::from_secs(30);
/// Time between two looks for the end of the other gate.
const LOOK: Duration = Duration::from_millis(20);

/// Takes the turn to start the gate of `file`, and ends the gate that a client had started with `file`.
pub(crate) async fn take_over(file: &Path, output: &Output) -> Result<Turn, Failure> {
    let turn = Turn::wait_for(file).await?;
    for gate in gate::serving(file)?.into_iter().filter(|gate| gate.while_used) {
        let pid = gate.pid;
        output.remark(&format!("process {pid} ends, a gate that a client has started with this configuration: its clients use this one"));
        // One that does not answer may be ending already.
        drop(AdminClient::new(gate).post("/-/stop", &()).await);
        let until = Instant::now() + END;
        while gate::serving(file)?.iter().any(|gate| gate.pid == pid) && Instant::now() < until {
            sleep(LOOK).await;
        }
    }
    Ok(turn)
}
