//! Arguments of a tool, as its JSON Schema has them: for people, and to find slips before a call. Forbids nothing that the schema may allow.

use serde_json::{Map, Value};

use crate::printable::printable;
use crate::similar::did_you_mean;
use crate::table::{self, Align};

/// Longest description of an argument in a table, in characters.
const ABOUT: usize = 80;

/// An argument of a tool.
struct Argument<'a> {
    name: &'a str,
    schema: &'a Value,
    is_required: bool,
}

/// Arguments of a tool, by its definition.
pub(crate) struct ToolSignature<'a> {
    arguments: Vec<Argument<'a>>,
    /// The schema says that there are no others.
    is_closed: bool,
}

impl<'a> ToolSignature<'a> {
    pub(crate) fn read(definition: &'a Value) -> Self {
        let schema = &definition["inputSchema"];
        let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let properties = schema["properties"].as_object().into_iter().flat_map(Map::iter);
        let arguments = properties.map(|(name, schema)| Argument { name, schema, is_required: required.contains(&name.as_str()) });
        Self { arguments: arguments.collect(), is_closed: schema["additionalProperties"] == Value::Bool(false) }
    }

    /// Lines of a table: name, kind, need, and description.
    pub(crate) fn lines(&self) -> Vec<String> {
        if self.arguments.is_empty() {
            return vec![(if self.is_closed { "  none" } else { "  none that are named" }).to_owned()];
        }
        let row = |argument: &Argument<'_>| {
            let need = match (&argument.schema["default"], argument.is_required) {
                (_, true) => "required".to_owned(),
                (Value::Null, false) => String::new(),
                (default, false) => format!("default {}", printable(&default.to_string())),
            };
            let about = argument.schema["description"].as_str().unwrap_or_default();
            vec![
                format!("  {}", printable(argument.name)),
                printable(&table::first_line(&kind(argument.schema), ABOUT)),
                table::first_line(&need, ABOUT),
                printable(&table::first_line(about, ABOUT)),
            ]
        };
        table::lines(&[Align::Left; 4], &self.arguments.iter().map(row).collect::<Vec<_>>())
    }

    /// A call with all required arguments, or with the first one where none is required.
    pub(crate) fn example(&self, tool: &str) -> String {
        let mut wanted: Vec<&Argument<'_>> = self.arguments.iter().filter(|argument| argument.is_required).collect();
        if wanted.is_empty() {
            wanted.extend(self.arguments.first());
        }
        let words = wanted.iter().map(|argument| printable(&format!(" {}", example(argument))));
        format!("banyan call {}{}", printable(tool), words.collect::<String>())
    }

    /// Finds a slip in the arguments of a call: a missing one, or one that the tool does not name and a near name is there for.
    pub(crate) fn slip(&self, tool: &str, arguments: &Map<String, Value>) -> Option<String> {
        for name in arguments.keys().filter(|name| !self.arguments.iter().any(|known| known.name == name.as_str())) {
            let near = did_you_mean(name, self.arguments.iter().map(|argument| argument.name));
            if self.is_closed || !near.is_empty() {
                return Some(format!("`{}` is no argument of `{tool}`{near}", printable(name)));
            }
        }
        let missing = self.arguments.iter().find(|argument| argument.is_required && !arguments.contains_key(argument.name))?;
        Some(format!(
            "`{tool}` needs the argument `{}`: {}",
            printable(missing.name),
            printable(&table::first_line(&kind(missing.schema), ABOUT))
        ))
    }
}

/// The kind of a value, in a word or in a list of what is allowed.
fn kind(schema: &Value) -> String {
    if let Some(allowed) = schema["enum"].as_array() {
        return allowed.iter().map(Value::to_string).collect::<Vec<_>>().join(" | ");
    }
    if let Some(several) = schema["anyOf"].as_array().or_else(|| schema["oneOf"].as_array()) {
        return several.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    match &schema["type"] {
        Value::String(one) if one == "array" => format!("list of {}", kind(&schema["items"])),
        Value::String(one) => one.clone(),
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => "any value".to_owned(),
    }
}

/// An argument as `banyan call` takes it, with a value that shows its kind.
fn example(argument: &Argument<'_>) -> String {
    let (name, schema) = (argument.name, argument.schema);
    let given =
        schema["examples"].get(0).or_else(|| schema["enum"].get(0)).or_else(|| schema.get("default")).filter(|value| !value.is_null());
    let kind = schema["type"].as_str().unwrap_or_default();
    match (given, kind) {
        (Some(Value::String(text)), _) if !text.contains(|c: char| c.is_whitespace() || "'\"$`\\".contains(c)) => format!("{name}={text}"),
        (Some(value @ (Value::Number(_) | Value::Bool(_))), _) => format!("{name}={value}"),
        (None, "integer" | "number") => format!("{name}=1"),
        (None, "boolean") => format!("{name}=true"),
        (None, "array") => format!("{name}:='[]'"),
        (None, "object") => format!("{name}:='{{}}'"),
        (Some(_) | None, _) => format!("{name}=TEXT"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition() -> Value {
        json!({ "inputSchema": { "type": "object", "required": ["path", "mode"], "properties": {
            "path": { "type": "string", "description": "Where\nto" },
            "mode": { "enum": ["r", "w"] },
            "depth": { "type": ["integer", "null"], "default": 2 },
            "tags": { "type": "array", "items": { "type": "string" } },
        } } })
    }

    #[test]
    fn arguments_are_shown_with_kind_and_need() {
        let definition = definition();
        let signature = ToolSignature::read(&definition);
        let lines: Vec<String> = signature.lines().iter().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(
            lines,
            ["path string required Where", r#"mode "r" | "w" required"#, "depth integer or null default 2", "tags list of string"]
        );
        assert_eq!(signature.example("files.open"), "banyan call files.open path=TEXT mode=r");
        assert_eq!(ToolSignature::read(&json!({})).lines(), ["  none that are named"]);
    }

    #[test]
    fn slips_are_found_and_unknown_names_may_pass() {
        let mut definition = definition();
        let given = |value: Value| value.as_object().unwrap().clone();
        let slip = |definition: &Value, value: Value| ToolSignature::read(definition).slip("f.o", &given(value));
        assert_eq!(slip(&definition, json!({ "path": "a", "mode": "r" })), None);
        assert_eq!(
            slip(&definition, json!({ "pathh": "a", "mode": "r" })).unwrap(),
            "`pathh` is no argument of `f.o`\n  did you mean `path`?"
        );
        assert_eq!(slip(&definition, json!({ "path": "a" })).unwrap(), "`f.o` needs the argument `mode`: \"r\" | \"w\"");
        assert_eq!(slip(&definition, json!({ "path": "a", "mode": "r", "zzz": 1 })), None, "a schema may allow it");
        definition["inputSchema"]["additionalProperties"] = json!(false);
        assert!(slip(&definition, json!({ "path": "a", "mode": "r", "zzz": 1 })).is_some());
    }
}
