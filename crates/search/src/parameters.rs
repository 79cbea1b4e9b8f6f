//! The words of a tool's input schema: names and descriptions of its parameters. Does not check values against the schema.

use mcp_proto::json::{self, Members};

/// Depth of the schema read: deeper parts say little about a tool's purpose.
const DEPTH: usize = 4;
/// Bytes of text taken.
const LIMIT: usize = 2000;

/// The names and descriptions of all parameters in a sound, raw `inputSchema`, for [`super::Doc::parameters`].
pub fn parameter_text(schema: &[u8]) -> String {
    let mut text = String::new();
    collect(&Members::again(schema), DEPTH, &mut text);
    text
}

/// The names of the outermost parameters and whether each is required.
pub(super) fn parameter_names(schema: &[u8]) -> Vec<(String, bool)> {
    let schema = Members::again(schema);
    let Some(properties) = schema.object("properties") else { return Vec::new() };
    let required = schema.get("required").and_then(json::elements).unwrap_or_default();
    let required: Vec<_> = required.into_iter().filter_map(json::as_str).collect();
    properties.iter().map(|(name, _)| (name.to_string(), required.contains(&name))).collect()
}

fn collect(schema: &Members<'_>, depth: usize, text: &mut String) {
    let Some(properties) = schema.object("properties").filter(|_| depth > 0) else { return };
    for (name, value) in properties.iter() {
        if text.len() > LIMIT {
            return;
        }
        text.push_str(&name);
        text.push(' ');
        let value = Members::again(value);
        if let Some(description) = value.str("description") {
            text.push_str(&description);
            text.push(' ');
        }
        collect(&value, depth - 1, text);
        if let Some(items) = value.object("items") {
            collect(&items, depth - 1, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &[u8] = br#"{"type":"object","required":["path"],"properties":{
        "path":{"type":"string","description":"Where to \u0077rite"},
        "edits":{"type":"array","items":{"type":"object","properties":{"oldText":{"type":"string"}}}},
        "any":true}}"#;

    #[test]
    fn names_and_descriptions_are_taken_at_every_depth() {
        assert_eq!(parameter_text(SCHEMA), "path Where to write edits oldText any ");
    }

    #[test]
    fn the_outermost_names_say_whether_they_are_required() {
        let names = parameter_names(SCHEMA);
        assert_eq!(names, [("path".into(), true), ("edits".into(), false), ("any".into(), false)]);
    }

    #[test]
    fn a_schema_without_properties_has_no_words() {
        for schema in ["{}", r#"{"properties":[]}"#, r#"{"properties":{}}"#] {
            assert_eq!(parameter_text(schema.as_bytes()), "", "{schema}");
            assert!(parameter_names(schema.as_bytes()).is_empty());
        }
    }
}
