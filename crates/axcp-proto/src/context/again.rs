//! Pauses before a peer is asked again for versions that were refused or did not come. Knows no clock: milliseconds come in.

/// Shortest and longest pause, in milliseconds.
pub(super) const PAUSES: [u64; 2] = [2_000, 60_000];

/// Time of the next question to a peer. Each question without an effect doubles the pause before the next, and the next is planned with it.
#[derive(Debug, Clone, Copy)]
pub(super) struct AskAgain {
    due: Option<u64>,
    pause: u64,
    /// Time before which no question is put, however much in a hurry.
    rests_until: u64,
}

impl Default for AskAgain {
    fn default() -> Self {
        Self { due: None, pause: PAUSES[0], rests_until: 0 }
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

    /// Makes a planned question due, though no earlier than the shortest pause after the last one.
    pub(super) fn hurry(&mut self) {
        self.due = self.due.map(|due| due.min(self.rests_until));
    }

    /// Puts a planned question off while a snapshot keeps coming: a question makes the sender begin anew.
    pub(super) fn postpone(&mut self, now: u64) {
        self.rests_until = self.rests_until.max(now.saturating_add(PAUSES[0]));
        self.due = self.due.map(|due| due.max(self.rests_until));
    }

    /// Forgets the plan, since versions came: the next pause is the shortest again.
    pub(super) fn forget(&mut self) {
        (self.due, self.pause) = (None, PAUSES[0]);
    }

    /// Gives the time of the planned question.
    pub(super) fn due(&self) -> Option<u64> {
        self.due
    }

    /// Tells, once, that the planned question is due, and plans the next.
    pub(super) fn take_due(&mut self, now: u64) -> bool {
        let is_due = self.due.take_if(|due| *due <= now).is_some();
        if is_due {
            self.rests_until = now.saturating_add(PAUSES[0]);
            self.plan(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xc_12_pauses_double_up_to_the_longest() {
        let (mut again, mut now, mut pauses) = (AskAgain::default(), 0, Vec::new());
        again.plan(now);
        for _ in 0..7 {
            again.plan(now + 1);
            let due = again.due().unwrap();
            assert!(!again.take_due(due - 1) && again.take_due(due) && !again.take_due(due));
            pauses.push(due - now);
            now = due;
        }
        assert_eq!(pauses, [2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
        again.forget();
        again.plan(now);
        assert_eq!(again.due(), Some(now + 2_000), "versions came");
    }

    #[test]
    fn xc_12_only_a_planned_question_is_hurried() {
        let mut again = AskAgain::default();
        again.hurry();
        assert_eq!(again.due(), None);
        again.plan(10);
        again.hurry();
        assert!(again.take_due(10));
        again.hurry();
        assert_eq!(again.due(), Some(10 + PAUSES[0]), "a question was put just now");
    }

    #[test]
    fn xc_12_no_question_is_put_into_a_snapshot() {
        let mut again = AskAgain::default();
        again.plan(0);
        again.postpone(1_500);
        again.hurry();
        assert_eq!(again.due(), Some(1_500 + PAUSES[0]));
    }
}
