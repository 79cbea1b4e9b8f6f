//! Carries out the wishes of a transaction, one after another. Decides nothing.

use std::time::Duration;

use net_proto::change::text::{FRR, Tree};
use net_proto::change::{ChangeOutcome, ChangeRecord, DeviceChange, Phase, StepResult, Transaction, Want, listed};
use net_proto::fault::{Code, Fault};
use net_proto::snmp::settings_of;

use crate::backend::Frr;
use crate::bird::BirdView;
use crate::clock::now;
use crate::guard;
use crate::health::HealthChecks;
use crate::room;
use crate::site::{Site, forget};
use crate::store::Lock;
use crate::way::DeviceWay;

/// Drives a transaction to the end; answers the last record.
pub(crate) async fn drive(site: &Site, mut transaction: Transaction, lock: &Lock) -> (ChangeRecord, Result<ChangeOutcome, Fault>) {
    let mut is_released = false;
    loop {
        let done = match transaction.want() {
            Want::End => {
                let record = transaction.record().clone();
                if !is_released {
                    release(site, &record).await;
                }
                let finished = transaction.finish().map_err(|fault| site.cleaned_of(&record, fault));
                return (record, finished);
            }
            Want::Keep(record) => reported(site.keep(record)),
            Want::Arm(change) => reported(arm(site, change).await),
            Want::Apply(change) => {
                let applied = apply(site, change, lock).await;
                is_released = matches!((&site.changes, &applied), (DeviceWay::Ssh(ssh), Err(fault)) if ssh.has_no_timer_of(fault));
                reported(applied)
            }
            Want::Confirm(change) => reported(confirm(site, change).await),
            Want::Read => read_back(site, transaction.record()).await.unwrap_or_else(StepResult::Failed),
            Want::Restore(snapshot) => room::settling(restored(site, snapshot, transaction.record(), lock)).await,
            Want::Check(change) => reported(checks(site, change).settle(change).await),
            Want::CheckAgain(change) => reported(checks(site, change).look(change).await),
            Want::Save => save(site, transaction.record()).await,
        };
        transaction.hear(done, &now());
    }
}

/// Reads the running configuration, held up by no caller where the old one is on its way back.
async fn read_back(site: &Site, record: &ChangeRecord) -> Result<StepResult, Fault> {
    if record.change.as_ref().is_some_and(|change| change.phase == Phase::RollingBack) {
        return room::settling(read(site, record)).await;
    }
    read(site, record).await
}

fn reported(result: Result<(), Fault>) -> StepResult {
    result.map_or_else(StepResult::Failed, |()| StepResult::Done)
}

/// Reads the running configuration. While a change is pending at a BIRD, somebody else may have loaded one that nobody can read.
async fn read(site: &Site, record: &ChangeRecord) -> Result<StepResult, Fault> {
    if let (DeviceWay::Bird(bird), Some(_)) = (&site.changes, record.pending()) {
        return bird.seen().await.map(|seen| match seen {
            BirdView::Running(text) => StepResult::Running(text),
            BirdView::Foreign(detail) => StepResult::Overtaken(detail),
        });
    }
    site.changes.running().await.map(StepResult::Running)
}

async fn restored(site: &Site, snapshot: &str, record: &ChangeRecord, lock: &Lock) -> StepResult {
    if let (DeviceWay::Ovs(ovs), Some(change)) = (&site.changes, &record.change) {
        return match ovs.restore(change).await {
            Ok(lost) if lost.is_empty() => StepResult::Done,
            Ok(lost) => StepResult::Overtaken(format!("the rest of the old configuration runs, but {}", listed(&lost))),
            Err(fault) => StepResult::Failed(fault),
        };
    }
    match (&site.changes, restore(site, snapshot, record, lock).await) {
        (_, Ok(())) => StepResult::Done,
        (DeviceWay::Bird(_), Err(fault)) if fault.code == Code::InvalidParams => StepResult::Overtaken(fault.detail),
        (_, Err(fault)) => StepResult::Failed(fault),
    }
}

/// Tells the timer of a device that there is nothing left to take back: else it would take back what others change meanwhile.
async fn release(site: &Site, record: &ChangeRecord) {
    let Some(change) = record.change.as_ref().filter(|change| change.phase == Phase::RolledBack && change.persist.is_some()) else {
        return;
    };
    match &site.changes {
        DeviceWay::Hosted(_) => drop(confirm(site, change).await),
        DeviceWay::Ssh(ssh) if !ssh.has_candidate() => drop(confirm(site, change).await),
        DeviceWay::Frr(_) | DeviceWay::Ssh(_) | DeviceWay::Netconf(_) | DeviceWay::Snmp(_) | DeviceWay::Bird(_) | DeviceWay::Ovs(_) => {}
    }
}

/// Starts the process for a restore, here or on the device; over NETCONF the device has a timer for that, and the candidate is made.
async fn arm(site: &Site, change: &DeviceChange) -> Result<(), Fault> {
    match &site.changes {
        DeviceWay::Netconf(netconf) => netconf.prepare(&change.commands, &change.candidate).await,
        DeviceWay::Hosted(frr) => {
            let token = persist(change)?;
            let armed = frr.arm(token, left(change), change.snapshot.as_deref().unwrap_or_default()).await;
            if armed.is_err() {
                // A job whose start nobody heard of ends by itself, for nothing was applied.
                drop(frr.confirm(token).await);
            }
            armed
        }
        // BIRD has a timer of its own, which anybody can stop.
        DeviceWay::Bird(bird) => {
            bird.check_start(change)?;
            bird.check_free().await?;
            guard::start(site).await
        }
        // The commands of the change begin with the timer of the device.
        DeviceWay::Ssh(ssh) if ssh.has_timer() => Ok(()),
        DeviceWay::Frr(_) | DeviceWay::Ssh(_) | DeviceWay::Snmp(_) | DeviceWay::Ovs(_) => guard::start(site).await,
    }
}

async fn apply(site: &Site, change: &DeviceChange, lock: &Lock) -> Result<(), Fault> {
    match &site.changes {
        DeviceWay::Netconf(netconf) => netconf.commit(u32::try_from(left(change)).unwrap_or(u32::MAX), persist(change)?).await,
        DeviceWay::Hosted(frr) => frr.apply(persist(change)?, left(change), &change.candidate).await,
        DeviceWay::Ssh(ssh) => ssh.apply(change, left(change)).await,
        DeviceWay::Ovs(ovs) => ovs.apply(change).await,
        DeviceWay::Bird(bird) => bird.apply(persist(change)?, left(change), change).await,
        DeviceWay::Snmp(snmp) => snmp.set(settings_of(change.snapshot.as_deref().unwrap_or_default(), &change.candidate)?).await,
        DeviceWay::Frr(frr) => reload(site, frr, &change.candidate, lock).await,
    }
}

async fn confirm(site: &Site, change: &DeviceChange) -> Result<(), Fault> {
    match &site.changes {
        DeviceWay::Netconf(netconf) => netconf.confirm(persist(change)?).await,
        DeviceWay::Hosted(frr) => frr.confirm(persist(change)?).await,
        DeviceWay::Ssh(ssh) => ssh.confirm(change).await,
        DeviceWay::Bird(bird) => bird.confirm(persist(change)?, change).await,
        DeviceWay::Frr(_) | DeviceWay::Snmp(_) | DeviceWay::Ovs(_) => Ok(()),
    }
}

fn checks<'a>(site: &'a Site, change: &DeviceChange) -> HealthChecks<'a> {
    let left = change.deadline.as_ref().map_or(0, |deadline| deadline.left(&now()));
    HealthChecks { device: &site.backend, checks: &site.settings.health, store: &site.store, left: Duration::from_millis(left) }
}

/// Seconds until the deadline.
fn left(change: &DeviceChange) -> u64 {
    change.deadline.as_ref().map_or(0, |deadline| deadline.left(&now()).div_ceil(1000))
}

async fn restore(site: &Site, snapshot: &str, record: &ChangeRecord, lock: &Lock) -> Result<(), Fault> {
    let change = record.change.as_ref().ok_or_else(|| Fault::new(Code::RollbackFailed, "the change is gone"))?;
    match &site.changes {
        DeviceWay::Netconf(netconf) => netconf.cancel(persist(change)?).await,
        DeviceWay::Hosted(frr) => frr.restore(persist(change)?, snapshot).await,
        DeviceWay::Ssh(ssh) => ssh.restore(change, snapshot).await,
        DeviceWay::Ovs(ovs) => ovs.restore(change).await.map(drop),
        DeviceWay::Bird(bird) => bird.undo(persist(change)?, snapshot).await,
        // What the change did not touch is left as it is.
        DeviceWay::Snmp(snmp) => snmp.set(settings_of(&change.candidate, snapshot)?).await,
        DeviceWay::Frr(frr) => reload(site, frr, snapshot, lock).await,
    }
}

/// Name of the commit on the device.
fn persist(change: &DeviceChange) -> Result<&str, Fault> {
    change.persist.as_deref().ok_or_else(|| Fault::new(Code::RollbackFailed, "the record has no name for the commit on the device"))
}

async fn reload(site: &Site, frr: &Frr, text: &str, lock: &Lock) -> Result<(), Fault> {
    // The reload tries to delete an interface that the text does not name, which FRR 10 refuses while the kernel has it.
    let commands = Tree::read(&frr.running().await?).emptied(&Tree::read(text), &FRR);
    if !commands.is_empty() {
        let file = site.written("frr.conf", &(commands.join("\n") + "\n"))?;
        let emptied = frr.configure(&file).await;
        forget(&file);
        emptied?;
    }
    let file = site.written("frr.conf", text)?;
    let held = lock.shared().map_err(|error| Fault::new(Code::HardwareFailure, error.to_string()))?;
    let reloaded = frr.reload(&file, held).await;
    forget(&file);
    reloaded
}

async fn save(site: &Site, record: &ChangeRecord) -> StepResult {
    match &site.changes {
        DeviceWay::Netconf(netconf) => netconf.save(),
        DeviceWay::Frr(frr) => reported(frr.save().await),
        DeviceWay::Hosted(frr) => reported(frr.save().await),
        DeviceWay::Ssh(ssh) => reported(ssh.save().await),
        DeviceWay::Bird(bird) => reported(bird.save(record.change.as_ref()).await),
        // The database is on the disk after each transaction.
        DeviceWay::Ovs(_) => StepResult::Done,
        DeviceWay::Snmp(_) => StepResult::Unable,
    }
}
