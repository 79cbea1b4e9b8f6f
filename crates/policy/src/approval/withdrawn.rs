//! Limit on calls that callers take back before anybody has decided. Each of them is work for the desk, a message to people and two entries of
//! the record. Time is an argument, in seconds. Which calls wait is not decided here.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

/// Withdrawals that a caller may make at once, and the seconds that earn one more.
const MOST: i64 = 30;
const EVERY: u64 = 2;
/// Callers counted separately. All others are counted together.
const MOST_CALLERS: usize = 4096;

/// Withdrawals by caller.
#[derive(Debug, Default)]
pub(super) struct Withdrawals(BTreeMap<[u8; 32], Allowance>);

#[derive(Debug, Clone, Copy)]
struct Allowance {
    /// Withdrawals left. Below zero where the caller withdrew more calls, all of which waited already.
    left: i64,
    at: u64,
}

impl Allowance {
    fn fill(&mut self, now: u64) {
        let more = now.saturating_sub(self.at) / EVERY;
        self.left = self.left.saturating_add(i64::try_from(more).unwrap_or(i64::MAX)).min(MOST);
        self.at += more * EVERY;
    }
}

impl Withdrawals {
    /// Counts a withdrawal.
    pub(super) fn note(&mut self, caller: &str, now: u64) {
        let key = self.key(caller, now);
        let allowance = self.0.entry(key).or_insert(Allowance { left: MOST, at: now });
        allowance.fill(now);
        allowance.left -= 1;
    }

    /// Seconds until a caller may put a call before people again; `None`: it may do so now.
    pub(super) fn wait(&mut self, caller: &str, now: u64) -> Option<u64> {
        let key = self.key(caller, now);
        let allowance = self.0.get_mut(&key)?;
        allowance.fill(now);
        let wait = u64::try_from(1 - allowance.left).unwrap_or(0) * EVERY;
        (wait > 0).then(|| wait.saturating_sub(now.saturating_sub(allowance.at)).max(1))
    }

    /// Gives the key under which a caller is counted.
    fn key(&mut self, caller: &str, now: u64) -> [u8; 32] {
        let key = Sha256::digest(caller).into();
        if self.0.len() < MOST_CALLERS || self.0.contains_key(&key) {
            return key;
        }
        self.0.retain(|_, allowance| {
            allowance.fill(now);
            allowance.left < MOST
        });
        if self.0.len() < MOST_CALLERS { key } else { [0; 32] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_back_call_after_call_waits_and_keeps_nobody_else_from_asking() {
        let mut withdrawn = Withdrawals::default();
        (0..100).for_each(|_| withdrawn.note("ann", 1000));
        assert_eq!((withdrawn.wait("ann", 1000), withdrawn.wait("bob", 1000)), (Some(142), None));
        assert_eq!((withdrawn.wait("ann", 1141), withdrawn.wait("ann", 1142)), (Some(1), None));
        withdrawn.note("ann", 1142);
        assert_eq!(withdrawn.wait("ann", 1142), Some(2), "in the long run it is one every two seconds");
        assert_eq!(withdrawn.wait("ann", 900), Some(2), "a clock that is set back changes nothing");
    }

    #[test]
    fn what_is_kept_of_callers_is_bounded() {
        let mut withdrawn = Withdrawals::default();
        (0..3 * MOST_CALLERS).for_each(|number| withdrawn.note(&number.to_string(), 0));
        assert_eq!(withdrawn.0.len(), MOST_CALLERS + 1);
        assert!(withdrawn.wait("one more", 0).is_some(), "those that are not told apart are counted together");
        assert_eq!(withdrawn.wait("one more", 100_000), None);
        assert!(withdrawn.0.len() <= MOST_CALLERS);
    }
}
