//! `GET /-/offers`: prompts and resources of every server, for the console. Does not fetch them: the tree has them.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::Gateway;

/// Most prompts, and most resources, in an answer.
const MOST: usize = 2000;
/// Longest definition in an answer, in bytes.
const LONGEST: usize = 16 << 10;
/// Bytes of names and definitions in a whole answer.
const WHOLE: usize = 4 << 20;

/// `GET /-/offers`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Offers {
    pub prompts: Vec<PromptRow>,
    pub resources: Vec<ResourceRow>,
    /// Prompts and resources beyond the first 2000 of each, and beyond 4 MiB in all.
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
        let mut room = WHOLE;
        for branch in &tree.branches {
            let server = branch.mount.config.name.to_string();
            for offer in &branch.catalog.prompts {
                let name = format!("{server}.{}", offer.local);
                let size = server.len() + name.len() + shown_len(&offer.entry.raw);
                let row = || PromptRow { server: server.clone(), name, definition: definition(&offer.entry.raw) };
                offers.left_out += pushed(&mut offers.prompts, &mut room, size, row);
            }
            let resources = branch.catalog.resources.iter().map(|entry| (entry, false));
            for (entry, template) in resources.chain(branch.catalog.templates.iter().map(|entry| (entry, true))) {
                let row = || ResourceRow { server: server.clone(), uri: entry.key.clone(), template, definition: definition(&entry.raw) };
                let size = server.len() + entry.key.len() + shown_len(&entry.raw);
                offers.left_out += pushed(&mut offers.resources, &mut room, size, row);
            }
        }
        offers
    }
}

/// Adds a row of `size` bytes while there is room; otherwise gives 1, for the count of what is left out.
fn pushed<T>(rows: &mut Vec<T>, room: &mut usize, size: usize, row: impl FnOnce() -> T) -> usize {
    match room.checked_sub(size) {
        Some(left) if rows.len() < MOST => {
            *room = left;
            rows.push(row());
            0
        }
        Some(_) | None => 1,
    }
}

/// Bytes that a definition takes in an answer.
fn shown_len(raw: &Bytes) -> usize {
    if raw.len() <= LONGEST { raw.len() } else { 0 }
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
        let (mut rows, mut room) = (vec![0; MOST - 1], 100);
        assert_eq!((pushed(&mut rows, &mut room, 1, || 1), pushed(&mut rows, &mut room, 1, || 2), rows.len()), (0, 1, MOST));
        assert_eq!(room, 99, "a row left out takes no room");
    }

    #[test]
    fn rows_beyond_the_bytes_of_an_answer_are_counted() {
        let (mut rows, mut room) = (Vec::new(), 100);
        let sizes = [60, 60, 40];
        let left_out: usize = sizes.into_iter().map(|size| pushed(&mut rows, &mut room, size, || size)).sum();
        assert_eq!((left_out, rows, room), (1, vec![60, 40], 0));
    }
}
