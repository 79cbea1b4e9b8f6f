//! The task that owns the desk: takes jobs, has what changed written with one commit, then delivers the answers and tells what happened.
//! It decides nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use policy::approval::{Desk, PublicKey, Service, Settings};
use tokio::sync::mpsc;

use super::notify::{Webhooks, line};
use super::{Deliver, Job, Passkeys, Room, now, recorded, rows};
use crate::Inner;
use crate::config::resolved::{ApprovalService, Config};
use crate::store::{Kept, StoreError};

/// How many jobs are done before what came of them is written.
const BATCH: usize = 256;
/// How long the task sleeps when nothing is due, in seconds.
const LONG: u64 = 3600;
/// How long before its end an approval is told of again, at most, in seconds.
const WARNING: u64 = 60;

/// The task.
struct Driver {
    gateway: Arc<Inner>,
    room: Room,
    /// `None` until something has to be kept or read.
    kept: Option<Kept>,
    webhooks: Webhooks,
    deliver: Vec<Deliver>,
}

/// Runs until the gate ends.
pub(super) async fn run(gateway: Arc<Inner>, mut jobs: mpsc::Receiver<Job>) {
    let config = gateway.config.load_full();
    let mut desk = Desk::new(settings(&gateway.node.id, &config));
    desk.trust(trusted(&config));
    let room = Room { desk, passkeys: Passkeys::default(), waiting: HashMap::new() };
    let webhooks = Webhooks::new(Arc::clone(&gateway));
    let stop = gateway.stop.clone();
    let mut driver = Driver { gateway, room, kept: None, webhooks, deliver: Vec::new() };
    if config.gate.is_some() {
        driver.open().await;
    }
    loop {
        let wake = driver.room.desk.poll_timeout().map_or(LONG, |due| due.saturating_sub(now()).min(LONG));
        tokio::select! {
            job = jobs.recv() => {
                let Some(job) = job else { return };
                driver.open().await;
                driver.work(job);
                for _ in 1..BATCH {
                    let Ok(job) = jobs.try_recv() else { break };
                    driver.work(job);
                }
            }
            () = tokio::time::sleep(Duration::from_secs(wake)) => {}
            () = stop.cancelled() => return,
        }
        driver.settle().await;
    }
}

impl Driver {
    fn work(&mut self, job: Job) {
        let deliver = job(&mut self.room, now());
        self.deliver.push(deliver);
    }

    /// Opens the store, once; where that fails, it is tried again with the next job, and meanwhile nothing is kept.
    async fn open(&mut self) {
        if self.kept.is_some() {
            return;
        }
        let (dir, gate) = (self.gateway.state_dir.clone(), self.gateway.node.id.to_string());
        let opened = tokio::task::spawn_blocking(move || Kept::open(&dir, &gate, now())).await;
        let opened = opened.unwrap_or_else(|error| Err(StoreError::Io(std::io::Error::other(error))));
        let restored = opened.and_then(|kept| {
            rows::restore(&mut self.room.desk, &kept, now())?;
            Ok(kept)
        });
        match restored {
            Ok(kept) => self.kept = Some(kept),
            Err(error) => tracing::error!(%error, "approvals can't be kept: nothing that needs one goes out"),
        }
    }

    /// Writes what changed, and then says so.
    async fn settle(&mut self) {
        self.room.desk.handle_timeout(now());
        let rows = rows::changed(&self.room.desk);
        let is_kept = (rows.is_empty() && self.kept.is_some()) || self.write(rows).await;
        if is_kept {
            self.room.desk.kept();
        }
        for deliver in self.deliver.drain(..) {
            deliver(is_kept);
        }
        while is_kept && let Some(news) = self.room.desk.poll_news() {
            let approval = self.room.desk.approval(&news.id);
            // Before the call can leave: whoever waits comes back only behind this.
            if let Some(approval) = approval {
                recorded::news(&self.gateway, &news, approval);
            }
            if let Some(rings) = self.room.waiting.get(&news.id) {
                rings.notify_one();
            }
            let Some(approval) = approval else { continue };
            if approval.standing.is_over() {
                self.room.waiting.remove(&news.id);
            }
            self.webhooks.tell(&news, approval);
            // Nobody may be reading.
            drop(self.gateway.approvals.events.send(line(&self.gateway, &self.room.desk, &news, approval)));
        }
    }

    async fn write(&mut self, rows: Vec<crate::store::Row>) -> bool {
        let Some(mut kept) = self.kept.take() else { return false };
        let written = tokio::task::spawn_blocking(move || {
            let written = kept.write(&rows);
            (kept, written)
        });
        match written.await {
            Ok((kept, Ok(()))) => {
                self.kept = Some(kept);
                true
            }
            Ok((kept, Err(error))) => {
                tracing::error!(%error, "approvals could not be written down: nothing that needs one goes out");
                self.kept = Some(kept);
                false
            }
            Err(error) => {
                tracing::error!(%error, "approvals could not be written down: nothing that needs one goes out");
                false
            }
        }
    }
}

/// What holds for all approvals of a gate.
pub(super) fn settings(gate: &str, config: &Config) -> Settings {
    let section = config.gate.as_deref().cloned().unwrap_or_default();
    let patience = section.expires.as_secs().max(1);
    Settings { gate: gate.to_owned(), patience, required: section.approvals, warning: WARNING.min(patience / 2) }
}

/// Whose word counts by configuration. Keys that can't be read count for nobody, and that is told.
pub(super) fn trusted(config: &Config) -> Vec<Service> {
    config.gate.iter().flat_map(|gate| &gate.services).filter_map(service).collect()
}

fn service(service: &ApprovalService) -> Option<Service> {
    let keys = std::fs::read_to_string(&service.keys).map_err(|error| error.to_string()).and_then(|text| keys(&text));
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
