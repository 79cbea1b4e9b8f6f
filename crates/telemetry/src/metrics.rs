//! Counters for `/metrics`, named by the OpenTelemetry conventions for MCP in Prometheus spelling.
//!
//! Recording takes atomics and one lock-free lookup of a number; no text is built and no lock is taken, except for the
//! first call of a tool. Label values come from closed sets, from the names of mounts and from at most [`TOOL_SERIES`]
//! tool names a mount; a caller can never add one. Does not serve HTTP and does not push anywhere.
//!
//! Source of the names: OpenTelemetry's `semantic-conventions-genai`, `docs/gen-ai/mcp.md`, November 2026.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use prometheus_client::registry::Registry;

mod encode;
mod histogram;
mod labels;

pub use labels::{Ending, MethodName, MountState, ProtocolVersion, Side, Transport};

pub(crate) use histogram::BOUNDS;
use histogram::Histogram;
use labels::SeriesKey;

/// The `Content-Type` of [`Metrics::encode`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Most tools of one mount with series of their own; calls of others are counted under the tool name `_OTHER`.
pub const TOOL_SERIES: u32 = 256;

/// All counters of one gateway.
pub struct Metrics {
    shared: Arc<SharedCounters>,
    registry: Registry,
}

/// State shared by scrapes and handles.
struct SharedCounters {
    mounts: papaya::HashMap<Arc<str>, Arc<MountMetrics>>,
    whole: Arc<MountMetrics>,
    sessions: [[[SessionMetrics; ProtocolVersion::COUNT]; Transport::COUNT]; Side::COUNT],
    unrecorded: AtomicU64,
    /// Entries removed from the record.
    removed: AtomicU64,
    /// The record is full.
    full: AtomicBool,
    /// Principals that have used up their share of the record.
    over_share: Mutex<Vec<Arc<str>>>,
}

#[derive(Default)]
struct SessionMetrics {
    open: AtomicI64,
    duration: Histogram,
}

impl Metrics {
    /// Makes counters at zero.
    pub fn new() -> Self {
        let shared = Arc::new(SharedCounters {
            mounts: papaya::HashMap::new(),
            whole: Arc::new(MountMetrics::new("".into())),
            sessions: Default::default(),
            unrecorded: AtomicU64::new(0),
            removed: AtomicU64::new(0),
            full: AtomicBool::new(false),
            over_share: Mutex::default(),
        });
        let mut registry = Registry::default();
        registry.register_collector(Box::new(encode::Scrape(shared.clone())));
        Self { shared, registry }
    }

    /// The counters of the mount `name`, made at the first call. Keep them with the mount.
    pub fn mount(&self, name: &str) -> Arc<MountMetrics> {
        let name: Arc<str> = name.into();
        self.shared.mounts.pin().get_or_insert_with(name.clone(), || Arc::new(MountMetrics::new(name))).clone()
    }

    /// The counters of requests that belong to no single mount: lists over the whole tree, handshakes, `ping`.
    pub fn whole(&self) -> &Arc<MountMetrics> {
        &self.shared.whole
    }

    /// Forgets the series of mounts that `keep` refuses, for when the configuration has lost them.
    pub fn retain_mounts(&self, mut keep: impl FnMut(&str) -> bool) {
        self.shared.mounts.pin().retain(|name, _| keep(name));
    }

    /// Shows how many records could not be written, how many were taken away, and whether there is no room for more.
    pub fn set_record(&self, unrecorded: u64, removed: u64, is_full: bool) {
        self.shared.unrecorded.store(unrecorded, Relaxed);
        self.shared.removed.store(removed, Relaxed);
        self.shared.full.store(is_full, Relaxed);
    }

    /// Shows the principals whose calls are refused because the record holds their share.
    pub fn set_over_share(&self, principals: Vec<Arc<str>>) {
        *self.shared.over_share.lock().unwrap_or_else(PoisonError::into_inner) = principals;
    }

    /// Counts a session as open until the returned value is dropped, and then how long it was.
    pub fn session(&self, side: Side, transport: Transport, version: ProtocolVersion) -> OpenSession {
        let session = OpenSession { shared: self.shared.clone(), side, transport, version, since: Instant::now() };
        session.metrics().open.fetch_add(1, Relaxed);
        session
    }

    /// Writes everything in the OpenMetrics text format, for `/metrics` with [`CONTENT_TYPE`].
    pub fn encode(&self) -> String {
        let mut text = String::new();
        let written = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        debug_assert!(written.is_ok(), "writing into a String can't fail");
        text
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

/// The counters of one mount.
pub struct MountMetrics {
    name: Arc<str>,
    operations: papaya::HashMap<SeriesKey, Histogram, RandomState>,
    in_flight: [AtomicI64; Side::COUNT],
    state: AtomicU8,
    restarts: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    dropped: AtomicU64,
    tools: AtomicU64,
    tool_labels: Mutex<BTreeMap<Arc<str>, ToolLabel>>,
}

impl MountMetrics {
    fn new(name: Arc<str>) -> Self {
        Self {
            name,
            operations: papaya::HashMap::default(),
            in_flight: Default::default(),
            state: AtomicU8::new(MountState::Starting as u8),
            restarts: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            tools: AtomicU64::new(0),
            tool_labels: Mutex::default(),
        }
    }

    /// Counts an operation as in flight from `now` on, until it is finished or dropped.
    pub fn start(self: &Arc<Self>, operation: Operation, now: Instant) -> Running<Arc<Self>> {
        Running::begin(Arc::clone(self), operation, now)
    }

    /// Starts an operation that does not outlive the counters.
    pub fn start_here(&self, operation: Operation, now: Instant) -> Running<&Self> {
        Running::begin(self, operation, now)
    }

    /// The label of the catalog's tool `name`, looked up by text only where `slot` is new.
    ///
    /// `name` has to come from the catalog, never from a caller.
    pub fn tool(&self, slot: &ToolSlot, name: &str) -> ToolLabel {
        match slot.0.load(Relaxed) {
            0 => {
                let label = self.tool_label(name);
                slot.0.store(label.0, Relaxed);
                label
            }
            known => ToolLabel(known),
        }
    }

    /// Shows the mount in `state` and in no other.
    pub fn set_state(&self, state: MountState) {
        self.state.store(state as u8, Relaxed);
    }

    /// Shows how many tools the mount offers.
    pub fn set_tools(&self, count: usize) {
        self.tools.store(count as u64, Relaxed);
    }

    /// Counts a restart of the server or a new connection to it.
    pub fn restarted(&self) {
        self.restarts.fetch_add(1, Relaxed);
    }

    /// Counts bytes of messages sent to the server.
    pub fn sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Relaxed);
    }

    /// Counts bytes of messages received from the server.
    pub fn received(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Relaxed);
    }

    /// Counts notifications of the server that were dropped because a receiver was too slow or a limit was reached.
    pub fn dropped(&self, notifications: usize) {
        self.dropped.fetch_add(notifications as u64, Relaxed);
    }

    fn tool_label(&self, name: &str) -> ToolLabel {
        let mut labels = self.tool_labels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = labels.get(name) {
            return *known;
        }
        let next = labels.len() as u32;
        if next >= TOOL_SERIES {
            return ToolLabel::OTHER;
        }
        let label = ToolLabel(ToolLabel::FIRST + next);
        labels.insert(name.into(), label);
        label
    }

    fn record(&self, operation: Operation, ending: Ending, took: Duration) {
        let key = SeriesKey::new(operation, ending);
        let operations = self.operations.pin();
        let histogram = operations.get(&key).unwrap_or_else(|| operations.get_or_insert_with(key, Histogram::default));
        histogram.observe(took);
    }
}

/// An operation, as far as it is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operation {
    pub side: Side,
    pub method: MethodName,
    /// The transport on this side.
    pub transport: Transport,
    /// The revision spoken on this side.
    pub version: ProtocolVersion,
    /// The tool, for `tools/call`.
    pub tool: ToolLabel,
}

/// An operation in flight. Dropped without [`Running::finish`], it counts as cancelled.
pub struct Running<M: Deref<Target = MountMetrics>> {
    mount: M,
    operation: Operation,
    since: Instant,
    ended: bool,
}

impl<M: Deref<Target = MountMetrics>> Running<M> {
    fn begin(mount: M, operation: Operation, now: Instant) -> Self {
        mount.in_flight[operation.side as usize].fetch_add(1, Relaxed);
        Self { mount, operation, since: now, ended: false }
    }

    /// Counts the operation with its duration and ending.
    pub fn finish(mut self, ending: Ending, now: Instant) {
        self.ended = true;
        self.mount.record(self.operation, ending, now.saturating_duration_since(self.since));
    }
}

impl<M: Deref<Target = MountMetrics>> Drop for Running<M> {
    fn drop(&mut self) {
        if !self.ended {
            self.mount.record(self.operation, Ending::Cancelled, self.since.elapsed());
        }
        self.mount.in_flight[self.operation.side as usize].fetch_sub(1, Relaxed);
    }
}

/// Place for a tool's label in a catalog entry, filled once the label is known.
#[derive(Default, Debug)]
pub struct ToolSlot(AtomicU32);

/// A tool name as a number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ToolLabel(u32);

impl ToolLabel {
    /// Not about a tool.
    pub const NONE: Self = Self(1);
    /// A tool beyond the first [`TOOL_SERIES`] of its mount.
    pub const OTHER: Self = Self(2);
    const FIRST: u32 = 3;
}

/// A session that counts as open.
pub struct OpenSession {
    shared: Arc<SharedCounters>,
    side: Side,
    transport: Transport,
    version: ProtocolVersion,
    since: Instant,
}

impl OpenSession {
    fn metrics(&self) -> &SessionMetrics {
        &self.shared.sessions[self.side as usize][self.transport as usize][self.version.index()]
    }
}

impl Drop for OpenSession {
    fn drop(&mut self) {
        self.metrics().open.fetch_sub(1, Relaxed);
        self.metrics().duration.observe(self.since.elapsed());
    }
}

#[cfg(test)]
mod tests;
