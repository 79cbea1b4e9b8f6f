//! The JSON Schema of `banyan.toml`, merged from the schemas of forms. Does not check files: `shape` does, with the schema.

use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// Merges the schemas of all forms into the schema of the file. Of two forms with the same key the first describes the key.
pub(super) fn merged(forms: Vec<Schema>, generator: &mut SchemaGenerator) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for form in forms {
        let mut form = form.to_value();
        for (key, schema) in members(&mut form, "properties") {
            properties.entry(key).or_insert(schema);
        }
        required.extend(form.get_mut("required").and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default());
    }
    let mut schema = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
        "title": "banyan.toml",
        "description": "The configuration of Banyan.",
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": generator.take_definitions(true),
    });
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    without_null(&mut schema);
    schema
}

/// Lists a form's keys at the top of the file.
pub(super) fn keys(form: &Schema) -> Vec<String> {
    let properties = form.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().map(|(key, _)| key.clone()).collect()
}

fn members(schema: &mut Value, name: &str) -> Map<String, Value> {
    schema.get_mut(name).and_then(Value::as_object_mut).map(std::mem::take).unwrap_or_default()
}

/// Takes out the `null`s for absent keys, which TOML does not have, and the line ends of the source from descriptions.
fn without_null(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(without_null),
        Value::Object(members) => {
            tidy(members);
            members.values_mut().for_each(without_null);
        }
        Value::Bool(_) | Value::Null | Value::Number(_) | Value::String(_) => {}
    }
}

fn tidy(members: &mut Map<String, Value>) {
    let is_null = |schema: &Value| schema.get("type").is_some_and(|kind| kind == "null");
    if members.get("default").is_some_and(Value::is_null) {
        members.shift_remove("default");
    }
    if let Some(Value::Array(types)) = members.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            members.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(alternatives)) = members.get_mut("anyOf") {
        alternatives.retain(|schema| !is_null(schema));
        if let [Value::Object(only)] = alternatives.as_slice() {
            let only = only.clone();
            members.shift_remove("anyOf");
            members.extend(only);
        }
    }
    if let Some(Value::String(text)) = members.get_mut("description") {
        *text = text.replace('\n', " ");
    }
}
