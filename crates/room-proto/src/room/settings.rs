//! Bounds of a room, set by the operator. Enforces nothing.

use std::time::Duration;

/// Bounds of a room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Most participants.
    pub participants: usize,
    /// Longest message, in bytes.
    pub message_bytes: usize,
    /// Most messages on the way to a participant. Slower readers are cut off.
    pub queue_messages: usize,
    /// Bytes of messages on the way to a participant, beyond which none is added.
    pub queue_bytes: usize,
    /// Messages of a participant.
    pub messages: Rate,
    /// Bytes of a participant.
    pub bytes: Rate,
    /// Refused messages of a participant, beyond which the connection is closed.
    pub refusals: Rate,
    /// Past messages kept for newcomers who ask; zero: none. All together have at most `message_bytes`.
    pub history: usize,
    /// Participants whose changed capabilities are remembered.
    pub rulings: usize,
    /// Time for which a participant who was put out stays out.
    pub exclusion: Duration,
    /// Pause between connections of a present participant, on average, and the number at once.
    pub reconnection: (Duration, u32),
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            participants: 1_000,
            message_bytes: 1 << 20,
            queue_messages: 4_096,
            queue_bytes: 8 << 20,
            messages: Rate { per_second: 100, burst: 500 },
            bytes: Rate { per_second: 4 << 20, burst: 16 << 20 },
            refusals: Rate { per_second: 1, burst: 100 },
            history: 0,
            rulings: 10_000,
            exclusion: Duration::from_secs(60),
            reconnection: (Duration::from_secs(10), 10),
        }
    }
}

/// A rate with a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Zero counts as one.
    pub per_second: u32,
    /// Number at once after a quiet time; zero counts as one.
    pub burst: u32,
}

impl Rate {
    /// Gives the time worth `count`.
    pub(crate) fn cost(self, count: usize) -> Duration {
        let nanos = count as u128 * 1_000_000_000 / u128::from(self.per_second.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Gives the time worth a burst.
    pub(crate) fn depth(self) -> Duration {
        self.cost(self.burst.max(1) as usize)
    }
}
