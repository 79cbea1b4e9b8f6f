//! A snapshot of the tree: every mount with its catalog, and the views made from it. Never changed, only replaced.

use std::collections::{BTreeSet, HashMap};
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use banyan_model::Segment;
use config::resolved::{Config, Profile};
use foldhash::fast::RandomState;
use mcp_proto::client::Negotiated;
use mcp_proto::era;
use mcp_proto::mcpax::{self, Peer};

use crate::tree::caller::Caller;
use crate::tree::catalog::Catalog;
use crate::tree::mount::{Mount, Phase};
use crate::tree::role::Role;
use crate::tree::standing::{Standing, Standings};
use crate::tree::view::View;
use crate::words::view_key::ViewKey;

/// Most views kept; profiles times endpoints stay far below.
const KEPT_VIEWS: usize = 4096;

/// Time for which an unused view is kept for its successor.
const KEPT_FOR: Duration = Duration::from_secs(600);

/// Views of earlier trees of the same configuration, with the time since which they are earlier.
type Views = HashMap<ViewKey, (Arc<View>, Instant), RandomState>;

/// A snapshot of the tree.
pub struct Tree {
    /// Unique number.
    number: u64,
    pub config: Arc<Config>,
    pub branches: Vec<Branch>,
    /// Place of each mount in `branches`.
    places: HashMap<Segment, usize, RandomState>,
    views: RwLock<HashMap<ViewKey, Arc<View>, RandomState>>,
    before: Views,
    standings: Standings,
}

/// A mount in a snapshot. Every call carries one, so clones share everything.
#[derive(Debug, Clone)]
pub struct Branch(Arc<BranchData>);

/// Data of a mount at the time of the snapshot.
#[derive(Debug, Clone)]
pub struct BranchData {
    pub mount: Arc<Mount>,
    pub catalog: Arc<Catalog>,
    /// Server's description of itself; `None` before its first answer.
    pub negotiated: Option<Arc<Negotiated>>,
    /// The server claims to have resources.
    pub has_resources: bool,
    /// Role of the server.
    pub role: Role,
    /// The server was there and is away.
    pub is_lost: bool,
    /// Counts changes of what is known of the tools.
    pub edition: u64,
}

impl Branch {
    /// Reads the mount as it is now; `before` spares reading the same description again.
    fn of_mount(mount: &Arc<Mount>, before: Option<&Self>) -> Self {
        let negotiated = mount.negotiated();
        let (catalog, is_lost) = (mount.catalog.load_full(), mount.state.load().phase == Phase::Degraded);
        let edition = mount.edition.load(Ordering::Relaxed);
        let is_known = |before: &&Self| match (&before.negotiated, &negotiated) {
            (Some(then), Some(now)) => Arc::ptr_eq(then, now),
            (None, _) | (_, None) => false,
        };
        if let Some(before) = before.filter(is_known) {
            if Arc::ptr_eq(&before.mount, mount)
                && Arc::ptr_eq(&before.catalog, &catalog)
                && (before.is_lost, before.edition) == (is_lost, edition)
            {
                return before.clone();
            }
            let before = BranchData::clone(before);
            return Self(Arc::new(BranchData { mount: Arc::clone(mount), catalog, is_lost, edition, ..before }));
        }
        let has_resources = negotiated.as_ref().is_some_and(|n| era::declares(&n.capabilities, "resources"));
        // Nothing can pass before the server has answered.
        let role = if negotiated.is_some() { **mount.role.load() } else { Role::Server };
        Self(Arc::new(BranchData { mount: Arc::clone(mount), catalog, negotiated, has_resources, role, is_lost, edition }))
    }

    /// Checks that calls and names pass as through a gate.
    pub fn is_gate(&self) -> bool {
        self.role.is_gate()
    }

    /// Checks for a server that routes calls by segments: a gate, or whoever registered as an aggregator. The latter counts as a server in
    /// all else.
    pub fn routes(&self) -> bool {
        self.is_gate() || self.mount.registration.as_ref().is_some_and(|registration| registration.is_aggregator)
    }

    /// Checks for a gate of this id behind the mount, by its own claim.
    pub fn has_gate(&self, id: &str) -> bool {
        let own = || self.negotiated.as_ref().is_some_and(|said| mcpax::peer(&said.capabilities) == Peer::Gate(id.to_owned()));
        self.is_gate() && (self.catalog.subtree.iter().any(|below| below == id) || own())
    }
}

impl Deref for Branch {
    type Target = BranchData;

    fn deref(&self) -> &BranchData {
        &self.0
    }
}

/// A tree, and a caller's view of it.
#[derive(Clone)]
pub struct Sight {
    pub tree: Arc<Tree>,
    pub view: Arc<View>,
}

impl Sight {
    /// Finds the view of `caller`.
    pub fn of_caller(tree: Arc<Tree>, caller: &Caller) -> Self {
        Self { view: tree.shown(caller), tree }
    }
}

impl Tree {
    /// Makes a tree without branches.
    pub fn new(config: Arc<Config>) -> Self {
        Self::from_branches(config, Vec::new(), Views::default())
    }

    /// Makes the next tree from the mounts as they are now.
    pub fn then(&self, config: Arc<Config>, mounts: &[Arc<Mount>]) -> Self {
        let branches = mounts.iter().map(|mount| Branch::of_mount(mount, self.branch(&mount.config.name))).collect();
        let mut before = Views::default();
        if Arc::ptr_eq(&config, &self.config) {
            let (views, now) = (self.views.read().unwrap_or_else(PoisonError::into_inner), Instant::now());
            let late = self.before.iter().filter(|(key, (_, since))| !views.contains_key(key) && since.elapsed() < KEPT_FOR);
            before.extend(late.map(|(key, kept)| (key.clone(), kept.clone())));
            before.extend(views.iter().map(|(key, view)| (key.clone(), (Arc::clone(view), now))));
        }
        Self::from_branches(config, branches, before)
    }

    fn from_branches(config: Arc<Config>, branches: Vec<Branch>, before: Views) -> Self {
        let places = branches.iter().enumerate().map(|(place, b)| (b.mount.config.name.clone(), place)).collect();
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            config,
            branches,
            places,
            views: RwLock::default(),
            before,
            standings: Standings::default(),
        }
    }

    /// Unique number of this snapshot.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// View of `key`, made on first use; empty if its profile is missing.
    pub fn view(&self, key: &ViewKey) -> Arc<View> {
        if let Some(view) = self.views.read().unwrap_or_else(PoisonError::into_inner).get(key) {
            return Arc::clone(view);
        }
        let view = Arc::new(View::build(self, key, self.before.get(key).map(|(view, _)| &**view)));
        let mut views = self.views.write().unwrap_or_else(PoisonError::into_inner);
        if views.len() >= KEPT_VIEWS {
            views.clear();
        }
        views.insert(key.clone(), Arc::clone(&view));
        view
    }

    /// View of `caller`.
    pub fn shown(&self, caller: &Caller) -> Arc<View> {
        caller.shown.or(self.number, || self.view(&caller.scope))
    }

    /// Standing of `caller` under the rules in force.
    pub fn standing(&self, caller: &Caller) -> Arc<Standing> {
        caller.standing.or(self.number, || self.standings.of_subject(self, &caller.subject))
    }

    /// Branches within `scope`, with their places.
    pub fn within<'a>(&'a self, scope: &'a ViewKey) -> impl Iterator<Item = (usize, &'a Branch)> {
        let covers = |b: &Branch| scope.mount.as_ref().is_none_or(|s| *s == b.mount.config.name);
        let is_round = |b: &Branch| scope.is_seated && b.mount.opens.has_parts();
        self.branches.iter().enumerate().filter(move |(_, b)| covers(b) && !is_round(b))
    }

    /// Finds the branch of a mount.
    pub fn branch(&self, name: &Segment) -> Option<&Branch> {
        self.branches.get(*self.places.get(name)?)
    }

    /// Ids of all gates below this one.
    pub fn gates_below(&self) -> BTreeSet<&str> {
        self.branches.iter().flat_map(|b| &b.catalog.subtree).map(String::as_str).collect()
    }

    /// Checks for a missing profile, under which nothing is shown.
    pub fn lacks_profile(&self, key: &ViewKey) -> bool {
        !key.profile.is_empty() && self.profile(&key.profile).is_none()
    }

    /// Finds a profile by name.
    pub fn profile(&self, name: &str) -> Option<&Arc<Profile>> {
        self.config.profiles.iter().find(|p| &*p.name == name)
    }
}

#[cfg(test)]
mod tests {
    use mcp_proto::projection::Style;

    use super::*;

    #[test]
    fn no_more_than_4096_views_are_kept() {
        let tree = Tree::new(Arc::new(Config::default()));
        for number in 0..5000 {
            let profile = number.to_string().into();
            tree.view(&ViewKey { mount: None, profile, style: Style::Qualified, annotated: false, speaks_mesh: false, is_seated: false });
            assert!(tree.views.read().unwrap().len() <= 4096);
        }
    }
}
