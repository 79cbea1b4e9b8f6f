//! Requests to pause and to go on (MEW v0.4, 3.9.1 and 3.9.2, beyond MCPx v0.1). The room decides by capabilities who may ask. A pause
//! holds back everything a participant would do on its own; the list is not known here.

use std::fmt;
use std::time::{Duration, Instant};

use json::Members;

use crate::envelope::Envelope;

/// Longest pause that ends by itself.
const LONGEST: Duration = Duration::from_secs(366 * 86_400);
/// Longest reason kept, in bytes.
const REASON: usize = 200;

/// A pause of a participant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    pub by: String,
    pub reason: Option<String>,
    /// End without a request to go on.
    pub until: Option<Instant>,
}

impl Pause {
    pub(crate) fn from_envelope(envelope: &Envelope<'_>, now: Instant) -> Self {
        let payload = Members::again(envelope.payload);
        let seconds = payload.get("timeout_seconds").and_then(|raw| std::str::from_utf8(raw).ok()?.parse::<f64>().ok());
        let lasts = seconds.filter(|seconds| *seconds > 0.0).map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(LONGEST));
        let reason = payload.str("reason").map(|reason| reason[..reason.floor_char_boundary(REASON)].to_owned());
        Self {
            by: envelope.from.to_string(),
            reason: reason.filter(|reason| !reason.is_empty()),
            until: lasts.and_then(|lasts| now.checked_add(lasts.min(LONGEST))),
        }
    }
}

/// Writes `paused by "ann" (rate_limit)`.
impl fmt::Display for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "paused by {:?}", self.by)?;
        self.reason.as_ref().map_or(Ok(()), |reason| write!(f, " ({reason:?})"))
    }
}

#[cfg(test)]
mod tests;
