//! The task that has the desk worked at: takes jobs, delivers the answers once what came of them is on the disk, and tells what happened. It
//! decides nothing.

use std::sync::Arc;
use std::time::Duration;

use config::resolved::{ApprovalService, Config};
use policy::approval::{Desk, PublicKey, Service, Settings};
use tokio::sync::mpsc;

use crate::judge::approvals::clerk::Clerk;
use crate::judge::approvals::shown::line;
use crate::judge::approvals::{Audience, Deliver, Job, now, policy_version, recorded};
use crate::tree::gate::Gate;

/// How many jobs are done before what came of them is written.
const BATCH: usize = 256;
/// How long the task sleeps when nothing is due.
const LONG: Duration = Duration::from_secs(3600);
/// How long until it is tried again to write what could not be written.
const AGAIN: Duration = Duration::from_secs(1);
/// How long before its end an approval is told of again, at most, in seconds.
const WARNING: u64 = 60;

/// Runs until the gate ends.
pub(super) async fn run(gate: Arc<Gate>, mut jobs: mpsc::Receiver<Job>, mut audience: Box<dyn Audience>) {
    let config = gate.config.load_full();
    let mut desk = Desk::new(settings(&gate.node.id, &config));
    desk.trust(trusted(&config));
    let mut clerk = Clerk::new(desk, Arc::clone(&gate.stores), gate.node.id.to_string(), policy_version(&config));
    let (mut batch, stop) = (Vec::new(), gate.stop.clone());
    let mut is_due = config.gate.is_some();
    loop {
        if !is_due {
            tokio::select! {
                taken = jobs.recv_many(&mut batch, BATCH) => if taken == 0 { return },
                () = tokio::time::sleep(rest(&clerk)) => {}
                () = stop.cancelled() => return,
            }
        }
        is_due = false;
        // Nothing can be due to what was never read.
        if batch.is_empty() && !clerk.is_restored && !clerk.is_failing && config.gate.is_none() {
            continue;
        }
        let work = std::mem::take(&mut batch);
        let worked = tokio::task::spawn_blocking(move || {
            let deliver = clerk.work(work, now());
            (clerk, deliver)
        });
        let deliver;
        (clerk, deliver) = match worked.await {
            Ok(worked) => worked,
            Err(error) => return tracing::error!(%error, "nobody works at what waits for approval any more: restart the gate"),
        };
        if let Some(deliver) = deliver {
            settle(&gate, &mut clerk, &mut *audience, deliver);
        }
    }
}

/// How long nothing has to be done.
fn rest(clerk: &Clerk) -> Duration {
    if clerk.is_failing {
        return AGAIN;
    }
    clerk.room.desk.poll_timeout().map_or(LONG, |due| Duration::from_secs(due.saturating_sub(now())).min(LONG))
}

/// Tells what happened, and then delivers answers: a decision stands in the record before the call that goes out by it. All of it is on the
/// disk.
fn settle(gate: &Gate, clerk: &mut Clerk, audience: &mut dyn Audience, deliver: Vec<Deliver>) {
    let room = &mut clerk.room;
    gate.rules.approvals.follow(&room.desk, None);
    while let Some(news) = room.desk.poll_news() {
        gate.rules.approvals.follow(&room.desk, Some(&news.id));
        let approval = room.desk.approval(&news.id);
        // Before the call can leave: whoever waits comes back only behind this.
        if let Some(approval) = approval {
            recorded::news(&gate.record, &news, approval);
        }
        if let Some(rings) = room.waiting.get(&news.id) {
            rings.notify_one();
        }
        let Some(approval) = approval else { continue };
        if approval.standing.is_over() {
            room.waiting.remove(&news.id);
        }
        audience.tell(&news, approval);
        // Nobody may be reading.
        drop(gate.rules.approvals.events.send(line(gate, &room.desk, &news, approval)));
    }
    deliver.into_iter().for_each(|deliver| deliver());
}

/// What holds for all approvals of a gate.
pub fn settings(gate: &str, config: &Config) -> Settings {
    let section = config.gate.as_deref().cloned().unwrap_or_default();
    let patience = section.expires.as_secs().max(1);
    Settings { gate: gate.to_owned(), patience, required: section.approvals, warning: WARNING.min(patience / 2) }
}

/// Whose word counts by configuration. Keys that can't be read count for nobody, and that is told.
pub fn trusted(config: &Config) -> Vec<Service> {
    config.gate.iter().flat_map(|gate| &gate.services).filter_map(service).collect()
}

fn service(service: &ApprovalService) -> Option<Service> {
    let keys = service.text.as_deref().map_err(Clone::clone).and_then(keys);
    match keys {
        Ok(keys) => {
            let ApprovalService { name, issuer, audience, .. } = service.clone();
            Some(Service { name, issuer, audience, keys })
        }
        Err(why) => {
            let (service, file) = (&service.name, service.keys.display());
            tracing::error!(service, %file, why, "the keys of an approval service can't be used: its tokens count for nothing");
            None
        }
    }
}

/// The keys in a JWK set, a JWK or PEM; others than those that are taken are left out of a set.
fn keys(text: &str) -> Result<Vec<(Option<String>, PublicKey)>, String> {
    if !text.trim_start().starts_with('{') {
        return PublicKey::parse(text).map(|key| vec![(None, key)]).map_err(|none| none.to_string());
    }
    let value: serde_json::Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let set = value.get("keys").and_then(serde_json::Value::as_array);
    let keys: Vec<_> = match set {
        Some(set) => set.iter().filter_map(|jwk| PublicKey::of_jwk(jwk).ok()).collect(),
        None => PublicKey::of_jwk(&value).into_iter().collect(),
    };
    if keys.is_empty() { Err("there is no key of Ed25519 or P-256 in it".into()) } else { Ok(keys) }
}
