//! A client's file in a form fit to be shown: values of variables and headers, arguments behind a secret's name, and
//! comments that look like settings are hidden. An unparsable text is not shown at all.

use std::ops::Range;

use ::toml::Spanned;
use ::toml::de::{DeTable, DeValue};
use config::looks_secret;
use config::secret::SecretRef;
use config::snippet::string;
use jsonc_parser::ast::{Array, Object, Value as Ast};
use jsonc_parser::common::Ranged;

use crate::json::with_object;
use crate::plain::args_with_secrets;

pub(super) fn json(text: &str) -> String {
    let (mark, text) = text.split_at(text.len() - text.strip_prefix('\u{feff}').unwrap_or(text).len());
    let mut hidden = Vec::new();
    match with_object(text, |object| json_object(object, false, &mut hidden)) {
        Ok(_) => format!("{mark}{}", covered(text, hidden, comments(text, Language::Json))),
        Err(_) => String::new(),
    }
}

pub(super) fn toml(text: &str) -> String {
    let mut hidden = Vec::new();
    match DeTable::parse(text) {
        Ok(table) => {
            toml_table(table.get_ref(), false, &mut hidden);
            covered(text, hidden, comments(text, Language::Toml))
        }
        Err(_) => String::new(),
    }
}

fn json_object(object: &Object<'_>, all: bool, hidden: &mut Vec<Range<usize>>) {
    for property in &object.properties {
        let name = property.name.as_str();
        match &property.value {
            Ast::Array(array) => json_array(array, name, all, hidden),
            Ast::Object(object) => json_object(object, all || holds_secrets(name), hidden),
            Ast::StringLit(_) | Ast::NumberLit(_) if all || looks_secret(name) => hidden.push(range(&property.value)),
            Ast::BooleanLit(_) | Ast::NullKeyword(_) | Ast::NumberLit(_) | Ast::StringLit(_) => {}
        }
    }
}

fn json_array(array: &Array<'_>, name: &str, all: bool, hidden: &mut Vec<Range<usize>>) {
    let text = |element: &Ast<'_>| match element {
        Ast::StringLit(literal) => SecretRef::plain(literal.value.to_string()),
        Ast::Array(_) | Ast::BooleanLit(_) | Ast::NullKeyword(_) | Ast::NumberLit(_) | Ast::Object(_) => SecretRef::plain(""),
    };
    let secret = args_with_secrets(&array.elements.iter().map(text).collect::<Vec<_>>());
    for (i, element) in array.elements.iter().enumerate() {
        match element {
            Ast::Array(array) => json_array(array, name, all, hidden),
            Ast::Object(object) => json_object(object, all, hidden),
            Ast::StringLit(_) if all || looks_secret(name) || secret.contains(&i) => hidden.push(range(element)),
            Ast::BooleanLit(_) | Ast::NullKeyword(_) | Ast::NumberLit(_) | Ast::StringLit(_) => {}
        }
    }
}

fn toml_table(table: &DeTable<'_>, all: bool, hidden: &mut Vec<Range<usize>>) {
    for (key, value) in table {
        let name: &str = key.get_ref();
        toml_value(name, value, all || holds_secrets(name), hidden);
    }
}

fn toml_value(name: &str, value: &Spanned<DeValue<'_>>, all: bool, hidden: &mut Vec<Range<usize>>) {
    match value.get_ref() {
        DeValue::Array(array) => {
            let texts: Vec<SecretRef> = array.iter().map(|item| SecretRef::plain(item.get_ref().as_str().unwrap_or_default())).collect();
            let secret = args_with_secrets(&texts);
            for (i, item) in array.iter().enumerate() {
                toml_value(name, item, all || secret.contains(&i), hidden);
            }
        }
        DeValue::Table(table) => toml_table(table, all, hidden),
        DeValue::String(_) | DeValue::Integer(_) if all || looks_secret(name) => hidden.push(value.span()),
        DeValue::Boolean(_) | DeValue::Datetime(_) | DeValue::Float(_) | DeValue::Integer(_) | DeValue::String(_) => {}
    }
}

fn holds_secrets(name: &str) -> bool {
    matches!(name, "env" | "headers" | "http_headers")
}

fn range(value: &Ast<'_>) -> Range<usize> {
    let range = value.range();
    range.start..range.end
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    Json,
    Toml,
}

impl Language {
    fn comments(self) -> &'static [&'static str] {
        match self {
            Self::Json => &["//", "/*"],
            Self::Toml => &["#"],
        }
    }

    /// Finds the end of the string that begins at `at`, if any.
    fn behind_string(self, text: &str, at: usize) -> Option<usize> {
        match (self, text[at..].chars().next()?) {
            (Self::Json, '"') => Some(behind_json_string(text, at)),
            (Self::Toml, quote @ ('"' | '\'')) => Some(string(text, at, quote).1),
            (Self::Json | Self::Toml, _) => None,
        }
    }
}

/// Finds the end of a JSON string. Line breaks are allowed, since the parser of clients' files takes them too.
fn behind_json_string(text: &str, at: usize) -> usize {
    let mut is_escaped = false;
    for (i, c) in text[at + 1..].char_indices() {
        if c == '"' && !is_escaped {
            return at + 1 + i + 1;
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    text.len()
}

/// Finds comments with a `:` or `=`, perhaps settings put aside.
fn comments(text: &str, language: Language) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        if let Some(behind) = language.behind_string(text, at) {
            at = behind;
        } else if let Some(mark) = language.comments().iter().find(|mark| rest.starts_with(**mark)) {
            let end = if *mark == "/*" { rest.find("*/") } else { rest.find(['\n', '\r']) };
            let inside = at + mark.len()..end.map_or(text.len(), |end| at + end).max(at + mark.len());
            at = inside.end;
            if text[inside.clone()].contains([':', '=']) {
                found.push(inside);
            }
        } else {
            at += c.len_utf8();
        }
    }
    found
}

fn covered(text: &str, hidden: Vec<Range<usize>>, comments: Vec<Range<usize>>) -> String {
    let values = hidden.into_iter().map(|range| (range, "\"***\""));
    let mut ranges: Vec<_> = values.chain(comments.into_iter().map(|range| (range, " …"))).collect();
    ranges.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    let mut text = text.to_owned();
    for (range, with) in ranges {
        text.replace_range(range, with);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_shown_without_what_may_be_secret() {
        let text = r#"{ // was: hunter2
  "x": {"command":"npx","args":["--key","hunter2","--port","80","A_TOKEN=hunter2"],
        "env":{"A":"hunter2","B":["hunter2"],"N":22},"apiKey":"hunter2" /* plain words */, "url":"http://x/"},
  "list":[{"headers":{"X":"hunter2"}}] }"#;
        let shown = json(text);
        assert!(!shown.contains("hunter2") && !shown.contains("22"), "{shown}");
        for kept in ["npx", "--key", "--port", "80", "\"A\"", "plain words", "http://x/"] {
            assert!(shown.contains(kept), "{kept}: {shown}");
        }
        assert_eq!(json("{ \"a\": hunter2"), "");
    }

    #[test]
    fn a_line_break_in_a_string_or_a_comment_shows_nothing_that_follows() {
        for text in [
            "{ \"x\": \"a\n b\", \"n\": 1 // password: hunter2\n }",
            "{ \"x\": \"a\r\n\\\\\", \"n\": 1 /* password: hunter2 */ }",
            "{ \"x\": \"'\n\\\"\", // password: hunter2\n \"y\": \"z\" }",
            "{ // x\r\"y\": \"a\nb\", \"n\": 1 // password: hunter2\n }",
            "{ \"env\": { \"A\": \"x\nhunter2\" }, \"b\": \"\n\" // password = hunter2\n}",
        ] {
            let shown = json(text);
            assert!(shown.contains('{') && !shown.contains("hunter2"), "{text}\n{shown}");
        }
    }

    #[test]
    fn toml_is_shown_without_what_may_be_secret() {
        let text = "# token = hunter2\n[mcp_servers.a]\ncommand = \"npx\" # words\nargs = [\"--token\", 'hunter2', \"#=\"]\nbearer_token = \"hunter2\"\nenv = { A = \"\"\"\nhunter2\"\"\" }\n[mcp_servers.b.http_headers]\nX = \"hunter2\"\n";
        let shown = toml(text);
        assert!(!shown.contains("hunter2"), "{shown}");
        for kept in ["npx", "--token", "# words", "\"#=\""] {
            assert!(shown.contains(kept), "{kept}: {shown}");
        }
        assert_eq!(toml("a = hunter2"), "");
    }
}
