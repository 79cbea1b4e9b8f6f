//! Destination of a call. Makes no calls, and trusts routes checked before (`namespace`, `route_cursor`).

use std::time::{Duration, Instant};

use super::Parent;
use super::session::{Session, Standing};
use crate::degraded::DegradedTool;
use crate::namespace::Presence;

/// Time until a subserver without heartbeats may be back.
const UNKNOWN: Duration = Duration::from_secs(5);

/// Destination of a call.
#[derive(Debug, Clone, Copy)]
pub enum Target<'a> {
    /// Send to the subserver of this session.
    Live(&'a Session),
    /// Answer the caller with this error.
    Degraded(DegradedTool),
}

impl Parent {
    /// Finds the destination of a segment; `None`: nobody holds the segment.
    pub fn target(&self, segment: &str) -> Option<Target<'_>> {
        let session = self.sessions.of_segment(segment)?;
        let retry_after = if session.interval.is_zero() { UNKNOWN } else { session.interval };
        let degraded = |since: Instant, why| Some(Target::Degraded(DegradedTool { since, why, retry_after }));
        match (session.standing, self.namespace.part(segment).map(|part| part.holding())) {
            (Standing::Lost { since, why }, _) => degraded(since, why),
            (Standing::Live, Some(Presence::Degraded { since, why })) => degraded(since, why),
            (Standing::Live, Some(Presence::Live)) => Some(Target::Live(session)),
            (Standing::Live, None) => None,
        }
    }
}
