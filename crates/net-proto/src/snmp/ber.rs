//! The part of BER that SNMP uses: tags of one byte, definite lengths. Each byte is read once; nothing is copied before it is wanted.

use super::SnmpError;

pub(super) const INTEGER: u8 = 0x02;
pub(super) const OCTETS: u8 = 0x04;
pub(super) const NULL: u8 = 0x05;
pub(super) const OBJECT: u8 = 0x06;
pub(super) const SEQUENCE: u8 = 0x30;

/// Elements one after another.
#[derive(Clone, Copy, Debug)]
pub(super) struct BerReader<'a> {
    rest: &'a [u8],
}

impl<'a> BerReader<'a> {
    pub(super) const fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    /// Elements within a sequence that makes up all the bytes; bytes behind it are refused.
    pub(super) fn only(bytes: &'a [u8]) -> Result<Self, SnmpError> {
        let mut outer = Self::new(bytes);
        let inner = outer.content(SEQUENCE)?;
        if outer.is_empty() { Ok(Self::new(inner)) } else { Err(SnmpError::Malformed("bytes behind the message")) }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Bytes that are not read yet.
    pub(super) const fn left(&self) -> usize {
        self.rest.len()
    }

    /// Tag and content of the next element.
    pub(super) fn element(&mut self) -> Result<(u8, &'a [u8]), SnmpError> {
        let cut = SnmpError::Malformed("an element is cut off");
        let [tag, first, rest @ ..] = self.rest else { return Err(cut) };
        let (length, rest) = match first {
            0..=0x7f => (usize::from(*first), rest),
            0x81..=0x84 => {
                let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f)).ok_or(cut.clone())?;
                (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
            }
            _ => return Err(SnmpError::Malformed("a length of unknown form")),
        };
        let (content, rest) = rest.split_at_checked(length).ok_or(cut)?;
        self.rest = rest;
        Ok((*tag, content))
    }

    /// Content of the next element, which has this tag.
    pub(super) fn content(&mut self, tag: u8) -> Result<&'a [u8], SnmpError> {
        let (found, content) = self.element()?;
        if found == tag { Ok(content) } else { Err(SnmpError::Malformed("an element of another type")) }
    }

    pub(super) fn integer(&mut self) -> Result<i64, SnmpError> {
        integer(self.content(INTEGER)?)
    }

    /// An integer from 0 to 2^31 - 1, as counts and times are.
    pub(super) fn count(&mut self) -> Result<u32, SnmpError> {
        let number = self.integer()?;
        i32::try_from(number).ok().and_then(|number| u32::try_from(number).ok()).ok_or(SnmpError::Malformed("a number out of range"))
    }
}

pub(super) fn integer(content: &[u8]) -> Result<i64, SnmpError> {
    if content.is_empty() || content.len() > 8 {
        return Err(SnmpError::Malformed("an integer of unknown size"));
    }
    let sign = if content[0] & 0x80 == 0 { 0 } else { -1 };
    Ok(content.iter().fold(sign, |number, byte| number << 8 | i64::from(*byte)))
}

/// A number without sign, with up to one byte in front of its eight.
pub(super) fn unsigned(content: &[u8]) -> Result<u64, SnmpError> {
    let digits = if let [0, rest @ ..] = content { rest } else { content };
    if content.is_empty() || digits.len() > 8 {
        return Err(SnmpError::Malformed("a number of unknown size"));
    }
    Ok(digits.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// An element with its content.
pub(super) fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len() + 6);
    out.push(tag);
    let length = content.len();
    if length < 0x80 {
        out.push(length as u8);
    } else {
        let bytes = (length as u32).to_be_bytes();
        let skipped = bytes.iter().take_while(|byte| **byte == 0).count();
        out.push(0x80 | (bytes.len() - skipped) as u8);
        out.extend_from_slice(&bytes[skipped..]);
    }
    out.extend_from_slice(content);
    out
}

pub(super) fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    element(SEQUENCE, &parts.concat())
}

pub(super) fn write_integer(number: i64) -> Vec<u8> {
    let bytes = number.to_be_bytes();
    let is_surplus = |at: usize| {
        let sign = if bytes[at + 1] & 0x80 == 0 { 0 } else { 0xff };
        bytes[at] == sign
    };
    let skipped = (0..7).take_while(|at| is_surplus(*at)).count();
    element(INTEGER, &bytes[skipped..])
}

pub(super) fn write_unsigned(tag: u8, number: u64) -> Vec<u8> {
    let mut bytes = vec![0];
    bytes.extend_from_slice(&number.to_be_bytes());
    let skipped = (0..8).take_while(|at| bytes[*at] == 0 && bytes[at + 1] & 0x80 == 0).count();
    element(tag, &bytes[skipped..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_come_out_as_they_went_in(number in any::<i64>(), positive in any::<u64>(), size in 0usize..70_000) {
            let bytes = write_integer(number);
            prop_assert_eq!(BerReader::new(&bytes).integer(), Ok(number));
            let bytes = write_unsigned(0x46, positive);
            prop_assert_eq!(BerReader::new(&bytes).content(0x46).and_then(unsigned), Ok(positive));
            let bytes = element(OCTETS, &vec![7; size]);
            prop_assert_eq!(BerReader::new(&bytes).content(OCTETS).map(<[u8]>::len), Ok(size));
        }
    }

    #[test]
    fn what_is_no_element_is_refused() {
        for bytes in
            [&b""[..], b"\x02", b"\x02\x01", b"\x02\x80\x00", b"\x02\x85\0\0\0\0\x01\x01", b"\x04\x84\xff\xff\xff\xff", b"\x02\x00"]
        {
            assert!(BerReader::new(bytes).integer().is_err(), "{bytes:?}");
        }
        assert!(BerReader::only(b"\x30\x00\x00").is_err());
    }
}
