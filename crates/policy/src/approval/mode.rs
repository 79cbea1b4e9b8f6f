//! Calls that need agreement (MCP-AX 11.2, 11.3; AX-47). Who agrees is not decided here.

use serde::{Deserialize, Serialize};

/// Calls for which a gate asks by itself, from the least strict to the most. All modes but the last believe a tool that calls itself
/// read-only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    #[default]
    Off,
    /// Lasting changes.
    Irreversible,
    /// All changes.
    Mutable,
    /// All but tools listed as read-only in the configuration, whatever a tool says of itself.
    Unlisted,
}

/// The risk of a tool, in its own words and in the configuration's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Risk {
    /// Changes something.
    pub mutable: bool,
    /// Changes can be undone.
    pub reversible: bool,
    /// Listed as read-only in the configuration.
    pub listed: bool,
}

/// Causes for asking somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A gate below asks.
    Below,
    /// The mode of this gate.
    Mode,
    /// A rule of the policy.
    Policy,
    /// Proposed in a room.
    Proposal,
}

impl Cause {
    /// The word in records and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Below => "below",
            Self::Mode => "mode",
            Self::Policy => "policy",
            Self::Proposal => "proposal",
        }
    }
}

impl Mode {
    /// Tells if a call of such a tool needs agreement.
    pub fn asks(self, risk: Risk) -> bool {
        match self {
            Self::Off => false,
            Self::Irreversible => risk.mutable && !risk.reversible,
            Self::Mutable => risk.mutable,
            Self::Unlisted => risk.mutable || !risk.listed,
        }
    }

    /// Lists the causes for asking at a gate. Causes only add up: none removes another (AX-47).
    pub fn causes(self, risk: Risk, by_policy: bool, below: bool) -> Vec<Cause> {
        let all = [(below, Cause::Below), (self.asks(risk), Cause::Mode), (by_policy, Cause::Policy)];
        all.into_iter().filter_map(|(holds, cause)| holds.then_some(cause)).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ax_45_what_reads_is_never_asked_for_and_what_lasts_is() {
        let risk = |mutable, reversible| Risk { mutable, reversible, listed: false };
        for mode in [Mode::Off, Mode::Irreversible, Mode::Mutable] {
            assert!(!mode.asks(risk(false, false)) && !mode.asks(risk(false, true)));
        }
        let asked = |mode: Mode| [true, false].map(|reversible| mode.asks(risk(true, reversible)));
        assert_eq!([Mode::Off, Mode::Irreversible, Mode::Mutable].map(asked), [[false; 2], [false, true], [true; 2]]);
    }

    #[test]
    fn m12_where_only_the_configuration_is_believed_nothing_that_a_tool_says_of_itself_lets_it_through() {
        let asked = |mutable, listed| Mode::Unlisted.asks(Risk { mutable, reversible: true, listed });
        assert_eq!([asked(false, false), asked(true, false), asked(true, true), asked(false, true)], [true, true, true, false]);
        assert!(Mode::Unlisted > Mode::Mutable);
    }

    /// A tree of gates: what each of them wants by itself, and the gates below.
    #[derive(Debug, Clone)]
    struct Node {
        mode: Mode,
        by_policy: bool,
        below: Vec<Node>,
    }

    fn mode() -> impl Strategy<Value = Mode> {
        prop_oneof![Just(Mode::Off), Just(Mode::Irreversible), Just(Mode::Mutable), Just(Mode::Unlisted)]
    }

    fn tree() -> impl Strategy<Value = Node> {
        let leaf = (mode(), any::<bool>()).prop_map(|(mode, by_policy)| Node { mode, by_policy, below: Vec::new() });
        leaf.prop_recursive(6, 40, 3, |inner| {
            (mode(), any::<bool>(), prop::collection::vec(inner, 0..3)).prop_map(|(mode, by_policy, below)| Node { mode, by_policy, below })
        })
    }

    /// On the way up: what each gate on the way to the leaf `at` lists, the lowest first. On the way down: at which gates a call stops.
    fn walk(node: &Node, risk: Risk, at: usize) -> (Vec<bool>, Vec<bool>) {
        let next = node.below.get(at % node.below.len().max(1));
        let (mut listed, mut held) = next.map(|next| walk(next, risk, at / 3)).unwrap_or_default();
        let below = listed.last().copied().unwrap_or_default();
        let causes = node.mode.causes(risk, node.by_policy, below);
        listed.push(!causes.is_empty());
        // A call comes from above. Whatever was agreed to there, each gate looks for its own reasons again.
        held.push(causes.iter().any(|cause| *cause != Cause::Below));
        (listed, held)
    }

    /// Tells for each gate on the way, the lowest first, if the gate itself asks.
    fn own(node: &Node, risk: Risk, at: usize) -> Vec<bool> {
        let next = node.below.get(at % node.below.len().max(1));
        let mut all = next.map(|next| own(next, risk, at / 3)).unwrap_or_default();
        all.push(node.mode.asks(risk) || node.by_policy);
        all
    }

    proptest! {
        #[test]
        fn ax_47_what_is_gated_below_is_gated_by_every_hop_above_and_nobody_clears_it_for_another(
            tree in tree(), mutable: bool, reversible: bool, listed: bool, at in 0usize..729,
        ) {
            let risk = Risk { mutable, reversible, listed };
            let (listed, held) = walk(&tree, risk, at);
            prop_assert!(listed.windows(2).all(|pair| pair[0] <= pair[1]), "somebody took a gate away: {listed:?}");
            let first = held.iter().position(|held| *held);
            prop_assert_eq!(listed.iter().position(|listed| *listed), first, "what is listed and what is held begin at one hop");
            prop_assert_eq!(held, own(&tree, risk, at), "a gate below takes nothing of what a gate above asks for");
        }
    }
}
