//! Times at which a device may be changed. Reads no clock and no time zones: an offset from UTC comes with each window.

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
}

impl Window {
    /// Holds `now`, in seconds since 1970, against the window.
    pub fn is_open(&self, now: u64) -> bool {
        let local = i64::try_from(now).unwrap_or(i64::MAX).saturating_add(i64::from(self.offset) * 60);
        let minute = local.rem_euclid(86_400) / 60;
        // The first of January 1970 was a Thursday.
        let day = usize::try_from((local.div_euclid(86_400) + 4).rem_euclid(7)).unwrap_or(0);
        let (opens, closes) = (i64::from(self.opens), i64::from(self.closes));
        if opens < closes {
            return self.days[day] && (opens..closes).contains(&minute);
        }
        (self.days[day] && minute >= opens) || (self.days[(day + 6) % 7] && minute < closes)
    }
}

/// Time without changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Freeze {
    /// Seconds since 1970.
    pub from: u64,
    /// Seconds since 1970, no more frozen.
    pub until: u64,
    /// Reason for people.
    pub reason: String,
}

impl Freeze {
    /// Holds `now`, in seconds since 1970, against the freeze.
    pub fn holds(&self, now: u64) -> bool {
        (self.from..self.until).contains(&now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Saturday 2026-11-28 22:00 UTC.
    const SATURDAY: u64 = 1_795_903_200;

    #[test]
    fn nm_12_a_window_over_midnight_belongs_to_its_evening() {
        let saturday = [false, false, false, false, false, false, true];
        let window = Window { days: saturday, opens: 22 * 60, closes: 4 * 60, offset: 0 };
        for (after, is_open) in [(0, true), (-1, false), (6 * 3_600 - 1, true), (6 * 3_600, false), (24 * 3_600, false)] {
            assert_eq!(window.is_open(SATURDAY.saturating_add_signed(after)), is_open, "{after}");
        }
        let east = Window { offset: 60, ..window };
        assert!(east.is_open(SATURDAY - 3_600) && !east.is_open(SATURDAY - 3_601));
    }

    #[test]
    fn nm_12_a_window_within_a_day_opens_on_its_days() {
        let window = Window { days: [true; 7], opens: 60, closes: 120, offset: 0 };
        assert!(window.is_open(3_600) && !window.is_open(7_200) && !window.is_open(u64::MAX));
    }
}
