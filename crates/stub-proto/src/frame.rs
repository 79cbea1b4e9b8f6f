//! Frames of profile B: COBS with a zero behind, CRC-16 inside. Says nothing about messages.

use alloc::vec::Vec;

use crate::check::{self, Width};
use crate::cobs;

/// Bytes of a message without its checksum, at most. A part's buffer is named by a byte.
pub const MOST_MESSAGE: usize = 255;

/// Bytes around the message on the wire: checksum, code byte of COBS, zero.
pub const AROUND: usize = 4;

/// Bytes of a frame on the wire, at most.
const MOST_FRAME: usize = MOST_MESSAGE + AROUND;

/// CallEnd of the bytes before a zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameOrNoise {
    /// A message with a right checksum.
    Message(Vec<u8>),
    /// Bytes that are no frame: noise, a cut or a flipped bit.
    Noise(Noise),
}

/// Reason why bytes are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noise {
    /// Longer than any frame.
    TooLong,
    /// Not COBS.
    Stuffing,
    /// The checksum is another.
    Checksum,
}

/// Bytes of a wire on their way to frames. Holds one frame at most.
#[derive(Clone, Debug, Default)]
pub struct FrameReader {
    held: Vec<u8>,
    /// The frame is too long, and the rest of the frame is dropped.
    is_over: bool,
}

impl FrameReader {
    /// Takes bytes in and gives the completed frames.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<FrameOrNoise> {
        let mut framed = Vec::new();
        for &byte in bytes {
            if byte != 0 {
                self.hold(byte);
            } else if let Some(complete) = self.complete() {
                framed.push(complete);
            }
        }
        framed
    }

    fn hold(&mut self, byte: u8) {
        if self.held.len() < MOST_FRAME {
            self.held.push(byte);
        } else {
            self.is_over = true;
        }
    }

    fn complete(&mut self) -> Option<FrameOrNoise> {
        let held = core::mem::take(&mut self.held);
        if core::mem::take(&mut self.is_over) {
            return Some(FrameOrNoise::Noise(Noise::TooLong));
        }
        // A zero alone only ends noise.
        (!held.is_empty()).then(|| opened(&held))
    }
}

fn opened(held: &[u8]) -> FrameOrNoise {
    let Some(inner) = cobs::unstuff(held) else { return FrameOrNoise::Noise(Noise::Stuffing) };
    match check::covered(&inner, Width::Sixteen) {
        Some(message) if message.len() > MOST_MESSAGE => FrameOrNoise::Noise(Noise::TooLong),
        Some(message) => FrameOrNoise::Message(message.to_vec()),
        None => FrameOrNoise::Noise(Noise::Checksum),
    }
}

/// Writes a frame: the message with its checksum, stuffed, and a zero.
pub fn frame(message: &[u8]) -> Vec<u8> {
    let mut inner = message.to_vec();
    check::seal(&mut inner, 0, Width::Sixteen);
    let mut wire = cobs::stuff(&inner);
    wire.push(0);
    wire
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ax_70_frames_are_those_that_firmware_sent() {
        let cases: [(&[u8], &[u8]); 6] = [
            (&[0x01, 0xa2, 1, 1, 2, 7], &[0x09, 0x01, 0xa2, 0x01, 0x01, 0x02, 0x07, 0x72, 0x56, 0x00]),
            (
                &[0x01, 0xa3, 1, 2, 2, 8, 3, 0xa1, 0, 1],
                &[0x09, 0x01, 0xa3, 0x01, 0x02, 0x02, 0x08, 0x03, 0xa1, 0x04, 0x01, 0x14, 0x7a, 0x00],
            ),
            (
                &[0x02, 0xa2, 2, 7, 4, 0xa2, 0, 0, 1, 0x19, 0x01, 0x2c],
                &[0x07, 0x02, 0xa2, 0x02, 0x07, 0x04, 0xa2, 0x01, 0x07, 0x01, 0x19, 0x01, 0x2c, 0xb9, 0x49, 0x00],
            ),
            (&[0x02, 0xa2, 2, 9, 5, 0x39, 0x7f, 0x59], &[0x0b, 0x02, 0xa2, 0x02, 0x09, 0x05, 0x39, 0x7f, 0x59, 0x0c, 0x82, 0x00]),
            (&[0x03], &[0x04, 0x03, 0xd1, 0x93, 0x00]),
            (
                &[0x03, 0xa2, 6, 0x18, 0x60, 7, 0x82, 0x82, 1, 5, 0x83, 2, 5, 0],
                &[0x0e, 0x03, 0xa2, 0x06, 0x18, 0x60, 0x07, 0x82, 0x82, 0x01, 0x05, 0x83, 0x02, 0x05, 0x03, 0x38, 0x4d, 0x00],
            ),
        ];
        for (message, wire) in cases {
            assert_eq!(frame(message), wire);
            assert_eq!(FrameReader::default().push(wire), [FrameOrNoise::Message(message.to_vec())]);
        }
    }

    #[test]
    fn a_frame_is_found_behind_noise_and_zero() {
        let mut reader = FrameReader::default();
        assert_eq!(reader.push(&[0, 0, 7, 9]), []);
        let framed = reader.push(&[&[0][..], &frame(&[3])].concat());
        assert_eq!(framed, [FrameOrNoise::Noise(Noise::Stuffing), FrameOrNoise::Message(vec![3])]);
        let long = vec![1; 100_000];
        assert_eq!(reader.push(&long), []);
        assert!(reader.held.len() <= MOST_FRAME);
        assert_eq!(reader.push(&[0]), [FrameOrNoise::Noise(Noise::TooLong)]);
    }

    proptest! {
        #[test]
        fn every_message_is_read_from_any_pieces(message in proptest::collection::vec(any::<u8>(), 0..=MOST_MESSAGE), size in 1usize..20) {
            let wire = frame(&message);
            prop_assert!(wire.len() <= message.len() + AROUND + 1);
            let mut reader = FrameReader::default();
            let framed: Vec<FrameOrNoise> = wire.chunks(size).flat_map(|piece| reader.push(piece)).collect();
            prop_assert_eq!(framed, [FrameOrNoise::Message(message)]);
        }

        #[test]
        fn no_frame_with_one_flipped_bit_is_taken(message in proptest::collection::vec(any::<u8>(), 1..60), at in any::<prop::sample::Index>()) {
            let mut wire = frame(&message);
            let bit = at.index(wire.len() * 8);
            wire[bit / 8] ^= 1 << (bit % 8);
            wire.push(0);
            for framed in FrameReader::default().push(&wire) {
                prop_assert_ne!(framed, FrameOrNoise::Message(message.clone()));
            }
        }
    }
}
