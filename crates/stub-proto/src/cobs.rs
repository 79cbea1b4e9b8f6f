//! Consistent overhead byte stuffing (Cheshire and Baker): no zero within a frame. Knows no checksum.

use alloc::vec::Vec;

/// Bytes of a block, its code byte included.
const BLOCK: usize = 255;

/// Stuffs bytes: each block says where its zero stood.
pub(crate) fn stuff(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 2);
    let mut pieces = bytes.split(|byte| *byte == 0).peekable();
    while let Some(mut piece) = pieces.next() {
        while let Some((full, rest)) = piece.split_at_checked(BLOCK - 1) {
            // A full block has no zero behind it, so the end of all bytes wants no block more.
            if rest.is_empty() && pieces.peek().is_none() {
                break;
            }
            out.push(u8::MAX);
            out.extend_from_slice(full);
            piece = rest;
        }
        out.push(u8::try_from(piece.len() + 1).unwrap_or(u8::MAX));
        out.extend_from_slice(piece);
    }
    out
}

/// Brings stuffed bytes back; `None` for bytes that [`stuff`] never makes.
pub(crate) fn unstuff(stuffed: &[u8]) -> Option<Vec<u8>> {
    let (mut out, mut rest) = (Vec::with_capacity(stuffed.len()), stuffed);
    while let Some((&code, behind)) = rest.split_first() {
        let (block, next) = behind.split_at_checked(usize::from(code).checked_sub(1)?)?;
        if block.contains(&0) {
            return None;
        }
        out.extend_from_slice(block);
        if code != u8::MAX && !next.is_empty() {
            out.push(0);
        }
        rest = next;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn full_blocks_are_those_of_the_paper() {
        let run: Vec<u8> = (1..=255).collect();
        assert_eq!(stuff(&[]), [1]);
        assert_eq!(stuff(&[0]), [1, 1]);
        assert_eq!(stuff(&[0x11, 0x22, 0, 0x33]), [3, 0x11, 0x22, 2, 0x33]);
        assert_eq!(stuff(&run[..254]), [&[255][..], &run[..254]].concat());
        assert_eq!(stuff(&run), [&[255][..], &run[..254], &[2, 255]].concat());
        assert_eq!(stuff(&[&run[..254], &[0]].concat()), [&[255][..], &run[..254], &[1, 1]].concat());
        assert_eq!(unstuff(&[5, 1]), None);
        assert_eq!(unstuff(&[2, 0]), None);
    }

    proptest! {
        #[test]
        fn stuffed_bytes_hold_no_zero_and_come_back(zeros in 0u8..4, bytes in proptest::collection::vec(any::<u8>(), 0..700)) {
            let bytes: Vec<u8> = bytes.into_iter().map(|byte| if byte % 4 < zeros { 0 } else { byte }).collect();
            let stuffed = stuff(&bytes);
            prop_assert!(!stuffed.contains(&0));
            prop_assert!(stuffed.len() <= bytes.len() + 1 + bytes.len() / 254);
            prop_assert_eq!(unstuff(&stuffed), Some(bytes));
        }
    }
}
