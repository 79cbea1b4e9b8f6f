//! Times as peers write them. Nothing here reads a clock.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

/// A time as text: RFC 3339, seconds of UTC. Times before 1970 become the beginning of 1970.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Timestamp(pub SystemTime);

impl Timestamp {
    /// Tells if `text` has the form of a `date-time` of RFC 3339, section 5.6. Leap seconds and lower-case letters are legal there.
    pub fn is_legal(text: &str) -> bool {
        let Some((date, rest)) = text.split_at_checked(10) else { return false };
        let Some((time, rest)) = rest.split_at_checked(9) else { return false };
        let fields = [(0..4, 9999), (5..7, 12)].map(|(at, most)| number(date, at).filter(|n| *n <= most));
        let [Some(year), Some(month)] = fields else { return false };
        let is_date = parts_are(date, [4, 7], b'-') && number(date, 8..10).is_some_and(|day| day >= 1 && day <= days_of(year, month));
        let is_time = matches!(time.as_bytes()[0], b'T' | b't' | b' ')
            && parts_are(time, [3, 6], b':')
            && [(1..3, 23), (4..6, 59), (7..9, 60)].into_iter().all(|(at, most)| number(time, at).is_some_and(|n| n <= most));
        is_date && is_time && without_fraction(rest).is_some_and(is_zone)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let (days, second) = (seconds / 86_400, seconds % 86_400);
        // Days since 1 March of the year 0, so that the leap day ends a year.
        let from_march = days + 719_468;
        let era = from_march / 146_097;
        let day = from_march % 146_097;
        let year_of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted = (5 * day_of_year + 2) / 153;
        let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
        let year = era * 400 + year_of_era + u64::from(month <= 2);
        let day_of_month = day_of_year - (153 * shifted + 2) / 5 + 1;
        write!(f, "{year:04}-{month:02}-{day_of_month:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
    }
}

/// Strips the fraction of a second, if any.
fn without_fraction(rest: &str) -> Option<&str> {
    let Some(fraction) = rest.strip_prefix('.') else { return Some(rest) };
    let behind = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
    (behind.len() < fraction.len()).then_some(behind)
}

fn is_zone(zone: &str) -> bool {
    if matches!(zone, "Z" | "z") {
        return true;
    }
    zone.len() == 6
        && zone.starts_with(['+', '-'])
        && zone.as_bytes()[3] == b':'
        && number(zone, 1..3).is_some_and(|hour| hour <= 23)
        && number(zone, 4..6).is_some_and(|minute| minute <= 59)
}

fn parts_are<const N: usize>(text: &str, places: [usize; N], between: u8) -> bool {
    places.into_iter().all(|at| text.as_bytes().get(at) == Some(&between))
}

/// Reads a part made of digits only.
fn number(text: &str, at: std::ops::Range<usize>) -> Option<u32> {
    let digits = text.as_bytes().get(at)?;
    digits.iter().try_fold(0, |n, b| b.is_ascii_digit().then(|| n * 10 + u32::from(b - b'0')))
}

fn days_of(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn seconds_are_written_as_dates() {
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_777_637_100, "2026-05-01T12:05:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ];
        for (seconds, text) in cases {
            assert_eq!(Timestamp(UNIX_EPOCH + Duration::from_secs(seconds)).to_string(), text);
            assert!(Timestamp::is_legal(text));
        }
    }

    #[test]
    fn what_rfc_3339_allows_is_legal_and_nothing_else() {
        let legal = [
            "2025-08-26T14:00:00Z",
            "2025-08-26t14:00:00.123456789z",
            "1996-12-19T16:39:57-08:00",
            "2016-12-31T23:59:60Z",
            "2024-02-29T00:00:00+23:59",
            "2025-08-26 14:00:00.5Z",
        ];
        let not = [
            "",
            "2025-08-26",
            "2025-08-26T14:00Z",
            "2025-08-26T14:00:00",
            "2025-08-26T14:00:00.Z",
            "2025-08-26T14:00:00,5Z",
            "2025-08-26T24:00:00Z",
            "2025-08-26T14:00:00+0100",
            "2025-02-29T14:00:00Z",
            "2025-13-01T14:00:00Z",
            "2025-00-01T14:00:00Z",
            "2025-01-00T14:00:00Z",
            "2025-08-26T14:00:00Z ",
            "2025-08-26TÄ4:00:00Z",
            "+025-08-26T14:00:00Z",
            "2025-08-26T14:00:00+aa:00",
        ];
        assert_eq!(legal.iter().find(|text| !Timestamp::is_legal(text)), None);
        assert_eq!(not.iter().find(|text| Timestamp::is_legal(text)), None);
    }
}
