//! Differences of rules, groups and budgets. Judges no rule.

use crate::diff::{self, Change, differing};
use crate::resolved::{Budget, Config, Group};

/// Lists the differences of the section.
pub(super) fn changes(old: &Config, new: &Config) -> Vec<Change> {
    let mut changes: Vec<Change> = diff::value("policy", old.policy != new.policy).into_iter().collect();
    changes.extend(diff::named("group", groups(old), groups(new), group_fields));
    changes.extend(diff::named("budget", budgets(old), budgets(new), budget_fields));
    changes
}

fn groups(config: &Config) -> impl Iterator<Item = (&str, &Group)> {
    config.groups.iter().map(|group| (&*group.name, group))
}

fn budgets(config: &Config) -> impl Iterator<Item = (&str, &Budget)> {
    config.budgets.iter().map(|budget| (&*budget.name, budget))
}

fn group_fields(old: &Group, new: &Group) -> Vec<&'static str> {
    differing([("members", old.members != new.members)])
}

fn budget_fields(old: &Budget, new: &Budget) -> Vec<&'static str> {
    let Budget { name: _, principals, per_session, limits, idle } = old;
    differing([
        ("principals", *principals != new.principals),
        ("per", *per_session != new.per_session),
        ("max_calls_per_minute", limits.calls_per_minute != new.limits.calls_per_minute),
        ("max_mutable_calls_per_session", limits.mutable_calls_per_session != new.limits.mutable_calls_per_session),
        ("max_cost_units_per_session", limits.cost_units_per_session != new.limits.cost_units_per_session),
        ("idle", *idle != new.idle),
    ])
}
