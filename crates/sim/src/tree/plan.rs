//! The make-up of a world: a random tree, settled by the seed before anything happens. Nothing of later events.

use std::time::Duration;

use crate::random::Random;

/// The interval of all heartbeats.
pub(super) const INTERVAL: Duration = Duration::from_secs(1);

/// A node before its life.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// Others may register here.
    pub(super) aggregates: bool,
    /// Possible parents, the preferred first.
    pub(super) parents: Vec<usize>,
    /// Number of nodes up to the root along preferred parents.
    pub(super) depth: usize,
}

/// Draws a random tree with root 0, and tells if some node prefers a parent below itself.
pub(super) fn draw(random: &mut Random) -> (Vec<Plan>, bool) {
    let (count, deepest) = match random.below(10) {
        0..6 => (3 + random.below(7), 4),
        6..8 => (8 + random.below(8), 10),
        // Many children of few parents: storms.
        _ => (20 + random.below(10), 2),
    };
    let mut plans = vec![Plan { aggregates: true, parents: Vec::new(), depth: 0 }];
    for _ in 1..count {
        let open: Vec<usize> = (0..plans.len()).filter(|at| plans[*at].aggregates && plans[*at].depth < deepest).collect();
        // The last ones are preferred, so that trees grow deep.
        let near = if deepest == 10 { open.len().saturating_sub(2) } else { 0 };
        let preferred = open[near + random.below(open.len() - near)];
        let mut parents = vec![preferred];
        if random.percent(40) {
            parents.extend(random.pick(&open).filter(|backup| *backup != preferred));
        }
        let aggregates = random.percent(if deepest == 2 { 15 } else { 60 });
        plans.push(Plan { aggregates, parents, depth: plans[preferred].depth + 1 });
    }
    if random.percent(15) {
        let aggregators: Vec<usize> = (0..count).filter(|at| plans[*at].aggregates).collect();
        let (Some(one), Some(other)) = (random.pick(&aggregators), random.pick(&aggregators)) else { return (plans, false) };
        if one < other && !plans[one].parents.contains(&other) {
            plans[one].parents.push(other);
            return (plans, true);
        }
    }
    (plans, false)
}

/// Makes some aggregators prefer others, in any direction; tells if there were any.
pub(super) fn entangle(random: &mut Random, plans: &mut [Plan]) -> bool {
    let aggregators: Vec<usize> = (0..plans.len()).filter(|at| plans[*at].aggregates).collect();
    for _ in 0..1 + random.below(3) {
        let (Some(one), Some(other)) = (random.pick(&aggregators), random.pick(&aggregators)) else { return false };
        if one != other {
            plans[one].parents.retain(|parent| *parent != other);
            plans[one].parents.insert(0, other);
        }
    }
    aggregators.len() > 1
}
