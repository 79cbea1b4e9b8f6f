//! Lists of a seated server, compared with earlier ones, so that participants hear of changes. Does not know who may see a list entry:
//! participants ask for lists of their own.

use std::sync::Arc;

use banyan_model::Segment;
use mcp_proto::catalog::Kind;

use call::tree::catalog::Catalog;
use call::tree::snapshot::Tree;

/// Lists of a mount.
type MountLists = (Segment, Arc<Catalog>);

/// The lists in one tree.
pub struct Lists {
    tree: u64,
    seen: Vec<MountLists>,
}

impl Lists {
    /// Takes the lists of a mount, or of the whole tree as shown in a room.
    pub fn of_tree(tree: &Tree, mount: Option<&Segment>) -> Self {
        let shown = tree.branches.iter().filter(|branch| !branch.mount.opens.has_parts());
        let own = shown.filter(|branch| mount.is_none_or(|mount| *mount == branch.mount.config.name));
        Self { tree: tree.number(), seen: own.map(|branch| (branch.mount.config.name.clone(), Arc::clone(&branch.catalog))).collect() }
    }

    /// Follows the tree; gives the notifications of changes.
    pub fn follow(&mut self, tree: &Tree, mount: Option<&Segment>) -> Vec<&'static str> {
        if tree.number() == self.tree {
            return Vec::new();
        }
        let before = std::mem::replace(self, Self::of_tree(tree, mount));
        let mut methods: Vec<&str> = Kind::ALL.into_iter().filter(|kind| self.differs(&before, *kind)).map(Kind::list_changed).collect();
        methods.dedup();
        methods
    }

    fn differs(&self, before: &Self, kind: Kind) -> bool {
        let is_same =
            |(old, new): (&MountLists, &MountLists)| old.0 == new.0 && (Arc::ptr_eq(&old.1, &new.1) || is_same(&old.1, &new.1, kind));
        self.seen.len() != before.seen.len() || !before.seen.iter().zip(&self.seen).all(is_same)
    }
}

fn is_same(old: &Catalog, new: &Catalog, kind: Kind) -> bool {
    match kind {
        Kind::Prompts => old.prompts == new.prompts,
        Kind::Resources => old.resources == new.resources,
        Kind::Templates => old.templates == new.templates,
        Kind::Tools => old.tools == new.tools,
    }
}
