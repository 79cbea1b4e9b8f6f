//! What a mount that was registered has beside other mounts. Not how it came to be.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use arc_swap::ArcSwapOption;
use mesh_proto::annotation::AuthScope;
use mesh_proto::degraded::DegradedTool;
use mesh_proto::id::{NodeId, SessionKey};
use mesh_proto::parent::Session;
use mesh_proto::refusal::SessionEnd;

use crate::tree::mount::Unavailable;

/// The registration behind a mount.
#[derive(Debug)]
pub struct Registration {
    pub session: SessionKey,
    pub subserver_id: NodeId,
    pub principal: Arc<str>,
    /// Who it says it is, and whether that is proved.
    pub authority: Option<(String, bool)>,
    /// Set if it registered as a gate.
    pub is_gate: bool,
    pub auth_scope: AuthScope,
    /// Zero: it sends no heartbeats.
    pub interval: Duration,
    /// Whether what it notifies is for everybody.
    pub notifies: bool,
    /// Why it is not there, and since when.
    pub lost: ArcSwapOption<Lost>,
}

/// A registered server that is not there at present.
#[derive(Debug)]
pub struct Lost {
    degraded: DegradedTool,
    since: SystemTime,
}

impl Registration {
    /// The registration of a session.
    pub fn of(session: &Session) -> Self {
        Self {
            session: session.key,
            subserver_id: session.subserver_id,
            principal: Arc::clone(&session.principal),
            authority: session.authority.as_ref().map(|authority| (authority.to_string(), session.proven)),
            is_gate: session.aggregator_id.is_some(),
            auth_scope: session.auth_scope,
            interval: session.interval,
            notifies: session.capabilities.notifications,
            lost: ArcSwapOption::empty(),
        }
    }

    /// It is not there.
    pub fn lose(&self, degraded: DegradedTool) {
        let since = SystemTime::now().checked_sub(degraded.since.elapsed()).unwrap_or(SystemTime::UNIX_EPOCH);
        self.lost.store(Some(Arc::new(Lost { degraded, since })));
    }

    /// The reason for callers while the server is not there (AX-61): since it was lost, or since it could not be reached.
    pub fn degraded(&self, unreachable_since: SystemTime) -> Unavailable {
        if let Some(lost) = self.lost.load().as_ref() {
            return Unavailable::Degraded(lost.degraded, lost.since);
        }
        let retry_after = if self.interval.is_zero() { Duration::from_secs(5) } else { self.interval };
        let degraded = DegradedTool { since: Instant::now(), why: SessionEnd::LinkLost, retry_after };
        Unavailable::Degraded(degraded, unreachable_since)
    }
}
