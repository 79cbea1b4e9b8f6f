//! PDUs with their bindings, and messages of v2c around them. Knows no meaning of an object.

use std::fmt;

use super::ber::{self, BerReader};
use super::{Oid, SnmpError};

/// Version number of v2c in messages.
const V2C: i64 = 1;

const ADDRESS: u8 = 0x40;
const COUNTER: u8 = 0x41;
const GAUGE: u8 = 0x42;
const TICKS: u8 = 0x43;
const OPAQUE: u8 = 0x44;
const COUNTER64: u8 = 0x46;
const NO_OBJECT: u8 = 0x80;
const NO_INSTANCE: u8 = 0x81;
const END: u8 = 0x82;

/// Value of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnmpValue {
    Integer(i64),
    Octets(Vec<u8>),
    Object(Oid),
    Address([u8; 4]),
    Counter(u32),
    Gauge(u32),
    /// Hundredths of a second.
    Ticks(u32),
    Opaque(Vec<u8>),
    Counter64(u64),
    Null,
    /// The agent has no such object.
    NoObject,
    /// The agent has the object, but not this instance.
    NoInstance,
    /// Nothing comes behind this object.
    End,
}

impl SnmpValue {
    fn read(tag: u8, content: &[u8]) -> Result<Self, SnmpError> {
        let number = || u32::try_from(ber::unsigned(content)?).map_err(|_| SnmpError::Malformed("a number out of range"));
        Ok(match tag {
            ber::INTEGER => Self::Integer(ber::integer(content)?),
            ber::OCTETS => Self::Octets(content.to_vec()),
            ber::OBJECT => Self::Object(Oid::read(content)?),
            ber::NULL => Self::Null,
            ADDRESS => Self::Address(content.try_into().map_err(|_| SnmpError::Malformed("an address of another size than four bytes"))?),
            COUNTER => Self::Counter(number()?),
            GAUGE => Self::Gauge(number()?),
            TICKS => Self::Ticks(number()?),
            OPAQUE => Self::Opaque(content.to_vec()),
            COUNTER64 => Self::Counter64(ber::unsigned(content)?),
            NO_OBJECT => Self::NoObject,
            NO_INSTANCE => Self::NoInstance,
            END => Self::End,
            _ => return Err(SnmpError::Malformed("a value of unknown type")),
        })
    }

    fn write(&self) -> Vec<u8> {
        match self {
            Self::Integer(number) => ber::write_integer(*number),
            Self::Octets(bytes) => ber::element(ber::OCTETS, bytes),
            Self::Object(oid) => ber::element(ber::OBJECT, &oid.write()),
            Self::Null => ber::element(ber::NULL, &[]),
            Self::Address(bytes) => ber::element(ADDRESS, bytes),
            Self::Counter(number) => ber::write_unsigned(COUNTER, (*number).into()),
            Self::Gauge(number) => ber::write_unsigned(GAUGE, (*number).into()),
            Self::Ticks(number) => ber::write_unsigned(TICKS, (*number).into()),
            Self::Opaque(bytes) => ber::element(OPAQUE, bytes),
            Self::Counter64(number) => ber::write_unsigned(COUNTER64, *number),
            Self::NoObject => ber::element(NO_OBJECT, &[]),
            Self::NoInstance => ber::element(NO_INSTANCE, &[]),
            Self::End => ber::element(END, &[]),
        }
    }

    /// Checks for a value that says that there is none.
    pub const fn is_absent(&self) -> bool {
        matches!(self, Self::NoObject | Self::NoInstance | Self::End | Self::Null)
    }

    /// The value as a number, where it is one.
    pub fn number(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            Self::Counter(number) | Self::Gauge(number) | Self::Ticks(number) => Some((*number).into()),
            Self::Counter64(number) => i64::try_from(*number).ok(),
            Self::Octets(_) | Self::Object(_) | Self::Address(_) | Self::Opaque(_) => None,
            Self::Null | Self::NoObject | Self::NoInstance | Self::End => None,
        }
    }
}

impl fmt::Display for SnmpValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => number.fmt(f),
            Self::Counter(number) | Self::Gauge(number) | Self::Ticks(number) => number.fmt(f),
            Self::Counter64(number) => number.fmt(f),
            Self::Octets(bytes) => f.write_str(&octets(bytes)),
            Self::Opaque(bytes) => f.write_str(&hexadecimal(bytes)),
            Self::Object(oid) => oid.fmt(f),
            Self::Address([a, b, c, d]) => write!(f, "{a}.{b}.{c}.{d}"),
            Self::Null => f.write_str("null"),
            Self::NoObject => f.write_str("no such object"),
            Self::NoInstance => f.write_str("no such instance"),
            Self::End => f.write_str("nothing more"),
        }
    }
}

/// Text of octets: as they are where they are printable, otherwise two digits each.
pub(super) fn octets(bytes: &[u8]) -> String {
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    match std::str::from_utf8(bytes) {
        Ok(text) if text.chars().all(|c| !c.is_control() || matches!(c, '\n' | '\r' | '\t')) => text.to_owned(),
        _ => hexadecimal(bytes),
    }
}

/// Two digits a byte, with colons between, as MAC addresses are written.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 3);
    for (at, byte) in bytes.iter().enumerate() {
        out.push_str(if at == 0 { "" } else { ":" });
        out.push_str(&format!("{byte:02x}"));
    }
    out
}

/// Kinds of PDUs, without those of v1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PduKind {
    Get,
    GetNext,
    Response,
    Set,
    GetBulk,
    Inform,
    Trap,
    Report,
}

const KINDS: [(PduKind, u8); 8] = [
    (PduKind::Get, 0xa0),
    (PduKind::GetNext, 0xa1),
    (PduKind::Response, 0xa2),
    (PduKind::Set, 0xa3),
    (PduKind::GetBulk, 0xa5),
    (PduKind::Inform, 0xa6),
    (PduKind::Trap, 0xa7),
    (PduKind::Report, 0xa8),
];

/// A PDU. Of a `GetBulk`, `status` is the number of objects that are asked for once, and `index` how often the others are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pdu {
    pub kind: PduKind,
    pub id: i32,
    pub status: u32,
    pub index: u32,
    pub bindings: Vec<(Oid, SnmpValue)>,
}

impl Pdu {
    /// A request without numbers beside its bindings.
    pub fn new(kind: PduKind, bindings: Vec<(Oid, SnmpValue)>) -> Self {
        Self { kind, id: 0, status: 0, index: 0, bindings }
    }

    /// A request for the values of objects.
    pub fn asking(kind: PduKind, objects: impl IntoIterator<Item = Oid>) -> Self {
        Self::new(kind, objects.into_iter().map(|oid| (oid, SnmpValue::Null)).collect())
    }

    pub(super) fn read(reader: &mut BerReader<'_>) -> Result<Self, SnmpError> {
        let (tag, content) = reader.element()?;
        let kind = KINDS.iter().find(|(_, known)| *known == tag).ok_or(SnmpError::Malformed("a PDU of unknown kind"))?.0;
        let mut fields = BerReader::new(content);
        let id = i32::try_from(fields.integer()?).map_err(|_| SnmpError::Malformed("a number out of range"))?;
        let (status, index) = (fields.count()?, fields.count()?);
        let mut list = BerReader::new(fields.content(ber::SEQUENCE)?);
        let mut bindings = Vec::new();
        while !list.is_empty() {
            let mut binding = BerReader::new(list.content(ber::SEQUENCE)?);
            let oid = Oid::read(binding.content(ber::OBJECT)?)?;
            let (tag, content) = binding.element()?;
            bindings.push((oid, SnmpValue::read(tag, content)?));
        }
        Ok(Self { kind, id, status, index, bindings })
    }

    pub(super) fn write(&self) -> Vec<u8> {
        let tag = KINDS.iter().find(|(kind, _)| *kind == self.kind).map_or(0xa0, |(_, tag)| *tag);
        let mut list = Vec::new();
        for (oid, value) in &self.bindings {
            list.extend(ber::sequence(&[&ber::element(ber::OBJECT, &oid.write()), &value.write()]));
        }
        let numbers = [i64::from(self.id), self.status.into(), self.index.into()].map(ber::write_integer);
        ber::element(tag, &[numbers.concat(), ber::element(ber::SEQUENCE, &list)].concat())
    }
}

/// A message of v2c.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommunityMessage {
    pub community: Vec<u8>,
    pub pdu: Pdu,
}

impl CommunityMessage {
    /// Reads a message; `None` for v3.
    ///
    /// # Errors
    /// The bytes are no message of v2c or v3.
    pub fn read(bytes: &[u8]) -> Result<Option<Self>, SnmpError> {
        let mut message = BerReader::only(bytes)?;
        match message.integer()? {
            V2C => {}
            3 => return Ok(None),
            other => return Err(SnmpError::Version(other)),
        }
        let community = message.content(ber::OCTETS)?.to_vec();
        Ok(Some(Self { community, pdu: Pdu::read(&mut message)? }))
    }

    /// Bytes of the message.
    pub fn write(&self) -> Vec<u8> {
        ber::sequence(&[&ber::write_integer(V2C), &ber::element(ber::OCTETS, &self.community), &self.pdu.write()])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value() -> impl Strategy<Value = SnmpValue> {
        prop_oneof![
            any::<i64>().prop_map(SnmpValue::Integer),
            prop::collection::vec(any::<u8>(), 0..300).prop_map(SnmpValue::Octets),
            any::<u32>().prop_map(SnmpValue::Gauge),
            any::<u64>().prop_map(SnmpValue::Counter64),
            any::<[u8; 4]>().prop_map(SnmpValue::Address),
            Just(SnmpValue::End),
        ]
    }

    proptest! {
        #[test]
        fn nm_10_messages_of_v2c_come_out_as_they_went_in(id in any::<i32>(), values in prop::collection::vec(value(), 0..9), kind in 0usize..8) {
            let bindings = values.into_iter().enumerate().map(|(at, value)| (Oid::new(&[1, 3, at as u32]), value)).collect();
            let pdu = Pdu { kind: KINDS[kind].0, id, status: 7, index: 1, bindings };
            let message = CommunityMessage { community: b"public".to_vec(), pdu };
            prop_assert_eq!(CommunityMessage::read(&message.write()), Ok(Some(message)));
        }

        #[test]
        fn nm_10_any_bytes_are_a_message_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let whole = ber::sequence(&[&ber::write_integer(V2C), &ber::element(ber::OCTETS, b"x"), &bytes]);
            for bytes in [bytes, whole] {
                if let Ok(Some(message)) = CommunityMessage::read(&bytes) {
                    prop_assert!(message.pdu.bindings.len() <= bytes.len());
                }
            }
        }
    }

    #[test]
    fn texts_are_texts_and_other_octets_are_numbers() {
        assert_eq!(octets("Zürich".as_bytes()), "Zürich");
        assert_eq!(octets(&[0x52, 0x54, 0, 1, 2, 3]), "52:54:00:01:02:03");
        assert_eq!(SnmpValue::Address([10, 0, 0, 1]).to_string(), "10.0.0.1");
    }
}
