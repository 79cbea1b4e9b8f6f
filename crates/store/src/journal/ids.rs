//! Ids of calls: the run's beginning, and a number. Ids are unique, and not kept here.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Number of a call in this run.
#[derive(Debug, Clone, Copy)]
pub struct CallId {
    pub number: u64,
}

/// Ids for the calls of one run.
#[derive(Debug)]
pub struct CallIds {
    run: Box<str>,
    next: AtomicU64,
}

impl CallIds {
    /// Makes ids that begin with the first 16 of these random hexadecimal digits.
    pub fn new(random: &str) -> Self {
        Self { run: random.get(..16).unwrap_or_default().into(), next: AtomicU64::new(0) }
    }

    /// Numbers a call that begins.
    pub fn next_call(&self) -> CallId {
        CallId { number: self.next.fetch_add(1, Relaxed) }
    }

    /// Spells an id as records do: the run's beginning, and the number.
    pub fn spelled(&self, call: CallId) -> String {
        let number = call.number;
        let digits = (u64::BITS - (number | 1).leading_zeros()).div_ceil(4);
        let mut id = String::with_capacity(40);
        id.push_str(&self.run);
        id.push('-');
        // By hand: every call has one, and a formatter takes as long as the rest of its record.
        id.extend((0..digits).rev().map(|place| char::from(b"0123456789abcdef"[usize::try_from(number >> (4 * place) & 15).unwrap_or(0)])));
        id
    }

    /// W3C trace context for a call without one, so that gates below record all parts under one trace.
    pub fn traceparent(&self, call: CallId) -> String {
        format!("00-{}{:016x}-{:016x}-00", self.run, call.number + 1, call.number + 1)
    }
}
