//! Routing by cursor (MCP-AX 7.2, AX-30): `x-mcpax-route` and `x-mcpax-cursor` in a call's `params._meta`.
//!
//! Both are read in place, raw; nothing is copied and no name is split. The driver splices the next cursor in, the route stays as received.
//! The table, not this module, knows the servers behind segments.

use std::fmt;

use banyan_model::{QualifiedName, Segment};

use crate::refusal::Refusal;

/// Member with the segments from the root to the tool, the tool last.
pub const ROUTE: &str = "x-mcpax-route";
/// Member with the place of the current segment, counted from 0.
pub const CURSOR: &str = "x-mcpax-cursor";
/// Beginning of all members between aggregators.
pub const PREFIX: &str = "x-mcpax-";

/// Recognises members to be removed before the request reaches a server without MCP-AX, or a stub (AX-32).
pub fn is_stripped(member: &str) -> bool {
    member.starts_with(PREFIX)
}

/// The view of one hop on a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hop<'a> {
    route: &'a str,
    segment: &'a str,
    tool: &'a str,
    at: usize,
    length: usize,
}

impl<'a> Hop<'a> {
    /// Reads the raw values of [`ROUTE`] and [`CURSOR`].
    ///
    /// # Errors
    /// When the route is no list of legal segments or has more than 255 characters, or the cursor is out of range.
    pub fn read(route: &'a [u8], cursor: &[u8]) -> Result<Self, Refusal> {
        let refuse = |why: &dyn fmt::Display| Refusal::RouteInvalid { why: why.to_string() };
        let at = number(cursor).ok_or_else(|| refuse(&"the cursor is not a whole number"))?;
        let (mut here, mut tool, mut length, mut characters) = (None, "", 0, 0);
        let route = inside(route).map_err(|why| refuse(&why))?;
        for segment in Elements::new(route) {
            let segment = segment.map_err(|why| refuse(&why))?;
            if length == at {
                here = Some(segment);
            }
            tool = segment;
            length += 1;
            characters += segment.len() + 1;
        }
        if characters > QualifiedName::MAX + 1 {
            return Err(refuse(&format_args!("it has {} characters, 255 are allowed", characters - 1)));
        }
        let segment = here.ok_or_else(|| refuse(&format_args!("the cursor is {at} and the route has {length} segments")))?;
        Ok(Self { route, segment, tool, at, length })
    }

    /// Gives the current segment: the next server, or the tool if [`Self::is_last`].
    pub fn segment(&self) -> &'a str {
        self.segment
    }

    /// Gives the tool's own name: the last segment.
    pub fn tool(&self) -> &'a str {
        self.tool
    }

    /// Tells whether the current segment is the tool.
    pub fn is_last(&self) -> bool {
        self.at + 1 == self.length
    }

    /// Counts the segments behind the current.
    pub fn remaining(&self) -> usize {
        self.length - self.at - 1
    }

    /// Gives the segments behind the current, the tool last.
    pub fn rest(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        Elements::new(self.route).skip(self.at + 1).filter_map(Result::ok)
    }

    /// Gives the path from the current segment to the tool, as names between aggregators are written.
    pub fn path(&self) -> String {
        self.rest().fold(self.segment.to_owned(), |path, segment| path + "." + segment)
    }

    /// Gives the raw value of [`CURSOR`] for the next hop, if any.
    pub fn next_cursor(&self) -> Option<String> {
        (!self.is_last()).then(|| (self.at + 1).to_string())
    }
}

/// Writes the raw value of [`ROUTE`] for a call that begins at this aggregator, with the cursor `0`.
pub fn write_route<'a>(segments: impl IntoIterator<Item = &'a Segment>) -> String {
    let mut text = String::from("[");
    for segment in segments {
        text.push_str(if text.len() > 1 { ",\"" } else { "\"" });
        text.push_str(segment.as_str());
        text.push('"');
    }
    text + "]"
}

/// Reads a whole number of JSON, at most three digits.
fn number(raw: &[u8]) -> Option<usize> {
    let legal = (1..=3).contains(&raw.len()) && raw.iter().all(u8::is_ascii_digit) && (raw.len() == 1 || raw[0] != b'0');
    legal.then(|| raw.iter().fold(0, |n, digit| n * 10 + usize::from(digit - b'0')))
}

/// Gives the text between the brackets of a raw JSON array.
fn inside(raw: &[u8]) -> Result<&str, &'static str> {
    let text = std::str::from_utf8(raw).map_err(|_| "it is not text")?;
    let inner = text.trim_matches(SPACE).strip_prefix('[').and_then(|t| t.strip_suffix(']')).ok_or("it is not a list")?;
    Ok(inner.trim_matches(SPACE))
}

const SPACE: [char; 4] = [' ', '\t', '\n', '\r'];

/// Iterator over an array of segments.
struct Elements<'a> {
    /// Text from the next element on.
    rest: Option<&'a str>,
}

impl<'a> Elements<'a> {
    fn new(inside: &'a str) -> Self {
        Self { rest: (!inside.is_empty()).then_some(inside) }
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<&'a str, &'static str>;

    // A legal segment needs no escapes, so a comma always ends an element.
    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest.take()?;
        let (element, after) = rest.split_once(',').map_or((rest, None), |(element, after)| (element, Some(after)));
        self.rest = after;
        let inner = element.trim_matches(SPACE).strip_prefix('"').and_then(|e| e.strip_suffix('"'));
        Some(inner.filter(|s| is_segment(s)).ok_or("an element is not a legal segment"))
    }
}

/// Checks as [`Segment::new`] does, without making a segment.
fn is_segment(text: &str) -> bool {
    let legal = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-';
    (1..=Segment::MAX).contains(&text.len()) && text.bytes().all(legal)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTE: &[u8] = br#"["infra","edge", "stm32h7" ,"dma2d_status"]"#;

    #[test]
    fn ax_30_each_hop_finds_its_segment_and_advances_the_cursor() {
        let mut cursor = "0".to_owned();
        for (place, segment) in ["infra", "edge", "stm32h7", "dma2d_status"].into_iter().enumerate() {
            let hop = Hop::read(ROUTE, cursor.as_bytes()).unwrap();
            assert_eq!((hop.segment(), hop.tool(), hop.is_last()), (segment, "dma2d_status", place == 3));
            assert_eq!(hop.path(), ["infra", "edge", "stm32h7", "dma2d_status"][place..].join("."));
            cursor = hop.next_cursor().unwrap_or_default();
        }
        assert_eq!(cursor, "");
    }

    #[test]
    fn ax_30_what_leads_nowhere_is_refused() {
        for cursor in ["4", "-1", "1.0", "01", "", "\"0\"", "1000", " 0"] {
            assert!(Hop::read(ROUTE, cursor.as_bytes()).is_err(), "{cursor:?}");
        }
        let long = format!("[{}]", vec![format!("\"{}\"", "a".repeat(63)); 5].join(","));
        let bad =
            ["", "[]", "{}", "[\"\"]", "[\"a\",]", "[,\"a\"]", "[\"a\" \"b\"]", "[\"\\u0061\"]", "[\"A\"]", "[1]", "[[\"a\"]]", "[\"a\"]]"];
        for route in bad.into_iter().chain([long.as_str()]) {
            assert!(Hop::read(route.as_bytes(), b"0").is_err(), "{route}");
        }
    }

    #[test]
    fn ax_30_a_route_is_written_as_it_is_read() {
        let segments = ["a", "b-c", "d_0"].map(|s| Segment::new(s).unwrap());
        let route = write_route(&segments);
        assert_eq!(route, r#"["a","b-c","d_0"]"#);
        let hop = Hop::read(route.as_bytes(), b"1").unwrap();
        assert_eq!((hop.segment(), hop.remaining()), ("b-c", 1));
    }

    #[test]
    fn ax_32_what_is_between_aggregators_is_known_by_its_beginning() {
        assert!(is_stripped(super::ROUTE) && is_stripped(CURSOR) && is_stripped("x-mcpax-hops"));
        assert!(!is_stripped("progressToken") && !is_stripped("io.x-mcpax-route"));
    }
}
