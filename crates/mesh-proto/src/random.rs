//! Numbers from a seed: unpredictable ids, and jitter. Does not make the seed.

use std::time::Duration;

use sha2::{Digest, Sha256};

/// A stream of numbers, the same for the same seed.
#[derive(Clone)]
pub(crate) struct Random {
    seed: [u8; 32],
    drawn: u64,
}

impl Random {
    pub(crate) fn new(seed: [u8; 32]) -> Self {
        Self { seed, drawn: 0 }
    }

    /// Gives 128 bits.
    pub(crate) fn bits(&mut self) -> u128 {
        self.drawn += 1;
        let hash = Sha256::new().chain_update(self.seed).chain_update(self.drawn.to_be_bytes()).finalize();
        hash.iter().take(16).fold(0, |bits, byte| bits << 8 | u128::from(*byte))
    }

    /// Gives a duration from `least` up to `most`, to the microsecond.
    pub(crate) fn between(&mut self, least: Duration, most: Duration) -> Duration {
        let span = most.saturating_sub(least).as_micros();
        // The remainder's bias is negligible: 128 bits against microseconds.
        let more = if span == 0 { 0 } else { self.bits() % (span + 1) };
        least.saturating_add(Duration::from_micros(u64::try_from(more).unwrap_or(u64::MAX)))
    }
}

/// Hides the seed, which is worth as much as all ids made from it.
impl std::fmt::Debug for Random {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Random({} drawn)", self.drawn)
    }
}
