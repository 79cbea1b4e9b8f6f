//! Recent requests and proposals of a room, as far as MEW peers saw them: in MCPx an answer, a rejection and a withdrawal bear the kind of
//! the message referred to, in MEW they do not. No participant can push out the requests of another.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

/// Bounds for one participant: messages, and bytes of their ids and names.
const OF_ONE: usize = 256;
const BYTES_OF_ONE: usize = 64 << 10;
/// Participants remembered; the longest silent is forgotten first.
const PARTICIPANTS: usize = 256;

/// Memory of requests and proposals.
#[derive(Debug, Default)]
pub(super) struct Memory {
    heard: u64,
    of: BTreeMap<String, SenderMemory>,
}

/// Requests of one participant.
#[derive(Debug, Default)]
struct SenderMemory {
    last: u64,
    bytes: usize,
    asked: VecDeque<RememberedMessage>,
}

#[derive(Debug)]
struct RememberedMessage {
    id: Box<str>,
    /// METHOD, or METHOD:CONTEXT.
    about: Box<str>,
    is_proposal: bool,
}

impl RememberedMessage {
    fn size(&self) -> usize {
        self.id.len() + self.about.len()
    }
}

impl Memory {
    /// Keeps a request or a proposal.
    pub(super) fn keep(&mut self, from: &str, id: &str, about: &str, is_proposal: bool) {
        self.heard += 1;
        if !self.of.contains_key(from) && self.of.len() >= PARTICIPANTS {
            let silent = self.of.iter().min_by_key(|(_, of)| of.last).map(|(from, _)| from.clone());
            silent.and_then(|from| self.of.remove(&from));
        }
        let of = self.of.entry(from.to_owned()).or_default();
        of.last = self.heard;
        let asked = RememberedMessage { id: id.into(), about: about.into(), is_proposal };
        of.bytes += asked.size();
        of.asked.push_back(asked);
        while of.asked.len() > OF_ONE || of.bytes > BYTES_OF_ONE {
            let Some(oldest) = of.asked.pop_front() else { break };
            of.bytes -= oldest.size();
        }
    }

    /// Finds the first of `ids` in memory, with its subject. SenderMemory two messages with one id, those from `to` come first.
    pub(super) fn about<'a>(&self, ids: &'a [Cow<'_, str>], to: &[Cow<'_, str>], is_proposal: bool) -> Option<(&'a str, &str)> {
        let addressed = to.iter().filter_map(|to| self.of.get(&**to));
        let all = addressed.chain(self.of.values());
        all.flat_map(|of| of.asked.iter().rev()).filter(|asked| asked.is_proposal == is_proposal).find_map(|asked| {
            let id = ids.iter().find(|id| ***id == *asked.id)?;
            Some((&**id, &*asked.about))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about<'a>(memory: &'a Memory, id: &str, to: &str, is_proposal: bool) -> Option<&'a str> {
        memory.about(&[Cow::Borrowed(id)], &[Cow::Borrowed(to)], is_proposal).map(|(_, about)| about)
    }

    #[test]
    fn what_one_asks_pushes_out_nothing_of_another() {
        let mut memory = Memory::default();
        memory.keep("ann", "1", "tools/call:clean", false);
        for n in 0..=OF_ONE {
            memory.keep("bob", &n.to_string(), "tools/list", false);
        }
        memory.keep("bob", "long", &"x".repeat(BYTES_OF_ONE + 1), false);
        assert_eq!(about(&memory, "1", "ann", false), Some("tools/call:clean"));
        assert_eq!(about(&memory, "long", "bob", false), None, "no more than its share");
        assert_eq!(memory.of["bob"].bytes, 0);
        for n in 0..PARTICIPANTS {
            memory.keep(&format!("crowd-{n}"), "1", "tools/list", false);
        }
        assert_eq!(
            (memory.of.len(), about(&memory, "1", "ann", false)),
            (PARTICIPANTS, Some("tools/list")),
            "the silent are forgotten first"
        );
    }

    #[test]
    fn an_id_chosen_twice_means_the_addressees_message() {
        let mut memory = Memory::default();
        memory.keep("ann", "1", "tools/call:clean", false);
        memory.keep("bob", "1", "tools/list", false);
        memory.keep("bob", "1", "prompts/get:x", true);
        assert_eq!(about(&memory, "1", "bob", false), Some("tools/list"));
        assert_eq!(about(&memory, "1", "ann", false), Some("tools/call:clean"));
        assert_eq!(about(&memory, "1", "ann", true), Some("prompts/get:x"));
        assert_eq!(about(&memory, "2", "ann", false), None);
    }
}
