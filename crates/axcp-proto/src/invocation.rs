//! Calls of tools over a link: the messages, their bounds, and the keys under which a repeated call never runs twice. Runs no tool.
//!
//! The specification names no message for a call (decision 31 of ours): the three here have numbers of our own. The trace id of an envelope
//! ties a call, its results and its end together; a refusal is an [`crate::message::ErrorMessage`] with the same id.

use std::collections::BTreeMap;

use bytes::Bytes;
use json::{Duplicates, Members};
use sha2::{Digest, Sha256};

use crate::capability::MOST_TOOL_ID;
use crate::error::AxcpError;
use crate::message::{ErrorMessage, ToolInvoke, ToolOutcome, ToolResult};

/// Bytes of the arguments of a call.
pub const MOST_ARGUMENTS: usize = 1024 * 1024;
/// Bytes of the result of a call.
pub const MOST_RESULT: usize = 8 * 1024 * 1024;
/// Bytes of a key under which a repeated call runs once.
pub const MOST_KEY: usize = 128;
/// Keys of one peer at a time.
pub const MOST_KEYS: usize = 1024;
/// Milliseconds for which a key is kept behind the end of its call.
pub const KEY_KEPT: u64 = 600_000;
/// Bytes of results kept for repeated calls of one peer.
pub const MOST_KEPT: usize = 4 * 1024 * 1024;
/// Envelopes that wait for one and the same call.
pub const MOST_WAITING: usize = 8;

impl ToolInvoke {
    /// Checks the form of a call in an envelope with `trace_id`.
    ///
    /// # Errors
    /// When a member breaks its bound, the arguments are no object, or no trace id ties the answer to the call.
    pub fn check(&self, trace_id: &str) -> Result<(), AxcpError> {
        if trace_id.is_empty() {
            return Err(AxcpError::Malformed("a call has a trace id, which its answer repeats"));
        }
        if self.tool_id.is_empty() || self.tool_id.len() > MOST_TOOL_ID {
            return Err(AxcpError::Malformed("a call names a tool"));
        }
        if self.arguments.len() > MOST_ARGUMENTS {
            return Err(AxcpError::TooLarge { what: "the bytes of a call's arguments", most: MOST_ARGUMENTS });
        }
        if self.idempotency_key.len() > MOST_KEY {
            return Err(AxcpError::TooLarge { what: "the bytes of an idempotency key", most: MOST_KEY });
        }
        if !self.arguments.is_empty() && Members::parse(&self.arguments, Duplicates::RefuseDeep).is_err() {
            return Err(AxcpError::Malformed("the arguments of a call are no JSON object"));
        }
        Ok(())
    }

    /// Gives the arguments as a JSON object.
    pub fn object(&self) -> &[u8] {
        if self.arguments.is_empty() { b"{}" } else { &self.arguments }
    }

    /// Gives the hash of tool and arguments: a key stands for one call only.
    fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(self.tool_id.as_bytes());
        hash.update([0]);
        hash.update(self.object());
        hash.finalize().into()
    }
}

impl ToolResult {
    /// Makes the last word about a call.
    pub fn done(result: Bytes) -> Self {
        Self { outcome: ToolOutcome::Done.into(), result, words: String::new() }
    }

    /// Makes the news of a wait for people.
    pub fn waiting(words: &str) -> Self {
        Self { outcome: ToolOutcome::Waiting.into(), result: Bytes::new(), words: words.to_owned() }
    }

    /// Checks the last word of a peer: a JSON object within bounds.
    ///
    /// # Errors
    /// When the result is none.
    pub fn check(&self) -> Result<(), AxcpError> {
        if self.result.len() > MOST_RESULT {
            return Err(AxcpError::TooLarge { what: "the bytes of a result", most: MOST_RESULT });
        }
        let is_object = Members::parse(&self.result, Duplicates::RefuseDeep).is_ok();
        if is_object { Ok(()) } else { Err(AxcpError::Malformed("the result of a call is no JSON object")) }
    }
}

/// End of a call, kept for whoever repeats the call.
#[derive(Debug, Clone, PartialEq)]
pub enum KeptEnd {
    Result(Bytes),
    Refused(ErrorMessage),
    /// The result was too long to keep.
    Dropped,
}

/// Reaction to a call with a key.
#[derive(Debug, PartialEq)]
pub enum KeyedCall<W> {
    /// The key is new: run the call. The waiter comes back.
    Begins(W),
    /// The call runs already: the waiter is kept, and comes out at the end.
    Joins,
    /// The call has ended before. The waiter comes back.
    Ended(W, KeptEnd),
}

/// Keys of one peer's calls. `W` is whoever waits for the end of a repeated call.
#[derive(Debug)]
pub struct KeptCalls<W> {
    calls: BTreeMap<String, KeptCall<W>>,
    /// Bytes of all kept results.
    bytes: usize,
}

impl<W> Default for KeptCalls<W> {
    fn default() -> Self {
        Self { calls: BTreeMap::new(), bytes: 0 }
    }
}

#[derive(Debug)]
struct KeptCall<W> {
    digest: [u8; 32],
    state: KeptState<W>,
}

#[derive(Debug)]
enum KeptState<W> {
    Runs(Vec<W>),
    Ended { end: KeptEnd, until: u64 },
}

impl<W> KeptCalls<W> {
    /// Begins the call of a key at `now`, in milliseconds, or finds the one call that the key stands for.
    ///
    /// # Errors
    /// When the key stands for another call, or there is no room for a further key or a further waiter.
    pub fn begin(&mut self, invoke: &ToolInvoke, waiter: W, now: u64) -> Result<KeyedCall<W>, AxcpError> {
        let digest = invoke.digest();
        self.forget_old(now);
        if let Some(known) = self.calls.get_mut(&invoke.idempotency_key) {
            if known.digest != digest {
                return Err(AxcpError::Malformed("the idempotency key is that of another call: give each call a key of its own"));
            }
            return match &mut known.state {
                KeptState::Ended { end, .. } => Ok(KeyedCall::Ended(waiter, end.clone())),
                KeptState::Runs(waiting) if waiting.len() >= MOST_WAITING => {
                    Err(AxcpError::TooMany("the call was repeated too often while it runs: wait for its answer"))
                }
                KeptState::Runs(waiting) => {
                    waiting.push(waiter);
                    Ok(KeyedCall::Joins)
                }
            };
        }
        if self.calls.len() >= MOST_KEYS {
            return Err(AxcpError::TooMany("too many idempotency keys are in use: each is kept for ten minutes behind its call"));
        }
        self.calls.insert(invoke.idempotency_key.clone(), KeptCall { digest, state: KeptState::Runs(Vec::new()) });
        Ok(KeyedCall::Begins(waiter))
    }

    /// Notes the end of the call of `key`, and gives whoever waits for it. A long result makes older ones go, and their keys stay.
    pub fn end_call(&mut self, key: &str, end: &KeptEnd, now: u64) -> Vec<W> {
        let size = size(end);
        let kept = if size > MOST_KEPT { KeptEnd::Dropped } else { end.clone() };
        self.make_room(size);
        let Some(call) = self.calls.get_mut(key) else { return Vec::new() };
        self.bytes += self::size(&kept);
        let ended = KeptState::Ended { end: kept, until: now.saturating_add(KEY_KEPT) };
        match std::mem::replace(&mut call.state, ended) {
            KeptState::Runs(waiting) => waiting,
            KeptState::Ended { end, .. } => {
                self.bytes = self.bytes.saturating_sub(self::size(&end));
                Vec::new()
            }
        }
    }

    /// Forgets a call that never left, so that the key may begin it again. Gives whoever waits for it.
    pub fn forget(&mut self, key: &str) -> Vec<W> {
        match self.calls.remove(key).map(|call| call.state) {
            Some(KeptState::Runs(waiting)) => waiting,
            Some(KeptState::Ended { end, .. }) => {
                self.bytes = self.bytes.saturating_sub(size(&end));
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    fn forget_old(&mut self, now: u64) {
        let bytes = &mut self.bytes;
        self.calls.retain(|_, call| match &call.state {
            KeptState::Ended { end, until } if *until <= now => {
                *bytes = bytes.saturating_sub(size(end));
                false
            }
            KeptState::Ended { .. } | KeptState::Runs(_) => true,
        });
    }

    /// Drops kept results, those that end first, until `size` bytes more fit.
    fn make_room(&mut self, size: usize) {
        if size > MOST_KEPT || self.bytes + size <= MOST_KEPT {
            return;
        }
        let ended = self.calls.iter().filter_map(|(key, call)| match &call.state {
            KeptState::Ended { end, until } if self::size(end) > 0 => Some((*until, key.clone())),
            KeptState::Ended { .. } | KeptState::Runs(_) => None,
        });
        let mut oldest: Vec<_> = ended.collect();
        oldest.sort();
        for (_, key) in oldest {
            if self.bytes + size <= MOST_KEPT {
                return;
            }
            if let Some(KeptState::Ended { end, .. }) = self.calls.get_mut(&key).map(|call| &mut call.state) {
                self.bytes = self.bytes.saturating_sub(self::size(end));
                *end = KeptEnd::Dropped;
            }
        }
    }
}

/// Bytes of a kept end.
fn size(end: &KeptEnd) -> usize {
    match end {
        KeptEnd::Result(result) => result.len(),
        KeptEnd::Refused(refused) => refused.reason.len() + refused.diagnostics.len(),
        KeptEnd::Dropped => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn invoke(key: &str, arguments: &'static str) -> ToolInvoke {
        ToolInvoke { tool_id: "plant.read".into(), arguments: arguments.into(), timeout_ms: 0, idempotency_key: key.into() }
    }

    #[test]
    fn xc_21_a_call_has_a_form() {
        assert_eq!(invoke("", "").check("t"), Ok(()));
        assert_eq!(invoke("k", "{\"a\":1}").check("t"), Ok(()));
        assert_eq!(invoke("", "").check("").unwrap_err().code().number(), 8);
        for bad in ["[]", "{", "{}x", "{\"a\":{\"b\":1,\"b\":2}}", "7"] {
            assert_eq!(invoke("", bad).check("t").unwrap_err().code().number(), 8, "{bad}");
        }
        assert!(ToolInvoke { tool_id: String::new(), ..invoke("", "") }.check("t").is_err());
        let long = ToolInvoke { arguments: vec![b' '; MOST_ARGUMENTS + 1].into(), ..invoke("", "") };
        assert_eq!(long.check("t").unwrap_err().code().number(), 7);
        assert_eq!(invoke(&"k".repeat(MOST_KEY + 1), "").check("t").unwrap_err().code().number(), 7);
    }

    #[test]
    fn xc_21_a_result_is_an_object_within_bounds() {
        assert_eq!(ToolResult::done(Bytes::from_static(b"{\"content\":[]}")).check(), Ok(()));
        assert!(ToolResult::done(Bytes::from_static(b"[]")).check().is_err());
        assert_eq!(ToolResult::done(vec![b' '; MOST_RESULT + 1].into()).check().unwrap_err().code().number(), 7);
    }

    #[test]
    fn xc_21_a_repeated_key_never_runs_twice() {
        let mut calls = KeptCalls::default();
        assert_eq!(calls.begin(&invoke("k", "{}"), 1, 0), Ok(KeyedCall::Begins(1)));
        assert_eq!(calls.begin(&invoke("k", ""), 2, 1), Ok(KeyedCall::Joins));
        let end = KeptEnd::Result(Bytes::from_static(b"{\"n\":1}"));
        assert_eq!(calls.end_call("k", &end, 5), [2]);
        for now in [6, KEY_KEPT + 4] {
            assert_eq!(calls.begin(&invoke("k", "{}"), 3, now), Ok(KeyedCall::Ended(3, end.clone())));
        }
        assert_eq!(calls.begin(&invoke("k", "{}"), 4, KEY_KEPT + 5), Ok(KeyedCall::Begins(4)), "the time of the key is over");
        assert_eq!(calls.bytes, 0);
    }

    #[test]
    fn xc_21_a_key_stands_for_one_call() {
        let mut calls = KeptCalls::default();
        calls.begin(&invoke("k", "{}"), (), 0).unwrap();
        assert_eq!(calls.begin(&invoke("k", "{\"a\":1}"), (), 0).unwrap_err().code().number(), 8);
        assert_eq!(calls.begin(&ToolInvoke { tool_id: "other".into(), ..invoke("k", "{}") }, (), 0).unwrap_err().code().number(), 8);
    }

    #[test]
    fn xc_21_keys_and_their_results_are_bounded() {
        let mut calls = KeptCalls::default();
        for number in 0..MOST_KEYS {
            assert!(calls.begin(&invoke(&number.to_string(), ""), (), 0).is_ok());
        }
        assert_eq!(calls.begin(&invoke("more", ""), (), 0).unwrap_err().code().number(), 9);
        let long = KeptEnd::Result(vec![b' '; MOST_KEPT / 2].into());
        for number in 0..4 {
            calls.end_call(&number.to_string(), &long, number);
            assert!(calls.bytes <= MOST_KEPT);
        }
        assert_eq!(calls.begin(&invoke("0", ""), (), 5), Ok(KeyedCall::Ended((), KeptEnd::Dropped)));
        assert_eq!(calls.begin(&invoke("3", ""), (), 5), Ok(KeyedCall::Ended((), long)));
        calls.end_call("9", &KeptEnd::Result(vec![b' '; MOST_KEPT + 1].into()), 5);
        assert_eq!(calls.begin(&invoke("9", ""), (), 5), Ok(KeyedCall::Ended((), KeptEnd::Dropped)));
        assert!((0..MOST_WAITING).all(|_| calls.begin(&invoke("5", ""), (), 5).is_ok()));
        assert_eq!(calls.begin(&invoke("5", ""), (), 5).unwrap_err().code().number(), 9);
        assert_eq!(calls.forget("5").len(), MOST_WAITING);
    }
}
