//! Keys in raw JSON that is searched, not parsed: their spellings, and the value behind them. Does not find keys.

use std::sync::LazyLock;

use memchr::memmem::Finder;

/// Beginning of an escaped ASCII letter (RFC 8259, section 7).
static ESCAPE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\\u00"));

/// Checks that a key of ASCII letters may be spelled with an escape in `text`.
pub fn is_escaped(text: &[u8]) -> bool {
    ESCAPE.find(text).is_some()
}

/// Text from the value of the key that stands before `rest`; `None` if that was no key.
pub fn value(rest: &[u8]) -> Option<&[u8]> {
    rest.trim_ascii_start().strip_prefix(b":").map(<[u8]>::trim_ascii_start)
}
