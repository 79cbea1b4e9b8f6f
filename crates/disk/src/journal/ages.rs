//! Ages of files of lines, by a clock that nobody sets: a wall clock that is set forward makes no young entry old. Of a file that was there at the
//! start, its time of the last write is believed once. Deletes nothing.

use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::layout::Segment;

/// Files that were seen since the start.
#[derive(Debug, Default)]
pub(super) struct Ages {
    seen: HashMap<u64, Sighting>,
    is_begun: bool,
}

#[derive(Debug, Clone, Copy)]
struct Sighting {
    bytes: u64,
    /// Age that the file had `since` then.
    age: Duration,
    since: Instant,
}

impl Ages {
    /// Moves the times of the last writes to where they are as long ago as the files were not seen to grow.
    pub(super) fn correct(&mut self, files: &mut [Segment], now: SystemTime, at: Instant) {
        let is_begun = std::mem::replace(&mut self.is_begun, true);
        let before = std::mem::take(&mut self.seen);
        for file in files {
            let fresh = Sighting { bytes: file.bytes, age: Duration::ZERO, since: at };
            let seen = match before.get(&file.first) {
                Some(seen) if seen.bytes == file.bytes => *seen,
                None if !is_begun => Sighting { age: now.duration_since(file.written).unwrap_or_default(), ..fresh },
                Some(_) | None => fresh,
            };
            let age = seen.age.saturating_add(at.saturating_duration_since(seen.since));
            file.written = now.checked_sub(age).unwrap_or(UNIX_EPOCH);
            self.seen.insert(file.first, seen);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn file(first: u64, bytes: u64, written: SystemTime) -> Segment {
        Segment { first, path: format!("{first}").into(), bytes, written }
    }

    /// Ages of these files, in hours, at this hour of the gate, while the wall clock shows `now`.
    fn hours(ages: &mut Ages, mut files: Vec<Segment>, now: SystemTime, at: Instant) -> Vec<u64> {
        ages.correct(&mut files, now, at);
        files.iter().map(|file| now.duration_since(file.written).unwrap().as_secs() / 3600).collect()
    }

    #[test]
    fn a_changed_clock_makes_no_file_older_or_younger() {
        let (mut ages, now, at) = (Ages::default(), SystemTime::now(), Instant::now());
        let before = now - 5 * HOUR;
        assert_eq!(hours(&mut ages, vec![file(0, 9, before), file(10, 1, now)], now, at), [5, 0]);
        let ahead = now + 100 * HOUR;
        assert_eq!(hours(&mut ages, vec![file(0, 9, before), file(10, 2, now), file(20, 1, now)], ahead, at + HOUR), [6, 0, 0]);
        let back = now - 100 * HOUR;
        assert_eq!(hours(&mut ages, vec![file(10, 2, now), file(20, 1, now)], back, at + 3 * HOUR), [2, 2]);
    }

    #[test]
    fn a_growing_file_is_as_old_as_its_end() {
        let (mut ages, now, at) = (Ages::default(), SystemTime::now(), Instant::now());
        assert_eq!(hours(&mut ages, vec![file(0, 1, now - HOUR)], now, at), [1]);
        assert_eq!(hours(&mut ages, vec![file(0, 2, now)], now + HOUR, at + HOUR), [0]);
        assert_eq!(hours(&mut ages, vec![file(0, 2, now)], now + 2 * HOUR, at + 2 * HOUR), [1]);
    }
}
