//! Strings as SSH writes them (RFC 4251, 5): a length of four bytes, then the bytes. Their meaning is not known here.

/// Bytes still to be read.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    /// The next `count` bytes.
    pub(super) fn take_bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// A number of four bytes.
    pub(super) fn number(&mut self) -> Option<u32> {
        self.take_bytes(4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes)
    }

    pub(super) fn string(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take_bytes(usize::try_from(length).ok()?)
    }

    /// Reads a string of UTF-8.
    pub(super) fn text(&mut self) -> Option<&'a str> {
        self.string().and_then(|bytes| std::str::from_utf8(bytes).ok())
    }
}

pub(super) fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(bytes);
}
