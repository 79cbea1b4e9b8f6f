//! What the configuration says of a tool. It may make a tool look riskier, and less risky only where it says that it trusts
//! its own word more than the server's (AX-33). Which tools it speaks of is not known here.

use super::{Annotation, AuthScope, Availability, Consistency, CostClass, LatencyClass, additions, key};

/// Values wanted for a tool; `None` leaves it as it is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wishes {
    /// Whether these hold even where they make a tool look less risky.
    pub trust: bool,
    /// How long a call may take.
    pub latency_class: Option<LatencyClass>,
    /// What two calls see of each other.
    pub consistency: Option<Consistency>,
    /// Whether it changes anything.
    pub mutable: Option<bool>,
    /// Whether what it changes can be undone.
    pub reversible: Option<bool>,
    /// Whether calling it twice is calling it once.
    pub idempotent: Option<bool>,
    /// What a caller must be allowed to do.
    pub auth_scope: Option<AuthScope>,
    /// What it costs.
    pub cost_class: Option<CostClass>,
    /// Whether it is there.
    pub availability: Option<Availability>,
}

impl Wishes {
    /// Applies them. What they change is written anew when the tool is listed, whatever its definition says.
    pub fn apply(&self, a: &mut Annotation) {
        let before = a.clone();
        let trust = self.trust;
        wish(&mut a.latency_class, self.latency_class, trust);
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

/// Takes what is wanted if it is riskier than what is, or trusted.
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
