//! Owners of conversations. All callers of a mount share one credential at the agent, so the agent can't tell them apart; the gate can.
//! Does not look at messages.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use banyan_model::Principal;

/// Most ids kept for a principal. The oldest is forgotten for a new one.
const MOST_IDS: usize = 1_000;
/// Most principals. Whoever used no conversation for the longest time is forgotten for a new one.
const MOST_PRINCIPALS: usize = 256;
/// Longest id kept, in bytes.
const LONGEST_ID: usize = 512;

/// Ids of tasks and contexts, by the principal whose calls they are of.
#[derive(Debug, Default)]
pub struct ConversationOwners(Mutex<OwnedIds>);

#[derive(Debug, Default)]
struct OwnedIds {
    ids: HashMap<Principal, OwnIds>,
    /// Counts the uses.
    clock: u64,
}

#[derive(Debug, Default)]
struct OwnIds {
    ids: VecDeque<String>,
    used: u64,
}

impl ConversationOwners {
    /// Keeps an id from an agent's answer to `principal`.
    pub fn keep(&self, principal: &Principal, id: &str) {
        if id.len() > LONGEST_ID {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clock += 1;
        let now = kept.clock;
        if !kept.ids.contains_key(principal) && kept.ids.len() >= MOST_PRINCIPALS {
            let oldest = kept.ids.iter().min_by_key(|(_, own)| own.used).map(|(principal, _)| principal.clone());
            drop(oldest.and_then(|oldest| kept.ids.remove(&oldest)));
        }
        let own = kept.ids.entry(principal.clone()).or_default();
        own.used = now;
        own.ids.retain(|known| known != id);
        own.ids.push_back(id.to_owned());
        if own.ids.len() > MOST_IDS {
            own.ids.pop_front();
        }
    }

    /// Checks for an id from an answer to `principal`.
    pub fn owns(&self, principal: &Principal, id: &str) -> bool {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.ids.get(principal).is_some_and(|own| own.ids.iter().any(|known| known == id))
    }
}

#[cfg(test)]
mod tests {
    use banyan_model::PrincipalKind;

    use super::*;

    fn named(name: &str) -> Principal {
        Principal::new(PrincipalKind::Token, name)
    }

    #[test]
    fn an_id_belongs_to_the_principal_of_its_call() {
        let (owners, alice, bob) = (ConversationOwners::default(), named("alice"), named("bob"));
        owners.keep(&alice, "t");
        let certified = Principal::new(PrincipalKind::Certificate, "alice");
        assert!(owners.owns(&alice, "t") && !owners.owns(&bob, "t") && !owners.owns(&certified, "t") && !owners.owns(&alice, "u"));
    }

    #[test]
    fn ids_and_principals_are_bounded() {
        let owners = ConversationOwners::default();
        let principal = |number: usize| named(&format!("p{number}"));
        for number in 0..=MOST_IDS {
            owners.keep(&principal(0), &format!("t{number}"));
        }
        assert!(!owners.owns(&principal(0), "t0") && owners.owns(&principal(0), "t1"));
        for number in 1..=MOST_PRINCIPALS {
            owners.keep(&principal(number), "t");
        }
        assert!(!owners.owns(&principal(0), "t1") && owners.owns(&principal(1), "t"));
        owners.keep(&principal(1), &"x".repeat(LONGEST_ID + 1));
        assert!(!owners.owns(&principal(1), &"x".repeat(LONGEST_ID + 1)));
    }
}
