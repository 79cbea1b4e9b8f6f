//! A file without its entries of a wrong form, so that mistakes in the others are found in the same reading. Judges nothing.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::problem::Flaw;

/// Takes the entries with flaws out of a table.
pub(crate) fn without<'a>(table: &Spanned<DeTable<'a>>, flaws: &[Flaw]) -> Spanned<DeTable<'a>> {
    let mut left = table.clone();
    prune(left.get_mut(), flaws);
    left
}

fn prune(table: &mut DeTable<'_>, flaws: &[Flaw]) {
    let within = |outer: &Range<usize>| flaws.iter().any(|flaw| outer.start <= flaw.span.start && flaw.span.end <= outer.end);
    let is_whole = |outer: &Range<usize>| flaws.iter().any(|flaw| flaw.span == *outer);
    let is_wrong = |(key, value): &(&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)| {
        let span = value.span();
        within(&key.span()) || is_whole(&span) || (!value.get_ref().is_table() && within(&span))
    };
    let wrong: Vec<String> = table.iter().filter(is_wrong).map(|(key, _)| key.get_ref().to_string()).collect();
    wrong.iter().for_each(|key| drop(table.remove(key.as_str())));
    for (_, value) in table.iter_mut() {
        if let DeValue::Table(below) = value.get_mut() {
            prune(below, flaws);
        }
    }
}

/// Tells if a mistake found afterwards may come from what was taken out: its place is the head of a section with another flaw.
pub(crate) fn may_follow(found: &Flaw, flaws: &[Flaw], text: &str) -> bool {
    let line_start = text.get(..found.span.start).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
    let rest = text.get(line_start..).unwrap_or_default();
    if !rest.trim_start().starts_with('[') {
        return flaws.iter().any(|flaw| found.span.start <= flaw.span.start && flaw.span.end <= found.span.end);
    }
    let end = rest.find("\n[").map_or(text.len(), |at| line_start + at);
    flaws.iter().any(|flaw| (line_start..end).contains(&flaw.span.start))
}
