//! Segments and the names made of them (MCP-AX section 4, AX-10). Does not decide what a client is shown.

use std::fmt;
use std::sync::Arc;

/// One step of a dotted name: `[a-z0-9_-]{1,63}` (AX-10).
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

    /// The segment's text.
    pub fn as_str(&self) -> &str {
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

/// A text that is not a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadSegment(pub String);

impl fmt::Display for BadSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not a legal name: use 1 to 63 of a-z, 0-9, `_` and `-`",
            self.0
        )
    }
}

impl std::error::Error for BadSegment {}

/// All the segments from the root to a tool, the tool last.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Route(pub Vec<Segment>);

/// A route written with dots, at most 255 characters (AX-10).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct QualifiedName(Arc<str>);

impl QualifiedName {
    /// The longest legal qualified name, in bytes.
    pub const MAX: usize = 255;

    /// Writes a route with dots; `None` when that is longer than 255 bytes or the route is empty.
    pub fn of(route: &Route) -> Option<Self> {
        let text = route
            .0
            .iter()
            .map(Segment::as_str)
            .collect::<Vec<_>>()
            .join(".");
        (!text.is_empty() && text.len() <= Self::MAX).then(|| Self(text.into()))
    }

    /// The dotted text.
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
    fn ax_10_a_qualified_name_is_at_most_255_bytes() {
        let s = Segment::new(&"a".repeat(63)).unwrap();
        assert!(QualifiedName::of(&Route(vec![s.clone(); 4])).is_some());
        assert!(QualifiedName::of(&Route(vec![s; 5])).is_none());
        assert!(QualifiedName::of(&Route(vec![])).is_none());
    }
}
