//! Changes a few members of a raw JSON object and leaves every other byte as it came.
//!
//! It does not parse values and does not sort, respell or reformat anything.

use crate::json::{self, Members, Span};

/// A change to one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change<'a> {
    /// Removes the member, if present.
    Remove,
    /// Sets the value to this raw JSON; an absent member is appended.
    Set(&'a [u8]),
}

/// Applies `changes` to the outermost members of the sound object `text`.
///
/// Text that is no object comes back unchanged.
pub fn edit(text: &[u8], changes: &[(&str, Change<'_>)]) -> Vec<u8> {
    let Ok(members) = Members::parse(text, json::Duplicates::RefuseTop) else { return text.to_vec() };
    let mut spans: Vec<(usize, Span, Span)> = Vec::with_capacity(changes.len());
    for (i, (key, _)) in changes.iter().enumerate() {
        if let (Some(whole), Some(value)) = (members.member_span(key), members.span(key)) {
            spans.push((i, whole, value));
        }
    }
    let grown: usize = changes.iter().map(|(k, c)| k.len() + 4 + if let Change::Set(v) = c { v.len() } else { 0 }).sum();
    let mut out = Vec::with_capacity(text.len() + grown);
    let mut kept = copy_members(text, &members, changes, &spans, &mut out);
    for (i, (key, change)) in changes.iter().enumerate() {
        let Change::Set(value) = change else { continue };
        if spans.iter().any(|(j, ..)| *j == i) {
            continue;
        }
        if kept > 0 {
            out.push(b',');
        }
        out.extend_from_slice(json::quote(key).as_bytes());
        out.push(b':');
        out.extend_from_slice(value);
        kept += 1;
    }
    out.extend_from_slice(&text[tail_start(text, &members)..]);
    out
}

/// Puts raw `members`, given in pieces, behind the last member of the object with its closing brace at `end` of the sound text; `empty`:
/// the object
/// has no members.
pub fn insert(text: &[u8], end: usize, empty: bool, members: &[&[u8]]) -> Vec<u8> {
    let last = text[..end].trim_ascii_end().len();
    let mut out = Vec::with_capacity(text.len() + 1 + members.iter().map(|piece| piece.len()).sum::<usize>());
    out.extend_from_slice(&text[..last]);
    if !empty {
        out.push(b',');
    }
    members.iter().for_each(|piece| out.extend_from_slice(piece));
    out.extend_from_slice(&text[last..]);
    out
}

/// Copies what stands before the closing brace, members changed or left out; returns how many stayed.
fn copy_members(
    text: &[u8],
    members: &Members<'_>,
    changes: &[(&str, Change<'_>)],
    spans: &[(usize, Span, Span)],
    out: &mut Vec<u8>,
) -> usize {
    let all = members.spans();
    let Some((first, _)) = all.first() else {
        out.extend_from_slice(&text[..tail_start(text, members)]);
        return 0;
    };
    out.extend_from_slice(&text[..first.start]);
    let mut kept = 0;
    let mut previous_end = first.start;
    for (whole, value) in &all {
        let gap = previous_end..whole.start;
        previous_end = whole.end;
        let change = spans.iter().find(|(_, w, _)| w == whole).map(|(i, ..)| changes[*i].1);
        if change == Some(Change::Remove) {
            continue;
        }
        if kept > 0 {
            out.extend_from_slice(&text[gap]);
        }
        kept += 1;
        match change {
            Some(Change::Set(new)) => {
                out.extend_from_slice(&text[whole.start..value.start]);
                out.extend_from_slice(new);
            }
            _ => out.extend_from_slice(&text[whole.clone()]),
        }
    }
    kept
}

/// Gives the end of the object's last member; for an empty object, the place behind the opening brace.
fn tail_start(text: &[u8], members: &Members<'_>) -> usize {
    members.spans().last().map_or_else(|| text.iter().position(|b| *b == b'{').map_or(0, |p| p + 1), |(whole, _)| whole.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(text: &str, changes: &[(&str, Change<'_>)]) -> String {
        String::from_utf8(edit(text.as_bytes(), changes)).unwrap()
    }

    #[test]
    fn other_bytes_stay() {
        let set = |v: &'static str| Change::Set(v.as_bytes());
        let text = r#"{ "a" : 1.0, "name":"x" ,"z":[ 1e5 ] }"#;
        assert_eq!(edited(text, &[("name", set("\"y\""))]), r#"{ "a" : 1.0, "name":"y" ,"z":[ 1e5 ] }"#);
        assert_eq!(edited(text, &[("a", Change::Remove)]), r#"{ "name":"x" ,"z":[ 1e5 ] }"#);
        assert_eq!(edited(text, &[("z", Change::Remove)]), r#"{ "a" : 1.0, "name":"x" }"#);
        assert_eq!(edited(text, &[("new", set("{}"))]), r#"{ "a" : 1.0, "name":"x" ,"z":[ 1e5 ],"new":{} }"#);
        assert_eq!(edited("{}", &[("new", set("1"))]), r#"{"new":1}"#);
        assert_eq!(edited(r#"{"a":1}"#, &[("a", Change::Remove), ("b", set("2"))]), r#"{"b":2}"#);
        assert_eq!(edited(r#"{"a":1,"b":2,"c":3}"#, &[("a", Change::Remove), ("b", Change::Remove)]), r#"{"c":3}"#);
    }
}
