//! Keys in raw JSON that is searched and not read: how they may be spelled, and what follows them. It does not find them.

use std::sync::LazyLock;

use memchr::memmem::Finder;

/// How a letter of ASCII begins where it is spelled with an escape (RFC 8259, section 7).
static ESCAPE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\\u00"));

/// Whether a key of ASCII letters may be spelled with an escape in `text`.
pub fn is_escaped(text: &[u8]) -> bool {
    ESCAPE.find(text).is_some()
}

/// What begins with the value of the key that stands before `rest`; `None` when that was no key.
pub fn value(rest: &[u8]) -> Option<&[u8]> {
    rest.trim_ascii_start().strip_prefix(b":").map(<[u8]>::trim_ascii_start)
}
