//! Characters that nobody sees and a model reads all the same: controls, terminal sequences, what turns the direction of text, what has no
//! width, and the tags block. Told, shown and taken away here; where that has to happen is not decided here.

use std::fmt::Write as _;

use crate::json::{self, Members, Span};

/// The members of a definition that are text for people and models. Everything else in it means something to programs, and stays.
const TEXTS: [&str; 2] = ["description", "title"];
/// Below these stand values, whatever they are called.
const VALUES: [&str; 4] = ["const", "default", "enum", "examples"];

/// Whether a character shows nothing by itself. Ends of lines and tabs do; so does what joins letters and pictures.
pub fn is_hidden(c: char) -> bool {
    let is_plain = matches!(c, '\n' | '\r' | '\t' | '\u{200c}' | '\u{200d}');
    !is_plain && (c.is_control() || is_format(c) || is_tag(c) || is_supplement(c))
}

fn is_format(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}')
}

/// The tags block, which spells ASCII for machines.
fn is_tag(c: char) -> bool {
    ('\u{e0000}'..='\u{e007f}').contains(&c)
}

/// Selectors of variants beyond those that pictures use: 240 values a character, which can carry any text.
fn is_supplement(c: char) -> bool {
    ('\u{e0080}'..='\u{e0fff}').contains(&c)
}

/// Selectors of variants and joiners mean something behind one visible character, and nothing behind each other.
fn is_dependent(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}')
}

/// The text without what nobody sees.
pub fn without(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = None;
    while let Some(c) = rest.chars().next() {
        if let Some(length) = sequence(rest) {
            rest = &rest[length..];
            continue;
        }
        rest = &rest[c.len_utf8()..];
        let is_joined = |before: char| c == '\u{200d}' && before == '\u{fe0f}';
        let hangs = is_dependent(c) && before.is_none_or(|b: char| b.is_ascii() || (is_dependent(b) && !is_joined(b)));
        if !is_hidden(c) && !hangs {
            out.push(c);
            before = Some(c);
        }
    }
    out
}

/// The length of the terminal sequence (ECMA-48) with which `text` begins, in bytes.
fn sequence(text: &str) -> Option<usize> {
    let (introducer, rest) = match text.as_bytes() {
        [0x1b, kind, ..] if kind.is_ascii() => (*kind, 2),
        [0xc2, kind @ 0x80..=0x9f, ..] => (kind - 0x40, 2),
        _ => return None,
    };
    let tail = &text.as_bytes()[rest..];
    match introducer {
        b'[' => {
            let last = tail.iter().position(|b| !(0x20..=0x3f).contains(b))?;
            tail.get(last).is_some_and(|b| (0x40..=0x7e).contains(b)).then_some(rest + last + 1)
        }
        b'P' | b'X' | b']' | b'^' | b'_' => {
            let bell = tail.iter().position(|b| *b == 7).map(|at| at + 1);
            let end = text[rest..].find("\u{1b}\\").map(|at| at + 2).or_else(|| text[rest..].find('\u{9c}').map(|at| at + 2));
            [bell, end].into_iter().flatten().min().map(|at| rest + at)
        }
        _ => None,
    }
}

/// The text with what nobody sees written out: `⟨U+200B⟩`, and what tags spell as `⟨tags: "..."⟩`.
pub fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if is_tag(c) {
            let mut spelled: String = ascii(c).into_iter().collect();
            while let Some(next) = rest.next_if(|next| is_tag(*next)) {
                spelled.extend(ascii(next));
            }
            _ = write!(out, "⟨tags: {spelled:?}⟩");
        } else if is_hidden(c) {
            _ = write!(out, "⟨U+{:04X}⟩", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// What a tag spells.
fn ascii(tag: char) -> Option<char> {
    char::from_u32(u32::from(tag) - 0xe0000).filter(|c| c.is_ascii_graphic() || *c == ' ')
}

/// The sound JSON of a definition with its texts as [`without`] gives them; `None`: nothing is hidden in them, and every byte stays.
pub fn cleaned(raw: &[u8]) -> Option<Vec<u8>> {
    // Plain ASCII without escapes hides nothing.
    if raw.iter().all(|b| *b < 0x7f) && memchr::memmem::find(raw, b"\\u").is_none() {
        return None;
    }
    let mut edits = Vec::new();
    gather(raw, 0, &mut edits);
    let mut out = Vec::with_capacity(raw.len());
    let mut at = 0;
    for (span, text) in &edits {
        out.extend_from_slice(&raw[at..span.start]);
        out.extend_from_slice(text.as_bytes());
        at = span.end;
    }
    out.extend_from_slice(&raw[at..]);
    (!edits.is_empty()).then_some(out)
}

/// Finds the texts that hide something, in order; `at` is where `raw` stands in the whole.
fn gather(raw: &[u8], at: usize, edits: &mut Vec<(Span, String)>) {
    if raw.starts_with(b"{") {
        let members = Members::again(raw);
        for ((key, value), (_, span)) in members.iter().zip(members.spans()) {
            if TEXTS.contains(&&*key) && value.starts_with(b"\"") {
                let Some(text) = json::as_str(value) else { continue };
                let plain = without(&text);
                if plain != text {
                    edits.push((at + span.start..at + span.end, json::quote(&plain)));
                }
            } else if !VALUES.contains(&&*key) {
                gather(value, at + span.start, edits);
            }
        }
    } else if raw.starts_with(b"[") {
        for element in json::elements(raw).unwrap_or_default() {
            gather(element, at + (element.as_ptr().addr() - raw.as_ptr().addr()), edits);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_sees_is_taken_away_and_what_people_write_stays() {
        for (text, plain) in [
            ("a\u{200b}b\u{feff}", "ab"),
            ("\u{202e}evil\u{202c}", "evil"),
            ("hi\u{e0069}\u{e0067}\u{e006e}", "hi"),
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("x\u{1b}]8;;http://h\u{7}link\u{1b}]8;;\u{1b}\\y", "xlinky"),
            ("\u{9b}2Jz", "z"),
            ("open \u{1b}]without an end", "open ]without an end"),
            ("v\u{fe01}\u{fe02}\u{e0100}w", "vw"),
        ] {
            assert_eq!(without(text), plain, "{text:?}");
        }
        for text in ["line\n\ttab — “Übung” ✓", "👨\u{200d}👩\u{200d}👧 ⚠\u{fe0f} 🏳\u{fe0f}\u{200d}🌈", "می\u{200c}خواهم", "日本語"]
        {
            assert_eq!(without(text), text);
        }
    }

    #[test]
    fn what_is_hidden_is_shown_with_what_it_spells() {
        assert_eq!(shown("a\u{200b}b\u{1b}[0m"), "a⟨U+200B⟩b⟨U+001B⟩[0m");
        assert_eq!(shown("x\u{e0069}\u{e0067}\u{e0020}y"), "x⟨tags: \"ig \"⟩y");
        assert_eq!(shown("plain\n"), "plain\n");
    }

    #[test]
    fn only_texts_change_and_only_where_something_is_hidden() {
        let raw = r#"{ "name":"a", "description":"x\u200by", "inputSchema":{"properties":{"p":{"description":"q\u202e","enum":["\u200b"],"default":{"title":"\u200b"}}},"anyOf":[{"title":"\ufeffz"}]} , "n":1.0}"#;
        let wanted = r#"{ "name":"a", "description":"xy", "inputSchema":{"properties":{"p":{"description":"q","enum":["\u200b"],"default":{"title":"\u200b"}}},"anyOf":[{"title":"z"}]} , "n":1.0}"#;
        assert_eq!(cleaned(raw.as_bytes()).map(|out| String::from_utf8(out).unwrap()).as_deref(), Some(wanted));
        for same in [r#"{"description":"—\u0041","n":1}"#, r#"{"description":["\u200b"]}"#, "{}", r#"{"title":7}"#] {
            assert_eq!(cleaned(same.as_bytes()), None, "{same}");
        }
    }
}
