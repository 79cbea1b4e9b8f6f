//! Fields of a head, found once. The meaning of a field is not known here.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::before::Shifts;

/// The fields of a head, in order.
#[derive(Debug, Clone)]
pub struct Fields {
    text: Bytes,
    list: Arc<[Place]>,
}

/// Places of a field's name and value.
#[derive(Debug, Clone)]
pub(super) struct Place {
    name: Range<u32>,
    value: Range<u32>,
    tag: u32,
}

impl Place {
    #[inline]
    fn new(text: &[u8], name: Range<u32>, value: Range<u32>) -> Self {
        let tag = tag(&text[name.start as usize..name.end as usize]);
        Self { name, value, tag }
    }
}

/// Digest of a name, equal for names that differ only in case: length, first, middle and last byte.
#[inline]
const fn tag(name: &[u8]) -> u32 {
    match name {
        [] => 0,
        [only] => 1 << 24 | (*only | 0x20) as u32,
        [first, .., last] => {
            let length = (name.len() as u32 & 0xff) << 24;
            length | ((*first | 0x20) as u32) << 16 | ((name[name.len() / 2] | 0x20) as u32) << 8 | (*last | 0x20) as u32
        }
    }
}

impl Fields {
    /// Collects fields read elsewhere.
    pub fn new<'a>(fields: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let (mut text, mut list) = (Vec::new(), Vec::new());
        for (name, value) in fields {
            let start = text.len();
            text.extend_from_slice(name.as_bytes());
            let end = text.len();
            text.extend_from_slice(value);
            list.push(Place::new(&text, span(start, end), span(end, text.len())));
        }
        Self { text: text.into(), list: list.into() }
    }

    pub(super) fn found(text: Bytes, list: Arc<[Place]>) -> Self {
        Self { text, list }
    }

    /// Shifts the places of the fields to another text.
    pub(super) fn moved(&self, text: Bytes, by: &Shifts) -> Self {
        if by.iter().all(|(_, by)| *by == 0) {
            return Self { text, list: Arc::clone(&self.list) };
        }
        let at = |place: u32| {
            let by: isize = by.iter().filter(|(from, _)| place as usize >= *from).map(|(_, by)| by).sum();
            u32::try_from(place as isize + by).unwrap_or(0)
        };
        let span = |span: &Range<u32>| at(span.start)..at(span.end);
        let list = self.list.iter().map(|place| Place { name: span(&place.name), value: span(&place.value), tag: place.tag }).collect();
        Self { text, list }
    }

    /// Gives the whole head, if read here.
    pub(super) fn text(&self) -> &Bytes {
        &self.text
    }

    /// Gives the place of the value of the only field `name`.
    pub(super) fn only(&self, name: &str) -> Option<Range<usize>> {
        let mut all = self.list.iter().filter(|place| self.is(place, name));
        let value = &all.next()?.value;
        all.next().is_none().then_some(value.start as usize..value.end as usize)
    }

    /// Gives the value of the first field `name`, without surrounding space.
    #[inline]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        let tag = tag(name.as_bytes());
        let place = self.list.iter().find(|place| place.tag == tag && self.is(place, name))?;
        Some(self.slice(&place.value).trim_ascii())
    }

    /// Gives the value of the first field `name`, if UTF-8.
    pub fn str(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(|value| std::str::from_utf8(value).ok())
    }

    /// Gives the values of all fields `name`.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.list.iter().filter(move |place| self.is(place, name)).map(|place| self.slice(&place.value).trim_ascii())
    }

    /// Finds a doubled name that begins with `prefix`, in lower case.
    pub fn repeated(&self, prefix: &str) -> Option<String> {
        let begins = |name: &[u8]| name.get(..prefix.len()).is_some_and(|p| p.eq_ignore_ascii_case(prefix.as_bytes()));
        let same = |a: &Place, b: &Place| a.tag == b.tag && self.slice(&a.name).eq_ignore_ascii_case(self.slice(&b.name));
        let is_twice =
            |(i, place): &(usize, &Place)| begins(self.slice(&place.name)) && self.list[..*i].iter().any(|other| same(other, place));
        let (_, twice) = self.list.iter().enumerate().find(is_twice)?;
        Some(String::from_utf8_lossy(self.slice(&twice.name)).to_ascii_lowercase())
    }

    #[inline]
    fn is(&self, place: &Place, name: &str) -> bool {
        let own = self.slice(&place.name);
        // Nearly every client spells them alike, and whole names are compared faster than letters.
        own == name.as_bytes() || own.eq_ignore_ascii_case(name.as_bytes())
    }

    #[inline]
    fn slice(&self, range: &Range<u32>) -> &[u8] {
        &self.text[range.start as usize..range.end as usize]
    }
}

/// Finds the places of `fields` in `text`, of which they are parts.
pub(super) fn places(text: &[u8], fields: &[httparse::Header<'_>]) -> Arc<[Place]> {
    let base = text.as_ptr() as usize;
    let place = |part: &[u8]| {
        let start = (part.as_ptr() as usize).saturating_sub(base);
        span(start, start + part.len())
    };
    fields.iter().map(|f| Place::new(text, place(f.name.as_bytes()), place(f.value))).collect()
}

/// Heads are far shorter than 4 GiB.
fn span(start: usize, end: usize) -> Range<u32> {
    u32::try_from(start).unwrap_or(0)..u32::try_from(end).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_whatever_their_case() {
        let fields = Fields::new([("Host", &b"a"[..]), ("MCP-Name", b" x "), ("mcp-name", b"y"), ("host", b"b")]);
        assert_eq!(fields.str("host"), Some("a"));
        assert_eq!(fields.all("mcp-name").collect::<Vec<_>>(), [&b"x"[..], b"y"]);
        assert_eq!((fields.repeated("mcp-").as_deref(), fields.repeated("x-")), (Some("mcp-name"), None));
        assert_eq!(fields.get("ho"), None);
    }
}
