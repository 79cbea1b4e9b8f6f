//! Frames of profile A: a start byte, lengths of fixed layouts, a checksum. Says nothing about layouts.

use alloc::vec::Vec;

use crate::check::{self, Width};

/// First byte of a frame.
pub const START: u8 = 0xa5;

/// Bytes of a payload at most.
pub const MOST_PAYLOAD: usize = 255;

/// Bytes before a payload: start, length, type, tool, number.
const HEAD: usize = 5;

/// Types of frames (B.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FixedKind {
    Call,
    Response,
    Heartbeat,
}

impl FixedKind {
    fn code(self) -> u8 {
        match self {
            Self::Call => 1,
            Self::Response => 2,
            Self::Heartbeat => 4,
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        [Self::Call, Self::Response, Self::Heartbeat].into_iter().find(|kind| kind.code() == code)
    }
}

/// A frame of profile A.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedFrame {
    pub kind: FixedKind,
    pub tool: u8,
    pub seq: u8,
    pub payload: Vec<u8>,
}

/// Layout of frames on a wire, the same in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedForm {
    pub width: Width,
    /// Bytes of the longest payload; a frame that says more is noise.
    pub most_payload: u8,
}

impl FixedForm {
    /// Writes a frame.
    pub fn frame(self, frame: &FixedFrame) -> Vec<u8> {
        let payload = frame.payload.get(..usize::from(self.most_payload)).unwrap_or(&frame.payload);
        let length = u8::try_from(payload.len()).unwrap_or(u8::MAX);
        let mut wire = alloc::vec![START, length, frame.kind.code(), frame.tool, frame.seq];
        wire.extend_from_slice(payload);
        check::seal(&mut wire, 1, self.width);
        wire
    }

    /// Bytes around a payload.
    pub fn around(self) -> usize {
        HEAD + self.width.bytes()
    }
}

/// Bytes of a wire on their way to frames. Holds one frame at most.
#[derive(Clone, Debug)]
pub struct FixedReader {
    form: FixedForm,
    held: Vec<u8>,
    /// Bytes outside of frames.
    noise: u64,
}

impl FixedReader {
    /// Begins with an empty wire.
    pub fn new(form: FixedForm) -> Self {
        Self { form, held: Vec::new(), noise: 0 }
    }

    /// Bytes so far outside of frames.
    pub fn noise(&self) -> u64 {
        self.noise
    }

    /// Takes bytes in and gives the completed frames.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<FixedFrame> {
        let mut frames = Vec::new();
        for &byte in bytes {
            self.held.push(byte);
            if let Some(frame) = self.look() {
                frames.push(frame);
            }
        }
        frames
    }

    /// Forgets a frame that was cut off, when the wire was silent for longer than between two bytes.
    pub fn rest(&mut self) {
        self.noise = self.noise.saturating_add(self.held.len() as u64);
        self.held.clear();
    }

    /// Looks for a frame in the bytes held, and drops what can't begin a frame.
    fn look(&mut self) -> Option<FixedFrame> {
        loop {
            match self.judge() {
                Judgement::Open => return None,
                Judgement::Frame(frame, length) => {
                    self.held.drain(..length);
                    return Some(frame);
                }
                Judgement::Noise => {
                    // The next start byte within may begin the frame that the noise hid.
                    let next = self.held.iter().skip(1).position(|byte| *byte == START).map_or(self.held.len(), |at| at + 1);
                    self.noise = self.noise.saturating_add(next as u64);
                    self.held.drain(..next);
                }
            }
        }
    }

    fn judge(&self) -> Judgement {
        let held = self.held.as_slice();
        if held.first().is_some_and(|first| *first != START) {
            return Judgement::Noise;
        }
        let kind = held.get(2).map(|code| FixedKind::from_code(*code));
        let length = held.get(1).copied();
        if length.is_some_and(|length| length > self.form.most_payload) || kind == Some(None) {
            return Judgement::Noise;
        }
        let (Some(length), Some(Some(kind))) = (length, kind) else { return Judgement::Open };
        let whole = usize::from(length) + self.form.around();
        let Some(frame) = held.get(..whole) else { return Judgement::Open };
        let covered = frame.get(1..).and_then(|frame| check::covered(frame, self.form.width));
        let Some([_, _, tool, seq, payload @ ..]) = covered else { return Judgement::Noise };
        Judgement::Frame(FixedFrame { kind, tool: *tool, seq: *seq, payload: payload.to_vec() }, whole)
    }
}

/// Verdict on the bytes held.
enum Judgement {
    /// A frame may follow.
    Open,
    Frame(FixedFrame, usize),
    Noise,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FORM: FixedForm = FixedForm { width: Width::Sixteen, most_payload: 8 };

    fn made(kind: FixedKind, tool: u8, seq: u8, payload: &[u8]) -> FixedFrame {
        FixedFrame { kind, tool, seq, payload: payload.to_vec() }
    }

    #[test]
    fn ax_72_frames_are_those_that_firmware_sent() {
        let cases: [(&[u8], FixedFrame); 5] = [
            (&[0xa5, 0, 1, 1, 5, 0xd0, 0x64], made(FixedKind::Call, 1, 5, &[])),
            (&[0xa5, 5, 2, 1, 5, 1, 2, 3, 4, 0, 0xc9, 0xd5], made(FixedKind::Response, 1, 5, &[1, 2, 3, 4, 0])),
            (&[0xa5, 1, 1, 2, 6, 1, 0x19, 0x0e], made(FixedKind::Call, 2, 6, &[1])),
            (&[0xa5, 1, 2, 2, 6, 0, 0x92, 0xf3], made(FixedKind::Response, 2, 6, &[0])),
            (&[0xa5, 0, 4, 0, 10, 0xf9, 0x4a], made(FixedKind::Heartbeat, 0, 10, &[])),
        ];
        for (wire, frame) in cases {
            assert_eq!(FORM.frame(&frame), wire);
            assert_eq!(FixedReader::new(FORM).push(wire), [frame]);
        }
    }

    #[test]
    fn a_length_beyond_every_layout_swallows_no_frame() {
        let good = FORM.frame(&made(FixedKind::Call, 1, 5, &[]));
        let mut reader = FixedReader::new(FORM);
        let frames = reader.push(&[&[0xa5, 240][..], &good].concat());
        assert_eq!((frames.len(), reader.noise()), (1, 2));
        // A frame that was cut ends with the silence behind.
        assert_eq!(reader.push(&good[..4]), []);
        reader.rest();
        assert_eq!((reader.push(&good).len(), reader.noise()), (1, 6));
    }

    proptest! {
        #[test]
        fn a_frame_behind_any_noise_is_found_or_silence_finds_it(
            noise in proptest::collection::vec(any::<u8>(), 0..40), payload in proptest::collection::vec(any::<u8>(), 0..=8)
        ) {
            let frame = made(FixedKind::Response, 3, 9, &payload);
            let mut reader = FixedReader::new(FORM);
            let mut frames = reader.push(&noise);
            reader.rest();
            frames.extend(reader.push(&FORM.frame(&frame)));
            prop_assert_eq!(frames.last(), Some(&frame));
            prop_assert!(reader.held.len() <= usize::from(FORM.most_payload) + FORM.around());
        }
    }
}
