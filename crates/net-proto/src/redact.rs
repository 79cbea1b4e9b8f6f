//! Secrets of devices replaced in all output: results, diffs, echoes, errors, logs. Every dialect's kinds at once, since a text does
//! not name its dialect. Nothing here can be switched off by an argument of a call.
//!
//! Each pass looks at the text once and only marks ranges, so that the work is linear and no pass sees another's marks.

mod blocks;
mod markup;
mod names;
mod words;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::Value;

pub use names::is_secret_name;
pub(crate) use names::{holds_keys, is_secret_node};

/// Stands where a secret stood.
pub const MARK: &str = "[redacted]";

/// Most values that are taken from texts.
const MOST_KNOWN: usize = 1000;
/// Shorter values of known secrets would hide half of every text.
const SHORTEST_KNOWN: usize = 4;

/// Hides secrets by the words before them, by their shape, and by value where the value is known.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    known: Option<AhoCorasick>,
    /// Values that `known` finds.
    values: BTreeSet<String>,
    words: BTreeSet<String>,
}

impl Redactor {
    /// Hides these very values too, wherever they stand: the credentials that this process logs in with. Values below four bytes are
    /// left to the rules.
    #[must_use]
    pub fn knowing<S: AsRef<str>>(mut self, secrets: &[S]) -> Self {
        self.values.extend(secrets.iter().map(AsRef::as_ref).filter(|secret| secret.len() >= SHORTEST_KNOWN).map(str::to_owned));
        let all = (!self.values.is_empty()).then(|| AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&self.values));
        self.known = all.and_then(Result::ok);
        self
    }

    /// Hides the secrets of these texts too, wherever they stand: a device that refuses what it was sent may quote the value in a sentence of
    /// its own.
    #[must_use]
    pub fn knowing_those_of<'t>(&self, texts: impl IntoIterator<Item = &'t str>) -> Self {
        let mut found: BTreeSet<Cow<'_, str>> = BTreeSet::new();
        for text in texts {
            let values = self.spans(text).into_iter().filter_map(|span| text.get(span)).filter(|value| !value.contains(MARK));
            for value in values.take(MOST_KNOWN.saturating_sub(found.len())) {
                found.extend(quick_xml::escape::unescape(value).ok());
                found.insert(value.into());
            }
        }
        self.clone().knowing(&found.into_iter().collect::<Vec<_>>())
    }

    /// Hides the values behind these words too, compared in lower case.
    #[must_use]
    pub fn with_words<S: AsRef<str>>(mut self, words: &[S]) -> Self {
        self.words.extend(words.iter().map(|word| word.as_ref().to_lowercase()));
        self
    }

    /// The text without secrets: configuration, output, diff, XML, JSON, log line or message.
    pub fn text(&self, text: &str) -> String {
        self.cow(text).into_owned()
    }

    fn cow<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let spans = self.spans(text);
        if spans.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(replaced(text, spans)) }
    }

    /// Places of secrets.
    fn spans(&self, text: &str) -> Vec<Range<usize>> {
        let mut spans = Vec::new();
        blocks::find(text, &mut spans);
        markup::find(text, &mut spans);
        words::find(text, &self.words, &mut spans);
        names::find_in_paths(text, &mut spans);
        if let Some(known) = &self.known {
            spans.extend(known.find_iter(text).map(|found| found.range()));
        }
        spans
    }

    /// The lines of a configuration without secrets, as many as there were, for people who decide upon each: a line is hidden for what it is, and
    /// never for an earlier line that only looks like the begin of a block. In markup, an element may hide lines of its own.
    pub fn lines(&self, text: &str, is_markup: bool) -> Vec<String> {
        let mut spans = Vec::new();
        blocks::find_by_lines(text, &mut spans);
        words::find(text, &self.words, &mut spans);
        names::find_in_paths(text, &mut spans);
        if let Some(known) = &self.known {
            spans.extend(known.find_iter(text).map(|found| found.range()));
        }
        if is_markup {
            markup::find(text, &mut spans);
        }
        spans.sort_unstable_by_key(|span| span.start);
        let (mut at, mut next, mut open) = (0, 0, Vec::<Range<usize>>::new());
        let hidden = text.split_inclusive('\n').map(|whole| {
            let line = at..at + whole.trim_end_matches(['\r', '\n']).len();
            at += whole.len();
            while let Some(span) = spans.get(next).filter(|span| span.start < at) {
                open.push(span.clone());
                next += 1;
            }
            let mut here: Vec<Range<usize>> = open
                .iter()
                .map(|span| span.start.max(line.start) - line.start..span.end.min(line.end).max(line.start) - line.start)
                .collect();
            open.retain(|span| span.end > at);
            let line = &text[line];
            if !is_markup {
                markup::find(line, &mut here);
            }
            replaced(line, here)
        });
        hidden.collect()
    }

    /// Hides the members of a JSON value that are secret by name, and what [`Redactor::text`] finds in its strings.
    pub fn value(&self, value: &mut Value) {
        self.member(value, false);
    }

    fn member(&self, value: &mut Value, is_below_holder: bool) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(hidden) = self.cow(text) {
                    *text = hidden;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.member(item, is_below_holder)),
            Value::Object(members) => {
                let is_named_secret = ["path", "name", "leaf"].iter().any(|by| members.get(*by).is_some_and(names::names_secret));
                for (name, member) in members.iter_mut() {
                    let is_its_value = is_named_secret && matches!(name.as_str(), "value" | "val" | "data");
                    let leaf = name.rsplit(':').next().unwrap_or(name).to_lowercase();
                    let is_key = is_below_holder && !is_compound(member);
                    if is_its_value || self.is_secret_member(&leaf, member, is_key) {
                        hide(member);
                    } else if let (true, Value::String(path)) = (name == "path", &mut *member) {
                        *path = self.path(path);
                    } else {
                        self.member(member, is_below_holder || holds_keys(&leaf));
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn is_secret_member(&self, leaf: &str, member: &Value, is_key: bool) -> bool {
        is_secret_node(leaf, member.as_str().unwrap_or_default(), is_key) || self.words.contains(leaf)
    }

    /// A YANG path without the secrets in its predicates: a community may be the key of its list.
    pub fn path(&self, path: &str) -> String {
        let mut spans = Vec::new();
        names::find_in_path(path, &mut spans);
        self.text(&replaced(path, spans))
    }
}

/// Recognizes an object, or a list with one: the `key` of a list of keys is no secret by itself.
fn is_compound(value: &Value) -> bool {
    match value {
        Value::Object(_) => true,
        Value::Array(items) => items.iter().any(Value::is_object),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Replaces every leaf below a secret name; truth values tell nothing.
fn hide(value: &mut Value) {
    match value {
        Value::String(_) | Value::Number(_) => *value = MARK.into(),
        Value::Array(items) => items.iter_mut().for_each(hide),
        Value::Object(members) => members.iter_mut().for_each(|(_, member)| hide(member)),
        Value::Null | Value::Bool(_) => {}
    }
}

/// The text with a mark for each range; ranges that touch or overlap share one.
fn replaced(text: &str, mut spans: Vec<Range<usize>>) -> String {
    spans.retain(|span| span.start < span.end);
    spans.sort_unstable_by_key(|span| (span.start, span.end));
    let (mut out, mut at, mut spans) = (String::with_capacity(text.len()), 0, spans.into_iter().peekable());
    while let Some(mut span) = spans.next() {
        while let Some(next) = spans.next_if(|next| next.start <= span.end) {
            span.end = span.end.max(next.end);
        }
        out.push_str(text.get(at..span.start).unwrap_or_default());
        out.push_str(MARK);
        at = span.end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests;
