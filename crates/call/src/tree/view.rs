//! View of a kind of client: names in its spelling, lists ready to send, and the way back from a name to its owner. Parts untouched by a
//! change come from the view before. Does not choose views for clients.

pub mod list;
pub mod names;
pub mod resources;
pub mod text;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use banyan_model::Segment;
use bytes::Bytes;
use config::resolved::{Config, Profile, Search};
use mcp_proto::catalog::Kind;
use mcp_proto::resource_index::ResourceIndex;

use crate::tree::annotation::ToolFacts;
use crate::tree::catalog::allowed;
use crate::tree::own;
use crate::tree::snapshot::{Branch, Tree};
use crate::tree::view::list::{EntryList, ListPart};
use crate::tree::view::names::{How, Listing};
use crate::tree::view::resources::Resources;
use crate::tree::view::text::Text;
use crate::words::view_key::ViewKey;

pub use crate::tree::view::names::Names;

/// View of a kind of client.
pub struct View {
    pub tools: Names,
    pub prompts: Names,
    resources: Arc<Resources>,
    /// Places of the mounts in scope.
    pub mounts: Vec<usize>,
    lists: HashMap<Kind, Arc<EntryList>>,
    /// Some tool wants parameters mirrored in headers.
    pub mirrors: bool,
    /// Search, describe and call stand in for the tools.
    pub searched: bool,
    /// The gate's own tool is there.
    pub has_own: bool,
    /// Some tools are answered here; rare, and found out by a single look.
    pub stands_in: bool,
    pub index: OnceLock<search::Index>,
}

/// A candidate entry of a list.
pub struct Item<'a> {
    pub branch: &'a Branch,
    /// Places of the branch and of its entry in the catalog.
    pub place: (usize, usize),
    /// Owner's own name.
    pub name: &'a str,
}

impl View {
    /// Makes the view of `key`, reusing parts of `before`, a view of an earlier tree of the same configuration.
    pub fn build(tree: &Tree, key: &ViewKey, before: Option<&Self>) -> Self {
        let profile = tree.profile(&key.profile).map(|p| &**p);
        let branches: Vec<(usize, &Branch)> = if tree.lacks_profile(key) { Vec::new() } else { tree.within(key).collect() };
        let listings: Vec<Listing<'_>> = branches.iter().map(|(place, branch)| Listing::of_branch(*place, branch)).collect();
        let [of_tools, of_prompts] = [Kind::Tools, Kind::Prompts].map(|kind| How::new(tree, key, kind));
        let tools = Names::build(&listings, &of_tools, before.map(|view| &view.tools));
        let prompts = Names::build(&listings, &of_prompts, before.map(|view| &view.prompts));
        let resources = Resources::build(branches.iter().map(|(_, branch)| *branch), before.map(|view| &view.resources));
        // Without a setting, a client gets all tools; `banyan tools` says when they are too many.
        let searched = match profile.map_or(Search::Never, |p| p.search) {
            // A gate passes on what it is shown.
            _ if key.is_for_gate() => false,
            Search::Above(most) => tools.listed() > most,
            Search::Always => true,
            Search::Never => false,
        };
        let has_own = has_own(tree, key, profile) && tools.find(own::NAME).is_none();
        let servers: Vec<&str> = branches.iter().map(|(_, b)| b.mount.config.name.as_str()).collect();
        let of_tools = if searched {
            stand_ins(&servers)
        } else {
            EntryList::of_parts(Kind::Tools, tools.parts(&of_tools).chain(own_part(has_own && key.is_for_gate())))
        };
        let lists = [
            (Kind::Tools, of_tools),
            (Kind::Prompts, EntryList::of_parts(Kind::Prompts, prompts.parts(&of_prompts))),
            (Kind::Resources, EntryList::of_parts(Kind::Resources, resources.parts(Kind::Resources))),
            (Kind::Templates, EntryList::of_parts(Kind::Templates, resources.parts(Kind::Templates))),
        ];
        let lists = lists.into_iter().map(|(kind, list)| (kind, Arc::new(list))).collect();
        Self {
            mirrors: tools.mirrors(),
            tools,
            prompts,
            resources,
            mounts: branches.iter().map(|(b, _)| *b).collect(),
            lists,
            searched,
            has_own,
            stands_in: searched || has_own,
            index: OnceLock::new(),
        }
    }

    /// Index of resources: their owners and shown names.
    pub fn resources(&self) -> &ResourceIndex {
        &self.resources.index
    }

    /// List of the items for which `keep` holds, and of the gate's own tool where `keeps_own`.
    pub fn kept(&self, tree: &Tree, key: &ViewKey, kind: Kind, (keep, keeps_own): (&dyn Fn(&Item<'_>) -> bool, bool)) -> EntryList {
        let branches = || self.mounts.iter().filter_map(|place| Some((*place, tree.branches.get(*place)?)));
        let kept = |place: (usize, usize), name: &str| tree.branches.get(place.0).is_some_and(|branch| keep(&Item { branch, place, name }));
        let offered = |names: &Names| -> Vec<ListPart> {
            let how = How::new(tree, key, kind);
            let written = |(shown, place): (&Arc<str>, (usize, usize))| {
                let branch = tree.branches.get(place.0)?;
                let offer = (how.of)(&branch.catalog).get(place.1)?;
                (how.lists(offer) && kept(place, &offer.entry.key))
                    .then(|| (branch, how.written(&Listing::of_branch(place.0, branch).shown(), offer, shown)))
            };
            let mut entries = names.iter().filter_map(written).peekable();
            let mut parts = Vec::new();
            while let Some((branch, first)) = entries.next() {
                let mount = &branch.mount.config.name;
                let mut own = vec![first];
                while let Some((_, entry)) = entries.next_if(|(other, _)| other.mount.config.name == *mount) {
                    own.push(entry);
                }
                parts.push(ListPart { mount: Some(mount.clone()), text: Arc::new(Text::join(&own)) });
            }
            parts
        };
        match kind {
            Kind::Tools if self.searched => {
                let offer = |place: (usize, usize)| tree.branches.get(place.0).and_then(|branch| branch.catalog.tools.get(place.1));
                let seen = self.servers(&|place| offer(place).is_some_and(|offer| kept(place, &offer.entry.key)));
                let servers = branches().filter(|(place, _)| seen.contains(place));
                stand_ins(&servers.map(|(_, b)| b.mount.config.name.as_str()).collect::<Vec<_>>())
            }
            Kind::Tools => {
                let own = own_part(self.has_own && keeps_own && key.is_for_gate());
                EntryList::of_parts(kind, offered(&self.tools).into_iter().chain(own))
            }
            Kind::Prompts => EntryList::of_parts(kind, offered(&self.prompts)),
            Kind::Resources | Kind::Templates => EntryList::of_parts(kind, self.resources.shown(branches(), kind, &kept)),
        }
    }

    /// Places of servers with a tool for which `keep` holds.
    pub fn servers(&self, keep: &dyn Fn((usize, usize)) -> bool) -> BTreeSet<usize> {
        let mut servers = BTreeSet::new();
        for (_, place) in self.tools.iter() {
            if !servers.contains(&place.0) && keep(place) {
                servers.insert(place.0);
            }
        }
        servers
    }

    /// Whole list of a kind.
    pub fn list(&self, kind: Kind) -> Option<&Arc<EntryList>> {
        self.lists.get(&kind)
    }
}

/// List of the three tools that stand for all others.
fn stand_ins(servers: &[&str]) -> EntryList {
    EntryList::of_gate(Kind::Tools, Text::join(&search::tools::definitions(servers)))
}

/// The gate's own tool as a part of a list, if shown.
fn own_part(is_shown: bool) -> Option<ListPart> {
    let text = || Text::join(&[Bytes::from_static(own::DEFINITION.as_bytes())]);
    is_shown.then(|| ListPart { mount: None, text: Arc::new(text()) })
}

/// Checks that a client is shown the gate's own tool: for the whole tree, where servers may register and the profile does not hide it.
fn has_own(tree: &Tree, key: &ViewKey, profile: Option<&Profile>) -> bool {
    let is_hidden = profile.is_some_and(|p| !allowed(own::NAME, &p.include, &p.exclude)) || tree.lacks_profile(key);
    tree.config.registry.is_some() && key.mount.is_none() && !is_hidden
}

/// Checks that this gate wants a person to agree to calls of a tool, whoever the caller.
pub fn is_gated(config: &Config, mount: &Segment, noted: &ToolFacts) -> bool {
    config.gate.as_deref().is_some_and(|gate| gate.mode_of(mount).asks(noted.risk()))
}
