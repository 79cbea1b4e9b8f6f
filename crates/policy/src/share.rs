//! Fair shares: the amount of a scarce resource that one principal may hold. Nothing is counted here.

/// Bound in all, and the percentage of the rest that one principal may hold.
#[derive(Debug, Clone, Copy)]
pub struct Bound {
    pub most: usize,
    pub percent: usize,
}

/// Reason for which there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// Everything is taken.
    All,
    /// The principal has its share, of this size.
    Share(usize),
}

impl Bound {
    /// Share of somebody who holds `own` of `taken`.
    fn share(self, own: usize, taken: usize) -> usize {
        let within_reach = own.saturating_add(self.most.saturating_sub(taken));
        within_reach.saturating_mul(self.percent).div_ceil(100)
    }

    /// Checks that somebody who holds `own` of `taken`, the last one included, has no more than a share.
    pub fn holds(self, own: usize, taken: usize) -> Result<(), Full> {
        if taken > self.most {
            return Err(Full::All);
        }
        let share = self.share(own, taken);
        if own > share { Err(Full::Share(share)) } else { Ok(()) }
    }

    /// Tells if one principal may hold less than all.
    pub fn is_shared(self) -> bool {
        self.percent < 100
    }
}
