//! Secrets of many lines: PEM, the hexadecimal lines of certificates and keys, the base64 below a bare `key-string`. No keywords within a line.

use std::ops::Range;

/// Hexadecimal digits from which on a line of nothing else is a key or a certificate.
const HEX_DIGITS: usize = 32;

pub(super) fn find(text: &str, spans: &mut Vec<Range<usize>>) {
    find_pem(text, spans);
    find_lines(text, spans);
}

/// Characters of a line that is a key without anything said of the place: shorter words may be commands.
const KEY_CHARACTERS: usize = 20;
/// Characters of a line within PEM, which has 64; only the last one is shorter.
const PEM_CHARACTERS: usize = 32;

/// The same for a text that somebody else decides upon line by line: a block ends with the last line of its shape, so that nobody can hide lines
/// of a change behind words that only look like the begin of a block.
pub(super) fn find_by_lines(text: &str, spans: &mut Vec<Range<usize>>) {
    let (mut at, mut pem, mut is_hex, mut is_key) = (0, None, false, false);
    for whole in text.split_inclusive('\n') {
        let line = whole.trim();
        let start = at + whole.find(line).unwrap_or_default();
        at += whole.len();
        let digits = hex_digits(line);
        is_hex = digits >= HEX_DIGITS || (is_hex && digits > 0);
        let is_pem = pem.is_some_and(|before| is_of_pem(line, before));
        is_key &= digits > 0 || is_base64(line, KEY_CHARACTERS);
        if is_pem || is_hex || is_key {
            spans.push(start..start + line.len());
        }
        pem = pem.filter(|_| is_pem).map(|_| line.len());
        if let Some(begin) = line.rfind("-----BEGIN ") {
            let label = begin + line[begin + 11..].find("-----").map_or(0, |end| end + 16);
            let label = if label == begin { line.len() } else { label };
            let body = line[label..].find(['<', '"']).map_or(line.len(), |end| label + end);
            spans.push(start + label..start + body);
            pem = (body == label && label == line.len()).then_some(PEM_CHARACTERS);
        }
        is_key |= line.ends_with("key-string") || line.ends_with("public-key-code begin");
    }
}

/// Recognizes a line of PEM behind one of `before` characters: its head, or its base64, of which only the last line is short.
fn is_of_pem(line: &str, before: usize) -> bool {
    let is_head = ["Proc-Type:", "DEK-Info:", "Comment:", "Version:"].iter().any(|head| line.starts_with(head));
    line.is_empty() || is_head || is_base64(line, PEM_CHARACTERS) || (before > PEM_CHARACTERS && is_base64(line, 1))
}

fn is_base64(line: &str, least: usize) -> bool {
    line.len() >= least && line.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='))
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
