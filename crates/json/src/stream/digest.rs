//! Keys compared without being kept. The owner of a key is not known here.

/// A key, unescaped: a digest, and the whole text of a short key. Two different keys share a digest about once in 2^64 pairs,
/// and then a sound text is refused; one key never has two digests.
#[derive(Debug, Default)]
pub(super) struct Digest {
    pub(super) is_read: bool,
    pub(super) value: u64,
    start: [u8; 16],
    length: usize,
    /// The first half of a surrogate pair.
    high: Option<u16>,
}

impl Digest {
    pub(super) fn begin(&mut self) {
        // FNV-1a, because it does not matter to it how the text is cut.
        *self = Self { is_read: true, value: 0xcbf2_9ce4_8422_2325, ..Self::default() };
    }

    pub(super) fn end_key(&mut self) {
        self.alone();
        self.is_read = false;
    }

    pub(super) fn short(&self) -> Option<&[u8]> {
        self.start.get(..self.length)
    }

    pub(super) fn text(&mut self, text: &[u8]) {
        if self.is_read {
            self.alone();
            self.push(text);
        }
    }

    /// Adds a `\u` escape. Surrogates pair up as in `text.rs`.
    pub(super) fn unit(&mut self, unit: u16) {
        if !self.is_read {
            return;
        }
        let code = match (self.high.take(), unit) {
            (Some(high), 0xDC00..0xE000) => 0x10000 + ((u32::from(high) - 0xD800) << 10) + (u32::from(unit) - 0xDC00),
            (high, _) => {
                self.high = high;
                self.alone();
                if (0xD800..0xDC00).contains(&unit) {
                    self.high = Some(unit);
                    return;
                }
                u32::from(unit)
            }
        };
        let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        self.push(character.encode_utf8(&mut [0; 4]).as_bytes());
    }

    /// Replaces a first half of a pair left without a second half.
    fn alone(&mut self) {
        if self.high.take().is_some() {
            self.push("\u{FFFD}".as_bytes());
        }
    }

    fn push(&mut self, text: &[u8]) {
        for byte in text {
            self.value = (self.value ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        if let Some(room) = self.start.get_mut(self.length..self.length + text.len()) {
            room.copy_from_slice(text);
        }
        self.length += text.len();
    }
}

/// A few are compared pairwise, many in order.
pub(super) fn repeated(keys: &mut [u64]) -> bool {
    if keys.len() <= 12 {
        return keys.iter().enumerate().any(|(i, key)| keys.iter().take(i).any(|other| other == key));
    }
    keys.sort_unstable();
    keys.windows(2).any(|pair| pair[0] == pair[1])
}
