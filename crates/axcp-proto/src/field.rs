//! Fields of a protobuf message, found in its bytes and left there. Knows no message: numbers and wire types only.
//!
//! A library that makes a value of a message drops unknown fields. Here the bytes stay, for relays and for signatures.

use std::ops::Range;

use crate::error::AxcpError;

/// Content of a field, by its wire type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RawContent {
    Number(u64),
    /// Place of text, bytes or a message.
    Bytes(Range<usize>),
    /// Eight or four bytes: no field of AXCP's envelope.
    Fixed,
}

/// A field and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RawField {
    pub(crate) number: u32,
    pub(crate) content: RawContent,
    /// Place of the whole field, tag included.
    pub(crate) place: Range<usize>,
}

/// Walk over the fields of a message, once and forward.
pub(crate) struct RawFields<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> RawFields<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    fn varint(&mut self) -> Result<u64, AxcpError> {
        let mut number = 0;
        for shift in (0..70).step_by(7) {
            let byte = *self.text.get(self.at).ok_or(AxcpError::Malformed("a number has no end"))?;
            self.at += 1;
            if shift == 63 && byte > 1 {
                return Err(AxcpError::Malformed("a number has more than 64 bits"));
            }
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(AxcpError::Malformed("a number has more than 64 bits"))
    }

    fn skip(&mut self, length: u64) -> Result<Range<usize>, AxcpError> {
        let left = self.text.len() - self.at;
        let length = usize::try_from(length).ok().filter(|length| *length <= left);
        let length = length.ok_or(AxcpError::Malformed("a field is longer than its message"))?;
        let start = self.at;
        self.at += length;
        Ok(start..self.at)
    }

    fn field(&mut self) -> Result<RawField, AxcpError> {
        let start = self.at;
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).ok().filter(|number| (1..1 << 29).contains(number));
        let number = number.ok_or(AxcpError::Malformed("a field has a number that no field may have"))?;
        let content = match tag & 7 {
            0 => RawContent::Number(self.varint()?),
            1 => self.skip(8).map(|_| RawContent::Fixed)?,
            2 => {
                let length = self.varint()?;
                RawContent::Bytes(self.skip(length)?)
            }
            5 => self.skip(4).map(|_| RawContent::Fixed)?,
            _ => return Err(AxcpError::Malformed("a field has a wire type that proto3 does not have")),
        };
        Ok(RawField { number, content, place: start..self.at })
    }
}

impl Iterator for RawFields<'_> {
    type Item = Result<RawField, AxcpError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.text.len() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.at = self.text.len();
        }
        Some(field)
    }
}

/// Visits the messages or texts in field `number` of `message`, in order.
pub(crate) fn entries(message: &[u8], number: u32, mut visit: impl FnMut(&[u8]) -> Result<(), AxcpError>) -> Result<(), AxcpError> {
    for field in RawFields::new(message) {
        let field = field?;
        if let RawContent::Bytes(place) = field.content
            && field.number == number
        {
            visit(message.get(place).unwrap_or_default())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xc_01_fields_are_found_with_their_places() {
        let found: Vec<_> = RawFields::new(b"\x08\x96\x01\x12\x02hi\x1d1234").map(Result::unwrap).collect();
        assert_eq!(found[0], RawField { number: 1, content: RawContent::Number(150), place: 0..3 });
        assert_eq!(found[1], RawField { number: 2, content: RawContent::Bytes(5..7), place: 3..7 });
        assert_eq!(found[2], RawField { number: 3, content: RawContent::Fixed, place: 7..12 });
    }

    #[test]
    fn xc_01_bytes_that_are_no_fields_are_refused() {
        for bad in [
            b"\x08".as_slice(),
            b"\x0a\x05hi",
            b"\x00\x01",
            b"\x0b",
            b"\x0c",
            b"\x0f",
            b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
            b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x09\x00",
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00",
        ] {
            let found: Vec<_> = RawFields::new(bad).collect();
            assert!(matches!(found.as_slice(), [Err(AxcpError::Malformed(_))]), "{bad:?}: {found:?}");
        }
    }
}
