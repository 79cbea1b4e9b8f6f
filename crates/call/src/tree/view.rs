//! What one kind of client is shown: names as it takes them, lists ready to send, and the way back from a name to its owner.
//! What no change touched is taken over from the view before. Which client gets which view is not decided here.

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

use crate::tree::annotation::Noted;
use crate::tree::catalog::allowed;
use crate::tree::own;
use crate::tree::snapshot::{Branch, Tree};
use crate::tree::view::names::{How, Listing};
use crate::tree::view::resources::Resources;
use crate::tree::view::text::Text;
use crate::words::view_key::ViewKey;

pub use crate::tree::view::names::Names;
pub use crate::tree::view::text::Page;

/// A view.
pub struct View {
    pub tools: Names,
    pub prompts: Names,
    resources: Arc<Resources>,
    /// The places of the mounts it covers.
    pub mounts: Vec<usize>,
    lists: HashMap<Kind, Vec<Page>>,
    /// Whether any tool wants parameters mirrored in headers.
    pub mirrors: bool,
    /// Whether search, describe and call stand in for the tools.
    pub searched: bool,
    /// Whether the gate's own tool is among them.
    pub has_own: bool,
    /// Whether any of the tools is answered here: what nearly all views have not, found out by one look.
    pub stands_in: bool,
    pub index: OnceLock<search::Index>,
}

/// Something that a list may hold.
pub struct Item<'a> {
    pub branch: &'a Branch,
    /// The branch's place, and its own in the catalog.
    pub place: (usize, usize),
    /// What its owner calls it.
    pub name: &'a str,
}

impl View {
    /// Makes what `key` shows of `tree`. `before`: what it showed of an earlier tree of the same configuration.
    pub fn build(tree: &Tree, key: &ViewKey, before: Option<&Self>) -> Self {
        let profile = tree.profile(&key.profile).map(|p| &**p);
        let branches: Vec<(usize, &Branch)> = if tree.lacks_profile(key) { Vec::new() } else { tree.within(key).collect() };
        let listings: Vec<Listing<'_>> = branches.iter().map(|(place, branch)| Listing::of(*place, branch)).collect();
        let [of_tools, of_prompts] = [Kind::Tools, Kind::Prompts].map(|kind| How::new(tree, key, kind));
        let tools = Names::build(&listings, &of_tools, before.map(|view| &view.tools));
        let prompts = Names::build(&listings, &of_prompts, before.map(|view| &view.prompts));
        let resources = Resources::build(branches.iter().map(|(_, branch)| *branch), before.map(|view| &view.resources));
        // Who has said nothing about it gets what there is; `banyan tools` says when that is too much.
        let searched = match profile.map_or(Search::Never, |p| p.search) {
            // A gate passes on what it is shown.
            _ if key.is_for_gate() => false,
            Search::Above(most) => tools.len() > most,
            Search::Always => true,
            Search::Never => false,
        };
        let has_own = has_own(tree, key, profile) && tools.find(own::NAME).is_none();
        let servers: Vec<&str> = branches.iter().map(|(_, b)| b.mount.config.name.as_str()).collect();
        let lists = HashMap::from([
            (Kind::Tools, if searched { stand_ins(&servers) } else { Page::all(tools.texts(&of_tools).chain(&own_text(has_own))) }),
            (Kind::Prompts, Page::all(prompts.texts(&of_prompts))),
            (Kind::Resources, Page::all([&resources.resources].into_iter())),
            (Kind::Templates, Page::all([&resources.templates].into_iter())),
        ]);
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

    /// Whose a resource is, and how each is shown.
    pub fn resources(&self) -> &ResourceIndex {
        &self.resources.index
    }

    /// A list of what `keep` keeps, in pages; there is always a first one.
    pub fn pages(&self, tree: &Tree, key: &ViewKey, kind: Kind, keep: &dyn Fn(&Item<'_>) -> bool) -> Vec<Page> {
        let branches = || self.mounts.iter().filter_map(|place| Some((*place, tree.branches.get(*place)?)));
        let kept = |place: (usize, usize), name: &str| tree.branches.get(place.0).is_some_and(|branch| keep(&Item { branch, place, name }));
        let offered = |names: &Names| -> Vec<Bytes> {
            let how = How::new(tree, key, kind);
            let written = |(shown, place): (&Arc<str>, (usize, usize))| {
                let branch = tree.branches.get(place.0)?;
                let offer = (how.of)(&branch.catalog).get(place.1)?;
                kept(place, &offer.entry.key).then(|| how.written(&Listing::of(place.0, branch).shown(), offer, shown))
            };
            names.iter().filter_map(written).collect()
        };
        match kind {
            Kind::Tools if self.searched => {
                let offer = |place: (usize, usize)| tree.branches.get(place.0).and_then(|branch| branch.catalog.tools.get(place.1));
                let seen = self.servers(&|place| offer(place).is_some_and(|offer| kept(place, &offer.entry.key)));
                let servers = branches().filter(|(place, _)| seen.contains(place));
                stand_ins(&servers.map(|(_, b)| b.mount.config.name.as_str()).collect::<Vec<_>>())
            }
            Kind::Tools => Page::all([&Text::of(&offered(&self.tools))].into_iter().chain(&own_text(self.has_own))),
            Kind::Prompts => Page::all([&Text::of(&offered(&self.prompts))].into_iter()),
            Kind::Resources | Kind::Templates => Page::all([&Text::of(&self.resources.shown(branches(), kind, &kept))].into_iter()),
        }
    }

    /// The places of the servers of which `keep` keeps a tool.
    pub fn servers(&self, keep: &dyn Fn((usize, usize)) -> bool) -> BTreeSet<usize> {
        let mut servers = BTreeSet::new();
        for (_, place) in self.tools.iter() {
            if !servers.contains(&place.0) && keep(place) {
                servers.insert(place.0);
            }
        }
        servers
    }

    /// One page of a list, and whether another page follows. Pages are counted from 0.
    pub fn page(&self, kind: Kind, page: usize) -> Option<(&Page, bool)> {
        let pages = self.lists.get(&kind)?;
        pages.get(page).map(|raw| (raw, page + 1 < pages.len()))
    }
}

/// The three tools that stand for all others.
fn stand_ins(servers: &[&str]) -> Vec<Page> {
    Page::all([&Text::of(&search::tools::definitions(servers))].into_iter())
}

/// The gate's own tool as a part of a list, where it is shown.
fn own_text(is_shown: bool) -> Option<Text> {
    is_shown.then(|| Text::of(&[Bytes::from_static(own::DEFINITION.as_bytes())]))
}

/// Whether a client is shown the gate's own tool: of the whole tree, where servers may register and its profile does not hide it.
fn has_own(tree: &Tree, key: &ViewKey, profile: Option<&Profile>) -> bool {
    let is_hidden = profile.is_some_and(|p| !allowed(own::NAME, &p.include, &p.exclude)) || tree.lacks_profile(key);
    tree.config.registry.is_some() && key.mount.is_none() && !is_hidden
}

/// Whether this gate asks somebody to agree to calls of a tool of this mount, whoever makes them.
pub fn is_gated(config: &Config, mount: &Segment, noted: &Noted) -> bool {
    config.gate.as_deref().is_some_and(|gate| gate.mode_of(mount).asks(noted.risk()))
}
