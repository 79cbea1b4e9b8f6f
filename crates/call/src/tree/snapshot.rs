//! The tree as it is at one moment: every mount with what it offers, and the views made from it. Never changed, only replaced.

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

/// More views than this are made anew each time; profiles times endpoints stay far below it.
const KEPT_VIEWS: usize = 4096;

/// How long a view that nobody asks for is kept for the one that comes after it.
const KEPT_FOR: Duration = Duration::from_secs(600);

/// Views of earlier trees of the same configuration, and since when there are later trees.
type Views = HashMap<ViewKey, (Arc<View>, Instant), RandomState>;

/// A snapshot.
pub struct Tree {
    /// No other snapshot has it.
    number: u64,
    pub config: Arc<Config>,
    pub branches: Vec<Branch>,
    /// Where each mount stands in `branches`.
    places: HashMap<Segment, usize, RandomState>,
    views: RwLock<HashMap<ViewKey, Arc<View>, RandomState>>,
    before: Views,
    standings: Standings,
}

/// One mount in a snapshot. Every call takes one with it, so clones share everything.
#[derive(Debug, Clone)]
pub struct Branch(Arc<Seen>);

/// A mount as it was seen.
#[derive(Debug, Clone)]
pub struct Seen {
    pub mount: Arc<Mount>,
    pub catalog: Arc<Catalog>,
    /// What the server said about itself; `None` before it first answered.
    pub negotiated: Option<Arc<Negotiated>>,
    /// Whether it says that it has resources.
    pub has_resources: bool,
    /// The part that the server plays.
    pub role: Role,
    /// Whether it was there and is not at present.
    pub is_lost: bool,
    /// How often what is known of its tools has changed.
    pub edition: u64,
}

impl Branch {
    /// The mount as it is now. `before`: as it was, so that what it said about itself is read once.
    fn of(mount: &Arc<Mount>, before: Option<&Self>) -> Self {
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
            let before = Seen::clone(before);
            return Self(Arc::new(Seen { mount: Arc::clone(mount), catalog, is_lost, edition, ..before }));
        }
        let has_resources = negotiated.as_ref().is_some_and(|n| era::declares(&n.capabilities, "resources"));
        // Before the server has answered there is nothing that could go through it.
        let role = if negotiated.is_some() { **mount.role.load() } else { Role::Server };
        Self(Arc::new(Seen { mount: Arc::clone(mount), catalog, negotiated, has_resources, role, is_lost, edition }))
    }

    /// Checks whether calls and names go through it as through a gate.
    pub fn is_gate(&self) -> bool {
        self.role.is_gate()
    }

    /// Checks whether a gate of this id stands behind it, as it says.
    pub fn has_gate(&self, id: &str) -> bool {
        let own = || self.negotiated.as_ref().is_some_and(|said| mcpax::peer(&said.capabilities) == Peer::Gate(id.to_owned()));
        self.is_gate() && (self.catalog.subtree.iter().any(|below| below == id) || own())
    }
}

impl Deref for Branch {
    type Target = Seen;

    fn deref(&self) -> &Seen {
        &self.0
    }
}

/// A tree, and what one caller is shown of it.
#[derive(Clone)]
pub struct Sight {
    pub tree: Arc<Tree>,
    pub view: Arc<View>,
}

impl Sight {
    /// What `caller` is shown of `tree`.
    pub fn of(tree: Arc<Tree>, caller: &Caller) -> Self {
        Self { view: tree.shown(caller), tree }
    }
}

impl Tree {
    /// A tree without branches.
    pub fn new(config: Arc<Config>) -> Self {
        Self::of(config, Vec::new(), Views::default())
    }

    /// The tree that comes after this one: of these mounts, as they are now.
    pub fn then(&self, config: Arc<Config>, mounts: &[Arc<Mount>]) -> Self {
        let branches = mounts.iter().map(|mount| Branch::of(mount, self.branch(&mount.config.name))).collect();
        let mut before = Views::default();
        if Arc::ptr_eq(&config, &self.config) {
            let (views, now) = (self.views.read().unwrap_or_else(PoisonError::into_inner), Instant::now());
            let late = self.before.iter().filter(|(key, (_, since))| !views.contains_key(key) && since.elapsed() < KEPT_FOR);
            before.extend(late.map(|(key, kept)| (key.clone(), kept.clone())));
            before.extend(views.iter().map(|(key, view)| (key.clone(), (Arc::clone(view), now))));
        }
        Self::of(config, branches, before)
    }

    fn of(config: Arc<Config>, branches: Vec<Branch>, before: Views) -> Self {
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

    /// The number of this snapshot, which no other has.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// What `key` shows; made at its first use. Nothing, where its profile is not there.
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

    /// What `caller` is shown.
    pub fn shown(&self, caller: &Caller) -> Arc<View> {
        caller.shown.or(self.number, || self.view(&caller.scope))
    }

    /// What `caller` may do here, by the rules that are in force.
    pub fn standing(&self, caller: &Caller) -> Arc<Standing> {
        caller.standing.or(self.number, || self.standings.of(self, &caller.subject))
    }

    /// The branches that `scope` covers, with their places.
    pub fn within<'a>(&'a self, scope: &'a ViewKey) -> impl Iterator<Item = (usize, &'a Branch)> {
        let covers = |b: &Branch| scope.mount.as_ref().is_none_or(|s| *s == b.mount.config.name);
        let is_round = |b: &Branch| scope.is_seated && b.mount.opens.has_parts();
        self.branches.iter().enumerate().filter(move |(_, b)| covers(b) && !is_round(b))
    }

    /// The branch of a mount.
    pub fn branch(&self, name: &Segment) -> Option<&Branch> {
        self.branches.get(*self.places.get(name)?)
    }

    /// The ids of all gates below this one.
    pub fn gates_below(&self) -> BTreeSet<&str> {
        self.branches.iter().flat_map(|b| &b.catalog.subtree).map(String::as_str).collect()
    }

    /// Whether `key` names a profile that is not there: what it shows is not known then.
    pub fn lacks_profile(&self, key: &ViewKey) -> bool {
        !key.profile.is_empty() && self.profile(&key.profile).is_none()
    }

    /// The profile of that name.
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
            tree.view(&ViewKey { mount: None, profile, style: Style::Qualified, annotated: false, is_seated: false });
            assert!(tree.views.read().unwrap().len() <= 4096);
        }
    }
}
