//! Checksums at the end of frames. Nothing is corrected.

use crc::{CRC_8_SMBUS, CRC_16_IBM_3740, Crc, Table};

const WIDE: Crc<u16, Table<1>> = Crc::<u16, Table<1>>::new(&CRC_16_IBM_3740);
const NARROW: Crc<u8, Table<1>> = Crc::<u8, Table<1>>::new(&CRC_8_SMBUS);

/// Width of a checksum. Eight bits protect up to 14 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Width {
    Eight,
    #[default]
    Sixteen,
}

impl Width {
    /// Bytes of the checksum.
    pub fn bytes(self) -> usize {
        match self {
            Self::Eight => 1,
            Self::Sixteen => 2,
        }
    }
}

/// Computes CRC-16/IBM-3740, which is sent high byte first.
pub fn crc16(covered: &[u8]) -> u16 {
    WIDE.checksum(covered)
}

/// Computes CRC-8/SMBUS.
pub fn crc8(covered: &[u8]) -> u8 {
    NARROW.checksum(covered)
}

/// Splits the covered bytes from a right checksum behind them.
pub fn covered(bytes: &[u8], width: Width) -> Option<&[u8]> {
    let (covered, sum) = bytes.split_at_checked(bytes.len().checked_sub(width.bytes())?)?;
    let right = match width {
        Width::Eight => sum == [crc8(covered)],
        Width::Sixteen => sum == crc16(covered).to_be_bytes(),
    };
    right.then_some(covered)
}

/// Appends the checksum of all bytes so far, from `start` on.
pub fn seal(bytes: &mut alloc::vec::Vec<u8>, start: usize, width: Width) {
    let covered = bytes.get(start..).unwrap_or_default();
    match width {
        Width::Eight => {
            let sum = crc8(covered);
            bytes.push(sum);
        }
        Width::Sixteen => {
            let sum = crc16(covered).to_be_bytes();
            bytes.extend_from_slice(&sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_names_both_checksums() {
        assert_eq!((crc16(b"123456789"), crc8(b"123456789")), (0x29b1, 0xf4));
    }

    #[test]
    fn a_changed_bit_is_noticed_at_every_place() {
        for width in [Width::Eight, Width::Sixteen] {
            let mut whole = alloc::vec![1, 0xa2, 1, 1, 2, 7];
            seal(&mut whole, 0, width);
            assert_eq!(covered(&whole, width), Some(&[1, 0xa2, 1, 1, 2, 7][..]));
            for bit in 0..whole.len() * 8 {
                let mut flipped = whole.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(covered(&flipped, width), None, "bit {bit}");
            }
        }
    }
}
