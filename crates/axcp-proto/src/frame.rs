//! Frames on a stream: a length of four bytes, then an envelope. Reads no envelope, and no datagram, which needs no length.
//!
//! The length is little-endian, as in the reference implementation, where another function writes the other order. The first frame of a
//! connection shows the order: the frame asks for a profile and is short, and a small length in the wrong order is far above the limit.

use bytes::{Buf, Bytes, BytesMut};

use crate::error::AxcpError;

/// Bytes of the longest envelope.
pub const MOST_FRAME: usize = 10 * 1024 * 1024;

/// Bytes of a length.
const LENGTH: usize = 4;

/// Order of the bytes of a length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LengthOrder {
    #[default]
    Little,
    /// Written by peers that use the other function of the reference implementation.
    Big,
}

impl LengthOrder {
    fn length(self, written: [u8; LENGTH]) -> usize {
        let length = match self {
            Self::Little => u32::from_le_bytes(written),
            Self::Big => u32::from_be_bytes(written),
        };
        usize::try_from(length).unwrap_or(usize::MAX)
    }

    /// Writes `envelope` as a frame.
    ///
    /// # Errors
    /// When the envelope is longer than [`MOST_FRAME`].
    pub fn frame(self, envelope: &[u8]) -> Result<Vec<u8>, AxcpError> {
        let length = u32::try_from(envelope.len()).ok().filter(|_| envelope.len() <= MOST_FRAME).ok_or_else(too_large)?;
        let mut out = Vec::with_capacity(LENGTH + envelope.len());
        out.extend_from_slice(&match self {
            Self::Little => length.to_le_bytes(),
            Self::Big => length.to_be_bytes(),
        });
        out.extend_from_slice(envelope);
        Ok(out)
    }
}

/// Maker of frames from the bytes of one stream, in pieces of any size.
///
/// The driver takes all frames out before the next piece, so that a reader holds a frame and a piece at most. Memory grows with received
/// bytes, never with a promised length.
#[derive(Debug, Default)]
pub struct FrameReader {
    held: BytesMut,
    order: LengthOrder,
    began: bool,
}

impl FrameReader {
    /// Adds bytes in the order of the stream.
    pub fn push(&mut self, piece: &[u8]) {
        self.held.extend_from_slice(piece);
    }

    /// Gives the order of the peer's lengths, as far as its first frame showed.
    pub fn order(&self) -> LengthOrder {
        self.order
    }

    /// Gives the next whole frame, without its length.
    ///
    /// # Errors
    /// When a length is above [`MOST_FRAME`]: no later frame can be found, so that the stream is over.
    pub fn next_frame(&mut self) -> Result<Option<Bytes>, AxcpError> {
        let Some(written) = self.held.first_chunk::<LENGTH>().copied() else { return Ok(None) };
        if !self.began && self.order.length(written) > MOST_FRAME && LengthOrder::Big.length(written) <= MOST_FRAME {
            self.order = LengthOrder::Big;
        }
        self.began = true;
        let length = self.order.length(written);
        if length > MOST_FRAME {
            return Err(too_large());
        }
        if self.held.len() - LENGTH < length {
            return Ok(None);
        }
        self.held.advance(LENGTH);
        Ok(Some(self.held.split_to(length).freeze()))
    }

    /// Checks that the stream ended between two frames.
    ///
    /// # Errors
    /// When a frame was begun and not finished.
    pub fn finish(&self) -> Result<(), AxcpError> {
        if self.held.is_empty() { Ok(()) } else { Err(AxcpError::Malformed("the stream ended within a frame")) }
    }
}

const fn too_large() -> AxcpError {
    AxcpError::TooLarge { what: "the bytes of a frame", most: MOST_FRAME }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Takes every whole frame out.
    fn drained(reader: &mut FrameReader) -> Vec<Bytes> {
        std::iter::from_fn(|| reader.next_frame().unwrap()).collect()
    }

    #[test]
    fn xc_01_a_length_is_four_bytes_lowest_first() {
        assert_eq!(LengthOrder::Little.frame(b"abc").unwrap(), b"\x03\0\0\0abc");
    }

    #[test]
    fn xc_01_a_peer_with_the_other_order_is_understood() {
        let mut reader = FrameReader::default();
        reader.push(b"\0\0\0\x02hi\0\0\x01\0");
        reader.push(&[7; 256]);
        assert_eq!(drained(&mut reader), [Bytes::from_static(b"hi"), Bytes::from(vec![7; 256])]);
        assert_eq!(reader.order(), LengthOrder::Big);
    }

    #[test]
    fn xc_01_the_order_is_settled_by_the_first_frame() {
        let mut reader = FrameReader::default();
        reader.push(b"\x01\0\0\0a\0\0\0\x01b");
        assert_eq!(reader.next_frame(), Ok(Some(Bytes::from_static(b"a"))));
        assert_eq!(reader.next_frame().unwrap_err().code().number(), 7);
    }

    #[test]
    fn xc_01_a_frame_above_the_limit_is_refused_at_once() {
        let mut reader = FrameReader::default();
        reader.push(&[0xff; 4]);
        assert_eq!(reader.next_frame(), Err(too_large()));
        let mut reader = FrameReader::default();
        reader.push(&u32::try_from(MOST_FRAME).unwrap().to_le_bytes());
        assert_eq!(reader.next_frame(), Ok(None));
        assert!(reader.held.capacity() < 1024, "memory follows what came, not what was promised");
        assert!(LengthOrder::Little.frame(&vec![0; MOST_FRAME + 1]).is_err());
    }

    #[test]
    fn xc_01_a_stream_that_ends_within_a_frame_is_refused() {
        let mut reader = FrameReader::default();
        assert_eq!(reader.finish(), Ok(()));
        reader.push(b"\x02\0\0\0a");
        assert_eq!(reader.next_frame(), Ok(None));
        assert!(reader.finish().is_err());
    }

    proptest! {
        #[test]
        fn xc_01_frames_come_out_whatever_the_pieces(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..8),
            is_big in any::<bool>(),
            size in 1_usize..70,
        ) {
            let order = if is_big && !bodies[0].is_empty() && bodies[0].len() < 256 { LengthOrder::Big } else { LengthOrder::Little };
            let stream: Vec<u8> = bodies.iter().flat_map(|body| order.frame(body).unwrap()).collect();
            let mut reader = FrameReader::default();
            let mut found = Vec::new();
            for piece in stream.chunks(size) {
                reader.push(piece);
                found.extend(drained(&mut reader));
            }
            prop_assert_eq!(found, bodies);
            prop_assert_eq!(reader.finish(), Ok(()));
        }
    }
}
