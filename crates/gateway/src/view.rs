//! What one kind of client is shown: names as it takes them, lists ready to send, and the way back from a name to its owner.
//! Which client gets which view is not decided here.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use banyan_model::Segment;
use bytes::Bytes;
use mcp_proto::catalog::{Entry, Kind};
use mcp_proto::projection::{self, Projection, Style};
use mcp_proto::resource_index::{Listed, ResourceIndex};

use crate::annotation::Noted;
use crate::call::caller::ViewKey;
use crate::call::own;
use crate::catalog::{Catalog, Offer, allowed};
use crate::config::resolved::{Profile, Search};
use crate::tree::{Branch, Tree};

/// Lists longer than this are cut into pages. Clients that look at the first page only are common.
pub(crate) const PAGE: usize = 20_000;

/// A view.
pub(crate) struct View {
    pub(crate) tools: Names,
    pub(crate) prompts: Names,
    pub(crate) resources: ResourceIndex,
    /// The places of the mounts it covers.
    pub(crate) mounts: Vec<usize>,
    lists: HashMap<Kind, Vec<Bytes>>,
    /// Whether any tool wants parameters mirrored in headers.
    pub(crate) mirrors: bool,
    /// Whether search, describe and call stand in for the tools.
    pub(crate) searched: bool,
    /// Whether the gate's own tool is among them.
    pub(crate) has_own: bool,
    /// Whether any of the tools is answered here: what nearly all views have not, found out by one look.
    pub(crate) stands_in: bool,
    pub(crate) index: OnceLock<crate::search::Index>,
}

/// Something that a list may hold.
pub(crate) struct Item<'a> {
    pub(crate) branch: &'a Branch,
    /// The branch's place, and its own in the catalog.
    pub(crate) place: (usize, usize),
    /// What its owner calls it.
    pub(crate) name: &'a str,
}

/// Shown names of one kind, and whose they are.
pub(crate) struct Names {
    pub(crate) projection: Projection,
    /// For each entry of the projection: the branch, and the place in its catalog.
    owners: Vec<(usize, usize)>,
}

impl Names {
    /// The branch and the place in its catalog of what is shown as `name`.
    pub(crate) fn find(&self, name: &str) -> Option<(usize, usize)> {
        self.projection.find(name).and_then(|i| self.owners.get(i)).copied()
    }

    /// Every shown name with its branch and place.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, (usize, usize))> {
        self.owners.iter().enumerate().filter_map(|(i, owner)| Some((self.projection.shown(i)?, *owner)))
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.owners.len()
    }
}

impl View {
    /// Makes what `key` shows of `tree`.
    pub(crate) fn build(tree: &Tree, key: &ViewKey) -> Self {
        let profile = tree.profile(&key.profile).map(|p| &**p);
        let branches: Vec<(usize, &Branch)> = if tree.lacks_profile(key) { Vec::new() } else { tree.within(key.mount.as_ref()).collect() };
        let prefixed = key.mount.is_none();
        let tools = names(&branches, profile, key.style, prefixed, |c| &c.tools);
        let prompts = names(&branches, None, key.style, prefixed, |c| &c.prompts);
        let resources = ResourceIndex::build(&branches.iter().map(|(_, b)| listed(b)).collect::<Vec<_>>());
        // Who has said nothing about it gets what there is; `banyan tools` says when that is too much.
        let searched = match profile.map_or(Search::Never, |p| p.search) {
            // A gate passes on what it is shown.
            _ if key.is_for_gate() => false,
            Search::Above(most) => tools.len() > most,
            Search::Always => true,
            Search::Never => false,
        };
        let has_own = has_own(tree, key, profile) && tools.find(own::NAME).is_none();
        let mounts = branches.iter().map(|(b, _)| *b).collect();
        let mirrors = branches.iter().any(|(_, b)| b.catalog.tools.iter().any(|t| !t.headers.is_empty()));
        let stands_in = searched || has_own;
        let lists = HashMap::new();
        let mut view = Self { mirrors, tools, prompts, resources, mounts, lists, searched, has_own, stands_in, index: OnceLock::new() };
        for kind in Kind::ALL {
            view.lists.insert(kind, view.pages(tree, key, kind, &|_| true));
        }
        view
    }

    /// A list of what `keep` keeps, as raw arrays, one a page; there is always a first one.
    pub(crate) fn pages(&self, tree: &Tree, key: &ViewKey, kind: Kind, keep: &dyn Fn(&Item<'_>) -> bool) -> Vec<Bytes> {
        let branches = || self.mounts.iter().filter_map(|place| tree.branches.get(*place));
        let offers = |names: &Names, of: fn(&Catalog) -> &Vec<Offer>| -> Vec<Bytes> {
            let all = names.iter().filter_map(|(shown, (b, i))| {
                let branch = tree.branches.get(b)?;
                let offer = of(&branch.catalog).get(i)?;
                keep(&Item { branch, place: (b, i), name: offer.entry.key.as_str() }).then(|| {
                    let raw = offer.entry.shown_as(kind, shown);
                    let noted = offer.noted.as_ref().filter(|_| key.annotated);
                    noted.map_or_else(|| raw.clone(), |noted| noted.written(&raw, branch.is_lost, is_gated(tree, branch, noted)))
                })
            });
            all.collect()
        };
        let entries = match kind {
            Kind::Tools if self.searched => {
                let servers: Vec<&str> = branches().map(|b| b.mount.config.name.as_str()).collect();
                crate::search::tools::definitions(&servers).into()
            }
            Kind::Tools => {
                let mut tools = offers(&self.tools, |c| &c.tools);
                if self.has_own {
                    tools.push(Bytes::from_static(own::DEFINITION.as_bytes()));
                }
                tools
            }
            Kind::Prompts => offers(&self.prompts, |c| &c.prompts),
            Kind::Resources | Kind::Templates => {
                shown(self.mounts.iter().filter_map(|b| Some((*b, tree.branches.get(*b)?))), kind, &self.resources, keep)
            }
        };
        pages(&entries)
    }

    /// One page of a list: the raw array, and whether another page follows. Pages are counted from 0.
    pub(crate) fn page(&self, kind: Kind, page: usize) -> Option<(&Bytes, bool)> {
        let pages = self.lists.get(&kind)?;
        pages.get(page).map(|raw| (raw, page + 1 < pages.len()))
    }
}

/// Whether a client is shown the gate's own tool: of the whole tree, where servers may register and its profile does not hide it.
fn has_own(tree: &Tree, key: &ViewKey, profile: Option<&Profile>) -> bool {
    let is_hidden = profile.is_some_and(|p| !allowed(own::NAME, &p.include, &p.exclude)) || tree.lacks_profile(key);
    tree.config.registry.is_some() && key.mount.is_none() && !is_hidden
}

fn names(branches: &[(usize, &Branch)], profile: Option<&Profile>, style: Style, prefixed: bool, of: fn(&Catalog) -> &Vec<Offer>) -> Names {
    let (mut entries, mut owners) = (Vec::new(), Vec::new());
    for (b, branch) in branches {
        let mount = &branch.mount.config.name;
        for (i, offer) in of(&branch.catalog).iter().enumerate() {
            let dotted = format!("{mount}.{}", offer.local);
            if profile.is_some_and(|p| !allowed(&dotted, &p.include, &p.exclude)) {
                continue;
            }
            let rename = profile.filter(|_| style != Style::Qualified).and_then(|p| p.rename.get(&dotted)).map(|n| Arc::from(n.as_str()));
            entries.push(projection::Entry {
                mount: prefixed.then(|| mount.clone()),
                original: Arc::clone(&offer.name),
                local: Arc::clone(&offer.local),
                rename,
            });
            owners.push((*b, i));
        }
    }
    Names { projection: Projection::build(style, entries), owners }
}

fn listed(branch: &Branch) -> Listed {
    let keys = |entries: &[Entry]| entries.iter().map(|e| Arc::from(e.key.as_str())).collect();
    Listed { mount: branch.mount.config.name.clone(), uris: keys(&branch.catalog.resources), templates: keys(&branch.catalog.templates) }
}

fn shown<'a>(
    branches: impl Iterator<Item = (usize, &'a Branch)>,
    kind: Kind,
    index: &ResourceIndex,
    keep: &dyn Fn(&Item<'_>) -> bool,
) -> Vec<Bytes> {
    let mut out = Vec::new();
    for (place, branch) in branches {
        let mount: &Segment = &branch.mount.config.name;
        let entries = if kind == Kind::Resources { &branch.catalog.resources } else { &branch.catalog.templates };
        let kept = entries.iter().enumerate().filter(|(i, entry)| keep(&Item { branch, place: (place, *i), name: &entry.key }));
        for (_, entry) in kept {
            let key = if kind == Kind::Resources { index.shown(mount, &entry.key) } else { index.shown_template(mount, &entry.key) };
            out.extend(key.map(|k| entry.shown_as(kind, &k)));
        }
    }
    out
}

/// Joins entries to raw arrays of at most [`PAGE`] entries; there is always a first page.
fn pages(entries: &[Bytes]) -> Vec<Bytes> {
    if entries.is_empty() {
        return vec![Bytes::from_static(b"[]")];
    }
    entries.chunks(PAGE).map(|chunk| Bytes::from([&b"["[..], &chunk.join(&b','), b"]"].concat())).collect()
}

/// Whether this gate asks somebody to agree to calls of a tool, whoever makes them.
pub(crate) fn is_gated(tree: &Tree, branch: &Branch, noted: &Noted) -> bool {
    tree.config.gate.as_deref().is_some_and(|gate| gate.mode_of(&branch.mount.config.name).asks(noted.risk()))
}
