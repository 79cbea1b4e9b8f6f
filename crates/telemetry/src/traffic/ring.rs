//! Counts in a ring of steps of time. Does not know how long a step is.

/// Values of the last steps. A step that nobody wrote to is empty.
#[derive(Debug)]
pub(super) struct Ring<T> {
    slots: Box<[T]>,
    newest: u64,
}

impl<T: Default> Ring<T> {
    pub(super) fn new(steps: usize) -> Self {
        Self { slots: (0..steps.max(1)).map(|_| T::default()).collect(), newest: 0 }
    }

    /// Opens the step `number` for writing, and forgets the steps that are too old by then. A step before the newest counts as the newest.
    pub(super) fn step(&mut self, number: u64) -> &mut T {
        let kept = self.slots.len() as u64;
        for passed in 0..number.saturating_sub(self.newest).min(kept) {
            *self.slot(number - passed) = T::default();
        }
        self.newest = self.newest.max(number);
        self.slot(self.newest)
    }

    /// Reads the steps up to `number`, the oldest first; `None` of a step that nobody wrote to.
    pub(super) fn until(&self, number: u64) -> impl Iterator<Item = Option<&T>> {
        let kept = self.slots.len() as u64;
        (0..kept).rev().map(move |ago| {
            let step = number.checked_sub(ago).filter(|step| *step <= self.newest && *step + kept > self.newest)?;
            self.slots.get((step % kept) as usize)
        })
    }

    /// Number of the newest step.
    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    fn slot(&mut self, number: u64) -> &mut T {
        let kept = self.slots.len() as u64;
        &mut self.slots[(number % kept) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(ring: &Ring<u32>, number: u64) -> Vec<u32> {
        ring.until(number).map(|step| step.copied().unwrap_or(0)).collect()
    }

    #[test]
    fn old_steps_are_forgotten() {
        let mut ring = Ring::new(3);
        for number in [0, 1, 1, 3] {
            *ring.step(number) += 1;
        }
        assert_eq!(read(&ring, 3), [2, 0, 1]);
        assert_eq!(read(&ring, 4), [0, 1, 0]);
        assert_eq!(read(&ring, 9), [0, 0, 0]);
        *ring.step(100) += 7;
        assert_eq!(read(&ring, 100), [0, 0, 7]);
        assert_eq!(read(&ring, 3), [0, 0, 0], "nothing is left of what was overwritten");
    }

    #[test]
    fn a_late_step_counts_as_the_newest() {
        let mut ring = Ring::new(3);
        *ring.step(5) += 1;
        *ring.step(1) += 1;
        assert_eq!((read(&ring, 5), ring.newest()), (vec![0, 0, 2], 5));
    }
}
