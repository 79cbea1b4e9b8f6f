//! UTF-8 whose characters may be cut. Where strings begin and end is not known here.

/// The beginning of a character split between pieces.
#[derive(Debug, Default)]
pub(super) struct Split {
    bytes: [u8; 4],
    length: usize,
}

impl Split {
    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Checks the next bytes of a string. `open`: more of it may follow. The error is how many of them are sound.
    pub(super) fn check(&mut self, text: &[u8], open: bool) -> Result<(), usize> {
        let mut used = 0;
        while self.length > 0 {
            let Some(byte) = text.get(used) else { return if open { Ok(()) } else { Err(used) } };
            self.bytes[self.length] = *byte;
            self.length += 1;
            match std::str::from_utf8(&self.bytes[..self.length]) {
                Ok(_) => self.length = 0,
                Err(e) if e.error_len().is_some() || self.length == self.bytes.len() => return Err(used),
                Err(_) => {}
            }
            used += 1;
        }
        let rest = &text[used..];
        let Err(e) = std::str::from_utf8(rest) else { return Ok(()) };
        let begun = &rest[e.valid_up_to()..];
        if e.error_len().is_some() || !open {
            return Err(used + e.valid_up_to());
        }
        self.bytes[..begun.len()].copy_from_slice(begun);
        self.length = begun.len();
        Ok(())
    }
}
