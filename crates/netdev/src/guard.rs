//! The process that restores a device when nobody confirms, also after the death of all other processes. Started before a change is applied,
//! in a process group without others. Decides nothing: the record says when a restore is due.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use net_proto::fault::{Code, Fault};

use crate::site::Site;

/// Pause between two looks at the deadline.
const TICK: Duration = Duration::from_millis(250);
/// Pause after a restore in vain.
const PAUSE: Duration = Duration::from_secs(5);
/// Restores in vain before the guard gives up; the next server of the device goes on.
const TRIES: u32 = 100;

/// Starts the guard of a device: this program again, with the settings of the device.
pub(crate) fn start(site: &Site) -> Result<(), Fault> {
    let failed =
        |why: String| Fault::new(Code::HardwareFailure, format!("the process that would restore the device can't be started: {why}"));
    let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let settings = serde_json::to_string(&site.settings).map_err(|error| failed(error.to_string()))?;
    let mut command = std::process::Command::new(program);
    command.args(["device", "guard", "--settings", &settings, "--state"]).arg(&site.state);
    command.envs(site.secrets.variables());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    // Reaped here while this process lives, so that none is left behind as a zombie.
    let reaping = std::thread::Builder::new().name("guard".to_owned()).spawn(move || drop(child.wait()));
    reaping.map(drop).map_err(|error| failed(error.to_string()))
}

/// Waits until the change is confirmed or rolled back, and rolls the change back at the deadline.
///
/// # Errors
/// The old configuration does not come back.
pub async fn guard(site: &Site) -> Result<(), Fault> {
    let mut failures = 0;
    while site.store.load().is_ok_and(|record| record.pending().is_some()) {
        match site.restore_if_due().await {
            Ok(true) => return Ok(()),
            Ok(false) => tokio::time::sleep(TICK).await,
            Err(fault) if failures >= TRIES => return Err(fault),
            Err(_) => {
                failures += 1;
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    Ok(())
}

/// Does the same beside a server: after a restart of the machine no guard is left.
pub(crate) async fn watch(site: Arc<Site>) {
    loop {
        let pause = if site.restore_if_due().await.is_err() { PAUSE } else { TICK * 4 };
        tokio::time::sleep(pause).await;
    }
}
