//! Carries out the wishes of a transaction, one after another. Decides nothing.

use net_proto::change::{ChangeOutcome, ChangeRecord, DeviceChange, StepResult, Transaction, Want};
use net_proto::fault::{Code, Fault};

use crate::clock::now;
use crate::guard;
use crate::site::{Site, forget};
use crate::store::Lock;

/// Drives a transaction to the end; answers the last record.
pub(crate) async fn drive(site: &Site, mut transaction: Transaction, lock: &Lock) -> (ChangeRecord, Result<ChangeOutcome, Fault>) {
    loop {
        let done = match transaction.want() {
            Want::End => {
                let record = transaction.record().clone();
                return (record, transaction.finish().map_err(|fault| fault.cleaned(|text| site.redactor.text(text))));
            }
            Want::Keep(record) => reported(site.keep(record)),
            Want::Arm(_) => reported(guard::start(site)),
            Want::Apply(change) => reported(apply(site, change, lock).await),
            Want::Read => match site.backend.running().await {
                Ok(text) => StepResult::Running(text),
                Err(fault) => StepResult::Failed(fault),
            },
            Want::Restore(snapshot) => reported(reload(site, snapshot, lock).await),
            Want::Check => reported(check(site).await),
            Want::Save => reported(save(site).await),
        };
        transaction.hear(done, &now());
    }
}

fn reported(result: Result<(), Fault>) -> StepResult {
    result.map_or_else(StepResult::Failed, |()| StepResult::Done)
}

async fn apply(site: &Site, change: &DeviceChange, lock: &Lock) -> Result<(), Fault> {
    reload(site, &change.candidate, lock).await
}

async fn reload(site: &Site, text: &str, lock: &Lock) -> Result<(), Fault> {
    let file = site.written("frr.conf", text)?;
    let held = lock.shared().map_err(|error| Fault::new(Code::HardwareFailure, error.to_string()))?;
    let reloaded = site.backend.changeable()?.reload(&file, held).await;
    forget(&file);
    reloaded
}

async fn save(site: &Site) -> Result<(), Fault> {
    site.backend.changeable()?.save().await
}

async fn check(site: &Site) -> Result<(), Fault> {
    for health in &site.settings.health {
        let output = site.backend.exec(&health.command).await?;
        if !output.contains(&health.expect) {
            let detail = format!("`{}` does not show `{}`, so the change was taken back", health.command, health.expect);
            return Err(Fault::new(Code::ConfigIncompatible, detail).at(health.command.clone()));
        }
    }
    Ok(())
}
