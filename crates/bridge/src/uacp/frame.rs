//! Frames of µACP: a header of eight bytes, options, and a payload to the end. Knows no meaning of an option.

use std::borrow::Cow;

use super::UACP;
use crate::carried::fatal;
use crate::error::BridgeError;
use crate::field::CanonicalField as Field;
use crate::message::{Residue, ResiduePlace};
use crate::raw::{RawMember, array};
use crate::shape::{self, MOST_OPTION, READ_OPTIONS};

/// Longest message, in bytes.
pub(super) const MOST_FRAME: usize = 65_535;
/// Bytes of a long value in an option: two of the option tell the place and the number of pieces.
const PIECE: usize = MOST_OPTION - 2;
const HEADER: usize = 8;
const VERSION: u64 = 1;
/// Numbers of messages end below.
pub(super) const NUMBERS: u32 = 1 << 24;

/// Verbs of the protocol, in the order of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameVerb {
    Ping,
    Tell,
    Ask,
    Observe,
}

/// Bits of a header without the version and the number of options.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameHeader {
    pub(super) verb: FrameVerb,
    pub(super) qos: u8,
    pub(super) code: u8,
    pub(super) number: u32,
}

/// A received message, taken apart.
pub(super) struct Frame<'a> {
    pub(super) header: FrameHeader,
    options: Vec<(u8, &'a [u8])>,
    pub(super) payload: &'a [u8],
}

fn cut_off() -> BridgeError {
    BridgeError::malformed("frame", "the frame is cut off")
}

impl<'a> Frame<'a> {
    pub(super) fn read(text: &'a [u8]) -> Result<Self, BridgeError> {
        if text.len() > MOST_FRAME {
            return Err(BridgeError::TooLarge);
        }
        let (bits, mut rest) = text.split_first_chunk::<HEADER>().ok_or_else(cut_off)?;
        let bits = u64::from_be_bytes(*bits);
        let field = |at: u32, size: u32| (bits >> at) & ((1 << size) - 1);
        if field(62, 2) != VERSION {
            return Err(BridgeError::NoPath(Cow::Borrowed("this version of µACP")));
        }
        let (qos, code, number) = (field(58, 2), field(50, 8), field(26, 24));
        if qos > 2 || field(0, 18) != 0 {
            return Err(BridgeError::malformed("header", "a quality of service above 2, or a bit without a meaning, is set"));
        }
        let verb = match field(60, 2) {
            0 => FrameVerb::Ping,
            1 => FrameVerb::Tell,
            2 => FrameVerb::Ask,
            _ => FrameVerb::Observe,
        };
        let mut options = Vec::new();
        for _ in 0..field(18, 8) {
            let [kind, size, behind @ ..] = rest else { return Err(cut_off()) };
            let (value, behind) = behind.split_at_checked(usize::from(*size)).ok_or_else(cut_off)?;
            options.push((*kind, value));
            rest = behind;
        }
        let byte = |number: u64| u8::try_from(number).unwrap_or_default();
        let header = FrameHeader { verb, qos: byte(qos), code: byte(code), number: u32::try_from(number).unwrap_or_default() };
        Ok(Self { header, options, payload: rest })
    }

    /// The value of an option that stands once.
    pub(super) fn option(&self, kind: u8) -> Result<Option<&'a [u8]>, BridgeError> {
        let mut found = self.options.iter().filter(|(known, _)| *known == kind);
        match (found.next(), found.next()) {
            (first, None) => Ok(first.map(|(_, value)| *value)),
            _ => Err(BridgeError::malformed("options", "an option stands twice")),
        }
    }

    /// The text of an option.
    pub(super) fn text(&self, kind: u8) -> Result<Option<&'a str>, BridgeError> {
        let wrong = |_| BridgeError::malformed("options", "a text is expected in an option");
        self.option(kind)?.map(|value| std::str::from_utf8(value).map_err(wrong)).transpose()
    }

    /// Joins a long value from the options of its pieces.
    pub(super) fn joined(&self, kind: u8) -> Result<Option<Vec<u8>>, BridgeError> {
        let wrong = BridgeError::malformed("options", "a piece of a long value is missing or stands at another place");
        let pieces: Vec<&[u8]> = self.options.iter().filter(|(known, _)| *known == kind).map(|(_, value)| *value).collect();
        let mut whole = Vec::new();
        for (place, piece) in pieces.iter().enumerate() {
            let [at, of, bytes @ ..] = piece else { return Err(wrong) };
            if usize::from(*at) != place || usize::from(*of) != pieces.len() {
                return Err(wrong);
            }
            whole.extend_from_slice(bytes);
        }
        Ok((!pieces.is_empty()).then_some(whole))
    }

    /// Keeps the options without a meaning here, those of a type together.
    pub(super) fn keep(&self, into: &mut Vec<Residue<'_>>) {
        let mut kinds: Vec<(u8, Vec<Vec<u8>>)> = Vec::new();
        for (kind, value) in self.options.iter().filter(|(kind, _)| !READ_OPTIONS.contains(kind)) {
            let quoted = json::quote(&crate::hex::write(value)).into_bytes();
            match kinds.iter_mut().find(|(known, _)| known == kind) {
                Some((_, values)) => values.push(quoted),
                None => kinds.push((*kind, vec![quoted])),
            }
        }
        let members: Vec<_> = kinds.iter().map(|(kind, values)| RawMember::new(&shape::option_key(*kind), &array(values))).collect();
        if !members.is_empty() {
            into.push(Residue { binding: UACP, place: ResiduePlace::Options, members });
        }
    }
}

/// Options and payload of a message on its way out.
#[derive(Debug, Default)]
pub(super) struct FrameWriter {
    options: Vec<(u8, Vec<u8>)>,
    pub(super) payload: Vec<u8>,
}

impl FrameWriter {
    pub(super) fn option(&mut self, kind: u8, value: impl Into<Vec<u8>>) {
        self.options.push((kind, value.into()));
    }

    /// Writes a long value in pieces.
    pub(super) fn split(&mut self, kind: u8, value: &[u8]) -> Result<(), BridgeError> {
        let pieces = value.chunks(PIECE);
        let of = u8::try_from(pieces.len()).map_err(|_| no_room())?;
        for (at, piece) in (0..of).zip(pieces) {
            self.option(kind, [&[at, of], piece].concat());
        }
        Ok(())
    }

    /// Puts kept options back.
    pub(super) fn put_back(&mut self, members: &[RawMember<'_>]) -> Result<(), BridgeError> {
        for member in members {
            let wrong = BridgeError::malformed("extension.residue", "an option is written in digits");
            let (kind, values) = shape::options(member).ok_or(wrong)?;
            values.into_iter().for_each(|value| self.option(kind, value));
        }
        Ok(())
    }

    pub(super) fn finish(self, header: FrameHeader) -> Result<Vec<u8>, BridgeError> {
        let count = u8::try_from(self.options.len()).map_err(|_| no_room())?;
        let verb = header.verb as u64;
        let bits = VERSION << 62
            | verb << 60
            | u64::from(header.qos) << 58
            | u64::from(header.code) << 50
            | u64::from(header.number) << 26
            | u64::from(count) << 18;
        let mut out = bits.to_be_bytes().to_vec();
        for (kind, value) in self.options.into_iter() {
            let size = u8::try_from(value.len()).map_err(|_| no_room())?;
            out.extend_from_slice(&[kind, size]);
            out.extend_from_slice(&value);
        }
        out.extend_from_slice(&self.payload);
        if out.len() > MOST_FRAME { Err(fatal(Field::Parts, "a message of µACP holds 65,535 bytes")) } else { Ok(out) }
    }
}

fn no_room() -> BridgeError {
    fatal(Field::Residue, "a message of µACP holds 255 options, of 255 bytes each")
}
