//! Intents of calls that have left but are not written yet, kept to be joined by their outcomes. The intent of a long call is written
//! alone. Does not write to the record.

use std::ops::Range;

use store::Ticket;

/// Intents under way.
#[derive(Default)]
pub(super) struct RunningIntents {
    slots: Vec<Slot>,
    free: Vec<usize>,
    bytes: usize,
    next: u64,
}

struct Slot {
    /// Number of the ticket; `None` for a free slot.
    number: Option<u64>,
    since: u64,
    facts: Vec<u8>,
}

/// Slots kept for calls to come.
const KEPT: usize = 1 << 10;

impl RunningIntents {
    /// Keeps the facts of an intent.
    pub(super) fn put(&mut self, since: u64, facts: &[u8]) -> Ticket {
        let number = self.next;
        self.next += 1;
        self.bytes += facts.len();
        let slot = self.free.pop().unwrap_or(self.slots.len());
        match self.slots.get_mut(slot) {
            Some(free) => {
                (free.number, free.since) = (Some(number), since);
                free.facts.extend_from_slice(facts);
            }
            None => self.slots.push(Slot { number: Some(number), since, facts: facts.to_vec() }),
        }
        Ticket { slot, number }
    }

    /// Takes the facts behind a ticket, unless they were written. [`RunningIntents::done`] returns the buffer after use.
    pub(super) fn take_facts(&mut self, ticket: Ticket) -> Option<Vec<u8>> {
        let slot = self.slots.get_mut(ticket.slot).filter(|slot| slot.number == Some(ticket.number))?;
        slot.number = None;
        self.bytes -= slot.facts.len();
        Some(std::mem::take(&mut slot.facts))
    }

    /// Returns the buffer of facts.
    pub(super) fn done(&mut self, ticket: Ticket, mut facts: Vec<u8>) {
        facts.clear();
        if let Some(slot) = self.slots.get_mut(ticket.slot) {
            slot.facts = facts;
            self.free.push(ticket.slot);
        }
    }

    /// Takes the intents from outside the time `young`, in order of arrival.
    pub(super) fn long(&mut self, young: &Range<u64>, mut give: impl FnMut(&[u8])) {
        // Both sides, since clocks are set back.
        let is_old = |slot: &Slot| slot.number.is_some() && !young.contains(&slot.since);
        let mut old: Vec<_> = self.slots.iter_mut().enumerate().filter(|(_, slot)| is_old(slot)).collect();
        old.sort_unstable_by_key(|(_, slot)| slot.number);
        for (place, slot) in old {
            slot.number = None;
            give(&slot.facts);
            self.bytes -= slot.facts.len();
            slot.facts.clear();
            self.free.push(place);
        }
        if self.is_empty() && self.slots.len() > KEPT {
            // Tickets are told apart by number, so that none finds another's facts.
            (self.slots, self.free) = (Vec::new(), Vec::new());
        }
    }

    /// Number of intents.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Checks for no intents.
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Length of all intents, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_given_once_to_whoever_comes_first() {
        let mut running = RunningIntents::default();
        let [a, b, c] = [(10, "a"), (5, "b"), (20, "c")].map(|(since, facts)| running.put(since, facts.as_bytes()));
        assert_eq!(running.take_facts(b), Some(b"b".to_vec()));
        running.done(b, b"b".to_vec());
        assert_eq!((running.len(), running.bytes(), running.take_facts(b)), (2, 2, None));
        let d = running.put(50, b"d");
        let mut old = Vec::new();
        running.long(&(11..50), |facts| old.push(facts.to_vec()));
        assert_eq!(old, [b"a".to_vec(), b"d".to_vec()]);
        assert!(running.take_facts(a).is_none() && running.take_facts(d).is_none() && running.take_facts(c).is_some());
        running.done(c, Vec::new());
        assert!(running.is_empty() && running.bytes() == 0);
    }

    #[test]
    fn no_old_ticket_finds_a_reused_slot() {
        let mut running = RunningIntents::default();
        let old: Vec<Ticket> = (0..=KEPT).map(|_| running.put(0, b"x")).collect();
        running.long(&(1..2), |_| ());
        assert!(running.slots.is_empty());
        let new = running.put(1, b"new");
        assert!(old.iter().all(|ticket| running.take_facts(*ticket).is_none()));
        assert_eq!(running.take_facts(new), Some(b"new".to_vec()));
    }
}
