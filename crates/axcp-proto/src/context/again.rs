//! Pauses before a peer is asked again for versions that were refused or did not come. Knows no clock: milliseconds come in.

/// Shortest and longest pause, in milliseconds.
pub(super) const PAUSES: [u64; 2] = [2_000, 60_000];

/// Time of the next question to a peer. Each question without an effect doubles the pause before the next.
#[derive(Debug, Clone, Copy)]
pub(super) struct AskAgain {
    due: Option<u64>,
    pause: u64,
}

impl Default for AskAgain {
    fn default() -> Self {
        Self { due: None, pause: PAUSES[0] }
    }
}

impl AskAgain {
    /// Plans a question, unless one is planned.
    pub(super) fn plan(&mut self, now: u64) {
        if self.due.is_none() {
            self.due = Some(now.saturating_add(self.pause));
            self.pause = self.pause.saturating_mul(2).min(PAUSES[1]);
        }
    }

    /// Makes a planned question due at once.
    pub(super) fn hurry(&mut self) {
        if self.due.is_some() {
            self.due = Some(0);
        }
    }

    /// Gives the time of the planned question.
    pub(super) fn due(&self) -> Option<u64> {
        self.due
    }

    /// Tells, once, that the planned question is due.
    pub(super) fn take_due(&mut self, now: u64) -> bool {
        self.due.take_if(|due| *due <= now).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xc_12_pauses_double_up_to_the_longest() {
        let (mut again, mut now, mut pauses) = (AskAgain::default(), 0, Vec::new());
        for _ in 0..7 {
            again.plan(now);
            again.plan(now + 1);
            let due = again.due().unwrap();
            assert!(!again.take_due(due - 1) && again.take_due(due) && !again.take_due(due));
            pauses.push(due - now);
            now = due;
        }
        assert_eq!(pauses, [2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
    }

    #[test]
    fn xc_12_only_a_planned_question_is_hurried() {
        let mut again = AskAgain::default();
        again.hurry();
        assert_eq!(again.due(), None);
        again.plan(10);
        again.hurry();
        assert!(again.take_due(10));
    }
}
