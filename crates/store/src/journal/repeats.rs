//! Repeated refusals: the first of a minute stand in the record one by one, the others in one entry with their number. Refusals' bytes in
//! the record are bounded, for each principal and for all, so that refused principals push nothing out of the record. Time is an argument,
//! and nothing is written here.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use audit::bounds::clip;
use audit::record::Record;
use audit::shape::LEFT_OUT;

use super::AROUND;
use super::refusal::{BRIEF, Refusal};

/// Refusals of one principal for one reason that get an entry each, within the window below.
const ALONE: u32 = 30;
const WINDOW: Duration = Duration::from_secs(60);
/// Principals, and reasons of one principal, counted separately. All others share one account.
const MOST_PRINCIPALS: usize = 1024;
const MOST_REASONS: usize = 12;
/// Idle time after which an account is forgotten.
const IDLE: Duration = Duration::from_secs(600);
/// Parts of the record's size for refusals: at once, and in a day; and the part of a principal in both.
const AT_ONCE: u64 = 64;
const A_DAY: u64 = 32;
const OF_ONE: u64 = 8;

/// Way of a refusal into the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// An entry of its own.
    Alone,
    /// The first refusal of a counting entry: its description is wanted.
    First,
    /// Part of the count of an entry, and no more.
    Counted,
}

/// Counts of refusals, by principal and reason.
#[derive(Debug)]
pub struct Repeats {
    accounts: HashMap<Box<str>, Account>,
    /// Refusals of all principals not counted separately.
    others: Account,
    all: Allowance,
    one: Allowance,
}

/// Refusals of one principal.
#[derive(Debug)]
struct Account {
    allowance: Allowance,
    reasons: Vec<(Box<str>, Count)>,
    used: Instant,
}

/// Refusals for one reason.
#[derive(Debug)]
struct Count {
    since: Instant,
    alone: u32,
    /// Number of refusals waiting for their counting entry, and the first of them.
    waiting: u64,
    first: Option<Refusal<'static>>,
}

/// Bytes still to be written: at most `most`, growing by `daily` in a day.
#[derive(Debug, Clone, Copy)]
struct Allowance {
    most: i64,
    daily: i64,
    left: i64,
    at: Instant,
}

impl Allowance {
    fn new(most: u64, daily: u64, at: Instant) -> Self {
        let [most, daily] = [most, daily].map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX).max(1));
        Self { most, daily, left: most, at }
    }

    fn has_some(&mut self, now: Instant) -> bool {
        let passed = i64::try_from(now.saturating_duration_since(self.at).as_millis()).unwrap_or(i64::MAX);
        let more = self.daily.saturating_mul(passed) / 86_400_000;
        if more > 0 {
            (self.left, self.at) = (self.left.saturating_add(more).min(self.most), now);
        }
        self.left > 0
    }
}

impl Account {
    fn new(allowance: Allowance, now: Instant) -> Self {
        Self { allowance: Allowance { at: now, left: allowance.most, ..allowance }, reasons: Vec::new(), used: now }
    }

    fn count(&mut self, reason: &str, now: Instant) -> &mut Count {
        self.used = now;
        let known = self.reasons.iter().position(|(known, _)| **known == *reason);
        let at = known.unwrap_or_else(|| {
            // The last one stands for all that are not told apart.
            let name = if self.reasons.len() + 1 < MOST_REASONS { reason } else { LEFT_OUT };
            if self.reasons.last().is_none_or(|(last, _)| **last != *LEFT_OUT) {
                self.reasons.push((name.into(), Count { since: now, alone: 0, waiting: 0, first: None }));
            }
            self.reasons.len() - 1
        });
        &mut self.reasons[at].1
    }

    fn waits(&self) -> bool {
        self.reasons.iter().any(|(_, count)| count.waiting > 0)
    }
}

impl Repeats {
    /// Makes counts for a record of about this size, in bytes.
    pub fn new(size: u64, now: Instant) -> Self {
        let (most, daily) = (size / AT_ONCE, size / A_DAY);
        let one = Allowance::new(most / OF_ONE, daily / OF_ONE, now);
        Self { accounts: HashMap::new(), others: Account::new(one, now), all: Allowance::new(most, daily, now), one }
    }

    /// Counts a refusal; gives its way into the record. `is_full`: no refusal gets an entry of its own.
    pub fn count(&mut self, principal: &str, reason: &str, is_full: bool, now: Instant) -> Way {
        let all_has = self.all.has_some(now);
        let account = self.account(principal, now);
        let has_room = all_has && account.allowance.has_some(now) && !is_full;
        let count = account.count(reason, now);
        if count.waiting == 0 && now.saturating_duration_since(count.since) >= WINDOW {
            (count.since, count.alone) = (now, 0);
        }
        if count.waiting == 0 && count.alone < ALONE && has_room {
            count.alone += 1;
            return Way::Alone;
        }
        count.waiting += 1;
        if count.waiting == 1 { Way::First } else { Way::Counted }
    }

    /// Charges an entry of `facts` bytes to a principal.
    pub fn spend(&mut self, principal: &str, facts: usize, now: Instant) {
        let bytes = i64::try_from(facts as u64 + AROUND).unwrap_or(i64::MAX);
        let account = self.account(principal, now);
        account.allowance.left = account.allowance.left.saturating_sub(bytes);
        self.all.left = self.all.left.saturating_sub(bytes);
    }

    /// Keeps the description of the first counted refusal.
    pub fn keep(&mut self, refusal: &Refusal<'_>, now: Instant) {
        let is_told_apart = self.accounts.contains_key(clip(refusal.principal(), BRIEF));
        let count = self.account(refusal.principal(), now).count(refusal.reason(), now);
        count.first = Some(if is_told_apart { refusal.brief() } else { refusal.brief().anonymous() });
    }

    /// Gives the counting entries now due; `is_end`: all of them, for none can come later.
    pub fn due(&mut self, now: Instant, is_end: bool) -> Vec<Record<'static>> {
        let mut due = Vec::new();
        let all = &mut self.all;
        let accounts = self.accounts.values_mut().chain([&mut self.others]);
        for account in accounts {
            let Account { allowance, reasons, .. } = account;
            for (_, count) in reasons {
                let is_over = is_end || now.saturating_duration_since(count.since) >= WINDOW;
                let fits = is_end || (all.has_some(now) && allowance.has_some(now));
                if count.waiting == 0 || !is_over || !fits {
                    continue;
                }
                let Some(first) = count.first.take() else { continue };
                let record = first.counted(count.waiting).into_record();
                let mut facts = Vec::new();
                let length = record.facts(&mut facts).map_or(0, |()| facts.len());
                let bytes = i64::try_from(length as u64 + AROUND).unwrap_or(i64::MAX);
                (allowance.left, all.left) = (allowance.left - bytes, all.left - bytes);
                *count = Count { since: now, alone: 0, waiting: 0, first: None };
                due.push(record);
            }
        }
        self.accounts.retain(|_, account| account.waits() || now.saturating_duration_since(account.used) < IDLE);
        due
    }

    fn account(&mut self, principal: &str, now: Instant) -> &mut Account {
        let principal = clip(principal, BRIEF);
        if !self.accounts.contains_key(principal) && self.accounts.len() >= MOST_PRINCIPALS {
            return &mut self.others;
        }
        let one = self.one;
        self.accounts.entry(principal.into()).or_insert_with(|| Account::new(one, now))
    }
}

#[cfg(test)]
mod tests {
    use audit::record::{Intent, Refused};

    use super::*;

    fn refused<'a>(principal: &'a str, reason: &'a str) -> Refusal<'a> {
        let intent = Intent { name: "n".repeat(2000).into(), principal: principal.into(), ..Intent::default() };
        Refusal::Call(Refused { code: -32602, count: None, intent, reason: reason.into(), rules: Vec::new() })
    }

    /// Passes a refusal as a journal does; tells whether the refusal stands by itself.
    fn refuse(repeats: &mut Repeats, principal: &str, reason: &str, now: Instant) -> bool {
        match repeats.count(principal, reason, false, now) {
            Way::Alone => repeats.spend(principal, 2000, now),
            Way::First => repeats.keep(&refused(principal, reason), now),
            Way::Counted => {}
        }
        repeats.accounts.get(principal).is_some_and(|account| !account.waits())
    }

    fn counts(due: &[Record<'_>]) -> Vec<(String, u64)> {
        let of = |record: &Record<'_>| {
            let Record::Refused(refused) = record else { panic!("{record:?}") };
            (refused.intent.principal.to_string(), refused.count.unwrap_or(1))
        };
        due.iter().map(of).collect()
    }

    #[test]
    fn the_first_refusals_of_a_minute_stand_alone() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut repeats = Repeats::new(256 << 20, start);
        let alone = (0..100).filter(|_| refuse(&mut repeats, "a", "unknown", start)).count();
        assert_eq!(alone, ALONE as usize);
        assert!(refuse(&mut repeats, "b", "unknown", start) && repeats.count("a", "forbidden", false, start) == Way::Alone);
        assert_eq!(counts(&repeats.due(start + 59 * second, false)), []);
        assert_eq!(counts(&repeats.due(start + 60 * second, false)), [("a".to_owned(), 70)]);
        assert!(refuse(&mut repeats, "a", "unknown", start + 61 * second), "a new minute");
        assert_eq!(repeats.count("a", "unknown", true, start + 61 * second), Way::First, "nothing stands alone in a full record");
        repeats.keep(&refused("a", "unknown"), start + 61 * second);
        assert_eq!(counts(&repeats.due(start + 61 * second, true)), [("a".to_owned(), 1)], "none is forgotten when the gate ends");
    }

    #[test]
    fn h6_refusals_of_a_month_take_bounded_bytes() {
        let (start, size) = (Instant::now(), 64 << 20);
        for (principals, most) in [(1_u64, size / AT_ONCE / OF_ONE + 30 * size / A_DAY / OF_ONE), (500, size / AT_ONCE + 30 * size / A_DAY)]
        {
            let mut repeats = Repeats::new(size, start);
            let (mut written, mut told) = (0, 0);
            for step in 0..30 * 24 * 6 {
                let now = start + Duration::from_secs(600 * step);
                for principal in 0..principals.min(40) {
                    let name = format!("p{}", (principal + step * 40) % principals);
                    for _ in 0..2 {
                        if repeats.count(&name, "unknown", false, now) == Way::Alone {
                            repeats.spend(&name, 2000, now);
                            written += 2000 + AROUND;
                        } else {
                            repeats.keep(&refused(&name, "unknown"), now);
                        }
                    }
                }
                for record in repeats.due(now + WINDOW, false) {
                    let mut facts = Vec::new();
                    record.facts(&mut facts).unwrap();
                    written += facts.len() as u64 + AROUND;
                    told += counts(&[record])[0].1;
                }
            }
            assert!(written < most + principals.min(40) * 5000, "{principals}: {written} of {most}");
            assert!(told > 0, "those that did not stand alone are counted");
        }
    }

    #[test]
    fn accounts_beyond_the_bound_are_counted_together() {
        let start = Instant::now();
        let mut repeats = Repeats::new(1 << 40, start);
        for number in 0..MOST_PRINCIPALS * 2 {
            for _ in 0..=ALONE {
                refuse(&mut repeats, &format!("p{number}"), "unknown", start);
            }
        }
        for reason in 0..100 {
            refuse(&mut repeats, "p1", &format!("reason {reason}"), start);
        }
        assert_eq!((repeats.accounts.len(), repeats.accounts["p1"].reasons.len()), (MOST_PRINCIPALS, MOST_REASONS));
        let due = counts(&repeats.due(start + WINDOW, false));
        let others: Vec<_> = due.iter().filter(|(principal, _)| principal == LEFT_OUT).collect();
        assert_eq!((due.len(), others.len()), (MOST_PRINCIPALS + 2, 1));
        assert_eq!(others[0].1, (MOST_PRINCIPALS * (ALONE as usize + 1)) as u64 - u64::from(ALONE));
        repeats.due(start + IDLE + WINDOW, false);
        assert!(repeats.accounts.is_empty());
    }
}
