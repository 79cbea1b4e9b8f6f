//! Where a call goes from here. Calls are not made here, and their routes are checked before (`namespace`, `route_cursor`).

use std::time::{Duration, Instant};

use super::Parent;
use super::session::{Session, Standing};
use crate::degraded::Degraded;
use crate::namespace::Holding;

/// When a subserver without heartbeats may be back.
const UNKNOWN: Duration = Duration::from_secs(5);

/// Who a call is for.
#[derive(Debug, Clone, Copy)]
pub enum Target<'a> {
    /// Send it to this session's subserver.
    Live(&'a Session),
    /// Tell the caller why it cannot be sent.
    Degraded(Degraded),
}

impl Parent {
    /// Who holds a segment; `None` when nobody does, so that what is named does not exist.
    pub fn target(&self, segment: &str) -> Option<Target<'_>> {
        let session = self.sessions.of_segment(segment)?;
        let retry_after = if session.interval.is_zero() { UNKNOWN } else { session.interval };
        let degraded = |since: Instant, why| Some(Target::Degraded(Degraded { since, why, retry_after }));
        match (session.standing, self.namespace.part(segment).map(|part| part.holding())) {
            (Standing::Lost { since, why }, _) => degraded(since, why),
            (Standing::Live, Some(Holding::Degraded { since, why })) => degraded(since, why),
            (Standing::Live, Some(Holding::Live)) => Some(Target::Live(session)),
            (Standing::Live, None) => None,
        }
    }
}
