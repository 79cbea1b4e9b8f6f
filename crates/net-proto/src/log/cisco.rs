//! Messages of IOS, IOS-XE, IOS-XR, NX-OS and ASA: a sequence number, a host and a time in front, each where configured, then
//! `%FACILITY-SEVERITY-MNEMONIC: text`. The forms of the RFCs are not read here.

use super::{Arrival, LogMessage, moment, year};

/// Bytes in which the mnemonic begins, if there is one.
const FRONT: usize = 256;
const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// Reads a message after its priority; `None` for a text of another form.
pub(super) fn read(text: &str, arrival: Arrival) -> Option<LogMessage> {
    let (at, id, severity) = mnemonic(text)?;
    let rest = text[at + 1 + id.len()..].trim_start().strip_prefix(':')?;
    let mut message =
        LogMessage { id: Some(id.to_owned()), severity: Some(severity), text: rest.trim().to_owned(), ..LogMessage::default() };
    read_front(text[..at].trim(), arrival, &mut message);
    Some(message)
}

/// Place of `%`, the mnemonic after it, and its severity.
fn mnemonic(text: &str) -> Option<(usize, &str, u8)> {
    let places = text.bytes().take(FRONT).enumerate().filter(|(_, byte)| *byte == b'%').map(|(at, _)| at);
    let starts_a_word = |at: &usize| text[..*at].chars().next_back().is_none_or(|before| before == ' ' || before == ':');
    places.filter(starts_a_word).find_map(|at| {
        let length = text[at + 1..].bytes().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')).count();
        let id = &text[at + 1..at + 1 + length];
        let mut parts = id.rsplitn(3, '-');
        let (name, severity, facility) = (parts.next()?, parts.next()?, parts.next()?);
        let severity = severity.parse::<u8>().ok().filter(|value| *value < 8 && severity.len() == 1)?;
        let is_named = !name.is_empty() && facility.starts_with(|first: char| first.is_ascii_uppercase());
        is_named.then_some((at, id, severity))
    })
}

/// Reads the words before the mnemonic: each ends with a colon and a space, in no order that all devices keep.
fn read_front(front: &str, arrival: Arrival, message: &mut LogMessage) {
    for part in front.split(": ").map(|part| part.trim().trim_end_matches(':').trim()).filter(|part| !part.is_empty()) {
        if part.bytes().all(|byte| byte.is_ascii_digit()) {
            continue; // The number of the message.
        }
        if let Some(time) = time(part, arrival) {
            message.time = time.known;
            if message.host.is_none() {
                message.host = time.host;
            }
        } else if let Some((card, stamp)) = part.split_once(':').filter(|(card, _)| card.contains('/')) {
            // IOS-XR: the card stands before the time without a space.
            message.program = Some(card.to_owned());
            message.time = time(stamp, arrival).and_then(|time| time.known);
        } else if part.contains('[') || part.contains(' ') {
            message.program = Some(part.to_owned());
        } else if message.host.is_none() {
            message.host = Some(part.to_owned());
        } else {
            message.program = Some(part.to_owned());
        }
    }
}

/// A stamp that was read: its time, where that can be known, and a word after it.
struct Stamp {
    known: Option<i64>,
    host: Option<String>,
}

/// Reads `*Mar  1 18:46:11.123 UTC`, `Oct 19 2025 10:00:00 fw1`, or `2025 Oct 19 10:00:00 UTC`; `None`: no stamp.
fn time(text: &str, arrival: Arrival) -> Option<Stamp> {
    // A device whose clock was never set marks its stamps with a star. With a point, its clock is set and not in step.
    let (is_set, text) = match text.strip_prefix('*') {
        Some(rest) => (false, rest),
        None => (true, text.strip_prefix('.').unwrap_or(text)),
    };
    let mut words = text.split_ascii_whitespace().peekable();
    let number = |word: &str| word.parse::<u32>().ok();
    let year_of = |word: &&str| word.len() == 4 && word.bytes().all(|byte| byte.is_ascii_digit());
    let mut dated = words.next_if(year_of).and_then(number);
    let month = words.next()?.to_ascii_lowercase();
    let month = u32::try_from(MONTHS.iter().position(|name| *name == month)?).ok()? + 1;
    let day = number(words.next()?)?;
    dated = dated.or_else(|| words.next_if(year_of).and_then(number));
    let (hour, minute, second, millisecond) = time_of_day(words.next()?)?;
    let after = words.next();
    let zone = match after {
        None => Some(arrival.zone),
        Some("UTC" | "GMT" | "Z") => Some(0),
        Some(word) if word.bytes().all(|byte| byte.is_ascii_uppercase()) && word.len() <= 5 => None, // A zone whose offset nobody knows.
        Some(_) => Some(arrival.zone),
    };
    let host = after.filter(|word| word.bytes().any(|byte| !byte.is_ascii_uppercase())).map(str::to_owned);
    let found = match dated {
        Some(year) => i32::try_from(year).ok(),
        None => Some(year((month, day, hour, minute, second), arrival)),
    };
    let known = zone.zip(found).and_then(|(zone, year)| moment(year, (month, day), (hour, minute, second, millisecond), zone));
    Some(Stamp { known: known.filter(|_| is_set), host })
}

pub(super) fn time_of_day(text: &str) -> Option<(u32, u32, u32, u32)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let mut parts = whole.split(':').map(str::parse::<u32>);
    let (Some(Ok(hour)), Some(Ok(minute)), Some(Ok(second)), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
        return None;
    };
    let thousandths: String = fraction.chars().chain("000".chars()).take(3).collect();
    Some((hour, minute, second, thousandths.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Arrival = Arrival { at: 1_760_850_000_000, zone: 0 };
    const STAMP: Option<i64> = Some(1_760_844_541_123);

    fn message(text: &str) -> LogMessage {
        LogMessage::read(text.as_bytes(), NOW)
    }

    #[test]
    fn nm_10_messages_of_cisco_devices() {
        let text = "Line protocol on Interface Loopback100, changed state to up";
        let cases = [
            ("<189>44: Oct 19 03:29:01.123: %LINEPROTO-5-UPDOWN: ", None, None, STAMP),
            ("<189>44: r1: .Oct 19 03:29:01.123 UTC: %LINEPROTO-5-UPDOWN: ", Some("r1"), None, STAMP),
            ("<189>44: r1: *Mar  1 00:00:11.123: %LINEPROTO-5-UPDOWN: ", Some("r1"), None, None),
            ("<189>Oct 19 2025 03:29:01.123 fw1 : %LINEPROTO-5-UPDOWN: ", Some("fw1"), None, STAMP),
            ("<189>: 2025 Oct 19 03:29:01.123 UTC: %LINEPROTO-5-UPDOWN: ", None, None, STAMP),
            ("<189>44: RP/0/RSP0/CPU0:Oct 19 03:29:01.123 : ifmgr[227]: %LINEPROTO-5-UPDOWN : ", None, Some("ifmgr[227]"), STAMP),
            ("<189>44: Oct 19 03:29:01.123 CEST: %LINEPROTO-5-UPDOWN: ", None, None, None),
            ("<189>%LINEPROTO-5-UPDOWN: ", None, None, None),
        ];
        for (front, host, program, time) in cases {
            let read = message(&format!("{front}{text}"));
            assert_eq!((read.facility, read.severity), (Some(23), Some(5)), "{front}");
            assert_eq!(read.id.as_deref(), Some("LINEPROTO-5-UPDOWN"), "{front}");
            assert_eq!((read.host.as_deref(), read.program.as_deref()), (host, program), "{front}");
            assert_eq!(read.time, time, "{front}");
            assert_eq!(read.text, text, "{front}");
        }
    }

    #[test]
    fn a_longer_facility_is_read_whole() {
        let read = message("<187>9: RP/0/0/CPU0:Oct 19 03:29:01 : x[1]: %PKT_INFRA-LINK-3-UPDOWN : Interface down");
        assert_eq!((read.id.as_deref(), read.severity), (Some("PKT_INFRA-LINK-3-UPDOWN"), Some(3)));
        let read = message("<166>%ASA-6-302013: Built outbound");
        assert_eq!((read.id.as_deref(), read.text.as_str()), (Some("ASA-6-302013"), "Built outbound"));
    }

    #[test]
    fn a_percent_sign_is_no_mnemonic() {
        for text in ["<34>Oct 11 22:14:15 h df: disk 90% full", "<34>Oct 11 22:14:15 h p: %foo-bar", "<34>Oct 11 22:14:15 h p: 5%-9-X: y"] {
            assert_eq!(message(text).id, None, "{text}");
        }
    }
}
