//! Health checks of a device during a change. Decides nothing about the change.

use std::time::Duration;

use equipment::Health;
use net_proto::change::DeviceChange;
use net_proto::fault::{Code, Fault};
use tokio::time::Instant;

use crate::way::DeviceWay;

/// Pause between two looks at a device that is not healthy yet.
const PAUSE: Duration = Duration::from_secs(1);

/// Health checks of a device, which end with the window of a change.
pub(crate) struct HealthChecks<'a> {
    pub(crate) device: &'a DeviceWay,
    pub(crate) checks: &'a [Health],
    /// Time until the deadline of the change.
    pub(crate) left: Duration,
}

impl HealthChecks<'_> {
    /// Checks a device after a change: each check gets the time of its settings.
    ///
    /// # Errors
    /// The first check without success in time.
    pub(crate) async fn settle(&self, change: &DeviceChange) -> Result<(), Fault> {
        let settled = self.in_window(async {
            if let Some(ovs) = self.device.ovs() {
                ovs.check(change).await?;
            }
            let began = Instant::now();
            for health in self.checks {
                let end = began.checked_add(Duration::from_secs(health.within)).unwrap_or(began);
                self.wait(health, end).await?;
            }
            Ok(())
        });
        settled.await.map_err(|fault| Fault { detail: format!("{}, so the change was taken back", fault.detail), ..fault })
    }

    /// Checks a device before a confirmation, without a wait.
    ///
    /// # Errors
    /// The first check without success.
    pub(crate) async fn look(&self) -> Result<(), Fault> {
        let looked = self.in_window(async {
            for health in self.checks {
                self.try_one(health).await?;
            }
            Ok(())
        });
        looked.await
    }

    /// Ends the checks at the deadline: until then, nobody else can restore the device.
    async fn in_window(&self, checks: impl Future<Output = Result<(), Fault>>) -> Result<(), Fault> {
        tokio::time::timeout(self.left, checks).await.unwrap_or_else(|_| {
            let detail = "the health checks took longer than the window of the change";
            Err(Fault::new(Code::ConfirmedCommitTimeout, detail))
        })
    }

    /// Repeats a check until success, or until `end`.
    async fn wait(&self, health: &Health, end: Instant) -> Result<(), Fault> {
        loop {
            let tried = self.try_one(health).await;
            if tried.is_ok() || Instant::now() >= end {
                return tried;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn try_one(&self, health: &Health) -> Result<(), Fault> {
        let output = self.device.exec(&health.command).await?;
        let Some(why) = health.complaint(&output) else { return Ok(()) };
        Err(Fault::new(Code::ConfigIncompatible, format!("`{}` {why}", health.command)).at(health.command.clone()))
    }
}
