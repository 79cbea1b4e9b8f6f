//! The list of a gate's parts. Each family with a section, an upstream or a door has a line in [`PartList::default`]. Starts nothing.

use std::sync::Arc;

use agent::AgentPart;
use axcp::AxcpPart;
use config::{Section, Sections};
use door::part::{GatePart, Ground, InstalledPart};
use room::RoomPart;
use stub::StubPart;

/// The parts of a gate, beside MCP, links between gates and the administration, which every gate has.
#[derive(Clone)]
pub struct PartList {
    parts: Vec<Arc<dyn GatePart>>,
    sections: Sections,
}

/// The parts of the shipped gate.
impl Default for PartList {
    fn default() -> Self {
        Self { parts: Vec::new(), sections: Sections::default() }
            .with(RoomPart)
            .with(AgentPart)
            .with(StubPart)
            .with(AxcpPart)
            .with_section(equipment::DeviceSection)
    }
}

impl PartList {
    /// Adds a part.
    #[must_use]
    pub fn with(mut self, part: impl GatePart) -> Self {
        self.sections = part.sections(self.sections);
        self.parts.push(Arc::new(part));
        self
    }

    /// Adds a section whose mounts are servers of a known transport, for example child processes.
    #[must_use]
    pub fn with_section(self, section: impl Section) -> Self {
        Self { sections: self.sections.with(section), ..self }
    }

    /// Lists the sections of `banyan.toml`.
    pub fn sections(&self) -> Sections {
        self.sections.clone()
    }

    /// Installs all parts at a gate.
    pub(crate) fn install(&self, ground: &Ground) -> Vec<Arc<dyn InstalledPart>> {
        self.parts.iter().map(|part| part.install(ground)).collect()
    }
}

/// Lists the sections of `banyan.toml` for the shipped gate.
pub fn sections() -> Sections {
    PartList::default().sections()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use config::secret::{KeyringError, Sources};
    use serde_json::{Map, Value};

    use super::*;

    struct FixedSources;

    impl Sources for FixedSources {
        fn env(&self, name: &str) -> Option<String> {
            let known = [("HOME", "/home/ada"), ("REGION", "eu")];
            known.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        }

        fn file(&self, _: &Path) -> std::io::Result<String> {
            Err(std::io::ErrorKind::NotFound.into())
        }

        fn keyring(&self, _: &str) -> Result<Option<String>, KeyringError> {
            Ok(None)
        }
    }

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
    fn the_published_example_is_legal_and_uses_every_section() {
        let path = document("banyan.example.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        let config = sections().parse(&text, &path, &FixedSources).unwrap_or_else(|error| panic!("{error}"));
        assert!(config.policy.as_ref().is_some_and(|policy| policy.policies.rules().count() > 3));
        assert!(config.mounts.len() > 2 && config.profiles.len() > 1 && !config.tokens.is_empty());
        let holds = |key: &str| {
            ["", "[", "[["].iter().any(|open| {
                text.lines().any(|line| {
                    let rest = line.strip_prefix(open).and_then(|line| line.strip_prefix(key));
                    rest.is_some_and(|rest| rest.starts_with([' ', '.', ']', '=']))
                })
            })
        };
        for key in sections().schema()["properties"].as_object().unwrap().keys().filter(|key| *key != "$schema") {
            assert!(holds(key), "{key}");
        }
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
