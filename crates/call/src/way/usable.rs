//! Servers of which a caller can use anything, and so is told. Tells nobody, and decides about no call.

use std::sync::Arc;

use policy::decide::Action;

use crate::tree::caller::Caller;
use crate::tree::snapshot::{Branch, Tree};
use crate::tree::standing::{Places, Standing};
use crate::tree::view::View;
use crate::way::authorize::target;
use crate::way::passing::takes_unknown;

/// Finds the servers of which `caller` can use anything; `None` if nothing is hidden from it.
pub async fn usable(tree: &Arc<Tree>, caller: &Caller) -> Option<Arc<Places>> {
    if tree.lacks_profile(&caller.scope) {
        return Some(Arc::default());
    }
    if tree.config.policy.is_none() && caller.scope.profile.is_empty() {
        return None;
    }
    let (standing, key) = (tree.standing(caller), caller.scope.clone());
    if let Some(known) = standing.servers(&key) {
        return Some(known);
    }
    let (tree, view) = (Arc::clone(tree), tree.shown(caller));
    // Judging a hundred thousand tools takes seconds, and other calls go on meanwhile.
    let found = tokio::task::spawn_blocking(move || {
        let found = Arc::new(UsableSearch { standing: &standing, tree: &tree, view: &view, profile: &key.profile }.found());
        standing.keep_servers(&key, &found);
        found
    });
    // A failure shows nothing rather than everything.
    Some(found.await.unwrap_or_default())
}

/// Parameters of the judgement for one caller.
struct UsableSearch<'a> {
    standing: &'a Standing,
    tree: &'a Tree,
    view: &'a View,
    profile: &'a str,
}

impl UsableSearch<'_> {
    fn found(&self) -> Places {
        let mut found = self.view.servers(&|place| self.may_call(place));
        let others = self.view.mounts.iter().filter_map(|place| Some((*place, self.tree.branches.get(*place)?)));
        let others: Vec<usize> =
            others.filter(|(place, _)| !found.contains(place)).filter(|(_, b)| self.uses(b)).map(|(at, _)| at).collect();
        found.extend(others);
        found
    }

    fn may_call(&self, place: (usize, usize)) -> bool {
        let Some(rules) = &self.tree.config.policy else { return true };
        self.standing.tool(rules, self.tree, place, self.profile).is_none_or(|known| !known.is_hopeless())
    }

    /// Checks that the caller can use anything of a server besides tools: its lists, and, under rules, addresses and methods outside of
    /// them.
    fn uses(&self, branch: &Branch) -> bool {
        let catalog = &branch.catalog;
        let mut addresses = catalog.resources.iter().chain(catalog.templates.iter()).map(|entry| &*entry.key);
        let Some(rules) = &self.tree.config.policy else {
            return branch.has_resources || !catalog.prompts.is_empty() || addresses.next().is_some();
        };
        let may = |action, name| !self.standing.foresee(rules, &target(action, branch, name), self.profile).is_hopeless();
        catalog.prompts.iter().any(|offer| may(Action::Prompt, &*offer.entry.key))
            || addresses.any(|address| may(Action::Read, address))
            || (branch.has_resources && may(Action::Read, ""))
            || (takes_unknown(&branch.mount) && may(Action::Send, ""))
    }
}
