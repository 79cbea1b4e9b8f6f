//! Time as rules ask for it. Only reads the clock.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use policy::decide::Moment;

/// Reads the present time in a zone.
pub fn now(zone: &TimeZone) -> Moment {
    at(Timestamp::now(), zone)
}

/// Converts any other time.
pub fn at(when: Timestamp, zone: &TimeZone) -> Moment {
    let local = zone.to_datetime(when);
    Moment {
        unix: when.as_second(),
        hour: i64::from(local.hour()),
        minute: i64::from(local.minute()),
        weekday: i64::from(local.weekday().to_monday_one_offset()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hour_is_that_of_the_zone() {
        let paris = TimeZone::get("Europe/Paris").unwrap();
        let (here, there) = (now(&TimeZone::UTC), now(&paris));
        let ahead = (there.hour - here.hour).rem_euclid(24);
        assert!((1..=2).contains(&ahead), "{here:?} {there:?}");
        assert!((1..=7).contains(&here.weekday) && here.unix > 1_700_000_000);
    }
}
