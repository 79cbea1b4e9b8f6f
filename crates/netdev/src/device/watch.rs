//! Subscriptions of a device: one poller for all of them together, which tells of contents that changed, and follows the log. A device that is
//! slow is asked less often. Does not know subscribers; the connection does.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_server::{Connection, UpdateExtras, subject};
use net_proto::fault::{Code, Fault};
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use super::Compat;
use super::reads::{self, Answers, ResourceContent};
use super::streams::{self, StreamWatch};
use crate::log::{self, LogFollower};
use crate::share;
use crate::site::Site;

/// Pause between two rounds, without jitter; over SSH, where each read opens a session.
const PAUSE: Duration = Duration::from_millis(1_500);
const REMOTE_PAUSE: Duration = Duration::from_secs(10);
/// Share of the time that a poller may keep its device at work: a pause takes so many times the round before.
const REST: u32 = 4;
/// Pause between two reads of load and memory (section 5.1 of the draft), and between two updates for counters alone.
const SYSTEM: Duration = Duration::from_secs(30);
/// Longest time for the first reads of a subscription; a content not read by then counts as changed once it is.
const FIRST: Duration = Duration::from_secs(10);
/// Rounds for which the content of a resource without subscriber is memory.
const FORGOTTEN_AFTER: u32 = 10;
/// Bytes of contents in an update; larger ones are left to a read.
const LARGEST: usize = 64 << 10;
/// Pause between two looks at the path of the log.
const PATH: Duration = Duration::from_secs(30);

/// A resource that is followed.
#[derive(Debug, Default)]
struct FollowedResource {
    /// Mark of the last content; `None` before the first read.
    mark: Option<u64>,
    /// Number of the next line (log).
    line: u64,
    /// Time of the last read (load, memory).
    read: Option<Instant>,
    /// Mark of the counters that were told last, and the moment.
    counted: Option<(u64, Instant)>,
    /// Rounds without a subscriber.
    idle_rounds: u32,
    /// The content changed while nobody followed; somebody who did and does again has not heard of that.
    is_owed: bool,
}

/// Contents remembered for the next round.
#[derive(Debug, Default)]
struct WatchMemory {
    resources: BTreeMap<String, FollowedResource>,
    log: Option<LogFollower>,
    looked: Option<Instant>,
}

/// Poller of a device.
#[derive(Debug)]
pub(crate) struct Watch {
    site: Arc<Site>,
    compat: Compat,
    marks: RandomState,
    memory: Mutex<WatchMemory>,
    streams: Arc<StreamWatch>,
}

impl Watch {
    pub(crate) fn new(site: Arc<Site>, compat: Compat) -> Self {
        let streams = Arc::new(StreamWatch::new(Arc::clone(&site), compat));
        Self { site, compat, marks: RandomState::new(), memory: Mutex::default(), streams }
    }

    /// Reads resources for the first time, so that each later change shows; answers those that the device has.
    pub(crate) async fn follow(&self, uris: &[String]) -> Vec<String> {
        for uri in uris {
            // A stream of a device that can't be asked is not known.
            drop(streams::begin(&self.site, uri).await);
        }
        let known: Vec<String> = uris.iter().filter(|uri| reads::is_known(&self.site, uri)).cloned().collect();
        let mut polled = Vec::new();
        for uri in &known {
            if !self.streams.follow(uri).await {
                polled.push(uri);
            }
        }
        let mut memory = self.memory.lock().await;
        let is_followed = |uri: &String| memory.resources.get(uri).is_some_and(|resource| resource.idle_rounds == 0);
        let new: Vec<&String> = polled.into_iter().filter(|uri| !is_followed(uri)).collect();
        let mut answers = Answers::new(&self.site);
        let end = Instant::now() + FIRST;
        for uri in new {
            let before = memory.resources.remove(uri);
            let mut resource = FollowedResource::default();
            let left = end.saturating_duration_since(Instant::now());
            if self.is_log(uri) {
                drop(tokio::time::timeout(left, self.look_at_log(&mut memory)).await);
                resource.line = memory.log.as_ref().map_or(0, |log| log.tail.next_number());
            } else if let Ok(observed) = tokio::time::timeout(left, answers.observe(uri)).await {
                resource.mark = self.mark(&observed);
                resource.counted = self.counters(&observed).map(|counters| (counters, Instant::now()));
                resource.read = Some(Instant::now());
                resource.is_owed = before.is_some_and(|before| before.is_owed || before.mark != resource.mark);
            }
            memory.resources.insert(uri.clone(), resource);
        }
        known
    }

    /// Reads a resource that somebody follows. What a reader has seen is what later contents are compared with: a content that came and went
    /// between two rounds would be missed otherwise.
    pub(crate) async fn read(&self, uri: &str) -> Result<Option<Value>, Fault> {
        let mut memory = self.memory.lock().await;
        let observed = Answers::new(&self.site).observe(uri).await;
        if let (Some(resource), Some(mark)) = (memory.resources.get_mut(uri), self.mark(&observed)) {
            resource.is_owed |= resource.mark.replace(mark) != Some(mark);
        }
        Ok(observed?.map(|content| content.result))
    }

    /// Polls until the client is gone.
    pub(crate) async fn run(self: Arc<Self>, connection: Connection) {
        let pause = if self.site.backend.is_local() { PAUSE } else { REMOTE_PAUSE };
        subject::spawn(Arc::clone(&self.streams).run(connection.clone()));
        let mut round = 0_u64;
        while !connection.is_closed() {
            round += 1;
            let began = Instant::now();
            let updates = share::within_call(self.round(&connection)).await;
            // Jitter of a quarter keeps the pollers of many devices apart.
            let jitter = (self.marks.hash_one(round) % 500) as u32;
            let took = began.elapsed();
            for (uri, extras) in updates {
                connection.updated(&uri, &extras).await;
            }
            tokio::time::sleep((pause * (750 + jitter) / 1000).max(took * REST)).await;
        }
    }

    /// Reads what is followed; answers the updates.
    async fn round(&self, connection: &Connection) -> Vec<(String, UpdateExtras)> {
        let mut memory = self.memory.lock().await;
        let mut followed = connection.followed();
        followed.retain(|uri| streams::inbox(&self.site, uri).is_none());
        memory.resources.retain(|uri, resource| {
            resource.idle_rounds = if followed.contains(uri) { 0 } else { resource.idle_rounds + 1 };
            resource.idle_rounds <= FORGOTTEN_AFTER
        });
        let capabilities = connection.session_capabilities().unwrap_or_default();
        let second_method = self.compat.is_draft(&capabilities).then_some("resources/updated");
        let (mut answers, mut updates) = (Answers::new(&self.site), Vec::new());
        if followed.iter().any(|uri| self.is_log(uri)) {
            self.look_at_log(&mut memory).await;
            if let Some(log) = &mut memory.log {
                log.take_news();
            }
        }
        let WatchMemory { resources, log, .. } = &mut *memory;
        for uri in followed {
            let resource = resources.entry(uri.clone()).or_default();
            let members = if self.is_log(&uri) {
                log.as_ref().and_then(|log| streams::update(&self.site, &uri, &log.tail, &mut resource.line))
            } else {
                self.changed(&uri, resource, &mut answers).await
            };
            updates.extend(members.map(|members| (uri, UpdateExtras { members, second_method })));
        }
        updates
    }

    /// Reads a resource again; members of the update, `None` for a content that is the same.
    async fn changed(&self, uri: &str, resource: &mut FollowedResource, answers: &mut Answers<'_>) -> Option<Map<String, Value>> {
        if uri.contains("/system/") && resource.read.is_some_and(|read| read.elapsed() < SYSTEM) {
            return None;
        }
        let observed = answers.observe(uri).await;
        let mark = self.mark(&observed)?;
        resource.read = Some(Instant::now());
        let is_owed = std::mem::take(&mut resource.is_owed);
        let is_same = resource.mark.replace(mark) == Some(mark);
        let counters = self.counters(&observed);
        let is_due = resource.counted.is_none_or(|(told, at)| at.elapsed() >= SYSTEM && Some(told) != counters);
        if is_same && !is_owed && !(is_due && counters.is_some()) {
            return None;
        }
        resource.counted = counters.map(|counters| (counters, Instant::now()));
        let contents = observed.ok().flatten().map(|observed| observed.result["contents"].clone());
        // An update goes to whoever follows, so a device with roles leaves the content to a read, which is judged.
        let small = contents.filter(|contents| !self.site.rules.has_roles() && contents.to_string().len() <= LARGEST);
        Some(small.map(|contents| ("contents".to_owned(), contents)).into_iter().collect())
    }

    /// Is the resource a log with a file on the machine of Banyan? Other logs are read again like all else.
    fn is_log(&self, uri: &str) -> bool {
        self.site.backend.is_local() && reads::log_count(uri).is_some()
    }

    /// Mark of a content. A device that can't be asked says nothing of the content; another fault stands for the content.
    fn mark(&self, observed: &Result<Option<ResourceContent>, Fault>) -> Option<u64> {
        match observed {
            Ok(Some(observed)) => Some(self.marks.hash_one(&observed.whole)),
            Ok(None) => Some(self.marks.hash_one("absent")),
            Err(fault) if matches!(fault.code, Code::Unreachable | Code::Timeout) => None,
            Err(fault) => Some(self.marks.hash_one(fault.code.message())),
        }
    }

    /// Mark of the counters of a content; `None` for a content without any.
    fn counters(&self, observed: &Result<Option<ResourceContent>, Fault>) -> Option<u64> {
        let content = observed.as_ref().ok()?.as_ref()?;
        (!content.counters.is_empty()).then(|| self.marks.hash_one(&content.counters))
    }

    /// Follows the file that the device logs to now.
    async fn look_at_log(&self, memory: &mut WatchMemory) {
        if memory.looked.is_some_and(|looked| looked.elapsed() < PATH) {
            return;
        }
        let Ok(path) = log::path(&self.site).await else { return };
        memory.looked = Some(Instant::now());
        if memory.log.as_ref().is_none_or(|log| log.path() != path) {
            memory.log = Some(LogFollower::begin(path));
            memory.resources.iter_mut().filter(|(uri, _)| self.is_log(uri)).for_each(|(_, resource)| resource.line = 0);
        }
    }
}
