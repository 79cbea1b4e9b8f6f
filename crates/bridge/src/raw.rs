//! Raw JSON of a message: members found and written as bytes, numbers and strings in the spelling of their sender. Knows no binding.

use std::borrow::Cow;

/// A raw JSON value, borrowed from the message wherever possible.
pub type RawJson<'a> = Cow<'a, [u8]>;

/// A JSON string with its quotes, as its sender spelled the text. Two spellings of a text are equal.
#[derive(Clone, Debug)]
pub struct QuotedText<'a>(Cow<'a, [u8]>);

impl PartialEq for QuotedText<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 || matches!((self.plain(), other.plain()), (Some(one), Some(other)) if one == other)
    }
}

impl Eq for QuotedText<'_> {}

impl<'a> QuotedText<'a> {
    /// Quotes a text.
    pub fn quote(text: &str) -> QuotedText<'static> {
        QuotedText(Cow::Owned(json::quote(text).into_bytes()))
    }

    /// Wraps a sound raw string; `None`: another value.
    pub(crate) fn read(raw: &'a [u8]) -> Option<Self> {
        raw.starts_with(b"\"").then_some(Self(Cow::Borrowed(raw)))
    }

    /// Puts the quote before the rest of a raw string.
    pub(crate) fn from_inside(rest: &[u8]) -> QuotedText<'static> {
        QuotedText(Cow::Owned([b"\"", rest].concat()))
    }

    /// The raw string without the first quote.
    pub(crate) fn inside(&self) -> &[u8] {
        self.0.get(1..).unwrap_or_default()
    }

    /// The raw string, quotes included.
    pub fn raw(&self) -> &[u8] {
        &self.0
    }

    /// The same text, borrowed from nothing.
    pub(crate) fn to_owned(&self) -> QuotedText<'static> {
        QuotedText(Cow::Owned(self.0.to_vec()))
    }

    /// The same text, borrowed from nothing.
    pub(crate) fn into_owned(self) -> QuotedText<'static> {
        QuotedText(Cow::Owned(self.0.into_owned()))
    }

    /// The text without quotes and escapes.
    pub fn text(&self) -> Cow<'_, str> {
        json::as_str(&self.0).unwrap_or_default()
    }

    /// The text without quotes and escapes; `None`: half of a surrogate pair, for which UTF-8 has no bytes.
    pub(crate) fn plain(&self) -> Option<Cow<'_, str>> {
        let has_escape = self.0.windows(2).any(|pair| pair == b"\\u");
        json::as_str(&self.0).filter(|_| !has_escape || json::tree::read(&self.0).is_ok())
    }
}

/// A member of an object, byte for byte.
#[derive(Clone, Debug)]
pub struct RawMember<'a> {
    pub(crate) key: Cow<'a, str>,
    pub(crate) whole: RawJson<'a>,
    /// Begin of the value.
    pub(crate) value_at: usize,
}

impl PartialEq for RawMember<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.whole == other.whole
    }
}

impl Eq for RawMember<'_> {}

impl RawMember<'_> {
    /// The raw value.
    pub fn value(&self) -> &[u8] {
        self.whole.get(self.value_at..).unwrap_or_default()
    }

    /// The same member, borrowed from nothing.
    pub(crate) fn into_owned(self) -> RawMember<'static> {
        let key = Cow::Owned(self.key.into_owned());
        RawMember { key, whole: Cow::Owned(self.whole.into_owned()), value_at: self.value_at }
    }

    /// Makes a member of a key and a sound raw value.
    pub fn new(key: &str, raw: &[u8]) -> RawMember<'static> {
        let mut whole = json::quote(key).into_bytes();
        whole.push(b':');
        let value_at = whole.len();
        whole.extend_from_slice(raw);
        RawMember { key: Cow::Owned(key.to_owned()), whole: Cow::Owned(whole), value_at }
    }

    /// The key, unescaped.
    pub fn key(&self) -> &str {
        &self.key
    }
}

/// Writes one object.
#[derive(Debug)]
pub(crate) struct ObjectWriter(Vec<u8>);

impl ObjectWriter {
    pub(crate) fn new() -> Self {
        Self(vec![b'{'])
    }

    fn comma(&mut self) {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
    }

    pub(crate) fn raw(&mut self, key: &str, raw: &[u8]) -> &mut Self {
        self.comma();
        json::push_quoted(&mut self.0, key);
        self.0.push(b':');
        self.0.extend_from_slice(raw);
        self
    }

    pub(crate) fn text(&mut self, key: &str, text: Option<&QuotedText<'_>>) -> &mut Self {
        match text {
            Some(text) => self.raw(key, text.raw()),
            None => self,
        }
    }

    pub(crate) fn members(&mut self, members: &[RawMember<'_>]) -> &mut Self {
        for member in members {
            self.comma();
            self.0.extend_from_slice(&member.whole);
        }
        self
    }

    /// Writes an object as a member, unless the object is empty.
    pub(crate) fn nested(&mut self, key: &str, inner: Self) -> &mut Self {
        if inner.is_empty() { self } else { self.raw(key, &inner.finish()) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.len() == 1
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.0.push(b'}');
        self.0
    }
}

/// Writes an array of raw values.
pub(crate) fn array<'i>(items: impl IntoIterator<Item = impl AsRef<[u8]> + 'i>) -> Vec<u8> {
    let mut out = vec![b'['];
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        out.extend_from_slice(item.as_ref());
    }
    out.push(b']');
    out
}
