//! The last messages of a room, for those who come later and ask for them. Bounded twice: in number, and in bytes all together. It does not
//! know who may see what: it is asked for each.

use std::collections::VecDeque;
use std::time::SystemTime;

use bytes::Bytes;

use super::also::Also;
use crate::name::ParticipantId;

/// A message that was passed on.
#[derive(Debug)]
pub(super) struct Past {
    pub(super) at: SystemTime,
    pub(super) bytes: Bytes,
    pub(super) from: ParticipantId,
    /// Empty: everybody.
    pub(super) to: Box<[Box<str>]>,
    pub(super) needed: Also,
}

/// What is kept.
#[derive(Debug, Default)]
pub(super) struct History {
    kept: VecDeque<Past>,
    bytes: usize,
}

impl History {
    /// Keeps one more; what is too much then goes, the oldest first.
    pub(super) fn keep(&mut self, past: Past, messages: usize, bytes: usize) {
        self.bytes += past.bytes.len();
        self.kept.push_back(past);
        self.bound(messages, bytes);
    }

    /// Lets go of what is over these bounds.
    pub(super) fn bound(&mut self, messages: usize, bytes: usize) {
        while self.kept.len() > messages || self.bytes > bytes {
            let Some(oldest) = self.kept.pop_front() else { return };
            self.bytes -= oldest.bytes.len();
        }
    }

    /// The last `most` of those that `may` be seen, the oldest first; and whether there were more of them.
    pub(super) fn last(&self, most: usize, may: impl Fn(&Past) -> bool) -> (Vec<&Past>, bool) {
        let mut seen = self.kept.iter().rev().filter(|past| may(past));
        let mut last: Vec<&Past> = seen.by_ref().take(most).collect();
        last.reverse();
        (last, seen.next().is_some())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}
