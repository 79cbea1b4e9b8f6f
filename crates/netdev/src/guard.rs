//! The process that restores a device when nobody confirms, also after the death of all other processes. Started before a change is applied,
//! in a process group without others. Decides nothing: the record says when a restore is due.

use std::io::{Read, Write};
use std::ops::Not;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use mcp_server::subject;
use net_proto::fault::{Code, Fault};

use crate::site::Site;

/// Pause between two looks at the deadline.
const TICK: Duration = Duration::from_millis(250);
/// Pause after a restore in vain, and the longest one after many.
const PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Longest time for a guard to begin its watch.
const PATIENCE: Duration = Duration::from_secs(15);
/// Word of a guard that watches.
const WATCHES: &[u8] = b"+";

/// Starts the guard of a device, this program again with the settings of the device, and waits until the guard watches.
///
/// # Errors
/// The guard does not watch in time. A guard that begins later finds no change to restore, and ends.
pub(crate) async fn start(site: &Site) -> Result<(), Fault> {
    let failed =
        |why: String| Fault::new(Code::HardwareFailure, format!("the process that would restore the device can't be started: {why}"));
    let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let settings = serde_json::to_string(&site.settings).map_err(|error| failed(error.to_string()))?;
    let mut command = std::process::Command::new(program);
    command.args(["device", "guard", "--settings", &settings, "--state"]).arg(&site.state);
    command.envs(site.secrets.variables());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).current_dir("/");
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    let said = child.stdout.take();
    let (heard, hears) = tokio::sync::oneshot::channel();
    // Reaped here while this process lives, so that none is left behind as a zombie.
    let reaping = std::thread::Builder::new().name("guard".to_owned()).spawn(move || {
        let mut word = [0; WATCHES.len()];
        let watches = said.is_some_and(|mut said| said.read_exact(&mut word).is_ok()) && word == WATCHES;
        drop((heard.send(watches), child.wait()));
    });
    reaping.map_err(|error| failed(error.to_string()))?;
    match tokio::time::timeout(PATIENCE, hears).await {
        Ok(Ok(true)) => Ok(()),
        Ok(_) => Err(failed("it ended at once".to_owned())),
        Err(_) => Err(failed(format!("it did not begin within {} s", PATIENCE.as_secs()))),
    }
}

/// Waits until the change is confirmed or rolled back, and rolls the change back at the deadline, until success. Writes a word to `out` once
/// the guard watches.
pub async fn guard(site: &Site, out: &mut (impl Write + Send)) {
    let (mut pause, mut is_said) = (PAUSE, false);
    // A record that can't be read at this moment may be one of a change that waits.
    while site.store.load().is_ok_and(|record| record.pending().is_none()).not() {
        if !is_said {
            // The process that started the guard may be dead already.
            is_said = out.write_all(WATCHES).and_then(|()| out.flush()).is_ok();
        }
        match site.restore_if_due().await {
            Ok(true) => return,
            Ok(false) => {
                pause = PAUSE;
                tokio::time::sleep(TICK).await;
            }
            Err(_) => {
                tokio::time::sleep(pause).await;
                pause = longer(pause);
            }
        }
    }
}

/// Does the same beside a server: after a restart of the machine no guard is left. Saves confirmed changes that are not saved as well.
pub(crate) async fn watch(site: Arc<Site>) {
    loop {
        let rest = if site.restore_if_due().await.is_err() { PAUSE } else { TICK * 4 };
        // A save that has begun goes on when the server is gone: broken off, it could leave half a file.
        let saving = Arc::clone(&site);
        let _end = subject::spawn(async move { saving.save_if_left().await }).await;
        tokio::time::sleep(rest).await;
    }
}

fn longer(pause: Duration) -> Duration {
    pause.saturating_mul(2).min(LONGEST_PAUSE)
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
        let is_over = || pin!(guard(&site, &mut std::io::sink())).poll(&mut Context::from_waker(Waker::noop())).is_ready();
        assert!(is_over(), "nothing waits");
        std::fs::write(site.store.file("change.json"), "{").unwrap();
        assert!(!is_over(), "a change may wait");
    }
}
