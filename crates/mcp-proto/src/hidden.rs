//! Characters invisible to people and read by models: controls, terminal sequences, changes of text direction, characters without
//! width, and the tags block. Recognised, spelled out and removed here; the places for doing so are not decided here.

use std::fmt::Write as _;
use std::iter::Peekable;
use std::ops::Range;

use crate::json::{self, Span};

/// Members of a definition that hold text for people and models. All other members are for programs, and stay.
const TEXTS: [&str; 2] = ["description", "title"];
/// Members that hold values, never text for people.
const VALUES: [&str; 4] = ["const", "default", "enum", "examples"];

const BELL: u8 = 7;
const ESCAPE: u8 = 0x1b;

/// Tells if a character shows nothing by itself. Line ends and tabs do show, and so do joiners of letters and pictures.
pub fn is_hidden(c: char) -> bool {
    let is_plain = matches!(c, '\n' | '\r' | '\t' | '\u{200c}' | '\u{200d}');
    !is_plain && (c.is_control() || is_format(c) || is_tag(c) || is_supplement(c))
}

/// Tells if a character shows nothing by itself in any place: line ends, tabs and joiners included.
pub fn is_unseen(c: char) -> bool {
    is_hidden(c) || c.is_control() || is_dependent(c)
}

fn is_format(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}')
}

/// Recognises the tags block, which spells ASCII for machines.
fn is_tag(c: char) -> bool {
    ('\u{e0000}'..='\u{e007f}').contains(&c)
}

/// Recognises selectors of variants beyond those of pictures: 240 values a character, enough to carry any text.
fn is_supplement(c: char) -> bool {
    ('\u{e0080}'..='\u{e0fff}').contains(&c)
}

/// Selectors of variants and joiners mean something behind one visible character, and nothing behind each other.
fn is_dependent(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}')
}

/// Removes invisible characters.
pub fn without(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut sequences = Sequences::new(text);
    let (mut at, mut before) = (0, None);
    while let Some(c) = text[at..].chars().next() {
        if let Some(end) = sequences.end_of(at) {
            at = end;
            continue;
        }
        at += c.len_utf8();
        let is_joined = |before: char| c == '\u{200d}' && before == '\u{fe0f}';
        let hangs = is_dependent(c) && before.is_none_or(|b: char| b.is_ascii() || (is_dependent(b) && !is_joined(b)));
        if !is_hidden(c) && !hangs {
            out.push(c);
            before = Some(c);
        }
    }
    out
}

/// Terminal sequences (ECMA-48) of a text, asked for from beginning to end, so that each byte is looked at a fixed number of times.
///
/// No parser of terminals would do: `vte` takes the introducers of one character for controls that stand alone, and drops all the text
/// behind an
/// introducer of an endless sequence. A person would then be shown less than the server sent.
struct Sequences<'a> {
    text: &'a [u8],
    /// Ends of the strings still ahead, in order.
    ends: Peekable<Box<dyn Iterator<Item = Range<usize>> + 'a>>,
}

impl<'a> Sequences<'a> {
    fn new(text: &'a str) -> Self {
        let text = text.as_bytes();
        let end = |at| match &text[at..] {
            [BELL, ..] => Some(at..at + 1),
            [ESCAPE, b'\\', ..] | [0xc2, 0x9c, ..] => Some(at..at + 2),
            _ => None,
        };
        let ends: Box<dyn Iterator<Item = _>> = Box::new(memchr::memchr3_iter(BELL, ESCAPE, 0xc2, text).filter_map(end));
        Self { text, ends: ends.peekable() }
    }

    /// Gives the end of the sequence that begins at `at`, if any and complete.
    fn end_of(&mut self, at: usize) -> Option<usize> {
        let kind = match &self.text[at..] {
            [ESCAPE, kind, ..] if kind.is_ascii() => *kind,
            [0xc2, kind @ 0x80..=0x9f, ..] => kind - 0x40,
            _ => return None,
        };
        let within = at + 2;
        match kind {
            b'[' => {
                let parameters = self.text[within..].iter().take_while(|b| (0x20..=0x3f).contains(*b)).count();
                let end = within + parameters;
                self.text.get(end).is_some_and(|last| (0x40..=0x7e).contains(last)).then_some(end + 1)
            }
            b'P' | b'X' | b']' | b'^' | b'_' => {
                while self.ends.next_if(|end| end.start < within).is_some() {}
                self.ends.peek().map(|end| end.end)
            }
            _ => None,
        }
    }
}

/// Spells invisible characters out: `⟨U+200B⟩`, and tags as `⟨tags: "..."⟩`.
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

/// Gives the character spelled by a tag.
fn ascii(tag: char) -> Option<char> {
    char::from_u32(u32::from(tag) - 0xe0000).filter(|c| c.is_ascii_graphic() || *c == ' ')
}

/// The sound JSON of a definition with its texts as [`without`] gives them; `None`: nothing is hidden in them, and every byte stays.
pub fn cleaned(raw: &[u8]) -> Option<Vec<u8>> {
    // Plain ASCII without escapes hides nothing.
    if raw.iter().all(|b| *b < 0x7f) && memchr::memmem::find(raw, b"\\u").is_none() {
        return None;
    }
    let mut out = Vec::new();
    let mut kept = 0;
    for span in Texts::new(raw) {
        let Some(text) = json::as_str(&raw[span.clone()]) else { continue };
        let plain = without(&text);
        if plain != text {
            out.reserve(raw.len());
            out.extend_from_slice(&raw[kept..span.start]);
            json::push_quoted(&mut out, &plain);
            kept = span.end;
        }
    }
    if kept == 0 {
        return None;
    }
    out.extend_from_slice(&raw[kept..]);
    Some(out)
}

/// Strings of a sound JSON text for people and models, found in one pass at any nesting.
struct Texts<'a> {
    raw: &'a [u8],
    at: usize,
    /// The open objects (`true`) and arrays.
    open: Vec<bool>,
    /// Number that were open where a member of [`VALUES`] began: until no more are, all strings are values.
    values: Option<usize>,
    next: Next,
}

/// Meaning of the next string.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Key,
    Text,
    Value,
}

impl<'a> Texts<'a> {
    fn new(raw: &'a [u8]) -> Self {
        Self { raw, at: 0, open: Vec::new(), values: None, next: Next::Value }
    }

    /// Reads the next string.
    fn string(&mut self) -> Span {
        let start = self.at;
        self.at += 1;
        while let Some(found) = memchr::memchr2(b'"', b'\\', &self.raw[self.at.min(self.raw.len())..]) {
            self.at += found;
            if self.raw[self.at] == b'"' {
                self.at += 1;
                return start..self.at;
            }
            self.at += 2;
        }
        self.at = self.raw.len();
        start..self.at
    }

    fn key(&mut self, span: Span) {
        let key = json::as_str(&self.raw[span]).unwrap_or_default();
        self.next = if TEXTS.contains(&&*key) { Next::Text } else { Next::Value };
        if self.values.is_none() && VALUES.contains(&&*key) {
            self.values = Some(self.open.len());
        }
    }

    /// A member or an element is over.
    fn over(&mut self) {
        if self.values.is_some_and(|level| level >= self.open.len()) {
            self.values = None;
        }
        self.next = if self.open.last() == Some(&true) { Next::Key } else { Next::Value };
    }
}

impl Iterator for Texts<'_> {
    type Item = Span;

    fn next(&mut self) -> Option<Span> {
        loop {
            match *self.raw.get(self.at)? {
                b'"' => {
                    let span = self.string();
                    match self.next {
                        Next::Key => self.key(span),
                        Next::Text if self.values.is_none() => return Some(span),
                        Next::Text | Next::Value => {}
                    }
                    continue;
                }
                opens @ (b'{' | b'[') => {
                    self.open.push(opens == b'{');
                    self.next = if opens == b'{' { Next::Key } else { Next::Value };
                }
                b'}' | b']' => {
                    // The last member of what is closed is over as well.
                    self.over();
                    self.open.pop();
                }
                b',' => self.over(),
                _ => {}
            }
            self.at += 1;
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
            ("\u{9d}0;t\u{9c}a\u{90}q\u{7}b\u{98}\u{1b}\\c\u{9e}\u{9f}x\u{9c}d\u{9c}e", "abcde"),
            ("\u{9d}hidden\u{9c}shown\u{1b}\\", "shown\\"),
            ("\u{1b}[1;\u{9b}2mx\u{1b}[é", "[1;x[é"),
            ("\u{9d}\u{9d}\u{9d}x", "x"),
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
        let nested = r#"{"description":{"title":"\u200b","default":[{"title":"\u200b"},"x"],"x":{"title":"\u200b"}},"title":"\"\u200b"}"#;
        let wanted = r#"{"description":{"title":"","default":[{"title":"\u200b"},"x"],"x":{"title":""}},"title":"\""}"#;
        assert_eq!(cleaned(nested.as_bytes()).map(|out| String::from_utf8(out).unwrap()).as_deref(), Some(wanted));
        for same in [r#"{"description":"—\u0041","n":1}"#, r#"{"description":["\u200b"]}"#, "{}", r#"{"title":7}"#] {
            assert_eq!(cleaned(same.as_bytes()), None, "{same}");
        }
    }
}
