//! Elements of XML whose name is secret, found without a parser: what a device sends may be cut off or wrong, and is hidden all the same.
//! Attributes and JSON are left to the words.

use std::ops::Range;

use super::names::{holds_keys, is_secret_node};

/// Open elements that are kept in mind.
const DEEPEST: usize = 256;

pub(super) fn find(text: &str, spans: &mut Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    // Names of the open elements that hold keys.
    let mut holders: Vec<&str> = Vec::new();
    while let Some(open) = memchr::memchr(b'<', &bytes[at..]).map(|found| at + found) {
        let is_end = bytes.get(open + 1) == Some(&b'/');
        at = open + 1 + usize::from(is_end);
        let name_end = at + bytes[at..].iter().take_while(|b| is_of_name(**b)).count();
        let name = &text[at..name_end];
        at = name_end;
        if is_end {
            if let Some(depth) = holders.iter().rposition(|holder| *holder == name) {
                holders.truncate(depth);
            }
            continue;
        }
        let leaf = name.rsplit(':').next().unwrap_or(name).to_ascii_lowercase();
        let is_secret = is_secret_node(&leaf, "", !holders.is_empty());
        if !is_secret && !holds_keys(&leaf) {
            continue;
        }
        let Some(tag_end) = memchr::memchr(b'>', &bytes[at..]).map(|found| at + found) else { return };
        at = tag_end + 1;
        if bytes[tag_end - 1] == b'/' {
            continue;
        }
        if !is_secret {
            if holders.len() < DEEPEST {
                holders.push(name);
            }
            continue;
        }
        // Where the end tag is missing, all the rest is hidden.
        let close = closing(text, at, name);
        if is_secret_node(&leaf, &text[at..close], !holders.is_empty()) {
            spans.push(at..close);
        }
        at = close;
    }
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b':' | b'.')
}

/// Start of `</name>` from here on, or the end of the text.
fn closing(text: &str, from: usize, name: &str) -> usize {
    let mut at = from;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find("</")).map(|found| at + found) {
        let rest = text[found + 2..].strip_prefix(name);
        if rest.is_some_and(|rest| !rest.bytes().next().is_some_and(is_of_name)) {
            return found;
        }
        at = found + 2;
    }
    text.len()
}
