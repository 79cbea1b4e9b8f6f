//! Object identifiers, in the order of SNMP. Knows no names.

use std::fmt;
use std::str::FromStr;

use super::SnmpError;

/// Most numbers of an identifier (RFC 2578, section 3.5).
const MOST: usize = 128;

/// An object identifier.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oid(Vec<u32>);

impl Oid {
    /// The identifier of these numbers.
    pub fn new(numbers: &[u32]) -> Self {
        Self(numbers.to_vec())
    }

    /// The identifier with further numbers.
    #[must_use]
    pub fn with(&self, numbers: &[u32]) -> Self {
        Self([self.0.as_slice(), numbers].concat())
    }

    /// Numbers behind `root`; `None`: this identifier is not below it.
    pub fn below(&self, root: &Self) -> Option<&[u32]> {
        self.0.strip_prefix(root.0.as_slice())
    }

    /// All numbers.
    pub fn numbers(&self) -> &[u32] {
        &self.0
    }

    pub(super) fn read(content: &[u8]) -> Result<Self, SnmpError> {
        let odd = SnmpError::Malformed("an object identifier of unknown form");
        if content.is_empty() {
            // Agents write 0.0 so.
            return Ok(Self(vec![0, 0]));
        }
        let mut numbers = Vec::with_capacity(content.len() + 1);
        let mut number: u32 = 0;
        let mut is_open = false;
        for byte in content {
            if number >> 25 != 0 || numbers.len() >= MOST {
                return Err(odd);
            }
            number = number << 7 | u32::from(byte & 0x7f);
            is_open = byte & 0x80 != 0;
            if !is_open {
                if numbers.is_empty() {
                    let first = (number / 40).min(2);
                    numbers.push(first);
                    number -= first * 40;
                }
                numbers.push(number);
                number = 0;
            }
        }
        if is_open || numbers.len() > MOST { Err(odd) } else { Ok(Self(numbers)) }
    }

    /// Content of the element.
    pub(super) fn write(&self) -> Vec<u8> {
        let (first, rest) = match self.0.as_slice() {
            [] => (0, &[][..]),
            [first] => (first.saturating_mul(40), &[][..]),
            [first, second, rest @ ..] => (first.saturating_mul(40).saturating_add(*second), rest),
        };
        let mut out = Vec::with_capacity(self.0.len() + 4);
        for number in std::iter::once(&first).chain(rest) {
            let groups = (32 - number.leading_zeros()).div_ceil(7).max(1);
            for group in (0..groups).rev() {
                let more = if group == 0 { 0 } else { 0x80 };
                out.push((number >> (7 * group)) as u8 & 0x7f | more);
            }
        }
        out
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, number) in self.0.iter().enumerate() {
            write!(f, "{}{number}", if at == 0 { "" } else { "." })?;
        }
        Ok(())
    }
}

impl FromStr for Oid {
    type Err = SnmpError;

    /// Reads `1.3.6.1`, with a point in front or without.
    fn from_str(text: &str) -> Result<Self, SnmpError> {
        let odd = SnmpError::Malformed("an object identifier is numbers with points between them");
        let text = text.strip_prefix('.').unwrap_or(text);
        let numbers = text.split('.').take(MOST + 1).map(|number| {
            let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| number.parse().ok()).flatten()
        });
        let numbers = numbers.collect::<Option<Vec<u32>>>().ok_or(odd.clone())?;
        let is_legal = match numbers.as_slice() {
            [first, second, ..] => numbers.len() <= MOST && *first < 3 && (*first == 2 && *second < u32::MAX - 80 || *second < 40),
            _ => false,
        };
        if is_legal { Ok(Self(numbers)) } else { Err(odd) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_identifier_comes_out_as_it_went_in(first in 0u32..3, second in 0u32..40, rest in prop::collection::vec(any::<u32>(), 0..20)) {
            let oid = Oid([vec![first, second], rest].concat());
            prop_assert_eq!(Oid::read(&oid.write()), Ok(oid.clone()));
            prop_assert_eq!(oid.to_string().parse(), Ok(oid));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(oid) = Oid::read(&bytes) {
                prop_assert!(oid.0.len() <= MOST);
            }
        }
    }

    #[test]
    fn an_empty_identifier_is_zero() {
        assert_eq!(Oid::read(&[]), Ok(Oid::new(&[0, 0])));
        assert_eq!(Oid::read(&Oid::new(&[0, 0]).write()), Ok(Oid::new(&[0, 0])));
    }

    #[test]
    fn texts_that_are_none_are_refused() {
        for text in ["", "1", ".", "1.3.", "1.3.x", "3.1", "1.40", "1.3.4294967296", "1.3.+6", "1..3"] {
            assert!(text.parse::<Oid>().is_err(), "{text}");
        }
        assert_eq!(".1.3.6".parse::<Oid>().unwrap().to_string(), "1.3.6");
    }
}
