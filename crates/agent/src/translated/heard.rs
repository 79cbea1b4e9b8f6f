//! Messages heard within their lives, to run each once. Runs none, and forgets none to make room.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use banyan_model::Principal;
use sha2::{Digest, Sha256};

/// Most messages of a caller within their lives, and of all.
const MOST_OF_CALLER: usize = 8_192;
const MOST: usize = 65_536;

/// Digest of the id of a message.
pub type MessageMark = [u8; 32];

/// Takes the digest of the id of a message.
pub fn mark(id: &str) -> MessageMark {
    Sha256::digest(id).into()
}

/// Messages heard by the gate. Times are in milliseconds since 1970.
pub struct HeardMessages {
    /// Start of the gate, before which nothing is known.
    pub since: u64,
    heard: Mutex<HeardMarks>,
}

#[derive(Default)]
struct HeardMarks {
    marks: HashMap<MessageMark, Principal>,
    /// Ends of the lives.
    ends: BTreeSet<(u64, MessageMark)>,
    counts: HashMap<Principal, usize>,
}

/// Ways of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hearing {
    First,
    /// Heard before, from the same caller.
    Again,
    FromAnother,
    /// No room before earlier messages end.
    Full,
}

impl HeardMessages {
    /// Begins to listen at `since`.
    pub fn new(since: u64) -> Self {
        Self { since, heard: Mutex::default() }
    }

    /// Hears a message whose life ends after `until`.
    pub fn hear(&self, owner: &Principal, mark: MessageMark, until: u64, now: u64) -> Hearing {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.expire(now);
        if let Some(first) = heard.marks.get(&mark) {
            return if first == owner { Hearing::Again } else { Hearing::FromAnother };
        }
        if heard.marks.len() >= MOST || heard.counts.get(owner).is_some_and(|count| *count >= MOST_OF_CALLER) {
            return Hearing::Full;
        }
        heard.marks.insert(mark, owner.clone());
        heard.ends.insert((until, mark));
        *heard.counts.entry(owner.clone()).or_default() += 1;
        Hearing::First
    }

    /// Takes back a message that began nothing.
    pub fn take_back(&self, mark: MessageMark, until: u64) {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        if heard.ends.remove(&(until, mark)) {
            heard.remove(&mark);
        }
    }
}

impl HeardMarks {
    fn expire(&mut self, now: u64) {
        while let Some((_, mark)) = self.ends.first().copied().filter(|(until, _)| *until < now) {
            self.ends.pop_first();
            self.remove(&mark);
        }
    }

    fn remove(&mut self, mark: &MessageMark) {
        let Some(owner) = self.marks.remove(mark) else { return };
        if let Some(count) = self.counts.get_mut(&owner) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use banyan_model::PrincipalKind;

    use super::*;

    fn token(name: &str) -> Principal {
        Principal::new(PrincipalKind::Token, name)
    }

    #[test]
    fn ae_17_a_message_is_known_to_its_end() {
        let (heard, alice, bob) = (HeardMessages::new(0), token("alice"), token("bob"));
        assert_eq!(heard.hear(&alice, mark("m"), 9, 1), Hearing::First);
        assert_eq!((heard.hear(&alice, mark("m"), 9, 9), heard.hear(&bob, mark("m"), 9, 9)), (Hearing::Again, Hearing::FromAnother));
        assert_eq!(heard.hear(&bob, mark("m"), 19, 10), Hearing::First);
        heard.take_back(mark("m"), 19);
        assert_eq!(heard.hear(&alice, mark("m"), 19, 10), Hearing::First);
    }

    #[test]
    fn ae_17_a_full_gate_refuses_and_forgets_nothing() {
        let (heard, alice) = (HeardMessages::new(0), token("alice"));
        for number in 0..MOST_OF_CALLER {
            assert_eq!(heard.hear(&alice, mark(&number.to_string()), 9, 1), Hearing::First);
        }
        assert_eq!(heard.hear(&alice, mark("more"), 9, 1), Hearing::Full);
        assert_eq!((heard.hear(&alice, mark("0"), 9, 1), heard.hear(&token("bob"), mark("b"), 9, 1)), (Hearing::Again, Hearing::First));
        assert_eq!(heard.hear(&alice, mark("more"), 19, 10), Hearing::First);
        let inner = heard.heard.lock().unwrap();
        assert_eq!((inner.marks.len(), inner.ends.len(), inner.counts.len()), (1, 1, 1));
    }
}
