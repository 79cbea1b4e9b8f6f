//! The list of parts that a gate is made of. Each crate that brings a section of the configuration has one line here. Starts nothing.

use config::Sections;

/// Lists the sections that `banyan.toml` may have.
pub fn sections() -> Sections {
    Sections::default().with(equipment::DeviceSection)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    use serde_json::{Map, Value};

    use super::*;

    fn document(name: &str) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
    }

    /// Write the file anew with `BANYAN_UPDATE_GOLDEN=1 cargo test -p gateway schema`.
    #[test]
    fn the_published_schema_is_the_one_of_the_types() {
        let path = document("banyan.schema.json");
        let made = format!("{:#}\n", sections().schema());
        if std::env::var_os("BANYAN_UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &made).unwrap();
        }
        let published = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(published == made, "docs/banyan.schema.json differs: run with BANYAN_UPDATE_GOLDEN=1 and look at the change");
    }

    #[test]
    fn no_key_belongs_to_two_sections() {
        assert_eq!(sections().claimed_twice(), Vec::<&str>::new());
    }

    #[test]
    fn every_key_has_a_description() {
        for (place, keys) in described(sections().schema()) {
            for (key, schema) in keys {
                assert!(schema["description"].as_str().is_some_and(|text| text.ends_with('.')), "{place}.{key}");
            }
        }
    }

    #[test]
    fn every_key_stands_in_the_documentation() {
        let text = std::fs::read_to_string(document("configuration.md")).unwrap();
        let sections = sections();
        let keys: BTreeSet<&String> = described(sections.schema()).into_iter().flat_map(|(_, keys)| keys.keys()).collect();
        let missing: Vec<_> = keys.into_iter().filter(|key| !text.contains(&format!("`{key}`"))).collect();
        assert!(missing.is_empty(), "docs/configuration.md does not say what these are: {missing:?}");
    }

    fn described(schema: &Value) -> Vec<(&str, &Map<String, Value>)> {
        let named = schema["$defs"].as_object().unwrap().iter().map(|(name, section)| (name.as_str(), section));
        let sections = std::iter::once(("", schema)).chain(named);
        sections.filter_map(|(name, section)| Some((name, section.get("properties")?.as_object()?))).collect()
    }
}
