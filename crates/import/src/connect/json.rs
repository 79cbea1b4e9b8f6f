//! Cuts the list of servers in and out of JSON text. Every other byte stays, comments and spelling among them. Does not
//! know what servers are.

use std::collections::HashSet;
use std::ops::Range;

use jsonc_parser::ast::{Object, ObjectProp, Value as Ast};
use jsonc_parser::common::Ranged;
use serde::Serialize;
use serde_json::Value;

use super::ENTRY;
use crate::json::with_object;

/// Places in a text, in bytes.
struct Map {
    /// The outermost object, with its braces.
    root: Range<usize>,
    members: Vec<Member>,
    /// Members of the list of servers, if any.
    servers: Vec<Member>,
}

struct Member {
    name: String,
    all: Range<usize>,
    value: Range<usize>,
}

pub(super) fn names(text: &str, key: &str) -> Result<Vec<String>, String> {
    let servers = map(text, key)?.map(|map| map.servers).unwrap_or_default();
    Ok(servers.into_iter().map(|member| member.name).collect())
}

pub(super) fn pointed(text: &str, key: &str, entry: &Value, kept: &[String]) -> Result<String, String> {
    let map = map(text, key)?;
    let style = Style::detect(text, map.as_ref());
    let mut items = vec![format!("{}: {}", quoted(ENTRY), style.pretty(entry, 2))];
    let (servers, kept) = (map.iter().flat_map(|map| &map.servers), kept.iter().collect::<HashSet<_>>());
    items.extend(servers.filter(|member| kept.contains(&member.name)).map(|member| text[member.all.clone()].to_owned()));
    Ok(with_list(text, key, map.as_ref(), &style.object(&items, 1), &style))
}

pub(super) fn restored(text: &str, key: &str, old: Option<&str>, ours: &str) -> Result<String, String> {
    let Some(current) = map(text, key)? else { return Ok(old.unwrap_or_default().to_owned()) };
    let old = old.unwrap_or_default();
    let before = map(old, key)?;
    let were_there: HashSet<&str> = before.iter().flat_map(|map| &map.servers).map(|member| &*member.name).collect();
    let added = current.servers.iter().filter(|member| member.name != ours && !were_there.contains(&*member.name));
    let added: Vec<String> = added.map(|member| text[member.all.clone()].to_owned()).collect();
    let style = Style::detect(text, Some(&current));

    let list = before.as_ref().and_then(|map| map.members.iter().rfind(|member| member.name == key));
    match list {
        Some(list) => {
            let mut list = old[list.value.clone()].to_owned();
            if !added.is_empty() {
                let has_members = before.iter().any(|map| !map.servers.is_empty());
                let comma = if has_members { "," } else { "" };
                let inner = style.indent(2);
                let separator = format!(",{}{inner}", style.newline);
                list.insert_str(1, &format!("{}{inner}{}{comma}", style.newline, added.join(&separator)));
            }
            Ok(with_list(text, key, Some(&current), &list, &style))
        }
        None if added.is_empty() => Ok(without_member(text, &current.members, key)),
        None => Ok(with_list(text, key, Some(&current), &style.object(&added, 1), &style)),
    }
}

/// Puts a list into the text: in place of the present list, or in front of the other members.
fn with_list(text: &str, key: &str, map: Option<&Map>, list: &str, style: &Style) -> String {
    let Some(map) = map else {
        let before = text.trim_end();
        let gap = if before.is_empty() { "" } else { style.newline };
        return format!("{before}{gap}{}{}", style.object(&[format!("{}: {list}", quoted(key))], 0), style.newline);
    };
    if let Some(member) = map.members.iter().rfind(|member| member.name == key) {
        return replaced(text, member.value.clone(), list);
    }
    let member = format!("{}: {list}", quoted(key));
    if map.members.is_empty() {
        return replaced(text, map.root.clone(), &style.object(&[member], 0));
    }
    let at = map.root.start + 1;
    replaced(text, at..at, &format!("{}{}{member},", style.newline, style.indent(1)))
}

/// Removes a member, its comma, and the line if empty then.
fn without_member(text: &str, members: &[Member], key: &str) -> String {
    let Some(at) = members.iter().rposition(|member| member.name == key) else { return text.to_owned() };
    let gone = &members[at].all;
    let mut text = text.to_owned();
    let mut end = gone.end;
    match comma(&text, gone.end) {
        Some(comma) if text[gone.end..comma].trim().is_empty() => end = comma + 1,
        Some(comma) => text.replace_range(comma..=comma, " "),
        None => {
            let before = at.checked_sub(1).and_then(|before| comma(&text, members[before].all.end));
            if let Some(comma) = before {
                text.replace_range(comma..=comma, " ");
            }
        }
    }
    let line_start = text[..gone.start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[end..].find('\n').map(|at| end + at + 1);
    match line_end {
        Some(line_end) if text[line_start..gone.start].trim().is_empty() && text[end..line_end].trim().is_empty() => {
            text.replace_range(line_start..line_end, "");
        }
        _ => text.replace_range(gone.start..end, ""),
    }
    text
}

/// Finds the comma behind a member, across comments.
fn comma(text: &str, mut at: usize) -> Option<usize> {
    loop {
        let rest = &text[at..];
        let skipped = if rest.starts_with("//") {
            rest.find('\n')?
        } else if rest.starts_with("/*") {
            rest.get(2..)?.find("*/")? + 4
        } else {
            match rest.chars().next()? {
                ',' => return Some(at),
                c if c.is_whitespace() => c.len_utf8(),
                _ => return None,
            }
        };
        at += skipped;
    }
}

fn map(text: &str, key: &str) -> Result<Option<Map>, String> {
    let mark = text.len() - text.strip_prefix('\u{feff}').unwrap_or(text).len();
    let moved = |range: Range<usize>| range.start + mark..range.end + mark;
    let found = with_object(text, |object| {
        let list = object.properties.iter().rfind(|property| property.name.as_str() == key);
        let servers = match list.map(|property| &property.value) {
            Some(Ast::Object(servers)) => members(servers, &moved),
            None => Vec::new(),
            Some(_) => return Err(format!("its `{key}` is not an object")),
        };
        let range = object.range();
        Ok(Map { root: moved(range.start..range.end), members: members(object, &moved), servers })
    })?;
    found.transpose()
}

fn members(object: &Object<'_>, moved: &dyn Fn(Range<usize>) -> Range<usize>) -> Vec<Member> {
    let member = |property: &ObjectProp<'_>| {
        let (all, value) = (property.range(), property.value.range());
        Member { name: property.name.as_str().to_owned(), all: moved(all.start..all.end), value: moved(value.start..value.end) }
    };
    object.properties.iter().map(member).collect()
}

fn replaced(text: &str, range: Range<usize>, with: &str) -> String {
    format!("{}{with}{}", &text[..range.start], &text[range.end..])
}

/// Layout of a file.
struct Style {
    newline: &'static str,
    /// A step of indentation.
    unit: String,
}

impl Style {
    /// Takes the layout of the first member; two spaces by default.
    fn detect(text: &str, map: Option<&Map>) -> Self {
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let first = map.and_then(|map| map.members.first());
        let before = first.and_then(|first| text[..first.all.start].rsplit_once('\n')).map(|(_, before)| before);
        let unit = before.filter(|before| !before.is_empty() && before.trim().is_empty()).unwrap_or("  ");
        Self { newline, unit: unit.to_owned() }
    }

    fn indent(&self, depth: usize) -> String {
        self.unit.repeat(depth)
    }

    /// Writes an object of members written already; its own line is indented by `depth`.
    fn object(&self, members: &[String], depth: usize) -> String {
        let (newline, inner) = (self.newline, self.indent(depth + 1));
        let members = members.join(&format!(",{newline}{inner}"));
        format!("{{{newline}{inner}{members}{newline}{}}}", self.indent(depth))
    }

    /// Writes a value over several lines, the first indented by `depth`.
    fn pretty(&self, value: &Value, depth: usize) -> String {
        let mut out = Vec::new();
        let formatter = serde_json::ser::PrettyFormatter::with_indent(self.unit.as_bytes());
        let mut serializer = serde_json::Serializer::with_formatter(&mut out, formatter);
        let written = value.serialize(&mut serializer).is_ok();
        let text = String::from_utf8(out).ok().filter(|_| written).unwrap_or_else(|| value.to_string());
        text.replace('\n', &format!("{}{}", self.newline, self.indent(depth)))
    }
}

fn quoted(name: &str) -> String {
    Value::from(name).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn point(text: &str) -> String {
        pointed(text, "mcpServers", &json!({ "url": "http://b/" }), &[]).unwrap()
    }

    #[test]
    fn the_list_is_replaced_and_nothing_else() {
        let text = "// a\r\n{\r\n\t\"x\": 1, // b\r\n\t\"mcpServers\": { \"s\": {} /* c */ },\r\n}\r\n// d";
        let expected = "// a\r\n{\r\n\t\"x\": 1, // b\r\n\t\"mcpServers\": {\r\n\t\t\"banyan\": {\r\n\t\t\t\"url\": \"http://b/\"\r\n\t\t}\r\n\t},\r\n}\r\n// d";
        assert_eq!(point(text), expected);
    }

    #[test]
    fn a_list_is_put_where_there_is_none() {
        let list = "\"mcpServers\": {\n    \"banyan\": {\n      \"url\": \"http://b/\"\n    }\n  }";
        for (text, expected) in [
            ("", format!("{{\n  {list}\n}}\n")),
            ("// empty\n", format!("// empty\n{{\n  {list}\n}}\n")),
            ("{}", format!("{{\n  {list}\n}}")),
            ("\u{feff}{ }\n", format!("\u{feff}{{\n  {list}\n}}\n")),
            ("{\n  \"x\": 1 // end\n}\n", format!("{{\n  {list},\n  \"x\": 1 // end\n}}\n")),
        ] {
            assert_eq!(point(text), expected, "{text:?}");
            assert!(with_object(&expected, |_| ()).is_ok());
        }
    }

    #[test]
    fn entries_that_are_kept_keep_their_spelling() {
        let text = "{ \"mcpServers\": { \"a\": {\"x\":1}, \"b\" : {\"url\":\"\\u0041\"}, } }";
        let after = pointed(text, "mcpServers", &json!(1), &["b".into()]).unwrap();
        assert_eq!(after, "{ \"mcpServers\": {\n    \"banyan\": 1,\n    \"b\" : {\"url\":\"\\u0041\"}\n  } }");
    }

    #[test]
    fn what_was_added_since_then_stays_beside_what_comes_back() {
        let old = "{\n  \"mcpServers\": {\n    \"a\": 1 // first\n  },\n  \"n\": 1\n}";
        let now = "{\n  \"mcpServers\": {\n    \"banyan\": 0,\n    \"new\": [2]\n  },\n  \"n\": 2\n}";
        let expected = "{\n  \"mcpServers\": {\n    \"new\": [2],\n    \"a\": 1 // first\n  },\n  \"n\": 2\n}";
        assert_eq!(restored(now, "mcpServers", Some(old), "banyan").unwrap(), expected);

        let without = "{\n  \"n\": 1\n}";
        let expected = "{\n  \"mcpServers\": {\n    \"new\": [2]\n  },\n  \"n\": 2\n}";
        assert_eq!(restored(now, "mcpServers", Some(without), "banyan").unwrap(), expected);
    }

    #[test]
    fn a_list_that_was_not_there_goes_again() {
        let restored = |now: &str| restored(now, "s", None, "banyan").unwrap();
        for (now, expected) in [
            ("{\n  \"s\": { \"banyan\": 0 },\n  \"n\": 2\n}", "{\n  \"n\": 2\n}"),
            ("{\n  \"n\": 2, // kept\n  \"s\": { \"banyan\": 0 }\n}", "{\n  \"n\": 2  // kept\n}"),
            ("{ \"n\": 2, \"s\": {}, }", "{ \"n\": 2,  }"),
            ("{ \"s\": {} /* why */ , \"n\": 2 }", "{  /* why */   \"n\": 2 }"),
            ("{\"s\":{},}", "{}"),
            ("{\"s\":{}}", "{}"),
        ] {
            assert_eq!(restored(now), expected);
            assert!(with_object(expected, |_| ()).is_ok(), "{expected}");
        }
    }
}
