//! Registration behind a mount: data that other mounts lack. Does not register servers.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use arc_swap::ArcSwapOption;
use mesh_proto::annotation::AuthScope;
use mesh_proto::degraded::DegradedTool;
use mesh_proto::id::{NodeId, SessionKey};
use mesh_proto::parent::Session;
use mesh_proto::refusal::SessionEnd;

use crate::tree::mount::Unavailable;

/// Registration behind a mount.
#[derive(Debug)]
pub struct Registration {
    pub session: SessionKey,
    pub subserver_id: NodeId,
    pub principal: Arc<str>,
    /// Authority claimed, and `true` if proved.
    pub authority: Option<(String, bool)>,
    /// The server registered as a gate.
    pub is_gate: bool,
    /// The server registered as an aggregator: calls are routed through it by segments. A claim without any grant.
    pub is_aggregator: bool,
    pub auth_scope: AuthScope,
    /// Interval of heartbeats; zero for none.
    pub interval: Duration,
    /// Notifications of the server are for everybody.
    pub notifies: bool,
    /// Reason and time of its absence.
    pub lost: ArcSwapOption<Absence>,
}

/// Reason and time of a registered server's absence.
#[derive(Debug)]
pub struct Absence {
    degraded: DegradedTool,
    since: SystemTime,
}

impl Registration {
    /// Reads the registration of a session.
    pub fn of_session(session: &Session) -> Self {
        Self {
            session: session.key,
            subserver_id: session.subserver_id,
            principal: Arc::clone(&session.principal),
            authority: session.authority.as_ref().map(|authority| (authority.to_string(), session.proven)),
            is_gate: session.aggregator_id.is_some(),
            is_aggregator: session.subtree.is_some(),
            auth_scope: session.auth_scope,
            interval: session.interval,
            notifies: session.capabilities.notifications,
            lost: ArcSwapOption::empty(),
        }
    }

    /// Notes that the server is away.
    pub fn lose(&self, degraded: DegradedTool) {
        let since = SystemTime::now().checked_sub(degraded.since.elapsed()).unwrap_or(SystemTime::UNIX_EPOCH);
        self.lost.store(Some(Arc::new(Absence { degraded, since })));
    }

    /// Reason for a caller while the server is away (AX-61), with the time of its loss, or of the first failure to reach it.
    pub fn degraded(&self, unreachable_since: SystemTime) -> Unavailable {
        if let Some(lost) = self.lost.load().as_ref() {
            return Unavailable::Degraded(lost.degraded, lost.since);
        }
        let retry_after = if self.interval.is_zero() { Duration::from_secs(5) } else { self.interval };
        let degraded = DegradedTool { since: Instant::now(), why: SessionEnd::LinkLost, retry_after };
        Unavailable::Degraded(degraded, unreachable_since)
    }
}
