//! Resolves `[registry]`. Registers nobody.

use banyan_model::Segment;

use super::file;
use super::hosts::Hosts;
use super::resolved::{Demand, Registry, RelayLimits, SegmentPolicy};
use crate::problem::Flaw;
use crate::reading::FileReading;
use crate::section::mount::tool::AuthScope;
use crate::suggest;

impl FileReading<'_> {
    pub(super) fn registry(&mut self, section: &file::Registry) -> Registry {
        let defaults = Registry::default();
        let relay = (section.notifications_per_second, section.notifications_held);
        let policy = policy((section.proof, section.sticky, section.auth_scope), relay, defaults.policy);
        let mut policies = std::collections::BTreeMap::new();
        for (name, own) in &section.segment {
            match Segment::new(name.get()) {
                Ok(segment) => {
                    let relay = (own.notifications_per_second, own.notifications_held);
                    policies.insert(segment, self::policy((own.proof, own.sticky, own.auth_scope), relay, policy));
                }
                Err(bad) => {
                    let near = suggest::segment(name.get());
                    self.flaws.push(Flaw::new(name.span(), bad.to_string()).help(format!("for example [registry.segment.{near}]")));
                }
            }
        }
        // Of all durations this one may be nothing.
        let grace = self.duration_or_none(section.grace.as_ref());
        let list_ttl = self.duration(section.list_ttl.as_ref());
        Registry {
            principals: section.principals.as_ref().map(|names| self.globs(names)),
            hosts: Hosts::of(self.globs(&section.hosts).iter().map(String::as_str)),
            policy,
            policies,
            grace: grace.unwrap_or(defaults.grace),
            list_ttl: list_ttl.unwrap_or(defaults.list_ttl),
            insecure: section.insecure,
            trust_gates: section.trust_gates,
            tls: section.tls.as_ref().map(|tls| self.client_tls("registry", tls)),
            registrations: section.registrations.unwrap_or(defaults.registrations),
        }
    }
}

/// Bounds on notifications as written: in a second, and waiting.
type RelayForm = (Option<u32>, Option<u32>);

/// Demands as written: of a proof, of lasting ownership, and the most permission.
type PolicyForm = (Option<file::Demand>, Option<file::Demand>, Option<AuthScope>);

fn policy((proof, sticky, scope): PolicyForm, (rate, held): RelayForm, otherwise: SegmentPolicy) -> SegmentPolicy {
    let limits = otherwise.notifications;
    let held = held.and_then(|held| usize::try_from(held).ok());
    SegmentPolicy {
        notifications: RelayLimits { per_second: rate.unwrap_or(limits.per_second), depth: held.unwrap_or(limits.depth), ..limits },
        proof: proof.map_or(otherwise.proof, demand),
        sticky: sticky.map_or(otherwise.sticky, demand),
        most_scope: scope.map_or(otherwise.most_scope, Into::into),
    }
}

fn demand(written: file::Demand) -> Demand {
    match written {
        file::Demand::Always => Demand::Always,
        file::Demand::ForChanges => Demand::ForChanges,
        file::Demand::Never => Demand::Never,
    }
}
