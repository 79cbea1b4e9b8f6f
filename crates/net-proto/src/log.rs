//! Messages that devices log: RFC 5424, RFC 3164, and the forms of Cisco and of FRR's files, which are neither. Every text is read as far as it makes sense; none is
//! refused. No clock: the time of arrival is an argument.

mod cisco;
mod file;
mod frame;
mod frr;
mod tail;

use chrono::{DateTime, Datelike, FixedOffset, TimeZone, Timelike, Utc};
use syslog_loose::{IncompleteDate, ProcId, Variant};

pub use file::FileLines;
pub use frame::LogFramer;
pub use tail::{LogLine, LogTail};

/// Bytes of a message that are looked at; the rest is cut off. RFC 5424, section 6.1, asks a receiver for 2,048.
pub const LONGEST: usize = 8_192;
/// Largest `PRIVAL` (RFC 5424, section 6.2.1).
const HIGHEST_PRIORITY: u16 = 191;

/// Time and place of a receiver, for time stamps without year or zone.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Milliseconds since 1970.
    pub at: i64,
    /// Seconds that the clocks of the device are ahead of UTC, where their stamps name no zone.
    pub zone: i32,
}

/// A message of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogMessage {
    /// 0 (kernel) to 23 (local7).
    pub facility: Option<u8>,
    /// 0 (emergency) to 7 (debug).
    pub severity: Option<u8>,
    /// Time of the device, in milliseconds since 1970; `None` where the stamp is missing, not trusted by the device, or in an unknown zone.
    pub time: Option<i64>,
    pub host: Option<String>,
    /// Program with its process: `bgpd[123]`.
    pub program: Option<String>,
    /// `MSGID` of RFC 5424, or Cisco's mnemonic: `LINEPROTO-5-UPDOWN`.
    pub id: Option<String>,
    /// Structured data of RFC 5424: element, name and value.
    pub fields: Vec<(String, String, String)>,
    pub text: String,
}

impl LogMessage {
    /// Reads a message as it came in a datagram or a frame.
    pub fn read(bytes: &[u8], arrival: Arrival) -> Self {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(LONGEST)]);
        // A mark of Unicode's byte order may stand before the text (RFC 5424, section 6.4), and old senders end with a zero.
        let text = text.trim_matches(|c: char| c == '\0' || c == '\u{feff}' || c.is_whitespace());
        let (priority, rest) = priority(text);
        if let Some(mut message) = cisco::read(rest, arrival) {
            message.facility = priority.map(|value| value.0);
            return message;
        }
        if let (None, Some(message)) = (priority, frr::read(rest, arrival)) {
            return message;
        }
        let zone = FixedOffset::east_opt(arrival.zone);
        let read = syslog_loose::parse_message_with_year_tz(text, |date| year(date, arrival), zone, Variant::Either);
        let owned = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let process = read.procid.as_ref().map(|id| match id {
            ProcId::PID(number) => number.to_string(),
            ProcId::Name(name) => (*name).to_owned(),
        });
        let program = read.appname.and_then(owned);
        Self {
            facility: priority.map(|value| value.0),
            severity: priority.map(|value| value.1),
            time: read.timestamp.map(|time| time.timestamp_millis()),
            host: read.hostname.and_then(owned),
            program: match (program, process) {
                (Some(program), Some(process)) => Some(format!("{program}[{process}]")),
                (program, process) => program.or(process),
            },
            id: read.msgid.and_then(owned),
            fields: fields(&read),
            text: read.msg.trim_matches(|c: char| c == '\u{feff}' || c.is_whitespace()).to_owned(),
        }
    }

    /// The usual name of the severity.
    pub fn severity_name(&self) -> Option<&'static str> {
        const NAMES: [&str; 8] = ["emergency", "alert", "critical", "error", "warning", "notice", "informational", "debug"];
        NAMES.get(usize::from(self.severity?)).copied()
    }
}

fn fields(read: &syslog_loose::Message<&str>) -> Vec<(String, String, String)> {
    let elements = read.structured_data.iter();
    elements.flat_map(|element| element.params().map(|(name, value)| (element.id.to_owned(), name.to_string(), value))).collect()
}

/// Facility and severity from `<N>`, and the text after it.
fn priority(text: &str) -> (Option<(u8, u8)>, &str) {
    let read = || {
        let (digits, rest) = text.strip_prefix('<')?.split_once('>')?;
        let is_number = (1..=3).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
        let value: u16 = is_number.then(|| digits.parse().ok()).flatten().filter(|value| *value <= HIGHEST_PRIORITY)?;
        Some(((u8::try_from(value / 8).ok()?, u8::try_from(value % 8).ok()?), rest))
    };
    read().map_or((None, text), |(value, rest)| (Some(value), rest))
}

/// The year in which a date without one lies nearest to the arrival: a message of December may arrive in January.
fn year((month, day, hour, minute, second): IncompleteDate, arrival: Arrival) -> i32 {
    let now = DateTime::<Utc>::from_timestamp_millis(arrival.at).unwrap_or_default();
    let distance = |year: &i32| {
        let moment = Utc.with_ymd_and_hms(*year, month, day, hour, minute, second.min(59)).single();
        moment.map_or(i64::MAX, |moment| moment.timestamp_millis().abs_diff(arrival.at).try_into().unwrap_or(i64::MAX))
    };
    (now.year() - 1..=now.year() + 1).min_by_key(distance).unwrap_or(now.year())
}

/// Milliseconds since 1970 of a date and a time of day in a zone.
fn moment(year: i32, (month, day): (u32, u32), (hour, minute, second, millisecond): (u32, u32, u32, u32), zone: i32) -> Option<i64> {
    let zone = FixedOffset::east_opt(zone)?;
    let moment = zone.with_ymd_and_hms(year, month, day, hour, minute, second).single()?;
    Some(moment.with_nanosecond(millisecond.checked_mul(1_000_000)?)?.timestamp_millis())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 2026-01-01T00:00:30Z
    const NEW_YEAR: Arrival = Arrival { at: 1_767_225_630_000, zone: 0 };

    fn read(text: &str) -> LogMessage {
        LogMessage::read(text.as_bytes(), NEW_YEAR)
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn nm_10_a_message_of_rfc_5424() {
        let text = "<165>1 2025-10-19T03:29:01.123Z r1 bgpd 77 ADJ [ex@1 a=\"b \\\"c\\\"\"] \u{feff}neighbor 10.0.12.2 Down";
        let message = read(text);
        assert_eq!((message.facility, message.severity, message.severity_name()), (Some(20), Some(5), Some("notice")));
        assert_eq!((message.host, message.program, message.id), (some("r1"), some("bgpd[77]"), some("ADJ")));
        assert_eq!(message.fields, vec![("ex@1".to_owned(), "a".to_owned(), "b \"c\"".to_owned())]);
        assert_eq!(message.text, "neighbor 10.0.12.2 Down");
        assert_eq!(message.time, Some(1_760_844_541_123));
    }

    #[test]
    fn nm_10_a_message_of_rfc_3164() {
        let message = read("<34>Oct 11 22:14:15 mymachine su[9]: 'su root' failed for lonvick on /dev/pts/8");
        assert_eq!((message.facility, message.severity), (Some(4), Some(2)));
        assert_eq!((message.host, message.program), (some("mymachine"), some("su[9]")));
        assert_eq!(message.text, "'su root' failed for lonvick on /dev/pts/8");
        assert_eq!(message.time, Some(1_760_220_855_000));
    }

    #[test]
    fn a_date_without_a_year_is_the_nearest_one() {
        assert_eq!(read("<34>Dec 31 23:59:59 h p: x").time, Some(1_767_225_599_000));
        assert_eq!(read("<34>Jan  1 00:00:10 h p: x").time, Some(1_767_225_610_000));
    }

    #[test]
    fn a_zone_is_the_one_of_the_device() {
        let berlin = Arrival { zone: 3600, ..NEW_YEAR };
        let message = LogMessage::read(b"<34>Jan  1 01:00:10 h p: x", berlin);
        assert_eq!(message.time, Some(1_767_225_610_000));
    }

    #[test]
    fn text_of_any_kind_is_kept() {
        assert_eq!(read("no priority at all").text, "no priority at all");
        let message = read("<999>x");
        assert_eq!((message.facility, message.text.is_empty()), (None, false));
        assert_eq!(read("").text, "");
        assert!(LogMessage::read(&[0xff; 20_000], NEW_YEAR).text.chars().count() <= LONGEST);
    }

    proptest! {
        #[test]
        fn nothing_stops_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..300), at in any::<i64>(), zone in any::<i32>()) {
            let message = LogMessage::read(&bytes, Arrival { at, zone });
            prop_assert!(message.severity.is_none_or(|severity| severity < 8));
        }

        #[test]
        fn nothing_like_a_message_stops_the_reader(text in "(<[0-9]{0,4}>)?(1 )?[A-Z*.]?[a-z]{3} +[0-9]{1,2}( [0-9]{4})? [0-9:.]{0,13}( [A-Z]{1,4})?:? ?%[A-Z]{1,8}-[0-9]-[A-Z]{1,8} ?: .{0,20}") {
            let message = read(&text);
            prop_assert!(message.severity.is_none_or(|severity| severity < 8));
        }
    }
}
