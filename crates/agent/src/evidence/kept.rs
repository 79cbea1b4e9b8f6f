//! Tokens of callers, kept in memory for their next messages, and ids that were taken. Verifies none.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use audit::ect::EctFault;
use audit::ect::claims::EctClaims;
use audit::ect::replay::EctReplays;

/// Most bytes of tokens of a caller, and those of all.
const BYTES_OF_CALLER: usize = 512 << 10;
const BYTES: usize = 16 << 20;
/// Most taken ids of a caller, and those of all.
const IDS_OF_CALLER: usize = 1 << 14;
const IDS: usize = 1 << 17;
/// Bytes of a kept token beside its text: claims, and places in lists.
const BESIDE: usize = 512;

/// A token with its claims.
#[derive(Clone, Debug)]
pub struct KeptToken {
    pub claims: Arc<EctClaims>,
    pub text: Arc<str>,
}

impl KeptToken {
    /// Makes a token from verified claims.
    pub fn new(claims: EctClaims, text: &str) -> Self {
        Self { claims: Arc::new(claims), text: text.into() }
    }

    fn size(&self) -> usize {
        // The claims hold about as much as the text that they were read from.
        2 * self.text.len() + BESIDE
    }
}

/// Tokens and taken ids of all callers.
#[derive(Debug)]
pub struct KeptTokens {
    callers: HashMap<String, CallerTokens>,
    bytes: usize,
    taken: EctReplays,
}

/// Tokens and taken ids of one caller.
#[derive(Debug)]
struct CallerTokens {
    tokens: BTreeMap<String, KeptToken>,
    /// Ids, the oldest first.
    order: VecDeque<String>,
    bytes: usize,
    taken: EctReplays,
}

impl Default for KeptTokens {
    fn default() -> Self {
        Self { callers: HashMap::new(), bytes: 0, taken: EctReplays::new(IDS) }
    }
}

impl Default for CallerTokens {
    fn default() -> Self {
        Self { tokens: BTreeMap::new(), order: VecDeque::new(), bytes: 0, taken: EctReplays::new(IDS_OF_CALLER) }
    }
}

impl CallerTokens {
    /// Drops the oldest token; gives the bytes.
    fn drop_oldest(&mut self) -> usize {
        let Some(oldest) = self.order.pop_front().and_then(|id| self.tokens.remove(&id)) else { return 0 };
        self.bytes -= oldest.size();
        oldest.size()
    }
}

impl KeptTokens {
    /// Finds a token of `caller`. Tokens of others stay unknown.
    pub fn find(&self, caller: &str, id: &str) -> Option<&KeptToken> {
        self.callers.get(caller)?.tokens.get(id)
    }

    /// Takes the ids of tokens, each once, whoever sends them.
    ///
    /// # Errors
    /// When an id was taken before, or the memory of the caller or of all is full.
    pub fn admit_once(&mut self, caller: &str, tokens: &[EctClaims], now: u64) -> Result<(), EctFault> {
        self.forget(now);
        let own = self.callers.entry(caller.to_owned()).or_default();
        tokens.iter().try_for_each(|claims| own.taken.admit(claims, now).and_then(|()| self.taken.admit(claims, now)))
    }

    /// Keeps a token for `caller`. The oldest of the same caller gives way, or where all have too much, that of the largest.
    pub fn keep(&mut self, caller: &str, token: KeptToken) {
        let own = self.callers.entry(caller.to_owned()).or_default();
        if own.tokens.contains_key(&token.claims.id) {
            return;
        }
        let (id, size) = (token.claims.id.clone(), token.size());
        own.order.push_back(id.clone());
        own.tokens.insert(id, token);
        own.bytes += size;
        self.bytes += size;
        while own.bytes > BYTES_OF_CALLER {
            self.bytes -= own.drop_oldest();
        }
        while self.bytes > BYTES {
            let Some(largest) = self.callers.values_mut().max_by_key(|own| own.bytes) else { return };
            self.bytes -= largest.drop_oldest();
        }
    }

    /// Drops callers without a token and without a live id, once there are many.
    fn forget(&mut self, now: u64) {
        if self.callers.len() < 1024 {
            return;
        }
        self.callers.retain(|_, own| {
            own.taken.expire(now);
            !own.tokens.is_empty() || own.taken.count() > 0
        });
    }
}

#[cfg(test)]
mod tests {
    use audit::ect::EctDraft;

    use super::*;

    const NOW: u64 = 1_772_064_150;

    fn claims(number: usize) -> EctClaims {
        EctClaims {
            draft: EctDraft::Draft01,
            id: number.to_string(),
            issuer: None,
            audience: Vec::new(),
            issued: NOW,
            expires: NOW + 300,
            action: String::new(),
            workflow: None,
            parents: Vec::new(),
            input: None,
            output: None,
            extension: None,
        }
    }

    fn is_summed(kept: &KeptTokens) -> bool {
        let own = |own: &CallerTokens| {
            own.tokens.values().map(KeptToken::size).sum::<usize>() == own.bytes && own.order.len() == own.tokens.len()
        };
        kept.callers.values().all(own) && kept.callers.values().map(|own| own.bytes).sum::<usize>() == kept.bytes
    }

    #[test]
    fn an_id_is_taken_once_by_whomever() {
        let mut kept = KeptTokens::default();
        assert_eq!(kept.admit_once("alice", &[claims(1)], NOW), Ok(()));
        for caller in ["alice", "bob"] {
            assert_eq!(kept.admit_once(caller, &[claims(1)], NOW), Err(EctFault::Replayed("1".into())), "{caller}");
        }
        assert_eq!(kept.admit_once("bob", &[claims(2)], NOW), Ok(()));
    }

    #[test]
    fn ids_of_a_caller_and_of_all_are_bounded() {
        let mut kept = KeptTokens::default();
        for number in 0..IDS {
            assert_eq!(kept.admit_once(&(number / IDS_OF_CALLER).to_string(), &[claims(number)], NOW), Ok(()));
        }
        assert_eq!(kept.admit_once("0", &[claims(IDS)], NOW), Err(EctFault::Full(IDS_OF_CALLER)));
        assert_eq!(kept.admit_once("new", &[claims(IDS)], NOW), Err(EctFault::Full(IDS)));
        assert_eq!(kept.admit_once("new", &[claims(IDS)], NOW + 1_000), Ok(()), "expired ids make room");
    }

    #[test]
    fn tokens_of_a_caller_give_way_by_age() {
        let mut kept = KeptTokens::default();
        let text = "x".repeat(4096);
        kept.keep("bob", KeptToken::new(claims(0), &text));
        for number in 0..1000 {
            kept.keep("alice", KeptToken::new(claims(number), &text));
        }
        assert!(is_summed(&kept) && kept.callers["alice"].bytes <= BYTES_OF_CALLER);
        assert!(kept.find("alice", "999").is_some() && kept.find("alice", "0").is_none() && kept.find("bob", "0").is_some());
        assert!(kept.find("bob", "999").is_none(), "tokens of others stay unknown");
    }

    #[test]
    fn tokens_of_all_callers_have_a_bound() {
        let mut kept = KeptTokens::default();
        let text = "x".repeat(16 << 10);
        for number in 0..2000 {
            kept.keep(&(number % 100).to_string(), KeptToken::new(claims(number), &text));
        }
        assert!(is_summed(&kept) && kept.bytes <= BYTES && kept.bytes > BYTES / 2);
    }
}
