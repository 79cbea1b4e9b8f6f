//! What the operator of a room decides: its bounds. Nothing of what happens.

use std::time::Duration;

/// The bounds of one room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How many participants it has at most.
    pub participants: usize,
    /// No longer message is taken, in bytes.
    pub message_bytes: usize,
    /// How many messages may be on their way to one participant. Whoever reads slower is cut off.
    pub queue_messages: usize,
    /// How many bytes of messages may be on their way to one participant before another is added.
    pub queue_bytes: usize,
    /// How many messages one participant may send in a second, and so many of them at once.
    pub messages: Rate,
    /// How many bytes it may send.
    pub bytes: Rate,
    /// How many messages of one participant are refused in a second before it is cut off.
    pub refusals: Rate,
    /// How many of the last messages are kept for those who ask when they join; zero: none. Together they have no more than `message_bytes`.
    pub history: usize,
    /// For how many participants it is remembered what an admin changed.
    pub rulings: usize,
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
        }
    }
}

/// So many in a second, and so many at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// In a second; zero counts as one.
    pub per_second: u32,
    /// At once, when there were few for a while; zero counts as one.
    pub burst: u32,
}

impl Rate {
    /// The time that so many are worth.
    pub(crate) fn cost(self, count: usize) -> Duration {
        let nanos = count as u128 * 1_000_000_000 / u128::from(self.per_second.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The time that a burst is worth.
    pub(crate) fn depth(self) -> Duration {
        self.cost(self.burst.max(1) as usize)
    }
}
