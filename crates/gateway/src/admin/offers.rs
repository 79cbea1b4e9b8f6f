//! `GET /-/offers`: prompts and resources of every server, for the console. Does not fetch them: the tree has them.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::Gateway;

/// Most prompts, and most resources, in an answer.
const MOST: usize = 2000;
/// Longest definition in an answer, in bytes.
const LONGEST: usize = 16 << 10;

/// `GET /-/offers`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Offers {
    pub prompts: Vec<PromptRow>,
    pub resources: Vec<ResourceRow>,
    /// Prompts and resources beyond the first 2000 of each.
    pub left_out: usize,
}

/// A prompt of a server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PromptRow {
    pub server: String,
    /// Dotted name in the tree.
    pub name: String,
    /// The definition as the server wrote it; absent above 16 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<Box<RawValue>>,
}

/// A resource of a server, or a template of resources.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ResourceRow {
    pub server: String,
    /// The URI as the server wrote it, or the template.
    pub uri: String,
    pub template: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<Box<RawValue>>,
}

impl Gateway {
    /// Lists prompts and resources of every server, those that guests may not see among them.
    pub fn offers(&self) -> Offers {
        let tree = self.0.gate.mounts.tree.load_full();
        let mut offers = Offers::default();
        for branch in &tree.branches {
            let server = branch.mount.config.name.to_string();
            for offer in &branch.catalog.prompts {
                let definition = definition(&offer.entry.raw);
                let row = || PromptRow { server: server.clone(), name: format!("{server}.{}", offer.local), definition };
                offers.left_out += pushed(&mut offers.prompts, row);
            }
            let resources = branch.catalog.resources.iter().map(|entry| (entry, false));
            for (entry, template) in resources.chain(branch.catalog.templates.iter().map(|entry| (entry, true))) {
                let definition = definition(&entry.raw);
                let row = || ResourceRow { server: server.clone(), uri: entry.key.clone(), template, definition };
                offers.left_out += pushed(&mut offers.resources, row);
            }
        }
        offers
    }
}

/// Adds a row while there is room; otherwise gives 1, for the count of what is left out.
fn pushed<T>(rows: &mut Vec<T>, row: impl FnOnce() -> T) -> usize {
    if rows.len() >= MOST {
        return 1;
    }
    rows.push(row());
    0
}

fn definition(raw: &Bytes) -> Option<Box<RawValue>> {
    let text = std::str::from_utf8(raw).ok().filter(|text| text.len() <= LONGEST)?;
    RawValue::from_string(text.to_owned()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_shown_as_written_within_its_bound() {
        let text = r#"{"name" : "a", "arguments":[ ]}"#;
        assert_eq!(definition(&Bytes::from(text)).unwrap().get(), text);
        let long = format!(r#"{{"name":"{}"}}"#, "a".repeat(LONGEST));
        assert!(definition(&Bytes::from(long)).is_none());
    }

    #[test]
    fn rows_beyond_the_bound_are_counted() {
        let mut rows = vec![0; MOST - 1];
        assert_eq!((pushed(&mut rows, || 1), pushed(&mut rows, || 2), rows.len()), (0, 1, MOST));
    }
}
