//! The JSON Schema of `banyan.toml`, made from the types in `file`. Does not check files: `shape` does, with this.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::file::File;

/// Made once: each file that is read is checked against it.
static SCHEMA: LazyLock<Value> = LazyLock::new(made);

/// The JSON Schema of `banyan.toml`, as published in `docs/banyan.schema.json`.
pub fn schema() -> &'static Value {
    &SCHEMA
}

fn made() -> Value {
    let mut schema = schemars::schema_for!(File).to_value();
    without_null(&mut schema);
    for segments in ["/properties/mount", "/$defs/Registry/properties/segment"] {
        if let Some(named) = schema.pointer_mut(segments).and_then(Value::as_object_mut) {
            named.insert("propertyNames".into(), json!({ "pattern": "^[a-z0-9_-]{1,63}$" }));
        }
    }
    schema
}

/// Takes out the `null`s that stand for absent keys, which TOML has not, and the line ends of the source from
/// descriptions.
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    use super::*;

    fn document(name: &str) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
    }

    /// Write the file anew with `BANYAN_UPDATE_GOLDEN=1 cargo test -p gateway schema`.
    #[test]
    fn the_published_schema_is_the_one_of_the_types() {
        let path = document("banyan.schema.json");
        let made = format!("{:#}\n", schema());
        if std::env::var_os("BANYAN_UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &made).unwrap();
        }
        let published = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(published == made, "docs/banyan.schema.json differs: run with BANYAN_UPDATE_GOLDEN=1 and look at the change");
    }

    #[test]
    fn every_key_has_a_description() {
        for (place, keys) in sections(schema()) {
            for (key, schema) in keys {
                assert!(schema["description"].as_str().is_some_and(|text| text.ends_with('.')), "{place}.{key}");
            }
        }
    }

    #[test]
    fn every_key_stands_in_the_documentation() {
        let text = std::fs::read_to_string(document("configuration.md")).unwrap();
        let keys: BTreeSet<&String> = sections(schema()).into_iter().flat_map(|(_, keys)| keys.keys()).collect();
        let missing: Vec<_> = keys.into_iter().filter(|key| !text.contains(&format!("`{key}`"))).collect();
        assert!(missing.is_empty(), "docs/configuration.md does not say what these are: {missing:?}");
    }

    fn sections(schema: &Value) -> Vec<(&str, &Map<String, Value>)> {
        let named = schema["$defs"].as_object().unwrap().iter().map(|(name, section)| (name.as_str(), section));
        let sections = std::iter::once(("", schema)).chain(named);
        sections.filter_map(|(name, section)| Some((name, section.get("properties")?.as_object()?))).collect()
    }
}
