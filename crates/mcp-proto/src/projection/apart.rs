//! Mounts that can be named without a look at other mounts: their names begin in ways of their own, whatever the tools are called.
//! A change at such a mount changes no name elsewhere. Does not name anything.

use banyan_model::Segment;

use super::distinct::kept;
use super::style::Style;

/// A group of mounts, none of which can ever want the name of a mount outside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Apart {
    /// The common beginning of their names, shared by no name outside.
    pub head: String,
    /// Their indexes among the given mounts, rising.
    pub members: Vec<usize>,
}

/// Parts `mounts` into groups, by rising heads. Building a [`Projection`](super::Projection) of each gives the names that one of all
/// entries would give, as long as the configuration renames none of them.
pub fn apart(style: Style, mounts: &[&Segment]) -> Vec<Apart> {
    let mut heads: Vec<(String, usize)> = mounts.iter().enumerate().map(|(at, mount)| (head(style, mount), at)).collect();
    heads.sort_unstable();
    let mut groups: Vec<Apart> = Vec::with_capacity(heads.len());
    for (head, at) in heads {
        match groups.last_mut() {
            // What begins with the same text stands together.
            Some(group) if head.starts_with(&group.head) => group.members.push(at),
            _ => groups.push(Apart { head, members: vec![at] }),
        }
    }
    groups.iter_mut().for_each(|group| group.members.sort_unstable());
    groups
}

/// Gives the common beginning of all names of a mount, shortened names included.
fn head(style: Style, mount: &Segment) -> String {
    let mut head = style.prefix(mount);
    head.truncate(kept(style.limit()));
    head
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use banyan_model::Route;
    use proptest::prelude::*;

    use super::super::{Entry, Projection};
    use super::*;

    fn entry(mount: &str, tool: &str) -> Entry {
        let local = Arc::new(Route(vec![Segment::nearest(&tool.to_lowercase())]));
        Entry { mount: Some(Segment::nearest(mount)), original: tool.into(), local, rename: None }
    }

    fn groups(mounts: &[&str]) -> Vec<Vec<usize>> {
        let mounts: Vec<Segment> = mounts.iter().map(|mount| Segment::nearest(mount)).collect();
        let mounts: Vec<&Segment> = mounts.iter().collect();
        apart(Style::Safe, &mounts).into_iter().map(|group| group.members).collect()
    }

    #[test]
    fn mounts_stand_apart_unless_the_name_of_one_may_begin_with_that_of_the_other() {
        assert_eq!(groups(&["b", "a", "ab", "a_b"]), [vec![1], vec![3], vec![2], vec![0]]);
        assert_eq!(groups(&["b__c", "a", "b", "b_", "b__"]), [vec![1], vec![0, 2, 3, 4]]);
        let long = "x".repeat(40);
        assert_eq!(groups(&[&format!("{long}a"), &format!("{long}b"), "x"]), [vec![2], vec![0, 1]]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn groups_that_stand_apart_are_named_as_all_together_would_be(
            tools in proptest::collection::vec(("[ab]_{0,3}[ab]{0,2}|[ab]{20,30}_?[ab]{0,40}", "_{0,2}[aB]{1,2}_{0,2}[aB]?|[aB]{30,80}"), 1..24),
            dotted in any::<bool>(),
        ) {
            let style = if dotted { Style::Dotted } else { Style::Safe };
            let entries: Vec<Entry> = tools.iter().map(|(mount, tool)| entry(mount, tool)).collect();
            let whole = Projection::build(style, entries.clone());
            let mounts: Vec<&Segment> = entries.iter().filter_map(|entry| entry.mount.as_ref()).collect();
            for group in apart(style, &mounts) {
                let own: Vec<Entry> = group.members.iter().map(|at| entries[*at].clone()).collect();
                let part = Projection::build(style, own);
                for (place, at) in group.members.iter().enumerate() {
                    prop_assert_eq!(part.shown(place), whole.shown(*at));
                    prop_assert!(part.shown(place).is_some_and(|shown| shown.starts_with(&group.head)));
                }
            }
        }
    }
}
