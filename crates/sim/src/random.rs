//! SplitMix64: numbers settled by a seed for good. Not for secrets.

/// A stream of numbers.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `bound`, which is not zero.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % bound.max(1) as u64) as usize
    }

    /// `true` in so many of a hundred cases.
    pub(crate) fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    pub(crate) fn pick<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        if all.is_empty() { None } else { all.get(self.below(all.len())).copied() }
    }

    /// Draws the seed of a machine.
    pub(crate) fn seed(&mut self) -> [u8; 32] {
        std::array::from_fn(|_| u8::try_from(self.below(256)).unwrap_or_default())
    }
}
