//! Health checks of a device during a change. Decides nothing about the change.

use std::time::Duration;

use equipment::Health;
use net_proto::change::DeviceChange;
use net_proto::fault::{Code, Fault};
use tokio::time::Instant;

use crate::store::Store;
use crate::way::DeviceWay;

/// Pauses between two looks at a device that is not healthy yet: each may be a login of its own.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
/// Pause between two looks for a wish to have the change back.
const ASKED: Duration = Duration::from_millis(250);
/// Longest time of the checks before a confirmation, while nobody else can take the change back.
const LOOK: Duration = Duration::from_secs(15);

/// Health checks of a device, which end with the window of a change.
pub(crate) struct HealthChecks<'a> {
    pub(crate) device: &'a DeviceWay,
    pub(crate) checks: &'a [Health],
    pub(crate) store: &'a Store,
    /// Time until the deadline of the change.
    pub(crate) left: Duration,
}

impl HealthChecks<'_> {
    /// Checks a device after a change: each check gets the time of its settings.
    ///
    /// # Errors
    /// The first check without success in time.
    pub(crate) async fn settle(&self, change: &DeviceChange) -> Result<(), Fault> {
        let checked = self.in_window(async {
            if let Some(ovs) = self.device.ovs() {
                ovs.check(change).await?;
            }
            let began = Instant::now();
            for health in self.checks {
                let end = began.checked_add(Duration::from_secs(health.within)).unwrap_or(began);
                self.wait(health, end).await?;
            }
            // What was well at first may have gone while the others were waited for.
            if self.checks.len() > 1 { self.try_all().await } else { Ok(()) }
        });
        let settled = self.unless_asked_back(change, checked).await;
        settled.map_err(|fault| match fault.detail.contains("was taken back") {
            true => fault,
            false => Fault { detail: format!("{}, so the change was taken back", fault.detail), ..fault },
        })
    }

    /// Checks a device before a confirmation, without a wait.
    ///
    /// # Errors
    /// The first check without success.
    pub(crate) async fn look(&self, change: &DeviceChange) -> Result<(), Fault> {
        if self.checks.is_empty() {
            return Ok(());
        }
        let looked = self.unless_asked_back(change, self.in_window(self.try_all()));
        tokio::time::timeout(LOOK, looked).await.unwrap_or_else(|_| {
            let detail = format!("the health checks took longer than {} s", LOOK.as_secs());
            Err(Fault::new(Code::Timeout, detail))
        })
    }

    /// Ends checks where somebody wants the change back meanwhile.
    async fn unless_asked_back(&self, change: &DeviceChange, checks: impl Future<Output = Result<(), Fault>>) -> Result<(), Fault> {
        let asked = async {
            loop {
                if let Some(name) = self.store.asked_back(&change.id) {
                    return name;
                }
                tokio::time::sleep(ASKED).await;
            }
        };
        tokio::select! {
            biased;
            checked = checks => checked,
            name = asked => Err(Fault::new(Code::ConfigIncompatible, format!("{name} asked for a rollback before the device was well"))),
        }
    }

    async fn try_all(&self) -> Result<(), Fault> {
        for health in self.checks {
            self.try_one(health).await?;
        }
        Ok(())
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
        let mut pause = PAUSE;
        loop {
            let tried = self.try_one(health).await;
            let now = Instant::now();
            if tried.is_ok() || now >= end {
                return tried;
            }
            tokio::time::sleep(pause.min(end.duration_since(now))).await;
            pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
        }
    }

    async fn try_one(&self, health: &Health) -> Result<(), Fault> {
        let output = self.device.exec(&health.command).await?;
        let Some(why) = health.complaint(&output) else { return Ok(()) };
        Err(Fault::new(Code::ConfigIncompatible, format!("`{}` {why}", health.command)).at(health.command.clone()))
    }
}
