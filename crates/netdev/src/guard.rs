//! The process that restores a device when nobody confirms, also after the death of all other processes. Started before a change is applied,
//! in a process group without others. Decides nothing: the record says when a restore is due.

use std::ops::Not;
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
    // A record that can't be read at this moment may be one of a change that waits.
    while site.store.load().is_ok_and(|record| record.pending().is_none()).not() {
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

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use equipment::{DeviceSecrets, DeviceSettings};

    use super::*;

    #[tokio::test]
    async fn nm_09_a_guard_outlasts_an_unreadable_record() {
        let dir = tempfile::tempdir().unwrap();
        let site = Site::open(DeviceSettings::new("r1"), &DeviceSecrets::default(), dir.path()).unwrap();
        let is_over = || pin!(guard(&site)).poll(&mut Context::from_waker(Waker::noop())).is_ready();
        assert!(is_over(), "nothing waits");
        std::fs::write(site.store.file("change.json"), "{").unwrap();
        assert!(!is_over(), "a change may wait");
    }
}
