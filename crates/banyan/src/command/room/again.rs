//! The way back into a room whose connection was lost: tries with growing pauses, until the gate refuses. Reads and writes no message.

use std::time::Duration;

use gateway::admin::shapes::RefusalKind;
use gateway::rooms::{AttendError, Attendance, Entrance};
use tokio::time::Instant;

use crate::failure::Failure;

/// First pause, and the longest after many tries.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);

/// Entrance of the gate that serves the room, found anew for each try: a gate started again may have another port.
pub(super) type FindEntrance<'a> = dyn Fn() -> Result<Entrance, Failure> + 'a;

/// Tries to come back.
pub(super) struct WayBack {
    pause: Duration,
    due: Instant,
}

/// Failure of a try.
pub(super) enum FailedReturn {
    /// A later try may succeed.
    Passing(Failure),
    Final(Failure),
}

impl WayBack {
    pub(super) fn begin() -> Self {
        Self { pause: FIRST, due: Instant::now() + FIRST }
    }

    /// Waits for the next try, and tries.
    pub(super) async fn attempt(&self, find: &FindEntrance<'_>) -> Result<Attendance, FailedReturn> {
        tokio::time::sleep_until(self.due).await;
        let entrance = find().map_err(|failure| match failure {
            Failure::NotFound(_) => FailedReturn::Passing(failure),
            Failure::Failed(_) | Failure::NobodyReads | Failure::Refused(_) | Failure::ToolFailed(_) | Failure::Usage(_) => {
                FailedReturn::Final(failure)
            }
        })?;
        Attendance::open(&entrance)
            .await
            .map_err(|error| if is_passing(&error) { FailedReturn::Passing(error.into()) } else { FailedReturn::Final(error.into()) })
    }

    /// Makes the next pause twice as long.
    pub(super) fn put_off(&mut self) {
        self.pause = self.pause.saturating_mul(2).min(LONGEST);
        let now = Instant::now();
        self.due = now.checked_add(self.pause).unwrap_or(now);
    }

    /// Seconds of the present pause.
    pub(super) fn seconds(&self) -> u64 {
        self.pause.as_secs()
    }
}

/// Checks for an end that is no decision of the gate about the participant.
pub(super) fn is_passing(error: &AttendError) -> bool {
    match error {
        AttendError::Broken(_) | AttendError::Connect(_) | AttendError::Strange { .. } => true,
        // Going away, without a code, and the codes for trouble of the gate (RFC 6455, 7.4.1).
        AttendError::Closed { code, .. } => matches!(code, 1001 | 1005 | 1011..=1014),
        AttendError::Refused(refusal) => match refusal.kind {
            RefusalKind::Failed | RefusalKind::TooMany => true,
            RefusalKind::NotFound | RefusalKind::Refused => false,
        },
        AttendError::Address(_) | AttendError::Exposed(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_put_out_does_not_come_back() {
        let closed = |code| AttendError::Closed { code, reason: String::new() };
        assert!([1001, 1005, 1011, 1012, 1013].into_iter().all(|code| is_passing(&closed(code))));
        assert!([1000, 1008, 4003, 4009].into_iter().all(|code| !is_passing(&closed(code))));
        assert!(is_passing(&AttendError::Broken(String::new())));
    }

    #[test]
    fn pauses_grow_to_a_minute() {
        let mut again = WayBack::begin();
        let pauses: Vec<u64> = std::iter::repeat_with(|| {
            let pause = again.seconds();
            again.put_off();
            pause
        })
        .take(8)
        .collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
    }
}
