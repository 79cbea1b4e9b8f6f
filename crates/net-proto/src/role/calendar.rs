//! Times at which a device may be changed, and times at which nothing is. Reads no clock and no time zones: the offset from UTC comes with each
//! window.

use serde::{Deserialize, Serialize};

/// Names of days, from Sunday on.
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const DAY: i64 = 86_400;

/// Weekly time for changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Days on which the window opens, from Sunday on.
    pub days: [bool; 7],
    /// Minutes after midnight, local time.
    pub opens: u16,
    /// Minutes after midnight; not later than `opens`: on the next day.
    pub closes: u16,
    /// Minutes east of UTC.
    pub offset: i16,
    /// Name of the time zone that `offset` belongs to.
    pub zone: String,
}

impl Window {
    /// Reads a window such as `Sat 02:00-04:00 Europe/Vienna` or `Mon-Fri,Sun 22:00-04:00`. Without days it opens on each day, without a zone
    /// the times are UTC. The offset of the zone is left at 0.
    ///
    /// # Errors
    /// A sentence for people.
    pub fn read(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (days, times, zone) = match *words.as_slice() {
            [times] => ("", times, "UTC"),
            [first, times] if times.contains(':') => (first, times, "UTC"),
            [times, zone] => ("", times, zone),
            [days, times, zone] => (days, times, zone),
            _ => return Err("a window has days, times and a time zone".to_owned()),
        };
        let (opens, closes) = times.split_once('-').ok_or_else(|| format!("`{times}` is no span of times"))?;
        let (opens, closes) = (minutes(opens)?, minutes(closes)?);
        Ok(Self { days: read_days(days)?, opens: opens % 1440, closes: closes % 1440, offset: 0, zone: zone.to_owned() })
    }

    /// Holds `now`, in seconds since 1970, against the window.
    pub fn is_open(&self, now: u64) -> bool {
        let local = self.local(now);
        let minute = local.rem_euclid(DAY) / 60;
        let day = weekday(local);
        let (opens, closes) = (i64::from(self.opens), i64::from(self.closes));
        if opens < closes {
            return self.days[day] && (opens..closes).contains(&minute);
        }
        (self.days[day] && minute >= opens) || (self.days[(day + 6) % 7] && minute < closes)
    }

    /// Seconds since 1970 of the next opening after `now`; `None`: the window has no day.
    pub fn next_opening(&self, now: u64) -> Option<u64> {
        let local = self.local(now);
        let midnight = local - local.rem_euclid(DAY);
        let openings = (0..=7).map(|days| midnight + days * DAY + i64::from(self.opens) * 60);
        let next = openings.into_iter().find(|opening| *opening > local && self.days[weekday(*opening)])?;
        u64::try_from(next - i64::from(self.offset) * 60).ok()
    }

    fn local(&self, now: u64) -> i64 {
        // Beyond the year 100,000 nothing opens at its time any more.
        i64::try_from(now).unwrap_or(i64::MAX).min(i64::MAX / 2) + i64::from(self.offset) * 60
    }
}

/// Number of the day of a local time, from Sunday on: the first of January 1970 was a Thursday.
fn weekday(local: i64) -> usize {
    usize::try_from((local.div_euclid(DAY) + 4).rem_euclid(7)).unwrap_or(0)
}

fn minutes(text: &str) -> Result<u16, String> {
    let bad = || format!("`{text}` is no time from 00:00 to 24:00");
    let (hour, minute) = text.split_once(':').ok_or_else(bad)?;
    let number = |text: &str| text.parse::<u16>().ok().filter(|_| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit()));
    let (hour, minute) = (number(hour).ok_or_else(bad)?, number(minute).ok_or_else(bad)?);
    let all = hour * 60 + minute;
    if minute < 60 && all <= 1440 { Ok(all) } else { Err(bad()) }
}

fn read_days(text: &str) -> Result<[bool; 7], String> {
    let mut days = [text.is_empty(); 7];
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (mut day, last) = (day_of(first)?, day_of(last)?);
        days[day] = true;
        while day != last {
            day = (day + 1) % 7;
            days[day] = true;
        }
    }
    Ok(days)
}

/// Number of a day by the first three letters of its name, or by the whole name.
fn day_of(text: &str) -> Result<usize, String> {
    let name = text.to_lowercase();
    let whole = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
    let found = DAYS.iter().zip(whole).position(|(short, whole)| name == *short || name == whole);
    found.ok_or_else(|| format!("`{text}` is no day: Mon, Tue, Wed, Thu, Fri, Sat and Sun are"))
}

/// Time without changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Freeze {
    /// Seconds since 1970.
    pub from: u64,
    /// Seconds since 1970, no more frozen; `None`: until somebody ends the freeze.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    /// Name of whoever froze.
    pub by: String,
    /// Reason for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Freeze {
    /// Holds `now`, in seconds since 1970, against the freeze. A clock that went back ends none.
    pub fn holds(&self, now: u64) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Saturday 2026-11-28 22:00 UTC.
    const SATURDAY: u64 = 1_795_903_200;

    fn window(text: &str) -> Window {
        Window::read(text).unwrap()
    }

    #[test]
    fn nm_12_a_window_over_midnight_belongs_to_its_evening() {
        let saturday = window("Sat 22:00-04:00");
        for (after, is_open) in [(0, true), (-1, false), (6 * 3_600 - 1, true), (6 * 3_600, false), (24 * 3_600, false)] {
            assert_eq!(saturday.is_open(SATURDAY.saturating_add_signed(after)), is_open, "{after}");
        }
        let east = Window { offset: 60, ..saturday };
        assert!(east.is_open(SATURDAY - 3_600) && !east.is_open(SATURDAY - 3_601));
    }

    #[test]
    fn nm_12_a_window_within_a_day_opens_on_its_days() {
        let window = window("01:00-02:00");
        assert!(window.is_open(3_600) && !window.is_open(7_200) && !window.is_open(u64::MAX));
    }

    #[test]
    fn nm_12_the_next_opening_is_told() {
        let saturday = window("Sat 22:00-04:00 Europe/Vienna");
        assert_eq!(saturday.next_opening(SATURDAY - 1), Some(SATURDAY));
        assert_eq!(saturday.next_opening(SATURDAY), Some(SATURDAY + 7 * 86_400));
        assert_eq!(Window { offset: 60, ..saturday }.next_opening(SATURDAY - 3_601), Some(SATURDAY - 3_600));
        assert_eq!(window("Fri-Sat,Mon 22:00-23:00").next_opening(SATURDAY + 1), Some(SATURDAY + 2 * 86_400));
    }

    #[test]
    fn nm_12_windows_are_read_or_refused_with_the_reason() {
        assert_eq!(window("Sat 02:00-04:00 Europe/Vienna").zone, "Europe/Vienna");
        assert_eq!(window("Fri-Mon 00:00-24:00").days, [true, true, false, false, false, true, true]);
        assert_eq!(window("20:00-22:00 Europe/Vienna").days, [true; 7]);
        for (text, why) in [
            ("Sat", "no span"),
            ("Someday 01:00-02:00", "no day"),
            ("Sat 1:00-02:00", "no time"),
            ("", "has days"),
            ("Sat 01:00-25:00", "no time"),
        ] {
            assert!(Window::read(text).unwrap_err().contains(why), "{text}");
        }
    }
}
