//! Recognition between gates: the extension of MCP-AX among the capabilities of either era, and the ids of a subtree.
//! The consequences are not known here.

use crate::json::{self, Duplicates, Members};
use crate::splice::{self, Change};

/// Id of the extension: our own prefix, as MCP demands of foreign extensions (2026-07-28, "Extensions").
/// Stands under `extensions`, and for peers of the initialize era also under `experimental`.
pub const ID: &str = "io.banyan/mcpax";

/// The raw `data` of the error by which a gate refuses a caller without sufficient credentials.
pub const REFUSED: &str = "{\"gate\":\"io.banyan/mcpax\"}";

/// The member of the extension's object with the gate's identity: its aggregator id (MCP-AX 5.3). Only a gate has one.
pub const AGGREGATOR_ID: &str = "aggregator_id";

/// The member of a list's `_meta` that holds the ids of a gate and of all gates below it (MCP-AX 5.3).
pub const SUBTREE_IDS: &str = "x-mcpax-subtree-ids";

/// The member of a list's `_meta` that holds the paths of failed servers below a gate, for the gate above.
pub const FAILED_SERVERS: &str = "io.banyan/failed-servers";

/// Longer ids are nobody's.
const LONGEST_ID: usize = 64;
/// Most ids of a subtree, beyond any real tree.
const MOST_IDS: usize = 100_000;

/// Most paths of failed servers. Servers beyond are left out.
const MOST_PATHS: usize = 100;
/// Bytes of a path, and of a segment: those of names (AX-10).
const LONGEST_PATH: usize = 255;
const LONGEST_SEGMENT: usize = 63;

/// The kind of a peer, by its capabilities.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Peer {
    /// A gate, with its aggregator id.
    Gate(String),
    /// No knowledge of MCP-AX.
    #[default]
    Plain,
    /// No gate, but a reader of annotations by MCP-AX.
    Reader,
}

/// Reads a raw capability object.
pub fn peer(capabilities: &[u8]) -> Peer {
    // Asked of every request: nearly all say nothing of it.
    if memchr::memmem::find(capabilities, b"mcpax").is_none() {
        return Peer::Plain;
    }
    let Ok(members) = Members::parse(capabilities, Duplicates::RefuseDeep) else { return Peer::Plain };
    let said = ["extensions", "experimental"].iter().find_map(|group| members.object(group)?.object(ID));
    match said {
        None => Peer::Plain,
        Some(said) => match said.str(AGGREGATOR_ID).filter(|id| is_id(id)) {
            Some(id) => Peer::Gate(id.into_owned()),
            None => Peer::Reader,
        },
    }
}

/// A raw capability object with the extension of the gate `id` in both groups; all else stays.
pub fn declared(capabilities: &[u8], id: &str) -> Vec<u8> {
    let members = Members::again(capabilities);
    let value = extension(id);
    let group =
        |name| splice::edit(members.get(name).filter(|raw| raw.starts_with(b"{")).unwrap_or(b"{}"), &[(ID, Change::Set(value.as_bytes()))]);
    let (experimental, extensions) = (group("experimental"), group("extensions"));
    splice::edit(capabilities, &[("experimental", Change::Set(&experimental)), ("extensions", Change::Set(&extensions))])
}

/// Writes the raw object under [`ID`] for the gate `id`.
pub fn extension(id: &str) -> String {
    format!("{{\"{AGGREGATOR_ID}\":{}}}", json::quote(id))
}

/// Writes the object for a gate that takes registrations (MCP-AX 6), so that servers know to send them.
pub fn extension_with_registry(id: &str) -> String {
    format!("{{\"{AGGREGATOR_ID}\":{},\"registry\":true}}", json::quote(id))
}

/// The raw value of [`SUBTREE_IDS`].
pub fn write_ids<'a>(ids: impl IntoIterator<Item = &'a str>) -> String {
    format!("[{}]", ids.into_iter().map(json::quote).collect::<Vec<_>>().join(","))
}

/// The ids in a raw value of [`SUBTREE_IDS`]; what is no id is passed over.
pub fn read_ids(raw: &[u8]) -> Vec<String> {
    let all = json::elements(raw).unwrap_or_default().into_iter().take(MOST_IDS);
    all.filter_map(|raw| json::as_str(raw).filter(|id| is_id(id)).map(|id| id.into_owned())).collect()
}

/// The raw value of [`FAILED_SERVERS`].
pub fn write_paths(paths: &[String]) -> String {
    write_ids(paths.iter().map(String::as_str).filter(|path| is_path(path)).take(MOST_PATHS))
}

/// The paths in a raw value of [`FAILED_SERVERS`], in their order. Whatever is no path is passed over.
pub fn read_paths(raw: &[u8]) -> Vec<String> {
    let all = json::elements(raw).unwrap_or_default().into_iter().take(MOST_PATHS);
    all.filter_map(|raw| json::as_str(raw).filter(|path| is_path(path)).map(|path| path.into_owned())).collect()
}

fn is_path(text: &str) -> bool {
    let is_sign = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-');
    let is_segment = |segment: &str| (1..=LONGEST_SEGMENT).contains(&segment.len()) && segment.bytes().all(is_sign);
    text.len() <= LONGEST_PATH && text.split('.').all(is_segment)
}

fn is_id(text: &str) -> bool {
    (1..=LONGEST_ID).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_is_known_in_either_era_and_nobody_else_is_taken_for_one() {
        let gate = Peer::Gate("g-1".into());
        assert_eq!(peer(br#"{"extensions":{"io.banyan/mcpax":{"aggregator_id":"g-1"}}}"#), gate);
        assert_eq!(peer(br#"{"experimental":{"io.banyan\/mcpax":{"aggregator_id":"g-1"}}}"#), gate);
        assert_eq!(peer(br#"{"extensions":{"io.banyan/mcpax":{}}}"#), Peer::Reader);
        for plain in [&br#"{"io.banyan/mcpax":{"aggregator_id":"g-1"}}"#[..], b"{}", b"mcpax", br#"{"extensions":{"other/mcpax":{}}}"#] {
            assert_eq!(peer(plain), Peer::Plain);
        }
        assert_eq!(peer(br#"{"extensions":{"io.banyan/mcpax":{"aggregator_id":"two words"}}}"#), Peer::Reader);
    }

    #[test]
    fn paths_of_failed_servers_are_names_and_few() {
        let paths = ["kafka".to_owned(), "edge.db-1".to_owned(), "No".to_owned(), "a..b".to_owned(), "x".repeat(64)];
        assert_eq!(write_paths(&paths), r#"["kafka","edge.db-1"]"#);
        assert_eq!(read_paths(br#"["kafka",7,"a\u001bb","","edge.db-1",null]"#), ["kafka", "edge.db-1"]);
        let many: Vec<String> = (0..500).map(|number| format!("s{number}")).collect();
        assert_eq!((read_paths(write_paths(&many).as_bytes()).len(), read_paths(b"{").len()), (100, 0));
    }

    #[test]
    fn a_gate_declares_itself_beside_what_is_there() {
        let declared = declared(br#"{ "sampling":{},"extensions":{"a/b":{"c":1.0}} }"#, "g");
        let wanted = r#"{ "sampling":{},"extensions":{"a/b":{"c":1.0},"io.banyan/mcpax":{"aggregator_id":"g"}},"experimental":{"io.banyan/mcpax":{"aggregator_id":"g"}} }"#;
        assert_eq!(String::from_utf8_lossy(&declared), wanted);
        assert_eq!(peer(&declared), Peer::Gate("g".into()));
    }

    #[test]
    fn a_refusal_names_the_extension() {
        assert_eq!(Members::parse(REFUSED.as_bytes(), Duplicates::RefuseDeep).unwrap().str("gate").unwrap(), ID);
    }

    #[test]
    fn ids_are_read_as_they_were_written() {
        assert_eq!(read_ids(write_ids(["a", "b-2"]).as_bytes()), ["a", "b-2"]);
        assert_eq!(read_ids(br#"["a",7,"","two words",{}]"#), ["a"]);
        assert!(read_ids(b"{}").is_empty());
    }
}
