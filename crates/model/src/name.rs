//! Segments and the names made of them (MCP-AX section 4, AX-10). Does not decide what a client is shown.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// A step of a dotted name: `[a-z0-9_-]{1,63}` (AX-10).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Segment(Arc<str>);

impl Segment {
    /// The longest legal segment, in bytes.
    pub const MAX: usize = 63;

    /// Checks `text` against `[a-z0-9_-]{1,63}`.
    pub fn new(text: &str) -> Result<Self, BadSegment> {
        let legal = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-';
        if text.is_empty() || text.len() > Self::MAX || !text.bytes().all(legal) {
            return Err(BadSegment(text.chars().take(80).collect()));
        }
        Ok(Self(text.into()))
    }

    /// Gives the legal segment nearest to `text`: illegal characters become `_`, long text is cut, empty text becomes `_`.
    /// Legal text stays unchanged. Two texts may share a nearest segment.
    pub fn nearest(text: &str) -> Self {
        let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
        let near: String = text.chars().take(Self::MAX).map(|c| if legal(c) { c } else { '_' }).collect();
        Self(if near.is_empty() { "_".into() } else { near.into() })
    }

    /// The segment's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Lets a map by segment be asked with borrowed text. Order, equality and hash are those of the text.
impl Borrow<str> for Segment {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

/// A text that is no segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadSegment(pub String);

impl fmt::Display for BadSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a legal name: use 1 to 63 of a-z, 0-9, `_` and `-`", self.0)
    }
}

impl std::error::Error for BadSegment {}

/// All the segments from the root to a tool, the tool last.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Route(pub Vec<Segment>);

impl Route {
    /// The segments with `separator` between them.
    pub fn joined(&self, separator: &str) -> String {
        self.0.iter().map(Segment::as_str).collect::<Vec<_>>().join(separator)
    }
}

/// Joins the segments with dots, at any length.
impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.joined("."))
    }
}

/// A route written with dots, at most 255 characters (AX-10).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct QualifiedName(Arc<str>);

impl QualifiedName {
    /// The longest legal qualified name, in bytes.
    pub const MAX: usize = 255;

    /// Writes a route with dots; `None` when that is longer than 255 bytes or the route is empty.
    pub fn of(route: &Route) -> Option<Self> {
        let text = route.joined(".");
        (!text.is_empty() && text.len() <= Self::MAX).then(|| Self(text.into()))
    }

    /// Gives the dotted text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for QualifiedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ax_10_a_segment_is_lower_case_and_at_most_63_bytes() {
        assert!(Segment::new("net-1_a").is_ok());
        assert!(Segment::new(&"a".repeat(63)).is_ok());
        for bad in ["", "getUser", "a.b", "a/b", "ä", &"a".repeat(64)] {
            assert!(Segment::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn ax_10_the_nearest_segment_is_legal() {
        for text in ["", "net-1_a", "getUser", "a.b/c", "größe", &"x".repeat(300)] {
            let near = Segment::nearest(text);
            assert_eq!(Segment::new(near.as_str()).as_ref(), Ok(&near), "{text:?}");
        }
        assert_eq!(Segment::nearest("net-1_a").as_str(), "net-1_a");
    }

    #[test]
    fn ax_10_a_qualified_name_is_at_most_255_bytes() {
        let s = Segment::new(&"a".repeat(63)).unwrap();
        assert!(QualifiedName::of(&Route(vec![s.clone(); 4])).is_some());
        assert!(QualifiedName::of(&Route(vec![s; 5])).is_none());
        assert!(QualifiedName::of(&Route(vec![])).is_none());
    }
}
