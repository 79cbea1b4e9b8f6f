//! Resources of a view: their owners and lists. Made anew only after a change of some server's lists.

use std::sync::Arc;

use banyan_model::Segment;
use mcp_proto::catalog::{Entry, Kind};
use mcp_proto::resource_index::{Listed, ResourceIndex};

use crate::tree::snapshot::Branch;
use crate::tree::view::list::ListPart;
use crate::tree::view::text::Text;

/// Resources of a view's branches.
pub struct Resources {
    pub index: ResourceIndex,
    resources: Vec<ListPart>,
    templates: Vec<ListPart>,
    /// Lists from which it was made.
    sources: Vec<Source>,
}

/// Lists of a mount at the time.
struct Source {
    mount: Segment,
    resources: Arc<Vec<Entry>>,
    templates: Arc<Vec<Entry>>,
}

impl Resources {
    /// Makes the resources of these branches, or returns `before` if nothing changed.
    pub fn build<'a>(branches: impl Iterator<Item = &'a Branch> + Clone, before: Option<&Arc<Self>>) -> Arc<Self> {
        if let Some(before) = before.filter(|before| before.is_of(branches.clone())) {
            return Arc::clone(before);
        }
        let sources = branches.clone().map(Source::of_branch).collect();
        let index = ResourceIndex::build(&branches.clone().map(listed).collect::<Vec<_>>());
        let mut made = Self { index, resources: Vec::new(), templates: Vec::new(), sources };
        made.resources = made.shown(branches.clone().enumerate(), Kind::Resources, &|_, _| true);
        made.templates = made.shown(branches.enumerate(), Kind::Templates, &|_, _| true);
        Arc::new(made)
    }

    /// Lists of resources or templates.
    pub fn parts(&self, kind: Kind) -> impl Iterator<Item = ListPart> {
        let parts = if kind == Kind::Templates { &self.templates } else { &self.resources };
        parts.iter().map(|part| ListPart { mount: part.mount.clone(), text: Arc::clone(&part.text) })
    }

    /// Resources or templates of these branches for which `keep` holds, by place and owner's name.
    pub fn shown<'a>(
        &self,
        branches: impl Iterator<Item = (usize, &'a Branch)>,
        kind: Kind,
        keep: &dyn Fn((usize, usize), &str) -> bool,
    ) -> Vec<ListPart> {
        let mut parts = Vec::new();
        for (place, branch) in branches {
            let mount = &branch.mount.config.name;
            let mut shown = Vec::new();
            let entries = if kind == Kind::Resources { &branch.catalog.resources } else { &branch.catalog.templates };
            for (_, entry) in entries.iter().enumerate().filter(|(i, entry)| keep((place, *i), &entry.key)) {
                let key = match kind {
                    Kind::Resources => self.index.shown(mount, &entry.key),
                    Kind::Prompts | Kind::Templates | Kind::Tools => self.index.shown_template(mount, &entry.key),
                };
                shown.extend(key.map(|key| entry.shown_as(kind, &key)));
            }
            parts.push(ListPart { mount: Some(mount.clone()), text: Arc::new(Text::join(&shown)) });
        }
        parts
    }

    fn is_of<'a>(&self, mut branches: impl Iterator<Item = &'a Branch>) -> bool {
        self.sources.iter().all(|source| branches.next().is_some_and(|branch| source.is_of(branch))) && branches.next().is_none()
    }
}

impl Source {
    fn of_branch(branch: &Branch) -> Self {
        let (resources, templates) = (Arc::clone(&branch.catalog.resources), Arc::clone(&branch.catalog.templates));
        Self { mount: branch.mount.config.name.clone(), resources, templates }
    }

    fn is_of(&self, branch: &Branch) -> bool {
        let same = |then: &Arc<Vec<Entry>>, now: &Arc<Vec<Entry>>| Arc::ptr_eq(then, now) || then == now;
        same(&self.resources, &branch.catalog.resources)
            && same(&self.templates, &branch.catalog.templates)
            && self.mount == branch.mount.config.name
    }
}

fn listed(branch: &Branch) -> Listed {
    let keys = |entries: &[Entry]| entries.iter().map(|e| Arc::from(e.key.as_str())).collect();
    Listed { mount: branch.mount.config.name.clone(), uris: keys(&branch.catalog.resources), templates: keys(&branch.catalog.templates) }
}
