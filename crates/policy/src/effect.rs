//! Consequences of a decision for a call. The decision's maker and cause are not known here.

use std::fmt;

/// The fate of a call, from the least strict to the most.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Effect {
    #[default]
    Allow,
    /// The call goes on after somebody's agreement.
    Gate,
    /// The call ends.
    Deny,
}

impl Effect {
    /// The stricter of two. Whatever joins in can only make a decision stricter (AX-47).
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        self.max(other)
    }

    /// The word in records and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Gate => "gate",
            Self::Deny => "deny",
        }
    }

    /// The meaning of a word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Allow, Self::Gate, Self::Deny].into_iter().find(|effect| effect.as_str() == word)
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stricter_of_two_effects_holds() {
        use Effect::{Allow, Deny, Gate};
        for (a, b, joined) in [(Allow, Allow, Allow), (Allow, Gate, Gate), (Gate, Deny, Deny), (Deny, Allow, Deny)] {
            assert_eq!((a.join(b), b.join(a)), (joined, joined));
            assert_eq!(Effect::parse(a.as_str()), Some(a));
        }
    }
}
