//! The operator's word on a tool. May make a tool look riskier, less risky only with `trust` (AX-33), and never faster than the tool says
//! itself (AX-34). Does not choose the tools.

use super::{Annotation, AuthScope, Availability, Consistency, CostClass, LatencyClass, additions, key};

/// Wanted values of a tool's annotation; `None`: no wish.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wishes {
    /// Applies values of less risk too.
    pub trust: bool,
    pub latency_class: Option<LatencyClass>,
    pub consistency: Option<Consistency>,
    pub mutable: Option<bool>,
    pub reversible: Option<bool>,
    pub idempotent: Option<bool>,
    pub auth_scope: Option<AuthScope>,
    pub cost_class: Option<CostClass>,
    pub availability: Option<Availability>,
}

impl Wishes {
    /// Applies the wishes. Changed members are written anew when the tool is listed, whatever the definition holds.
    pub fn apply(&self, a: &mut Annotation) {
        let before = a.clone();
        let trust = self.trust;
        // A class named by the tool is never lowered (MCP-AX 9.2), and where the tool names none, the operator's word is the only one.
        wish(&mut a.latency_class, self.latency_class, !a.names_class);
        wish(&mut a.consistency, self.consistency, trust);
        wish(&mut a.cost_class, self.cost_class, trust);
        wish(&mut a.availability, self.availability, trust);
        wish(&mut a.auth_scope, self.auth_scope, trust);
        wish(&mut a.mutable, self.mutable, trust);
        let mut lasting = !a.reversible;
        wish(&mut lasting, self.reversible.map(|r| !r), trust);
        a.reversible = !lasting;
        let mut counting = !a.idempotent;
        wish(&mut counting, self.idempotent.map(|i| !i), trust);
        a.idempotent = !counting;
        // A flag set below is kept by everyone above (AX-47).
        if before.is_irreversible_mutable() && before.said.0 & additions::SAFETY != 0 {
            (a.mutable, a.reversible) = (true, false);
        }
        if a.mutable && !before.mutable {
            a.auth_scope = a.auth_scope.max(AuthScope::Write);
        }
        unsay(a, &before);
    }
}

/// Applies a wish for a riskier value, or any trusted wish.
fn wish<T: Ord + Copy>(value: &mut T, wanted: Option<T>, trust: bool) {
    if let Some(wanted) = wanted.filter(|wanted| trust || *wanted > *value) {
        *value = wanted;
    }
}

fn unsay(a: &mut Annotation, before: &Annotation) {
    let changed = [
        (key::LATENCY_CLASS, a.latency_class != before.latency_class),
        (key::CONSISTENCY, a.consistency != before.consistency),
        (key::COST_CLASS, a.cost_class != before.cost_class),
        (key::AVAILABILITY, a.availability != before.availability),
        (key::AUTH_SCOPE, a.auth_scope != before.auth_scope),
        (key::MUTABLE, a.mutable != before.mutable),
        (key::REVERSIBLE, a.reversible != before.reversible),
        (key::IDEMPOTENT, a.idempotent != before.idempotent),
        (key::SAFETY, a.is_irreversible_mutable() != before.is_irreversible_mutable()),
    ];
    for (key, _) in changed.iter().filter(|(_, changed)| *changed) {
        a.said.0 &= !additions::of_key(key).unwrap_or_default();
    }
}
