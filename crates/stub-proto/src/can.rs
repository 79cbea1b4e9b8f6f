//! CAN behind an adapter on a serial line, which speaks slcan (LAWICEL): frames of the bus as lines of text. Puts no messages together.

pub mod isotp;

use alloc::vec::Vec;

/// Bytes of a frame's data, at most. CAN FD is not here.
pub const MOST_DATA: usize = 8;

/// Bytes of a line without its end: an extended frame, and a stamp of four digits behind.
const MOST_LINE: usize = 1 + 8 + 1 + 2 * MOST_DATA + 4;
/// Last identifiers of standard and of extended frames.
const LAST_STANDARD: u32 = 0x7ff;
const LAST_EXTENDED: u32 = 0x1fff_ffff;
/// Bit rates of slcan, by the digit of their command.
const RATES: [u32; 9] = [10_000, 20_000, 50_000, 100_000, 125_000, 250_000, 500_000, 800_000, 1_000_000];

/// Settings of a part on a bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CanForm {
    /// Identifier of frames for the part.
    pub to: u32,
    /// Identifier of frames from the part.
    pub from: u32,
    /// Identifiers have 29 bits in place of 11.
    pub is_extended: bool,
    /// Digit of the adapter's bit rate.
    pub rate: u8,
}

impl CanForm {
    /// Digit of a bit rate.
    pub fn rate_digit(bits: u32) -> Option<u8> {
        RATES.iter().position(|rate| *rate == bits).and_then(|at| u8::try_from(at).ok())
    }

    /// Bits a second on the bus.
    pub fn bits(self) -> u32 {
        RATES.get(usize::from(self.rate)).copied().unwrap_or(RATES[0])
    }

    /// Last identifier of this length.
    pub fn last(is_extended: bool) -> u32 {
        if is_extended { LAST_EXTENDED } else { LAST_STANDARD }
    }

    /// Bytes for the adapter: closes the bus, however the adapter was left, and opens the bus at the bit rate.
    pub fn opening(self) -> Vec<u8> {
        alloc::vec![b'\r', b'C', b'\r', b'S', b'0'.saturating_add(self.rate), b'\r', b'O', b'\r']
    }

    /// Writes a frame for the part, as a line.
    pub fn line(self, data: &[u8]) -> Vec<u8> {
        let data = data.get(..MOST_DATA).unwrap_or(data);
        let id = if self.is_extended { alloc::format!("T{:08X}", self.to) } else { alloc::format!("t{:03X}", self.to) };
        let mut line = id.into_bytes();
        line.extend(alloc::format!("{}", data.len()).bytes());
        line.extend(data.iter().flat_map(|byte| alloc::format!("{byte:02X}").into_bytes()));
        line.push(b'\r');
        line
    }
}

/// Lines of an adapter on their way to frames. Holds one line at most.
#[derive(Clone, Debug, Default)]
pub struct LineReader {
    held: Vec<u8>,
    is_over: bool,
    /// Lines without sense.
    noise: u64,
}

impl LineReader {
    /// Lines so far without sense.
    pub fn noise(&self) -> u64 {
        self.noise
    }

    /// Takes bytes in, and gives the data of completed frames from the part. Frames of others on the bus are nobody's noise.
    pub fn push(&mut self, bytes: &[u8], form: CanForm) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        for &byte in bytes {
            // The adapter ends its refusals with a bell.
            if byte == b'\r' || byte == 7 {
                frames.extend(self.complete(form));
            } else if self.held.len() < MOST_LINE {
                self.held.push(byte);
            } else {
                self.is_over = true;
            }
        }
        frames
    }

    fn complete(&mut self, form: CanForm) -> Option<Vec<u8>> {
        let line = core::mem::take(&mut self.held);
        if core::mem::take(&mut self.is_over) {
            self.noise = self.noise.saturating_add(1);
            return None;
        }
        match line.split_first() {
            // Done, and a frame that the adapter has sent.
            None | Some((b'z' | b'Z', [])) => None,
            Some((kind @ (b't' | b'T'), rest)) => match read(rest, if *kind == b'T' { 8 } else { 3 }) {
                Some((id, data)) => ((*kind == b'T') == form.is_extended && id == form.from).then_some(data),
                None => self.senseless(),
            },
            // Requests for frames, which parts do not use.
            Some((b'r' | b'R', _)) => None,
            Some(_) => self.senseless(),
        }
    }

    fn senseless(&mut self) -> Option<Vec<u8>> {
        self.noise = self.noise.saturating_add(1);
        None
    }
}

/// Reads identifier, length and data; a stamp of four digits may follow.
fn read(rest: &[u8], digits: usize) -> Option<(u32, Vec<u8>)> {
    let (id, rest) = rest.split_at_checked(digits)?;
    let id = id.iter().try_fold(0_u32, |id, digit| Some(id << 4 | u32::from(nibble(*digit)?)))?;
    let (length, rest) = rest.split_first()?;
    let length = usize::from(nibble(*length).filter(|length| usize::from(*length) <= MOST_DATA)?);
    let (data, stamp) = rest.split_at_checked(2 * length)?;
    let bytes =
        |text: &[u8]| text.chunks(2).map(|pair| Some(nibble(*pair.first()?)? << 4 | nibble(*pair.get(1)?)?)).collect::<Option<Vec<u8>>>();
    (matches!(stamp.len(), 0 | 4) && bytes(stamp).is_some()).then_some(())?;
    Some((id, bytes(data)?))
}

fn nibble(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    const FORM: CanForm = CanForm { to: 0x123, from: 0x124, is_extended: false, rate: 6 };

    #[test]
    fn ax_70_lines_of_an_adapter_are_frames() {
        assert_eq!(FORM.line(&[1, 0xab]), b"t123201AB\r");
        assert_eq!(CanForm { to: 0x18da_10f1, is_extended: true, ..FORM }.line(&[]), b"T18DA10F10\r");
        assert_eq!(FORM.opening(), b"\rC\rS6\rO\r");
        assert_eq!((CanForm::rate_digit(500_000), FORM.bits(), CanForm::rate_digit(7)), (Some(6), 500_000, None));
        let mut reader = LineReader::default();
        assert_eq!(reader.push(b"\r\r\x07z\rt1242", FORM), Vec::<Vec<u8>>::new());
        assert_eq!(reader.push(b"01aB\rt1240\rt124101F00D\r", FORM), [vec![1, 0xab], vec![], vec![1]]);
        assert_eq!(reader.noise(), 0);
    }

    #[test]
    fn frames_of_others_are_nobodys_noise() {
        let mut reader = LineReader::default();
        let others = b"t125101\rT00000124101\rr1240\rt123101\r";
        assert_eq!((reader.push(others, FORM).len(), reader.noise()), (0, 0));
        let senseless = b"t12\rt1249\rt124201\rt124101F\rt1241xx\rhello\r";
        assert_eq!((reader.push(senseless, FORM).len(), reader.noise()), (0, 6));
        let long = vec![b't'; 10_000];
        assert!(reader.push(&long, FORM).is_empty() && reader.held.len() <= MOST_LINE);
        assert_eq!((reader.push(b"\rt124101\r", FORM), reader.noise()), (vec![vec![1]], 7));
    }
}
