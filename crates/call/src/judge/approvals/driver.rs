//! Task that works the approval desk: takes jobs, has a batch of them done and kept, tells the news, and delivers the answers. Decides
//! nothing.

use std::sync::Arc;

use banyan_model::Now;
use config::resolved::{ApprovalService, Config};
use policy::approval::{Desk, News, PublicKey, Service, Settings};
use runtime::clock::SystemClock;
use runtime::drive::{self, drive};
use tokio::sync::mpsc;

use crate::judge::approvals::clerk::{Clerk, ClerkOutput};
use crate::judge::approvals::shown::line;
use crate::judge::approvals::{Audience, Job, policy_version, recorded};
use crate::judge::gate::Gate;

/// Most jobs done before their results are written.
const BATCH: usize = 256;
/// Most seconds before its end that an approval is announced again.
const WARNING: u64 = 60;

/// Runs until the gate ends.
pub(super) async fn run(gate: Arc<Gate>, jobs: mpsc::Receiver<Job>, audience: Box<dyn Audience>) {
    let config = gate.config.load_full();
    let mut desk = Desk::new(settings(&gate.node.id, &config));
    desk.trust(trusted(&config));
    let mut clerk = Clerk::new(desk, Arc::clone(&gate.stores), gate.node.id.to_string(), policy_version(&config));
    if config.gate.is_some() {
        // Callers may wait for approvals of the run before.
        clerk.order_turn();
    }
    drive(&mut DeskDriver { gate, clerk, audience, jobs, batch: Vec::new() }, &SystemClock).await;
}

struct DeskDriver {
    gate: Arc<Gate>,
    clerk: Clerk,
    audience: Box<dyn Audience>,
    jobs: mpsc::Receiver<Job>,
    batch: Vec<Job>,
}

impl drive::Driver for DeskDriver {
    type Machine = Clerk;
    type Input = Vec<Job>;
    type End = ();

    fn machine(&mut self) -> &mut Clerk {
        &mut self.clerk
    }

    async fn next(&mut self) -> Result<Vec<Job>, ()> {
        let stop = self.gate.stop.clone();
        tokio::select! {
            taken = self.jobs.recv_many(&mut self.batch, BATCH) => if taken == 0 { Err(()) } else { Ok(std::mem::take(&mut self.batch)) },
            () = stop.cancelled() => Err(()),
        }
    }

    async fn handle(&mut self, _: Now, jobs: Vec<Job>) -> Result<(), ()> {
        self.clerk.handle_jobs(jobs);
        Ok(())
    }

    async fn carry(&mut self, now: Now, output: ClerkOutput) -> Result<(), ()> {
        match output {
            ClerkOutput::Deliver(deliver) => deliver(),
            ClerkOutput::News(news) => self.tell(&news),
            ClerkOutput::Turn(jobs) => self.turn(now, jobs).await?,
        }
        Ok(())
    }
}

impl DeskDriver {
    /// Runs a turn at the desk on a thread that may wait for the disk.
    async fn turn(&mut self, now: Now, jobs: Vec<Job>) -> Result<(), ()> {
        let absent = Clerk::new(Desk::default(), Arc::clone(&self.gate.stores), String::new(), String::new());
        let mut clerk = std::mem::replace(&mut self.clerk, absent);
        let worked = tokio::task::spawn_blocking(move || {
            clerk.work(now, jobs);
            clerk
        });
        match worked.await {
            Ok(clerk) => self.clerk = clerk,
            Err(error) => {
                tracing::error!(%error, "nobody works at what waits for approval any more: restart the gate");
                return Err(());
            }
        }
        if !self.clerk.is_failing {
            self.gate.rules.approvals.follow(&self.clerk.room.desk, None);
        }
        Ok(())
    }

    /// Tells the news, all on the disk, before any answer is delivered: a decision stands in the record before the call that goes out by
    /// it.
    fn tell(&mut self, news: &News) {
        let (gate, room) = (&self.gate, &mut self.clerk.room);
        gate.rules.approvals.follow(&room.desk, Some(&news.id));
        let approval = room.desk.approval(&news.id);
        // Before the call can leave, since the waiting caller returns only after this.
        if let Some(approval) = approval {
            recorded::news(&gate.record, news, approval);
        }
        if let Some(rings) = room.waiting.get(&news.id) {
            rings.notify_one();
        }
        let Some(approval) = approval else { return };
        if approval.standing.is_over() {
            room.waiting.remove(&news.id);
        }
        self.audience.tell(news, approval);
        // There may be no reader.
        drop(gate.rules.approvals.events.send(line(gate, &room.desk, news, approval)));
    }
}

/// Settings of all approvals of a gate.
pub fn settings(gate: &str, config: &Config) -> Settings {
    let section = config.gate.as_deref().cloned().unwrap_or_default();
    let patience = section.expires.as_secs().max(1);
    Settings { gate: gate.to_owned(), patience, required: section.approvals, warning: WARNING.min(patience / 2) }
}

/// Services trusted by the configuration. Unreadable keys count for nobody, and are logged.
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

/// Reads the keys of a JWK set, a JWK or PEM; leaves out of a set keys of unaccepted kinds.
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
