//! A mount at run time: its state for people, its connections, and its server's messages outside of calls.
//!
//! `supervise.rs` starts and restarts it. Does not decide about calls.

pub mod agreement;
pub mod connections;
pub mod following;
pub mod heard;
pub mod lease;
pub mod left;
pub mod recent;
pub mod state;
pub mod subscribed;
pub mod unavailable;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use config::resolved;
use mcp_proto::client::Negotiated;
use telemetry::metrics::{MountMetrics, MountState};
use tokio_util::sync::CancellationToken;

use crate::tree::catalog::Catalog;
use crate::tree::gate::GateTree;
use crate::tree::port::Opens;
use crate::tree::registration::Registration;
use crate::tree::role::Role;
use crate::words::shares::Places;

pub use crate::tree::mount::agreement::{AnnouncedChanges, wanted_lists};
pub use crate::tree::mount::connections::Connections;
pub use crate::tree::mount::lease::Lease;
pub use crate::tree::mount::left::LeftSubscriptions;
use crate::tree::mount::recent::Recent;
pub use crate::tree::mount::state::{Phase, State};
use crate::tree::mount::subscribed::ResourceSubscriptions;
pub use crate::tree::mount::subscribed::{AGREES_WITHIN, Edition};
pub use crate::tree::mount::unavailable::Unavailable;

/// A mount at run time.
pub struct Mount {
    pub config: Arc<resolved::Mount>,
    pub gate: Arc<GateTree>,
    pub opens: Arc<dyn Opens>,
    pub connections: Connections,
    /// Registration of the server; `None` for a configured mount.
    pub registration: Option<Registration>,
    /// Server's description of itself, from its last connection.
    pub known: ArcSwapOption<Negotiated>,
    /// Role of the server since its last connection.
    pub role: ArcSwap<Role>,
    pub catalog: ArcSwap<Catalog>,
    /// Counts changes of what is known of the tools, besides their lists.
    pub edition: AtomicU64,
    pub state: ArcSwap<State>,
    /// Number of answers with the id of another request.
    pub misanswers: AtomicU64,
    /// Fires when the mount is taken out of the tree.
    pub gone: CancellationToken,
    pub metrics: Arc<MountMetrics>,
    pub places: Arc<Places>,
    pub restarts: AtomicU64,
    pub recent: Recent,
    pub in_flight: AtomicUsize,
}

impl std::fmt::Debug for Mount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mount({})", self.config.name)
    }
}

impl Mount {
    /// Makes a mount; `registration` is that of a server that registered itself.
    pub fn new(config: Arc<resolved::Mount>, gate: &Arc<GateTree>, opens: Arc<dyn Opens>, registration: Option<Registration>) -> Arc<Self> {
        let metrics = gate.record.metrics.mount(config.name.as_str());
        Arc::new(Self {
            config,
            gate: Arc::clone(gate),
            opens,
            connections: Connections::default(),
            registration,
            known: ArcSwapOption::empty(),
            role: ArcSwap::default(),
            catalog: ArcSwap::default(),
            edition: AtomicU64::new(0),
            state: ArcSwap::from_pointee(State::new(Phase::Starting, None, None)),
            gone: CancellationToken::new(),
            metrics,
            places: Arc::default(),
            restarts: AtomicU64::new(0),
            recent: Recent::new(),
            in_flight: AtomicUsize::new(0),
            misanswers: AtomicU64::new(0),
        })
    }

    /// Notes changed knowledge about the tools, with unchanged lists.
    pub fn note_anew(&self) {
        self.edition.fetch_add(1, Ordering::Relaxed);
    }

    /// Sets the state that people see, and wakes those who wait for it.
    pub fn enter(&self, state: State) {
        let is_failed = || self.state.load().phase == Phase::Failed;
        let was_failed = is_failed();
        self.set_state(state);
        if was_failed != is_failed() {
            self.gate.failed_changed();
        }
        self.gate.mounts.changed.notify_waiters();
    }

    /// Sets the state that people see.
    pub fn set_state(&self, state: State) {
        let (old, phase) = (self.state.load(), state.phase);
        let since = if old.phase == phase { old.since } else { state.since };
        self.state.store(Arc::new(State { since, ..state }));
        self.metrics.set_state(match phase {
            Phase::Degraded => MountState::Degraded,
            Phase::Failed => MountState::Failed,
            Phase::Ready => MountState::Ready,
            Phase::Starting => MountState::Starting,
        });
    }

    /// Trouble, in a sentence for everybody, without the process's own output.
    pub fn trouble(&self) -> String {
        let state = self.state.load();
        match (&state.error, state.phase) {
            (Some(error), _) => error.clone(),
            (None, Phase::Starting) => "it is still starting".into(),
            (None, _) => "it is not connected".into(),
        }
    }

    /// Waits until the mount neither starts nor has lost its connection, or `longest` has passed.
    pub async fn settle(&self, longest: Duration) {
        let settled = async {
            loop {
                let changed = self.gate.mounts.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                let reconnecting = self.connections.lock().reconnect.is_some();
                if !reconnecting
                    && (self.connections.shared.load().is_some() || !matches!(self.state.load().phase, Phase::Starting | Phase::Degraded))
                {
                    return;
                }
                changed.await;
            }
        };
        drop(tokio::time::timeout(longest, settled).await);
    }

    /// Waits until no call is in flight, or `longest` has passed.
    pub async fn drain(&self, longest: Duration) {
        let until = tokio::time::Instant::now() + longest;
        while self.in_flight.load(Ordering::Relaxed) > 0 && tokio::time::Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Server's description of itself, from its last connection.
    pub fn negotiated(&self) -> Option<Arc<Negotiated>> {
        self.known.load_full()
    }

    /// Reason for which no call can be made at present.
    pub fn unavailable(&self) -> Unavailable {
        let state = self.state.load();
        if let Some(registration) = &self.registration {
            return registration.degraded(state.since);
        }
        let (mount, why) = (self.config.name.to_string(), self.trouble());
        Unavailable::Unconnected { mount, why, since: state.since, next_try: state.next_try }
    }

    /// Closes every connection.
    pub async fn close(&self) {
        self.gone.cancel();
        let instances: Vec<_> = {
            let mut inner = self.connections.lock();
            let own: Vec<_> = inner.own.drain().map(|(_, i)| i).collect();
            let clients = std::mem::take(&mut inner.clients).into_instances();
            own.into_iter().chain(clients).chain(inner.leases.drain(..)).chain(self.connections.shared.swap(None)).collect()
        };
        futures_util::future::join_all(instances.iter().map(|i| i.close())).await;
    }
}
