//! Elements of XML whose name is secret, found without a parser: what a device sends may be cut off or wrong, and is hidden all the same.
//! Attributes and JSON are left to the words.

use std::ops::Range;

use super::names::{is_bgp_community, is_secret_name};

pub(super) fn find(text: &str, spans: &mut Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(open) = memchr::memchr(b'<', &bytes[at..]).map(|found| at + found) {
        at = open + 1;
        let name_end = at + bytes[at..].iter().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b':' | b'.')).count();
        let name = &text[at..name_end];
        let leaf = name.rsplit(':').next().unwrap_or(name).to_ascii_lowercase();
        at = name_end;
        if !is_secret_name(&leaf) {
            continue;
        }
        let Some(tag_end) = memchr::memchr(b'>', &bytes[at..]).map(|found| at + found) else { return };
        at = tag_end + 1;
        if bytes[tag_end - 1] == b'/' {
            continue;
        }
        // Where the end tag is missing, all the rest is hidden.
        let close = closing(text, at, name);
        if !(leaf == "community" && is_bgp_community(&text[at..close])) {
            spans.push(at..close);
        }
        at = close;
    }
}

/// Start of `</name>` from here on, or the end of the text.
fn closing(text: &str, from: usize, name: &str) -> usize {
    let mut at = from;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find("</")).map(|found| at + found) {
        if text[found + 2..].starts_with(name) {
            return found;
        }
        at = found + 2;
    }
    text.len()
}
