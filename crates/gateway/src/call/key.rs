//! Tells quickly that a key is nowhere in raw JSON, so that most results are not read a second time. It does not find it.

use std::sync::LazyLock;

use memchr::memmem::Finder;

/// How a letter of ASCII begins where it is spelled with an escape (RFC 8259, section 7).
static ESCAPE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\\u00"));

/// A key of ASCII letters.
pub(crate) struct Key(Finder<'static>);

impl Key {
    /// `quoted`: the key within quotes.
    pub(crate) fn new(quoted: &'static str) -> Self {
        Self(Finder::new(quoted))
    }

    /// `false`: `text` has no such key, however it may be spelled.
    pub(crate) fn may_be_in(&self, text: &[u8]) -> bool {
        self.0.find(text).is_some() || is_escaped(text)
    }

    /// `false`: `text` has no such key with the value `true`.
    pub(crate) fn may_be_true_in(&self, text: &[u8]) -> bool {
        let is_true = |at: usize| value(&text[at + self.0.needle().len()..]).is_some_and(|value| value.starts_with(b"true"));
        self.0.find_iter(text).any(is_true) || is_escaped(text)
    }
}

/// Whether a key of ASCII letters may be spelled with an escape in `text`.
pub(crate) fn is_escaped(text: &[u8]) -> bool {
    ESCAPE.find(text).is_some()
}

/// What begins with the value of the key that stands before `rest`; `None` when that was no key.
pub(crate) fn value(rest: &[u8]) -> Option<&[u8]> {
    rest.trim_ascii_start().strip_prefix(b":").map(<[u8]>::trim_ascii_start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_there_is_never_missed() {
        let key = Key::new("\"isError\"");
        for text in [r#"{"isError" : true}"#, r#"{"x":1,"\u0069sError":true}"#, r#"{"isErro\u0072":true}"#, "{\"isError\"\n:\ttrue }"] {
            assert!(key.may_be_in(text.as_bytes()) && key.may_be_true_in(text.as_bytes()), "{text}");
        }
        let said = r#"{"isError":false,"content":["isError",true,"\n\\"]}"#.as_bytes();
        assert!(key.may_be_in(said) && !key.may_be_true_in(said));
        assert!(!key.may_be_in(br#"{"content":[{"text":"isError: \u4e00 \n"}]}"#));
    }
}
