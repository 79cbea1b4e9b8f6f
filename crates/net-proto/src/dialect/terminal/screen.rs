//! The line of a terminal that is being written: carriage returns, backspaces and the few escape sequences by which devices wipe out their
//! pagers. No colours, no second line.

/// Bytes of a line; a longer one is broken there.
const LONGEST: usize = 16 << 10;
/// Bytes of an escape sequence; a longer one is taken for text.
const LONGEST_ESCAPE: usize = 32;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum EscapeState {
    #[default]
    None,
    Begun,
    /// `ESC [`
    Control,
    /// `ESC ]`, a title, up to BEL or ESC.
    Title,
}

#[derive(Debug, Default)]
pub(super) struct Screen {
    line: Vec<u8>,
    cursor: usize,
    escape: EscapeState,
    parameters: Vec<u8>,
}

impl Screen {
    /// Takes a byte, and gives the line that it ends.
    pub(super) fn put(&mut self, byte: u8) -> Option<String> {
        if self.escape != EscapeState::None {
            self.escaped(byte);
            return None;
        }
        match byte {
            b'\n' => return Some(self.finish()),
            b'\r' => self.cursor = 0,
            0x08 => self.cursor = self.cursor.saturating_sub(1),
            0x1b => self.escape = EscapeState::Begun,
            b'\t' => self.write(b' '),
            0x00..0x20 | 0x7f => {}
            _ => self.write(byte),
        }
        (self.line.len() >= LONGEST).then(|| self.finish())
    }

    /// Bytes of the line.
    pub(super) fn length(&self) -> usize {
        self.line.len()
    }

    pub(super) fn line(&self) -> String {
        String::from_utf8_lossy(&self.line).into_owned()
    }

    pub(super) fn clear(&mut self) {
        self.line.clear();
        self.cursor = 0;
    }

    fn finish(&mut self) -> String {
        let line = self.line();
        self.clear();
        line
    }

    fn write(&mut self, byte: u8) {
        match self.line.get_mut(self.cursor) {
            Some(place) => *place = byte,
            None => self.line.push(byte),
        }
        self.cursor += 1;
    }

    fn escaped(&mut self, byte: u8) {
        self.parameters.push(byte);
        let is_over = match self.escape {
            EscapeState::None => true,
            EscapeState::Begun => match byte {
                b'[' => {
                    (self.escape, self.parameters) = (EscapeState::Control, Vec::new());
                    return;
                }
                b']' => {
                    self.escape = EscapeState::Title;
                    return;
                }
                _ => !(0x20..0x30).contains(&byte),
            },
            EscapeState::Control => (0x40..0x7f).contains(&byte),
            EscapeState::Title => matches!(byte, 0x07 | 0x1b | b'\\'),
        };
        if self.escape == EscapeState::Control && is_over {
            self.control(byte);
        }
        if is_over || self.parameters.len() > LONGEST_ESCAPE {
            (self.escape, self.parameters) = (EscapeState::None, Vec::new());
        }
    }

    fn control(&mut self, last: u8) {
        let digits = self.parameters.iter().take_while(|b| b.is_ascii_digit()).take(6);
        let count = digits.fold(0_usize, |sum, digit| sum * 10 + usize::from(digit - b'0'));
        match last {
            b'D' => self.cursor = self.cursor.saturating_sub(count.max(1)),
            b'G' => self.cursor = count.saturating_sub(1).min(self.line.len()),
            // To the end of the line, or all of it.
            b'K' if count == 0 => self.line.truncate(self.cursor),
            b'K' => self.clear(),
            _ => {}
        }
    }
}
