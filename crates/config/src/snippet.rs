//! A line of a configuration file, fit to be shown: texts are hidden, because any may be a secret. Does not look for mistakes.

use std::ops::Range;

use serde_json::Value;

/// The visible part of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// All but strings and comments; of these, the flaw.
    Flaw,
    /// All but strings, comments and the flaw.
    NotTheFlaw,
    /// The whole line, of a file without secrets.
    Whole,
    /// Known keys, and values too plain for a secret: in a text that is not TOML, nobody knows the ends of strings.
    Keys,
}

/// Sign for a hidden text, whatever its length.
const HIDDEN: &str = "***";

/// A line with its hidden texts covered, around the flaw.
#[derive(Default)]
pub(super) struct ShownLine {
    pub(super) before: String,
    pub(super) flaw: String,
    pub(super) after: String,
}

/// Shows the line at `line`. A hidden text does not tell its length.
pub(super) fn line(text: &str, line: Range<usize>, flaw: Range<usize>, shown: Shown, schema: &Value) -> ShownLine {
    let hidden = match shown {
        Shown::Flaw | Shown::NotTheFlaw => hidden_ranges(text),
        Shown::Keys => unsure_ranges(text, line.clone(), schema),
        Shown::Whole => Vec::new(),
    };
    let is_hidden = |at: usize, c: char| match shown {
        Shown::Flaw if flaw.contains(&at) => false,
        Shown::NotTheFlaw if flaw.contains(&at) && c.is_alphanumeric() => true,
        Shown::Flaw | Shown::Keys | Shown::NotTheFlaw | Shown::Whole => hidden.iter().any(|range| range.contains(&at)),
    };
    let part = |range: Range<usize>| covered(&text[range.clone()], |at, c| is_hidden(range.start + at, c));
    let (start, end) = (flaw.start.clamp(line.start, line.end), flaw.end.clamp(line.start, line.end));
    ShownLine { before: part(line.start..start), flaw: part(start..end), after: part(end..line.end) }
}

/// Writes one sign for each run of hidden characters. Blanks in front of a run stay, so that words keep their distance.
fn covered(text: &str, is_hidden: impl Fn(usize, char) -> bool) -> String {
    let (mut shown, mut is_run) = (String::new(), false);
    for (at, c) in text.char_indices() {
        match (is_hidden(at, c), c.is_whitespace()) {
            (false, _) => {
                is_run = false;
                shown.push(c);
            }
            (true, true) if !is_run => shown.push(c),
            (true, false) if !is_run => {
                is_run = true;
                shown.push_str(HIDDEN);
            }
            (true, _) => {}
        }
    }
    shown
}

/// Finds strings and comments of TOML.
fn hidden_ranges(text: &str) -> Vec<Range<usize>> {
    let mut hidden = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        match c {
            '"' | '\'' => {
                let (inside, next) = string(text, at, c);
                hidden.push(inside);
                at = next;
            }
            '#' => {
                let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
                hidden.push(at..end);
                at = end;
            }
            _ => at += c.len_utf8(),
        }
    }
    hidden
}

/// Finds possible secrets in a line of a text that is not TOML.
fn unsure_ranges(text: &str, line: Range<usize>, schema: &Value) -> Vec<Range<usize>> {
    let whole = &text[line.clone()];
    if has_open_string(&text[..line.start]) {
        return vec![line];
    }
    if is_header(whole) {
        return Vec::new();
    }
    let Some(equals) = whole.find('=') else { return vec![line] };
    let (key, value) = (&whole[..equals], &whole[equals + 1..]);
    let known = known_keys(schema);
    let is_word = |c: char| c.is_alphanumeric() || "_-".contains(c);
    let words = key.split_inclusive(|c: char| !is_word(c)).map(|word| word.trim_end_matches(|c: char| !is_word(c)));
    let unknown = words.filter(|word| !known.iter().any(|known| known == word));
    let offset = |part: &str| line.start + (part.as_ptr() as usize - whole.as_ptr() as usize);
    let mut hidden: Vec<Range<usize>> = unknown.map(|word| offset(word)..offset(word) + word.len()).collect();

    let mut keys = key.split(|c: char| !is_word(c));
    let is_plain = value.chars().all(|c| c.is_ascii_alphanumeric() || " \t\r_.:+-".contains(c));
    let is_harmless = is_plain && hidden.is_empty() && !super::looks_secret(key) && !in_secret_table(&text[..line.start]);
    if !is_harmless || super::is_secret_path(&mut keys) {
        hidden.push(line.start + equals + 1..line.end);
    }
    hidden
}

/// Checks for an open string: without an end in its line, or, where a string may have several lines, before the end of the text. The rest
/// may belong to the string.
fn has_open_string(before: &str) -> bool {
    let mut at = 0;
    while let Some(c) = before[at..].chars().next() {
        at = match c {
            '"' | '\'' => match string(before, at, c) {
                (inside, next) if next > inside.end => next,
                _ => return true,
            },
            '#' => before[at..].find('\n').map_or(before.len(), |end| at + end),
            _ => at + c.len_utf8(),
        };
    }
    false
}

fn is_header(line: &str) -> bool {
    let line = line.trim();
    line.starts_with('[') && line.chars().all(|c| c.is_ascii_alphanumeric() || "_-.[] ".contains(c))
}

fn in_secret_table(before: &str) -> bool {
    let header = before.lines().rev().find(|line| line.contains(['[', ']']));
    header.is_some_and(|line| super::is_secret_path(line.split(|c: char| !(c.is_alphanumeric() || c == '_'))))
}

/// The keys of all sections.
fn known_keys(schema: &Value) -> Vec<String> {
    let sections = schema.get("$defs").and_then(Value::as_object).into_iter().flatten().map(|(_, section)| section);
    let properties = sections.chain([schema]).filter_map(|section| section.get("properties")?.as_object());
    properties.flat_map(|properties| properties.keys().cloned()).collect()
}

/// Finds the inside of the TOML string at `at` in `quote`s, and the place behind the string.
pub fn string(text: &str, at: usize, quote: char) -> (Range<usize>, usize) {
    let long: String = [quote; 3].iter().collect();
    let (open, close) = if text[at..].starts_with(&long) { (3, long.as_str()) } else { (1, &long[..1]) };
    let begin = at + open;
    let mut end = begin;
    while let Some(c) = text[end..].chars().next() {
        if text[end..].starts_with(close) {
            return (begin..end, end + close.len());
        }
        if c == '\n' && open == 1 {
            return (begin..end, end);
        }
        let escape = c == '\\' && quote == '"';
        end += c.len_utf8();
        if escape {
            end += text[end..].chars().next().filter(|&c| c != '\n').map_or(0, char::len_utf8);
        }
    }
    (begin..end, end)
}
