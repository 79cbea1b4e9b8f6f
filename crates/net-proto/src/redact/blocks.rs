//! Secrets of many lines: PEM, the hexadecimal lines of certificates and keys, the base64 below a bare `key-string`. No keywords within a line.

use std::ops::Range;

/// Hexadecimal digits from which on a line of nothing else is a key or a certificate.
const HEX_DIGITS: usize = 32;

pub(super) fn find(text: &str, spans: &mut Vec<Range<usize>>) {
    find_pem(text, spans);
    find_lines(text, spans);
}

/// All between `-----BEGIN X-----` and `-----END`, to the end of the text where that is cut off.
fn find_pem(text: &str, spans: &mut Vec<Range<usize>>) {
    let mut from = 0;
    while let Some(begin) = find_from(text, from, "-----BEGIN ") {
        let label_ends = find_from(text, begin + 11, "-----").map_or(text.len(), |at| at + 5);
        let end = find_from(text, label_ends, "-----END").unwrap_or(text.len());
        spans.push(label_ends..end);
        from = end;
    }
}

fn find_from(text: &str, from: usize, what: &str) -> Option<usize> {
    text.get(from..)?.find(what).map(|at| from + at)
}

fn find_lines(text: &str, spans: &mut Vec<Range<usize>>) {
    let (mut at, mut is_hex, mut is_key) = (0, false, false);
    for whole in text.split_inclusive('\n') {
        let line = whole.trim_matches(['\r', '\n', ' ', '\t', '+', '-']);
        let start = at + whole.find(line).unwrap_or_default();
        at += whole.len();
        if is_key && matches!(line, "exit" | "quit" | "!" | "#" | "") {
            is_key = false;
        }
        let digits = hex_digits(line);
        is_hex = digits >= HEX_DIGITS || (is_hex && digits > 0);
        if is_key || is_hex {
            spans.push(start..start + line.len());
        }
        is_key |= line.ends_with("key-string") || line.ends_with("public-key-code begin");
    }
}

/// Digits of a line that holds nothing but hexadecimal groups; else 0.
fn hex_digits(line: &str) -> usize {
    let is_hex = line.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b' ');
    if is_hex { line.bytes().filter(|byte| *byte != b' ').count() } else { 0 }
}
