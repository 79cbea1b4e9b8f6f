//! The last messages of a room, for later participants. Bounded in number and in bytes all together. Does not know who may see a message:
//! the caller judges each.

use std::collections::VecDeque;
use std::time::SystemTime;

use bytes::Bytes;

use super::also::Also;
use crate::name::ParticipantId;

/// A message passed on earlier.
#[derive(Debug)]
pub(super) struct Past {
    pub(super) at: SystemTime,
    pub(super) bytes: Bytes,
    pub(super) from: ParticipantId,
    /// Empty: everybody.
    pub(super) to: Box<[Box<str>]>,
    pub(super) needed: Also,
}

/// The last messages.
#[derive(Debug, Default)]
pub(super) struct History {
    kept: VecDeque<Past>,
    bytes: usize,
}

impl History {
    /// Keeps a message, and drops the oldest beyond the bounds.
    pub(super) fn keep(&mut self, past: Past, messages: usize, bytes: usize) {
        self.bytes += past.bytes.len();
        self.kept.push_back(past);
        self.bound(messages, bytes);
    }

    /// Drops the oldest messages beyond these bounds.
    pub(super) fn bound(&mut self, messages: usize, bytes: usize) {
        while self.kept.len() > messages || self.bytes > bytes {
            let Some(oldest) = self.kept.pop_front() else { return };
            self.bytes -= oldest.bytes.len();
        }
    }

    /// Gives the last `most` of the visible messages, the oldest first, and tells whether there are more.
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
