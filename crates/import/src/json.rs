//! JSON as in clients' files: with comments, trailing commas and a byte order mark. Keeps the order of members and
//! reports doubled names. Does not know the meaning of members.

use jsonc_parser::ast::{Object, Value as Ast};
use jsonc_parser::errors::ParseError;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::{Map, Value};

/// A file's value.
pub(super) struct Document {
    pub(super) members: Map<String, Value>,
    /// Paths of doubled members of one object; the last counts, as everywhere.
    pub(super) repeated: Vec<String>,
}

/// Reads a file's text. An empty text is an empty object: clients make such files.
pub(super) fn parse(text: &str) -> Result<Document, String> {
    let mut repeated = Vec::new();
    let members = match with_object(text, |object| members(object, "", &mut repeated))? {
        Some(members) => members,
        None => Map::new(),
    };
    Ok(Document { members, repeated })
}

/// Looks at the outermost object of a text without its byte order mark; `None` for white space only.
pub(super) fn with_object<T>(text: &str, look: impl FnOnce(&Object<'_>) -> T) -> Result<Option<T>, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let result = parse_to_ast(text, &CollectOptions::default(), &options()).map_err(|error| explained(&error))?;
    match result.value {
        Some(Ast::Object(object)) => Ok(Some(look(&object))),
        None => Ok(None),
        Some(_) => Err("it is JSON, but not an object".into()),
    }
}

fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

fn explained(error: &ParseError) -> String {
    format!("it is not JSON: {} in line {}, column {}", error.kind(), error.line_display(), error.column_display())
}

/// The depth of nesting is bounded by the parser.
fn members(object: &Object<'_>, path: &str, repeated: &mut Vec<String>) -> Map<String, Value> {
    let mut found = Map::new();
    for property in &object.properties {
        let name = property.name.as_str();
        let path = joined(path, name);
        let value = value(&property.value, &path, repeated);
        if found.insert(name.to_owned(), value).is_some() {
            repeated.push(path);
        }
    }
    found
}

fn value(ast: &Ast<'_>, path: &str, repeated: &mut Vec<String>) -> Value {
    match ast {
        Ast::Array(array) => {
            let elements = array.elements.iter().enumerate();
            elements.map(|(i, element)| value(element, &format!("{path}[{i}]"), repeated)).collect()
        }
        Ast::BooleanLit(literal) => Value::Bool(literal.value),
        Ast::NullKeyword(_) => Value::Null,
        Ast::NumberLit(literal) => serde_json::from_str(literal.value).unwrap_or_else(|_| Value::String(literal.value.to_owned())),
        Ast::Object(object) => Value::Object(members(object, path, repeated)),
        Ast::StringLit(literal) => Value::String(literal.value.to_string()),
    }
}

/// Appends a name to a path; a name that is no plain word is put in brackets.
pub(super) fn joined(path: &str, name: &str) -> String {
    let plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_-$".contains(c));
    match (path.is_empty(), plain) {
        (true, true) => name.to_owned(),
        (false, true) => format!("{path}.{name}"),
        (_, false) => format!("{path}[{name:?}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_trailing_commas_and_a_byte_order_mark_are_taken() {
        let text = "\u{feff}// head\n{ \"b\": [1, 1e400,], /* x */ \"a\": { \"c\": null, }, }\n";
        let document = parse(text).unwrap();
        assert_eq!(serde_json::to_string(&document.members).unwrap(), r#"{"b":[1,"1e400"],"a":{"c":null}}"#);
        assert!(parse("  \n").unwrap().members.is_empty());
    }

    #[test]
    fn what_is_no_json_is_told_with_its_place() {
        assert_eq!(parse("{\n  \"a\": 1\n  \"b\": 2\n}").err().unwrap(), "it is not JSON: Expected comma in line 2, column 9");
        assert_eq!(parse("[]").err().unwrap(), "it is JSON, but not an object");
        assert!(parse(&"[".repeat(100_000)).is_err());
    }

    #[test]
    fn names_that_stand_twice_are_told() {
        let document = parse(r#"{"a": {"x y": 1, "x y": 2}, "b": [{"c": 1, "c": 1}]}"#).unwrap();
        assert_eq!(document.repeated, ["a[\"x y\"]", "b[0].c"]);
        assert_eq!(document.members["a"]["x y"], 2);
    }
}
