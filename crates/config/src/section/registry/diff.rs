//! Differences in the terms of registration. Registers nobody.

use crate::diff::{self, Change, differing};
use crate::resolved::{Config, Registry};

/// Lists the differences of the section.
pub(super) fn changes(old: &Config, new: &Config) -> Vec<Change> {
    let changed = diff::optional("registry", old.registry.as_ref(), new.registry.as_ref(), registry_fields);
    let note = "insecure, list_ttl and tls hold for registrations from now on";
    changed.map(|change| change.but_for(&["insecure", "list_ttl", "tls"], note)).into_iter().collect()
}

fn registry_fields(old: &Registry, new: &Registry) -> Vec<&'static str> {
    let Registry { principals, hosts, policy, policies, grace, list_ttl, registrations, insecure, trust_gates, tls } = old;
    differing([
        ("principals", *principals != new.principals),
        ("hosts", *hosts != new.hosts),
        ("proof", policy.proof != new.policy.proof),
        ("sticky", policy.sticky != new.policy.sticky),
        ("auth_scope", policy.most_scope != new.policy.most_scope),
        ("notifications_per_second", policy.notifications.per_second != new.policy.notifications.per_second),
        ("notifications_held", policy.notifications.depth != new.policy.notifications.depth),
        ("segment", *policies != new.policies),
        ("grace", *grace != new.grace),
        ("list_ttl", *list_ttl != new.list_ttl),
        ("registrations", *registrations != new.registrations),
        ("insecure", *insecure != new.insecure),
        ("trust_gates", *trust_gates != new.trust_gates),
        ("tls", *tls != new.tls),
    ])
}
