//! Offers of a participant, under their names in the tree. Knows neither the identity of the participant nor the permission for calls.

use std::collections::{BTreeMap, BTreeSet};

use banyan_model::Segment;
use bytes::Bytes;
use config::resolved::ROOM_SEGMENT;
use mcp_proto::catalog::Kind;
use mcp_proto::json::{Members, quote};
use mcp_proto::projection::local_names;
use mcp_proto::splice::{self, Change};
use policy::approval::hex;
use room_proto::calling::ListKind;
use room_proto::name::Topic;
use sha2::{Digest, Sha256};

/// Bytes of the hash behind a changed name.
const HASHED: usize = 4;
/// Scheme of the URIs of participants' resources in the tree: `room:ROOM.PARTICIPANT/URI`.
pub const SCHEME: &str = "room:";

/// Offers of a participant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offers {
    id: String,
    lists: BTreeMap<Kind, Vec<NamedOffer>>,
}

/// A tool, a prompt, a resource, or a template of resources.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NamedOffer {
    /// The name below the participant's.
    local: String,
    /// The participant's own name: of a resource, the URI.
    name: String,
    /// The definition, under the name below the mount.
    raw: Bytes,
}

impl Offers {
    /// Makes the offers of a participant who offers nothing yet.
    pub fn new(id: &str) -> Self {
        Self { id: id.to_owned(), lists: BTreeMap::new() }
    }

    /// Names raw definitions; `false`: no change. Definitions without a name are left out, and those of offers in a room of this gate: a
    /// participant that offers the gate's own tree would be listed within itself.
    pub fn set(&mut self, topic: &Topic, segment: &Segment, kind: Kind, definitions: &[Bytes]) -> bool {
        let mut known = BTreeSet::new();
        let named = |raw: &Bytes| Some((Members::again(raw).str(kind.key())?.into_owned(), raw.clone()));
        let kept = definitions.iter().filter_map(named).filter(|(name, _)| !is_of_a_room(name) && known.insert(name.clone()));
        let (names, kept): (Vec<String>, Vec<Bytes>) = kept.unzip();
        let locals: Vec<String> = match kind {
            Kind::Prompts | Kind::Tools => local_names(&names).iter().map(ToString::to_string).collect(),
            Kind::Resources | Kind::Templates => names.clone(),
        };
        let whole = |local: &str| match kind {
            Kind::Prompts | Kind::Tools => format!("{}.{segment}.{local}", topic.as_str()),
            Kind::Resources | Kind::Templates => format!("{SCHEME}{}.{segment}/{local}", topic.as_str()),
        };
        let renamed = |raw: &Bytes, local: &str| splice::edit(raw, &[(kind.key(), Change::Set(quote(&whole(local)).as_bytes()))]).into();
        let offers = locals.into_iter().zip(names).zip(kept);
        let offers: Vec<NamedOffer> = offers.map(|((local, name), raw)| NamedOffer { raw: renamed(&raw, &local), local, name }).collect();
        if offers.is_empty() {
            return self.lists.remove(&kind).is_some();
        }
        let before = self.lists.get(&kind) != Some(&offers);
        self.lists.insert(kind, offers);
        before
    }

    /// Gives the id of the participant.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Tells if nothing is offered.
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// Lists the raw definitions of a kind.
    pub fn definitions(&self, kind: Kind) -> impl Iterator<Item = &Bytes> {
        self.lists.get(&kind).into_iter().flatten().map(|offer| &offer.raw)
    }

    /// Gives the participant's own name for a tool or a prompt.
    pub fn own_name(&self, kind: Kind, local: &str) -> Option<&str> {
        self.lists.get(&kind)?.iter().find(|offer| offer.local == local).map(|offer| offer.name.as_str())
    }

    /// Tells whether a URI may be read: that of a listed resource, or any where templates are offered, which the tree has matched.
    pub fn has_resource(&self, uri: &str) -> bool {
        self.lists.contains_key(&Kind::Templates) || self.own_name(Kind::Resources, uri).is_some()
    }
}

/// Gives the list of the tree for a list of a participant.
pub fn kind_of(list: ListKind) -> Kind {
    match list {
        ListKind::Prompts => Kind::Prompts,
        ListKind::Resources => Kind::Resources,
        ListKind::Templates => Kind::Templates,
        ListKind::Tools => Kind::Tools,
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
    name.strip_prefix(ROOM_SEGMENT).is_some_and(|rest| rest.starts_with("__") || rest.starts_with(['.', ':']))
}
