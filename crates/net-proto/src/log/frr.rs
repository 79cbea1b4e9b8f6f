//! Lines of FRR's own log files: date, time, daemon, `[mnemonic]`, `[EC number]`, text. The zone is the device's. Reads no other form.

use super::{Arrival, LogMessage, moment};

/// Reads `2026/11/24 18:42:14.123 ZEBRA: [SWQK6-6JY63][EC 4043309074] text`; `None` for a line of another form.
pub(super) fn read(text: &str, arrival: Arrival) -> Option<LogMessage> {
    let (date, rest) = text.split_once(' ')?;
    let (time, rest) = rest.split_once(' ')?;
    let (program, rest) = rest.split_once(": ")?;
    let is_daemon = (1..=16).contains(&program.len()) && program.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    let mut date = date.split('/').map(str::parse::<u32>);
    let (Some(Ok(year)), Some(Ok(month)), Some(Ok(day)), None) = (date.next(), date.next(), date.next(), date.next()) else { return None };
    let time = super::cisco::time_of_day(time).filter(|_| is_daemon)?;
    let (id, text) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((id, text)) if id.len() == 11 => (Some(id.to_owned()), text.trim_start()),
        _ => (None, rest),
    };
    let time = i32::try_from(year).ok().and_then(|year| moment(year, (month, day), time, arrival.zone));
    Some(LogMessage { time, program: Some(program.to_owned()), id, text: text.to_owned(), ..LogMessage::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Arrival = Arrival { at: 1_760_850_000_000, zone: 3600 };

    #[test]
    fn nm_10_lines_of_a_log_file_of_frr() {
        let line = "2025/10/19 04:29:01 BGP: [M59KS-A3ZXZ] rcvd End-of-RIB from 10.0.12.2";
        let message = LogMessage::read(line.as_bytes(), NOW);
        assert_eq!((message.program.as_deref(), message.id.as_deref()), (Some("BGP"), Some("M59KS-A3ZXZ")));
        assert_eq!((message.text.as_str(), message.time), ("rcvd End-of-RIB from 10.0.12.2", Some(1_760_844_541_000)));
        let message = LogMessage::read(b"2025/10/19 04:29:01.123 ZEBRA: [SWQK6-6JY63][EC 4043309074] Failed", NOW);
        assert_eq!((message.text.as_str(), message.time), ("[EC 4043309074] Failed", Some(1_760_844_541_123)));
        assert!(read("2025/10/19 04:29:01 Bgp 1: x", NOW).is_none() && read("2025/13 04:29:01 BGP: x", NOW).is_none());
    }
}
