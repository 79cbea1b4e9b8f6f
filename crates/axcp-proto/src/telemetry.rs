//! Telemetry in datagrams: loss is tolerated and counted. Sends nothing, and keeps the last word of a peer only.
//!
//! A datagram is written as in 5.8.1. Two other forms are read, which programs of the reference implementation send: the first without the
//! sequence, the second an envelope.

use bytes::Bytes;
use prost::Message as _;

use crate::envelope::ReceivedEnvelope;
use crate::error::AxcpError;
use crate::field::{RawContent, RawFields};
use crate::message::EnvelopePayload;

/// First byte of a datagram of the specification.
const TYPE: u8 = 0xa0;
/// First byte of an envelope: the tag of its version.
const ENVELOPE: u8 = 0x08;
/// Bytes of the longest datagram.
pub const MOST_DATAGRAM: usize = 1350;
/// Datagrams a second of one peer, and so many at once.
pub const MOST_PER_SECOND: u64 = 10;

/// Telemetry of a node.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TelemetryDatagram {
    #[prost(uint64, tag = "1")]
    pub timestamp_ms: u64,
    #[prost(oneof = "TelemetryPayload", tags = "10, 11")]
    pub payload: Option<TelemetryPayload>,
}

/// Content of telemetry.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum TelemetryPayload {
    #[prost(message, tag = "10")]
    System(SystemStats),
    #[prost(message, tag = "11")]
    Tokens(TokenUsage),
}

/// State of a machine.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct SystemStats {
    #[prost(uint32, tag = "1")]
    pub cpu_percent: u32,
    #[prost(uint64, tag = "2")]
    pub mem_bytes: u64,
    #[prost(uint32, tag = "3")]
    pub temperature_c: u32,
}

/// Tokens of a model.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct TokenUsage {
    #[prost(uint32, tag = "1")]
    pub prompt_tokens: u32,
    #[prost(uint32, tag = "2")]
    pub completion_tokens: u32,
}

impl TelemetryDatagram {
    /// Reads a datagram, and its sequence, if any.
    ///
    /// # Errors
    /// When the datagram has none of the three forms.
    pub fn read(datagram: &Bytes) -> Result<(Option<u16>, Self), AxcpError> {
        if datagram.len() > MOST_DATAGRAM {
            return Err(AxcpError::TooLarge { what: "the bytes of a datagram", most: MOST_DATAGRAM });
        }
        match datagram.first() {
            Some(&TYPE) => {
                let with_sequence = datagram.get(1..).and_then(|rest| rest.split_first_chunk::<2>());
                let whole = with_sequence.and_then(|(sequence, body)| Some((Some(u16::from_be_bytes(*sequence)), body_of(body)?)));
                let bare = || Some((None, body_of(datagram.get(1..)?)?));
                whole.or_else(bare).ok_or(NO_TELEMETRY)
            }
            Some(&ENVELOPE) => {
                let Some(EnvelopePayload::Telemetry(body)) = ReceivedEnvelope::read(datagram.clone())?.payload()? else {
                    return Err(NO_TELEMETRY);
                };
                body_of(&body).map(|body| (None, body)).ok_or(NO_TELEMETRY)
            }
            Some(_) | None => Err(NO_TELEMETRY),
        }
    }

    /// Writes a datagram of the specification.
    pub fn write(&self, sequence: u16) -> Bytes {
        [&[TYPE], sequence.to_be_bytes().as_slice(), self.encode_to_vec().as_slice()].concat().into()
    }
}

const NO_TELEMETRY: AxcpError = AxcpError::Malformed("the datagram is no telemetry");

/// Reads a body of known fields only: bytes of another form could pass for unknown ones.
fn body_of(body: &[u8]) -> Option<TelemetryDatagram> {
    let is_known = RawFields::new(body).all(|field| {
        field.is_ok_and(|field| matches!((field.number, field.content), (1, RawContent::Number(_)) | (10 | 11, RawContent::Bytes(_))))
    });
    TelemetryDatagram::decode(body).ok().filter(|read| is_known && read.payload.is_some())
}

/// Telemetry of one peer, and its losses.
#[derive(Debug, Clone, Default)]
pub struct TelemetryWatch {
    last: Option<TelemetryDatagram>,
    expected: Option<u16>,
    received: u64,
    lost: u64,
    refused: u64,
    /// Datagrams allowed at once, and the time of the count.
    allowed: Option<(u64, u64)>,
}

impl TelemetryWatch {
    /// Notes a datagram that came at `now`, in milliseconds. A datagram without sense, or above the rate, is dropped and counted.
    pub fn note(&mut self, datagram: &Bytes, now: u64) {
        if !self.admits(now) {
            self.refused += 1;
            return;
        }
        match TelemetryDatagram::read(datagram) {
            Ok((sequence, read)) => {
                self.received += 1;
                self.lost += sequence.map_or(0, |sequence| self.missed(sequence));
                self.last = Some(read);
            }
            Err(_) => self.refused += 1,
        }
    }

    /// Gives the last telemetry that came.
    pub fn last(&self) -> Option<&TelemetryDatagram> {
        self.last.as_ref()
    }

    /// Gives the numbers of datagrams received, lost and refused.
    pub fn counts(&self) -> (u64, u64, u64) {
        (self.received, self.lost, self.refused)
    }

    /// Counts the sequences left out before `sequence`, which wraps around. A late one counts as none.
    fn missed(&mut self, sequence: u16) -> u64 {
        let ahead = sequence.wrapping_sub(self.expected.unwrap_or(sequence));
        if ahead >= 1 << 15 {
            self.lost = self.lost.saturating_sub(1);
            return 0;
        }
        self.expected = Some(sequence.wrapping_add(1));
        ahead.into()
    }

    fn admits(&mut self, now: u64) -> bool {
        let (left, since) = self.allowed.unwrap_or((MOST_PER_SECOND, now));
        let more = now.saturating_sub(since).saturating_mul(MOST_PER_SECOND) / 1000;
        let (left, since) = if more > 0 { (left.saturating_add(more).min(MOST_PER_SECOND), now) } else { (left, since) };
        self.allowed = Some((left.saturating_sub(1), since));
        left > 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::AxcpEnvelope;

    fn tokens(prompt_tokens: u32) -> TelemetryDatagram {
        let payload = TelemetryPayload::Tokens(TokenUsage { prompt_tokens, completion_tokens: 2 });
        TelemetryDatagram { timestamp_ms: 300, payload: Some(payload) }
    }

    #[test]
    fn xc_04_a_datagram_has_the_form_of_the_specification() {
        let payload = TelemetryPayload::System(SystemStats { cpu_percent: 42, mem_bytes: 310, temperature_c: 0 });
        let made = TelemetryDatagram { timestamp_ms: 5, payload: Some(payload) }.write(17);
        assert_eq!(made.as_ref(), b"\xa0\0\x11\x08\x05\x52\x05\x08\x2a\x10\xb6\x02");
    }

    #[test]
    fn xc_04_three_forms_are_read() {
        let whole = tokens(7).write(0x0102);
        assert_eq!(TelemetryDatagram::read(&whole), Ok((Some(0x0102), tokens(7))));
        let bare = Bytes::from([&[0xa0], &whole[3..]].concat());
        assert_eq!(TelemetryDatagram::read(&bare), Ok((None, tokens(7))));
        let payload = Some(EnvelopePayload::Telemetry(whole.slice(3..)));
        let envelope = AxcpEnvelope { version: 1, payload, ..AxcpEnvelope::default() };
        assert_eq!(TelemetryDatagram::read(&envelope.encode_to_vec().into()), Ok((None, tokens(7))));
    }

    #[test]
    fn xc_04_other_datagrams_are_refused() {
        for bad in
            [b"".as_slice(), b"\xa0", b"\xa0\0\x01", b"\xa0\0\x01\x08\x05", b"\x08\x01", b"\xa1\0\x01\x08\x05", b"\xa0\0\x01\x52\x02"]
        {
            assert!(TelemetryDatagram::read(&Bytes::from_static(bad)).is_err(), "{bad:?}");
        }
        assert_eq!(TelemetryDatagram::read(&vec![0xa0; MOST_DATAGRAM + 1].into()).unwrap_err().code().number(), 7);
    }

    #[test]
    fn xc_04_losses_are_counted_over_the_wrap() {
        let mut watch = TelemetryWatch::default();
        for (second, sequence) in [65_534_u16, 65_535, 2, 1, 3].into_iter().enumerate() {
            watch.note(&tokens(1).write(sequence), u64::try_from(second).unwrap() * 1000);
        }
        assert_eq!(watch.counts(), (5, 1, 0));
    }

    #[test]
    fn xc_04_a_flood_is_dropped_and_counted() {
        let mut watch = TelemetryWatch::default();
        (0..100).for_each(|sequence| watch.note(&tokens(1).write(sequence), 5000));
        assert_eq!(watch.counts(), (10, 0, 90));
        watch.note(&tokens(2).write(100), 6000);
        assert_eq!((watch.counts().0, watch.last()), (11, Some(&tokens(2))));
    }

    proptest! {
        #[test]
        fn xc_04_any_bytes_are_telemetry_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60), now in any::<u64>()) {
            let mut watch = TelemetryWatch::default();
            watch.note(&bytes.clone().into(), now);
            if let Ok((Some(sequence), read)) = TelemetryDatagram::read(&bytes.into()) {
                prop_assert_eq!(TelemetryDatagram::read(&read.write(sequence)), Ok((Some(sequence), read)));
            }
        }
    }
}
