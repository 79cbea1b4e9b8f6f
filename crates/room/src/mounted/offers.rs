//! Offers of a participant, under their names in the tree. Knows neither the identity of the participant nor the permission for calls.

use std::collections::BTreeSet;

use banyan_model::Segment;
use bytes::Bytes;
use config::resolved::ROOM_SEGMENT;
use mcp_proto::json::{Members, quote};
use mcp_proto::projection::local_names;
use mcp_proto::splice::{self, Change};
use policy::approval::hex;
use room_proto::name::Topic;
use sha2::{Digest, Sha256};

/// Bytes of the hash behind a changed name.
const HASHED: usize = 4;

/// Offers of a participant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offers {
    id: String,
    tools: Vec<Tool>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Tool {
    segment: Segment,
    /// The participant's own name for the tool.
    name: String,
    /// The definition, under the name below the mount.
    raw: Bytes,
}

impl Offers {
    /// Names raw definitions. Definitions without a name are left out, and those of tools in a room of this gate: a participant that offers
    /// the gate's own tree would be listed within itself.
    pub fn from_definitions(topic: &Topic, id: &str, segment: &Segment, definitions: &[Bytes]) -> Self {
        let mut known = BTreeSet::new();
        let named = |raw: &Bytes| Some((Members::again(raw).str("name")?.into_owned(), raw.clone()));
        let kept = definitions.iter().filter_map(named).filter(|(name, _)| !is_of_a_room(name) && known.insert(name.clone()));
        let (names, kept): (Vec<String>, Vec<Bytes>) = kept.unzip();
        let path = |tool: &Segment| format!("{}.{segment}.{tool}", topic.as_str());
        let renamed = |raw: &Bytes, tool: &Segment| splice::edit(raw, &[("name", Change::Set(quote(&path(tool)).as_bytes()))]).into();
        let segments = local_names(&names);
        let tools = segments.into_iter().zip(names).zip(kept);
        let tools = tools.map(|((segment, name), raw)| Tool { raw: renamed(&raw, &segment), segment, name }).collect();
        Self { id: id.to_owned(), tools }
    }

    /// Gives the id of the participant.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Tells if no tool is offered.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Lists the raw definitions.
    pub fn definitions(&self) -> impl Iterator<Item = &Bytes> {
        self.tools.iter().map(|tool| &tool.raw)
    }

    /// Gives the participant's own name for the tool of a segment.
    pub fn tool(&self, segment: &str) -> Option<&str> {
        self.tools.iter().find(|tool| tool.segment.as_str() == segment).map(|tool| tool.name.as_str())
    }
}

/// Gives the segment of a participant: the id, if legal. Any other is followed by a hash, and so does not depend on other participants.
pub fn segment(id: &str) -> Segment {
    if let Ok(legal) = Segment::new(id) {
        return legal;
    }
    let hash = hex(&Sha256::digest(id)[..HASHED]);
    let near: String = id.to_lowercase().chars().take(Segment::MAX - hash.len() - 1).collect();
    Segment::nearest(&format!("{}_{hash}", Segment::nearest(&near)))
}

fn is_of_a_room(name: &str) -> bool {
    name.strip_prefix(ROOM_SEGMENT).is_some_and(|rest| rest.starts_with("__") || rest.starts_with('.'))
}
